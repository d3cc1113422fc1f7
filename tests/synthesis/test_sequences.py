"""Steps that paid together are kept, carried to other tasks and made at once."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.moves import steps
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.search import Search
from evokernel_core.synthesis.sequences import gained_by_steps, steps_of
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from evokernel_core.targets.ascendc.target import ascendc
from tests.synthesis.conftest import ToyVerifier, make_task, source_of
from tests.synthesis.test_residual import CHIP, timed
from tests.synthesis.test_schedule_drafts import task  # noqa: F401 - a fixture

TASK = make_task(0)


def chain(*names: str) -> tuple[Search, Candidate]:
    """A search whose kernels were made one from the other, and the last of them, which it has not seen."""
    search, verifier = Search(TASK, 10), ToyVerifier()
    on: frozenset[str] = frozenset()
    parent, made = "", None
    for name in ("", *names):
        if made is not None:
            search.add(made)
        on |= {name} - {""}
        source = source_of(on, f"turn on {name}" if name else "")
        made = Candidate(source, verifier.verify(TASK, source), parent)
        parent = source.source_id
    assert made is not None
    return search, made


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (("a2", "double"), ("turn on a2", "turn on double")),
        (("double", "wide", "split"), ("turn on double", "turn on wide", "turn on split")),
        (("a1", "double", "wide", "split"), ("turn on double", "turn on wide", "turn on split")),
        (("double",), ()),
        ((), ()),
        (("double", "a1"), ()),
    ],
)
def test_steps_that_led_to_a_new_best(names: tuple[str, ...], steps: tuple[str, ...]) -> None:
    search, last = chain(*names)
    found = gained_by_steps(last, search)
    assert (steps_of(found[0]) if found else ()) == steps
    if found:
        assert found[0].bottleneck == "MTE2" and found[1] > 1.0
        assert TASK.name not in found[0].title + found[0].body + found[0].payload


def test_steps_that_were_made_at_once_are_told_apart() -> None:
    search, last = chain("a2", "double")
    at_once = evolve(
        last.source, strategy=evolve(last.source.strategy, move="turn on a2, then turn on double")
    )
    whole = Candidate(at_once, last.verdict, search.candidates[0].source.source_id)
    found = gained_by_steps(whole, search)
    assert found is not None and steps_of(found[0]) == ("turn on a2", "turn on double")
    from_best = evolve(at_once, strategy=evolve(at_once.strategy, move="analytic schedule"))
    assert gained_by_steps(evolve(whole, source=from_best), search) is None


def test_a_failure_is_no_gain_where_nothing_is_known_yet() -> None:
    assert gained_by_steps(chain("x_overflow", "y_overflow")[1], Search(TASK, 10)) is None


def sequence(*steps: str) -> Experience:
    payload = json.dumps({"family": "rowwise", "steps": steps})
    return Experience("1", ExperienceKind.SEQUENCE, ", then ".join(steps), "", payload=payload)


def test_a_sequence_is_made_at_once(task: KernelTask) -> None:  # noqa: F811
    proposer = ScheduleProposer(ascendc(CHIP))
    analytic = initial(task, CHIP)
    start = timed(task, proposer.draft(task, Context()).source, estimate_us(task, analytic, CHIP))
    near = {step.source.source_id for step in steps(ById(task), start.source.strategy, ascendc(CHIP))}
    near.add(start.source.source_id)
    first, second = next(
        (one, two)
        for one in moves(task, analytic, CHIP)
        for two in moves(task, one.strategy, CHIP)
        if write(task, two.strategy, CHIP).source_id not in near
    )
    item = sequence(first.name, second.name)
    context = Context(start=start, experiences=(item,))
    assert item in proposer.practices(task, context)
    tried: frozenset[str] = frozenset()
    made = []
    for _ in range(len(near)):
        made.append(proposer.refine(task, evolve(context, tried=tried)))
        tried |= {made[-1].source.source_id}
    [whole] = [item for item in made if item.source.strategy.settings == second.strategy.settings]
    assert whole.used == ("1",) and whole.source.strategy.move == f"{first.name}, then {second.name}"


@pytest.mark.parametrize(
    "item",
    [
        sequence("no such step", "halve tile"),
        sequence(),
        Experience("1", ExperienceKind.SEQUENCE, "t", "b", payload="{"),
        Experience("1", ExperienceKind.SEQUENCE, "t", "b", payload='{"steps": [1, 2]}'),
        Experience("1", ExperienceKind.PRACTICE, "t", "b", payload='{"steps": ["halve tile"]}'),
    ],
    ids=["unknown step", "empty", "no JSON", "numbers", "another kind"],
)
def test_what_fits_no_kernel_is_not_offered(task: KernelTask, item: Experience) -> None:  # noqa: F811
    proposer = ScheduleProposer(ascendc(CHIP))
    start = timed(task, proposer.draft(task, Context()).source, 100.0)
    assert item not in proposer.practices(task, Context(start=start, experiences=(item,)))
