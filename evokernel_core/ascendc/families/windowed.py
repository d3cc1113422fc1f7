"""Family windowed: pooling and depthwise convolution on the vector cores.

Neighbours along a row of memory do not start on 32 bytes, which vector instructions need. Sixteen rows
or sixteen planes at a time are therefore turned, so that the values of eight of them fill one block, and
any distance along a row or within a plane is a distance in blocks; what they combine to is turned back.

Lanes are ``rows`` where planes are large: rows of a window are combined as they lie, before 16 results
are turned. Lanes are ``planes`` where rows are short: what a tile reads of a plane is then one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import asdict, field, frozen

from evokernel_core.ascendc.families import plane_schedule as planes
from evokernel_core.ascendc.families import window_schedule as rows
from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.plane_schedule import PlaneSchedule
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.window_schedule import WindowSchedule
from evokernel_core.ascendc.families.window_text import planes_context, rows_context
from evokernel_core.ascendc.families.windows import (
    AVERAGE_POOLS,
    CONVOLUTION,
    MAX_POOLS,
    Window,
    read_window,
)
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

_OPS = MAX_POOLS | AVERAGE_POOLS | {CONVOLUTION}
_SLOWEST_ADAPTED = 1.02
"""How much slower than the best, by the estimate, another task's schedule may be to be taken over."""
Schedule = WindowSchedule | PlaneSchedule


@frozen
class WindowedFamily:
    """Windows over planes; lanes are rows or planes."""

    name: str = field(default="windowed", init=False)
    strategies: frozenset[str] = field(default=frozenset({"windowed"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(_OPS), "kernel")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_window(task, _OPS)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        window = read_window(task, _OPS)
        legal = [item for item in _starts(window) if _is_legal(window, item, task, chip)]
        if not legal:
            raise PlanError("A window's rows do not fit the unified buffer.")
        best = min(legal, key=lambda item: _estimate_us(window, item, task, chip))
        return _strategy(window, best, "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        window, here = read_window(task, _OPS), schedule_of(strategy)
        return tuple(
            Move(name, _strategy(window, item, name), self.name)
            for name, item in _steps(window, here, task, chip)
            if _is_legal(window, item, task, chip)
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        window, item = read_window(task, _OPS), schedule_of(strategy)
        if not _is_legal(window, item, task, chip):
            return None
        best = self.estimate_us(task, self.initial(task, chip), chip)
        fits = _estimate_us(window, item, task, chip) <= _SLOWEST_ADAPTED * best
        return _strategy(window, item, "") if fits else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _estimate_us(read_window(task, _OPS), schedule_of(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        window, item = read_window(task, _OPS), schedule_of(strategy)
        if isinstance(item, PlaneSchedule):
            form, context = "plane", planes_context(task, window, item, name)
        else:
            form, context = "window", rows_context(task, window, item, name)
        return StageText(
            render(f"{form}_tiling", **context), render(f"{form}_kernel", **context), f"{name}_kernel"
        )


def schedule_of(strategy: Strategy) -> Schedule:
    """The schedule that a strategy describes."""
    settings = dict(strategy.settings)
    form = settings.pop("lanes", "rows")
    return PlaneSchedule(**settings) if form == "planes" else WindowSchedule(**settings)  # type: ignore[arg-type]


def _strategy(window: Window, item: Schedule, move: str) -> Strategy:
    cell = Descriptor(3 if item.buffers > 1 else 2, 0, 2)
    if isinstance(item, PlaneSchedule):
        notes = [
            f"Tiles of {item.positions} elements of the result of sixteen planes.",
            "Sixteen planes at a time are turned, so that neighbours lie blocks apart.",
        ]
        return Strategy("windowed", {"lanes": "planes", **asdict(item)}, tuple(notes), cell, move)
    notes = [
        f"Tiles of {item.rows} rows and {item.columns} columns of the result.",
        "Rows of a window are combined as they lie in memory.",
    ]
    if window.is_across:
        notes.append("Sixteen rows at a time are turned, so that columns of a window lie blocks apart.")
    return Strategy("windowed", {"lanes": "rows", **asdict(item)}, tuple(notes), cell, move)


def _starts(window: Window) -> Iterator[Schedule]:
    if not window.finds:
        yield from rows.starts(window)
    if planes.applies(window):
        yield from planes.starts()


def _steps(window: Window, here: Schedule, task: KernelTask, chip: Chip) -> Iterator[tuple[str, Schedule]]:
    """Named steps; a change of lanes goes to the best schedule of the others."""
    if isinstance(here, PlaneSchedule):
        yield from planes.steps(here)
        others: Iterator[Schedule] = iter(()) if window.finds else rows.starts(window)
        name = "rows in lanes"
    else:
        yield from rows.steps(here, window)
        others = planes.starts() if planes.applies(window) else iter(())
        name = "planes in lanes"
    legal = [item for item in others if _is_legal(window, item, task, chip)]
    if legal:
        yield name, min(legal, key=lambda item: _estimate_us(window, item, task, chip))


def _is_legal(window: Window, item: Schedule, task: KernelTask, chip: Chip) -> bool:
    if isinstance(item, PlaneSchedule):
        return planes.applies(window) and planes.is_legal(window, item, task.sizes, chip)
    return not window.finds and rows.is_legal(window, item, chip)


def _estimate_us(window: Window, item: Schedule, task: KernelTask, chip: Chip) -> float:
    if isinstance(item, PlaneSchedule):
        return planes.estimate_us(window, item, task.sizes, chip)
    return rows.estimate_us(window, item, task.sizes, chip)
