"""Rules from schedules that failed: what separates them from those that passed, in words, and tried last."""

from __future__ import annotations

import math
import random
import re

import pytest
from attrs import evolve

from evokernel_core.compiler.features import schedule_features
from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.synthesis.preconditions import Condition, preconditions
from evokernel_core.synthesis.proposers.base import Context
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves
from evokernel_core.targets.ascendc.target import ascendc
from tests.synthesis.conftest import make_task
from tests.synthesis.test_residual import CHIP, record
from tests.synthesis.test_schedule_drafts import task  # noqa: F401 - a fixture

FAILURE = "correctness:ub-capacity"


def log(value: float) -> float:
    return math.log2(1 + value) / 10


def tried(number: int, rows: int, fails: bool, family: str = "rowwise") -> TuningRecord:
    made = record(number, {f"{family}.rows": log(rows), f"family:{family}": 1.0}, 0.0)
    made = evolve(made, family=family, task_id=f"task {number % 4}")
    return evolve(made, latency_us=None, failure=FAILURE) if fails else made


def test_a_threshold_is_found_and_said_in_numbers() -> None:
    rng = random.Random(0)
    rows = [rng.choice((8, 16, 32, 64, 128, 256)) for _ in range(40)]
    found = preconditions(tried(n, r, r >= 128) for n, r in enumerate(rows))
    [item] = found
    assert item.failed == item.tried == sum(r >= 128 for r in rows) and item.tasks == 4
    rule = item.rule()
    assert rule.kind is ExperienceKind.RULE
    assert rule.title.startswith("You cannot use a rowwise schedule with rows of ")
    assert 64 < float(rule.title.split(" of ")[1].split()[0]) <= 128 and rule.title.endswith("ub-capacity.")
    assert item.forbids("rowwise", {"rowwise.rows": log(256)})
    assert not item.forbids("rowwise", {"rowwise.rows": log(64)})
    assert not item.forbids("matmul", {"rowwise.rows": log(256)})


def test_a_family_that_always_fails_has_no_condition() -> None:
    [item] = preconditions(tried(n, 8 * n, True) for n in range(6))
    assert item.conditions == () and item.rule().title == "You cannot use a rowwise schedule: ub-capacity."


@pytest.mark.parametrize(
    "records",
    [
        [tried(n, 8, n % 2 == 0) for n in range(20)],  # nothing separates them
        [tried(n, 8 if n < 18 else 256, n >= 18) for n in range(20)],  # two failures may be chance
        [evolve(tried(n, 8 if n < 10 else 256, n >= 10), task_id="one") for n in range(20)],  # one task
    ],
    ids=["mixed", "two failures", "one task"],
)
def test_what_may_be_chance_is_no_rule(records: list[TuningRecord]) -> None:
    assert preconditions(records) == ()


@pytest.mark.parametrize(
    ("below", "above", "words", "other"),
    [
        ("rows=64", "rows=128", "rows of {} or more", "rows below {}"),
        ("rows=1", "rows=2", "rows of 2 or more", "rows below 2"),
        ("columns=0", "columns=1", "columns of 1 or more", "columns below 1"),
        ("offset=-1", "offset=0", "offset of 0 or more", "offset below 0"),
    ],
)
def test_numbers_of_a_rule_hold_for_exactly_one_of_two_neighbours(
    below: str, above: str, words: str, other: str
) -> None:
    name = below.partition("=")[0]
    low, high = (int(text.partition("=")[2]) for text in (below, above))

    def features(value: int) -> dict[str, float]:
        strategy = Strategy("rowwise", {name: value})
        return schedule_features(make_task(0), strategy, 10.0)

    for fails, said in ((high, words), (low, other)):
        records = []
        for n in range(12):
            value = (low, high)[n % 2]
            made = evolve(record(n, features(value), 0.0), task_id=f"task {n % 3}")
            failed = evolve(made, latency_us=None, failure=FAILURE)
            records.append(failed if value == fails else made)
        [item] = preconditions(records)
        assert low < int(re.findall(r"-?\d+", item.rule().title)[0]) <= high
        assert re.sub(r"-?\d+", "{}", said) in re.sub(r"-?\d+", "{}", item.rule().title)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Condition("log_last_dim", 1.0, True), "last dim of 1024 or more"),
        (Condition("rowwise.form=stream", 0.15, True), "form stream"),
        (Condition("rowwise.form=stream", 0.15, False), "no form stream"),
        (Condition("rowwise.online=True", 0.15, True), "online True"),
        (Condition("dtype:float16", 0.5, True), "dtype:float16"),
        (Condition("kernels", log(2), True), "kernels of 2 or more"),
        (Condition("log_estimate", math.log2(250) / 10, False), "estimate below 250 us"),
        (Condition("matmul.base_m", log(128), True), "base m of its matmul kernel of 128 or more"),
    ],
)
def test_words_of_conditions(condition: Condition, words: str) -> None:
    assert condition.words("rowwise") == words


def test_a_number_that_a_schedule_does_not_have_is_not_below_anything() -> None:
    condition = Condition("matmul.base_m", log(128), False)
    assert condition.holds({"matmul.base_m": log(64)}) and not condition.holds({})
    assert Condition("rowwise.form=stream", 0.15, False).holds({})


def test_schedules_that_a_rule_speaks_of_come_last(task: KernelTask) -> None:  # noqa: F811
    analytic = initial(task, CHIP)
    strategies = [analytic, *(move.strategy for move in moves(task, analytic, CHIP))]
    records = []
    for number, strategy in enumerate(strategies * 4):
        us = estimate_us(task, strategy, CHIP)
        fails = strategy.setting("form") == analytic.setting("form")
        made = record(number, schedule_features(task, strategy, us), 0.0)
        made = evolve(made, task_id=f"task {number // len(strategies)}", family=strategy.family)
        records.append(evolve(made, latency_us=None, failure=FAILURE) if fails else made)
    known = preconditions(records)
    assert known
    proposer, seen = ScheduleProposer(ascendc(CHIP)), []
    for _ in range(len(strategies)):
        context = Context(tried=frozenset(source.source_id for source in seen), preconditions=known)
        seen.append(proposer.draft(task, context).source)
    failing = [source.strategy.setting("form") == analytic.setting("form") for source in seen]
    assert failing == sorted(failing) and not all(failing)
