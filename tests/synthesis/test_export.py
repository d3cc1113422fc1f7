"""Training samples: feasible first steps, and later steps only where they were faster."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import SLOWER, GateName, GateResult, GateStatus
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.export import samples


def test_only_gains_are_kept(engine: Engine, toy_task: Callable[..., KernelTask]) -> None:
    engine.run(toy_task(1), 40)
    found = list(samples(engine.memory))
    first = [sample for sample in found if sample["parent"] is None]
    later = [sample for sample in found if sample["parent"]]
    assert len(first) == 1
    assert first[0]["gain"] is None
    assert later
    assert all(sample["gain"] > 1.0 for sample in later)
    assert all("Verified" in sample["child"]["feedback"] for sample in found)
    assert len(list(samples(engine.memory, per_task=2))) == 2


def test_a_step_from_a_kernel_that_was_timed_only_is_none(
    toy_engine: Callable[..., Engine], toy_task: Callable[..., KernelTask]
) -> None:
    """What another verifier has compared may be no more than timed by the one that judged the step."""
    task = toy_task(1)
    engine = toy_engine()
    engine.run(task, 40)
    memory = engine.memory
    steps = [sample for sample in samples(memory) if sample["parent"]]
    gate = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER)
    for item in memory.candidates(task.task_id):
        is_parent = item.source.op_kernel_cpp in {step["parent"]["op_kernel_cpp"] for step in steps}
        gates = (gate,) if is_parent else item.verdict.gates
        memory.record_verdict(evolve(item.verdict, gates=gates, verifier="toy 2"), "toychip")
    memory.delete("verdicts", "verifier <> 'toy 2'")
    assert steps
    assert not [sample for sample in samples(memory) if sample["parent"]]
