"""What every family that judges schedules one by one does with its starts, its steps and its rules."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve, frozen

from evokernel_core.compiler.schedule import Schedule
from evokernel_core.domain.descriptor import Descriptor, Overlap
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.family import VECTORS_ALONE, StageText


@frozen
class Tile(Schedule):
    length: int


def family(
    starts: tuple[int, ...] = (8, 64, 32), most: int = 40, slowest: float = math.inf
) -> SearchingFamily[int, Tile]:
    """Tiles of at most ``most`` elements; the longer the better."""
    return SearchingFamily(
        name="tiles",
        ops={"aten.relu.default": "kernel"},
        read=on_any_chip(lambda task: len(task.graph.nodes)),
        starts=lambda found, sizes, chip: map(Tile, starts),
        steps=lambda found, here, sizes, chip: (
            ("longer", Tile(here.length * 2)),
            ("eight more", Tile(here.length + 8)),
            ("the same", here),
            ("shorter", Tile(here.length // 2)),
        ),
        refusal=lambda found, item, sizes, chip: "too long" if item.length > most else None,
        cost_us=lambda found, item, sizes, chip: found + sizes["n"] / item.length,
        schedule_of=Tile.of,
        notes=lambda found, item: ("Tiles.",),
        cell=lambda found, item: Descriptor(overlap=Overlap.NONE),
        text_of=lambda found, item, task, chip, name: StageText(
            f"{item.length}", "", f"{found}", name, VECTORS_ALONE
        ),
        slowest_adapted=slowest,
    )


@pytest.fixture
def task(builder: Any) -> Any:
    graph = builder()
    return graph.task(graph.call("relu.default", graph.input("x", ("n",)), shape=("n",)), symbols={"n": 640})


def test_the_first_schedule_is_the_legal_one_of_the_lowest_estimate(task: Any, chip: Any) -> None:
    tiles = family()
    first = tiles.initial(task, chip)
    assert Tile.of(first) == Tile(32) and first.move == ""
    assert tiles.estimate_us(task, first, chip) == 21.0
    assert tiles.text(task, first, chip, "relu") == StageText("32", "", "1", "relu", VECTORS_ALONE)


@pytest.mark.parametrize(("alike", "length"), [(1.0, 32), (3.8, 32), (3.9, 8)])
def test_of_starts_that_are_alike_the_first_is_taken(alike: float, length: int, task: Any, chip: Any) -> None:
    """Estimates are 81 and 21."""
    tiles = evolve(family(), alike=alike)
    assert Tile.of(tiles.initial(task, chip)) == Tile(length)
    assert tiles.strategies == {"tiles"}


def test_a_task_without_a_legal_schedule_is_refused(task: Any, chip: Any) -> None:
    for starts in ((), (64, 128)):
        with pytest.raises(PlanError, match="fits the unified buffer"):
            family(starts).initial(task, chip)


@pytest.mark.parametrize(
    ("here", "names"),
    [(8, ["longer", "shorter"]), (16, ["longer", "eight more", "shorter"]), (32, ["eight more", "shorter"])],
)
def test_moves_are_legal_and_each_gives_another_schedule_once(
    task: Any, chip: Any, here: int, names: list[str]
) -> None:
    moves = family().moves(task, Strategy("tiles", {"length": here}), chip)
    assert [move.name for move in moves] == names
    assert all(move.strategy.move == move.name and move.family == "tiles" for move in moves)


def test_a_schedule_of_another_task_is_kept_where_it_is_legal(task: Any, chip: Any) -> None:
    tiles = family()
    adapted = tiles.adapt(task, Strategy("tiles", {"length": 40}, move="longer"), chip)
    assert adapted is not None and Tile.of(adapted) == Tile(40) and adapted.move == ""
    assert tiles.adapt(task, Strategy("tiles", {"length": 48}), chip) is None


def test_a_schedule_of_another_task_is_dropped_where_it_is_much_slower(task: Any, chip: Any) -> None:
    for slowest, is_kept in ((1.2, False), (2.0, True)):
        adapted = family(slowest=slowest).adapt(task, Strategy("tiles", {"length": 16}), chip)
        assert (adapted is not None) is is_kept
