"""What verdicts teach about estimates, and that the next schedule is chosen by it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import strategies as st

from evokernel_core.compiler.features import schedule_features
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import Latency, LatencySource, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.preconditions import preconditions
from evokernel_core.synthesis.proposers.base import Candidate, Context, Priced, Proposal
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.residual import AS_ESTIMATED, FEWEST, learned, trust
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves
from evokernel_core.targets.ascendc.target import ascendc
from tests import tables
from tests.synthesis.conftest import EFFECTS, ToyProposer, ToyVerifier, switches_of
from tests.synthesis.test_schedule_drafts import task  # noqa: F401 - a fixture

CHIP = load_chip("ascend910b1")


class PricedProposer(ToyProposer):
    """Says of each kernel what it takes, wrongly."""

    def draft(self, task: KernelTask, context: Context) -> Proposal:  # noqa: F811
        return self._priced(super().draft(task, context))

    def refine(self, task: KernelTask, context: Context) -> Proposal:  # noqa: F811
        return self._priced(super().refine(task, context))

    def _priced(self, proposal: Proposal) -> Proposal:
        on = switches_of(proposal.source)
        features = tuple((f"toy.{name}={name in on}", 0.3) for name in sorted(EFFECTS))
        return evolve(proposal, priced=Priced("toy", 100.0, features))


def record(number: int, features: dict[str, float], residual: float, **changes: object) -> TuningRecord:
    made = TuningRecord(
        "task",
        str(number),
        "chip",
        "twin",
        "rowwise",
        100.0,
        100.0 * math.exp(residual),
        tuple(sorted(features.items())),
    )
    return evolve(made, **changes)


def drawn(rng: random.Random) -> dict[str, float]:
    return {"rowwise.rows": rng.random(), "rowwise.buffers": rng.random(), "family:rowwise": 1.0}


def truth(features: dict[str, float]) -> float:
    return 0.3 - 0.5 * features["rowwise.rows"] + 0.2 * features["rowwise.buffers"] ** 2


def test_few_samples_say_nothing() -> None:
    few = [record(n, {"a": 1.0}, 0.5) for n in range(FEWEST - 1)]
    assert learned(few).of([{"a": 1.0}]) == (AS_ESTIMATED,)
    assert AS_ESTIMATED.factor == AS_ESTIMATED.spread == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_fifty_verdicts_halve_the_error_on_others(seed: int) -> None:
    rng = random.Random(seed)
    model = learned([record(n, (f := drawn(rng)), truth(f) + rng.gauss(0, 0.02)) for n in range(50)])
    fresh = [drawn(rng) for _ in range(50)]
    errors = [abs(truth(f) - found.mean) for f, found in zip(fresh, model.of(fresh), strict=True)]
    assert sum(errors) <= 0.5 * sum(abs(truth(f)) for f in fresh)


def test_a_handful_moves_the_estimate_and_says_how_sure_it_is() -> None:
    features = {"rowwise.rows": 0.5, "family:rowwise": 1.0}
    known = [learned([record(n, features, 0.4) for n in range(count)]) for count in (3, 6, 15)]
    found = [model.of([features], "task")[0] for model in known]
    assert all(0.2 < item.mean <= 0.41 for item in found)
    assert [item.deviation for item in found] == sorted((item.deviation for item in found), reverse=True)
    elsewhere = known[-1].of([features], "another")[0]
    assert elsewhere.deviation > found[-1].deviation and elsewhere.spread > found[-1].spread


def test_far_from_what_was_tried_less_is_sure() -> None:
    rng = random.Random(0)
    model = learned([record(n, (f := drawn(rng)), truth(f)) for n in range(30)])
    [near, far] = model.of([drawn(rng), {"matmul.base_m": 1.0, "rowwise.rows": 3.0}])
    assert far.deviation > near.deviation and far.spread > near.spread


@pytest.mark.parametrize("seed", range(5))
def test_what_sets_tasks_apart_is_not_taken_for_what_sets_schedules_apart(seed: int) -> None:
    """Tasks are off by different factors, and the feature that happens to go with them says nothing."""
    rng = random.Random(seed)
    offsets = {f"task {n}": rng.choice((-0.4, 0.0, 0.4)) for n in range(8)}
    records = [
        record(n, {"rowwise.rows": rng.random(), f"rowwise.way={name}": 0.3}, off, task_id=name)
        for n in range(6)
        for name, off in offsets.items()
    ]
    many = [{"rowwise.rows": rng.random(), f"rowwise.way={name}": 0.3} for name in offsets]
    found = [item.mean for item in learned(records).of(many, "a new task")]
    assert max(found) - min(found) < 0.05


def check_that_expectations_are_finite(residuals: list[float], at: float) -> None:
    model = learned([record(n, {"x": n / 10}, value) for n, value in enumerate(residuals)])
    [found] = model.of([{"x": at, "new": 1.0}])
    assert math.isfinite(found.mean) and 0 <= found.deviation < math.inf
    assert found.factor > 0 and found.spread >= 1.0


test_any_verdicts_give_finite_expectations, test_many_verdicts_give_finite_expectations = tables.drawn(
    check_that_expectations_are_finite,
    few=25,
    many=100,
    residuals=st.lists(st.floats(-2, 2), min_size=3, max_size=30),
    at=st.floats(-3, 3),
)


def test_failures_have_no_residual() -> None:
    failed = [record(n, {"x": 1.0}, 0.0, latency_us=None, failure="correctness:alignment") for n in range(9)]
    assert not learned(failed).is_known
    with pytest.raises(ValueError, match="failed"):
        _ = failed[0].residual


def timed(task: KernelTask, source: KernelSource, us: float) -> Candidate:  # noqa: F811
    latency = Latency(us, LatencySource.MODELLED, CHIP.name, 8, (("V", us),), "V", 1.0, 2 * us)
    return Candidate(source, Verdict(task.task_id, source.source_id, "twin", (), latency))


def taught(task: KernelTask, right: Strategy, others: list[Strategy]) -> tuple[TuningRecord, ...]:  # noqa: F811
    """Verdicts of an unknown chip on three other tasks: one schedule is as estimated, all others take thrice
    as long."""
    records = []
    for number, strategy in enumerate([right, *others] * 3):
        us = estimate_us(task, strategy, CHIP)
        features = schedule_features(task, strategy, us)
        found = record(number, features, 0.0 if strategy == right else math.log(3.0))
        latency_us = us * math.exp(found.residual)
        name = f"another {number // (1 + len(others))}"
        records.append(evolve(found, task_id=name, estimate_us=us, latency_us=latency_us))
    return tuple(records)


def told_apart(analytic: Strategy, others: list[Strategy]) -> list[Strategy]:
    """Those that differ in more than how large a tile is: by a few rows, what is said of one is said of the
    next."""
    chosen = [item for item in others if item.setting("tile") == analytic.setting("tile")]
    assert len(chosen) > 1
    return chosen


def test_the_first_draft_is_what_verdicts_elsewhere_speak_for(task: KernelTask) -> None:  # noqa: F811
    analytic = initial(task, CHIP)
    others = [move.strategy for move in moves(task, analytic, CHIP)]
    proposer, context = ScheduleProposer(ascendc(CHIP)), Context()
    assert proposer.draft(task, context).source.strategy.settings == analytic.settings
    right = told_apart(analytic, others)[0]
    taught_context = evolve(context, residual=learned(taught(task, right, [analytic, *others[1:]])))
    assert proposer.draft(task, taught_context).source.strategy.settings == right.settings


def test_the_next_step_is_what_verdicts_elsewhere_speak_for(task: KernelTask) -> None:  # noqa: F811
    analytic = initial(task, CHIP)
    others = [move.strategy for move in moves(task, analytic, CHIP)]
    proposer = ScheduleProposer(ascendc(CHIP))
    first = proposer.draft(task, Context()).source
    start = timed(task, first, 3 * estimate_us(task, analytic, CHIP))
    for right in told_apart(analytic, others):
        rest = [analytic, *(item for item in others if item != right)]
        context = Context(start=start, residual=learned(taught(task, right, rest)))
        assert proposer.refine(task, context).source.strategy.settings == right.settings


def test_samples_are_kept_by_kernel_chip_and_source(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db") as memory:
        for number in range(3):
            memory.record_tuning(record(number, {"x": number}, 0.1))
        memory.record_tuning(record(1, {"x": 5.0}, 0.2))
        found = memory.tuning_records("chip", "twin")
        assert [item.source_id for item in found] == ["1", "2", "0"]
        assert found[0] == record(1, {"x": 5.0}, 0.2)
        assert len(memory.tuning_records("chip", "twin", 2)) == 2
        assert memory.tuning_records("another chip", "twin") == ()
        measured = record(1, {"x": 1.0}, 0.3, verifier="cann@host", source=LatencySource.MEASURED)
        memory.record_tuning(measured)
        assert memory.tuning_records("chip", "cann@host") == (measured,)
        assert len(memory.tuning_records("chip", "twin")) == 3
        assert memory.judges("chip") == ("cann@host", "twin")
        memory.forget_task("task")
        assert memory.tuning_records("chip", "twin") == ()


@pytest.mark.parametrize("source", LatencySource)
def test_failures_and_successes_of_a_verifier_are_learned_from_together(
    source: LatencySource, toy_task: Callable[..., KernelTask], memory: Memory
) -> None:
    verifier = ToyVerifier(name="toy@a-chip", source=source)
    settings = Settings(chip="toychip")
    for number in range(2):
        engine = Engine(memory, verifier, PricedProposer(), QValuePolicy(), settings)
        engine.run(toy_task(number), 25)
    found = memory.tuning_records("toychip", verifier.name)
    assert {item.source for item in found} == {source, None}
    assert sum(bool(item.failure) for item in found) > 3 < sum(not item.failure for item in found)
    words = [item.rule().title for item in preconditions(found)]
    assert all("overflow" in said for said in words), words


def test_ends_of_what_is_likely_hold_about_two_thirds_of_verdicts() -> None:
    rng = random.Random(3)
    residuals = [rng.gauss(0, 0.7) for _ in range(60)]
    [found] = trust([record(n, {"x": 1.0}, value) for n, value in enumerate(residuals)])
    inside = sum(found.low <= math.exp(value) <= found.high for value in residuals)
    assert 0.5 < inside / len(residuals) < 0.85


def test_without_features_all_schedules_are_off_alike() -> None:
    [one, other] = learned([record(n, {}, 0.1) for n in range(9)]).of([{}, {"x": 1.0}])
    assert one == other and 0.0 < one.mean < 0.11
