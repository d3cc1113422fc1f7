"""Training samples: feasible first steps, and later steps only where they were faster."""

from __future__ import annotations

from collections.abc import Callable

from evokernel_core.domain.task import KernelTask
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
