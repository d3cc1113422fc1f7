"""Rules from schedules that failed: what separates them from those that passed, in words, and tried last."""

from __future__ import annotations

import math
import random

import pytest
from attrs import evolve

from evokernel_core.ascendc.author import estimate_us, initial, moves
from evokernel_core.ascendc.features import schedule_features
from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.synthesis.preconditions import Condition, preconditions
from evokernel_core.synthesis.proposers.base import Context
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
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
    ("condition", "words"),
    [
        (Condition("rowwise.tile", log(4096), True), "tile of 4096 or more"),
        (Condition("rowwise.tile", log(4096), False), "tile below 4096"),
        (Condition("log_last_dim", 1.0, True), "last dim of 1024 or more"),
        (Condition("rowwise.form=stream", 0.15, True), "form stream"),
        (Condition("rowwise.form=stream", 0.15, False), "no form stream"),
        (Condition("dtype:float16", 0.5, True), "dtype:float16"),
    ],
)
def test_words_of_conditions(condition: Condition, words: str) -> None:
    assert condition.words() == words


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
    proposer, seen = ScheduleProposer(CHIP), []
    for _ in range(len(strategies)):
        context = Context(tried=frozenset(source.source_id for source in seen), preconditions=known)
        seen.append(proposer.draft(task, context).source)
    failing = [source.strategy.setting("form") == analytic.setting("form") for source in seen]
    assert failing == sorted(failing) and not all(failing)
