"""Schedules that describe themselves: what follows of what their fields say."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

import pytest
from attrs import evolve, fields, frozen

from evokernel_core.compiler.schedule import (
    Listed,
    Named,
    OneOf,
    Range,
    Scaled,
    Schedule,
    Shifted,
    Stages,
    Word,
)
from evokernel_core.domain.descriptor import Overlap
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.registry import FAMILIES


def _whole_rows(before: Rows, after: Rows) -> Rows:
    return evolve(after, tile=max(after.tile, 1024))


@frozen
class Rows(Schedule):
    tile: Annotated[int, Word("elements"), Range(64, 4096, unit=64), Scaled("larger", "smaller", unit=64)]
    steps: Annotated[int, Range(power_of_two=True), Shifted("more", "fewer", 2)] = 1
    width: Annotated[
        int, OneOf((0, 32, 128), when=attrgetter("whole")), Listed("up", "down", (32, 64, 128))
    ] = 32
    whole: Annotated[bool, Named({True: "whole", False: "parts"}, also=_whole_rows)] = False
    buffers: Annotated[int, Stages(1, 4), Named({2: "double", 1: "single"}, when=attrgetter("whole"))] = 1
    free: int = 0


HERE = Rows(192)


@pytest.mark.parametrize(
    ("here", "names", "changes"),
    [
        (HERE, ("tile",), [("larger", evolve(HERE, tile=384)), ("smaller", evolve(HERE, tile=64))]),
        (HERE, ("steps",), [("more", evolve(HERE, steps=3)), ("fewer", evolve(HERE, steps=-1))]),
        (HERE, ("width",), [("up", evolve(HERE, width=64))]),
        (evolve(HERE, width=100), ("width",), [("down", evolve(HERE, width=64))]),
        (HERE, ("whole",), [("whole", evolve(HERE, whole=True, tile=1024))]),
        (HERE, ("buffers", "free"), []),
        (evolve(HERE, whole=True), ("buffers",), [("double", evolve(HERE, whole=True, buffers=2))]),
    ],
)
def test_changes_have_the_names_that_fields_give_them(
    here: Rows, names: tuple[str, ...], changes: list[tuple[str, Rows]]
) -> None:
    assert list(here.neighbours(*names)) == changes
    assert [change for change in here.neighbours() if change in changes] == changes


@pytest.mark.parametrize(
    ("scaled", "value", "values"),
    [
        (Scaled("up", "down"), 5, [10, 2]),
        (Scaled("up", "down", unit=16, rounds_up=True), 48, [96, 32]),
        (Scaled("up", "down", unit=16), 48, [96, 16]),
        (Scaled("up", "down", least=1), 1, [2, 1]),
        (Scaled("up", "down", unit=16, more=(5, 4), less=(3, 4)), 128, [160, 96]),
        (Scaled("up"), 4, [8]),
        (Scaled(down="down"), 4, [2]),
    ],
)
def test_a_number_is_scaled_in_units(scaled: Scaled, value: int, values: list[int]) -> None:
    assert [other for _, other in scaled.values(value)] == values
    assert tuple(name for name, _ in scaled.values(value)) == scaled.names


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, None),
        ({"tile": 4096}, None),
        ({"tile": 100}, "tile is 100; legal values are multiples of 64 from 64 to 4096."),
        ({"tile": 0}, "tile is 0; legal values are multiples of 64 from 64 to 4096."),
        ({"steps": 6}, "steps is 6; legal values are powers of two from 1 on."),
        ({"steps": 0}, "steps is 0; legal values are powers of two from 1 on."),
        ({"width": 64}, None),
        ({"width": 64, "whole": True}, "width is 64; legal values are 0, 32, 128."),
        ({"buffers": 5}, "buffers is 5; legal values are whole numbers from 1 to 4."),
    ],
)
def test_values_out_of_range_are_refused_in_one_sentence(changed: dict[str, int], told: str | None) -> None:
    assert evolve(HERE, **changed).why_out_of_range() == told


def test_strategies_are_read_as_they_are_stored() -> None:
    schedule = Rows(64, 4, 128, True, 2, 7)
    assert Rows.of(Strategy("rows", schedule.settings())) == schedule
    assert Rows.of(Strategy("rows", {"tile": 100, "unknown": "x"})) == Rows(100), "legality is asked later"
    for settings in ({}, {"tile": True}, {"tile": -1}, {"tile": 1 << 31}, {"tile": 64, "buffers": 5}):
        with pytest.raises(StrategyError, match="draft it anew"):
            Rows.of(Strategy("rows", settings))


def test_notes_have_fields_by_their_words() -> None:
    note = HERE.told(Sentence("Tiles of {elements} in {buffers}."))
    assert note == "Tiles of 192 in 1." and dict(note.values) == {"elements": 192, "buffers": 1}
    given = Sentence("{count} things.", count=3)
    assert HERE.told(given) is given
    with pytest.raises(AttributeError):
        HERE.told("{nothing}")


def test_copies_overlap_where_buffers_are_several() -> None:
    assert HERE.overlap is Overlap.NONE
    assert evolve(HERE, buffers=2).overlap is Overlap.PIPELINED


def _classes(kind: type[Schedule]) -> set[type[Schedule]]:
    return {kind}.union(*map(_classes, kind.__subclasses__()))


SCHEDULES = sorted(
    (kind for kind in _classes(Schedule) if kind.__module__.startswith("evokernel_core.targets.")),
    key=lambda kind: kind.__name__,
)


def test_every_family_has_such_schedules() -> None:
    """Each folder of families has a class; those of several layouts have more."""
    assert len({kind.__module__.rsplit(".", 2)[1] for kind in SCHEDULES}) >= 17
    assert len(SCHEDULES) >= len(FAMILIES)


@pytest.mark.parametrize("kind", SCHEDULES, ids=lambda kind: kind.__name__)
def test_every_schedule_of_a_family_can_be_stored_and_names_each_change_once(kind: type[Schedule]) -> None:
    """Also fields whose annotations are only looked at when a strategy is read."""
    said = kind.declared()
    assert [field.name for field in said] == [field.name for field in fields(kind)]
    names = [name for field in said for change in field.changes for name in set(change.names)]
    several = {name for name in names if names.count(name) > 1}
    assert all(
        len({id(change.when) for field in said for change in field.changes if name in change.names}) > 1
        for name in several
    ), several
    counted = [field.name for field in said if field.name.endswith(("buffers", "stages"))]
    assert [f.name for f in said if any(isinstance(rule, Stages) for rule in f.rules)] == counted
