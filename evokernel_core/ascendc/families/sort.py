"""Family sort: rows in order, with the places of their elements; or the first few of each sorted row.

Vector cores sort 32 pairs of a number and its place at a time and merge four sorted runs into one. Rows that
a tile holds are sorted whole, several at a time. Of longer rows a kernel keeps the best elements so far and
merges each sorted tile with them; where all are wanted, sorted tiles lie in the workspace and are merged
slice by slice, which is the one way that depends on the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import asdict, evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.sort_problem import SORT, Sort, read_sort
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

_RUN = 32
"""Elements that one instruction sorts at a time."""
_PAIR = 8
_USABLE = 256
"""Bytes of the unified buffer that no kernel may use."""
_START = 22.0
"""Cycles that a vector instruction costs before its first repeat."""
_READ_START = 189.0
_TILES = (512, 1024, 2048, 4096)
_BEST = (32, 128, 512, 1024, 2048)
MOST_BEST = _BEST[-1]
"""Elements that a kernel keeps of a row that no tile holds."""
MOST_WHOLE = _TILES[-1]
"""Elements of the longest row that a tile holds."""


@frozen
class SortSchedule:
    """Tiles of ``elements``. Of rows that no tile holds, ``best`` elements are kept from tile to tile, or
    all in the workspace where it ``merges``. Without either a tile holds whole rows."""

    elements: int
    best: int = 0
    buffers: int = 2
    merges: bool = False


@frozen
class SortFamily:
    """One kernel with two forms: whole rows, and the best of long ones."""

    name: str = field(default="sort", init=False)
    strategies: frozenset[str] = field(default=frozenset({"sort"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {SORT: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_sort(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_sort(task)
        legal = [item for item in _starts() if refusal(found, item, chip) is None]
        return _strategy(min(legal, key=lambda item: _us(found, item, task.sizes, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        found, here = read_sort(task), _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name)
            for name, item in _steps(here)
            if item != here and refusal(found, item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        item = _schedule(strategy)
        return _strategy(item, "") if refusal(read_sort(task), item, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _us(read_sort(task), _schedule(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        found, item = read_sort(task), _schedule(strategy)
        sizes = {key: getattr(found, key).cpp() for key in ("rows", "columns", "keep")}
        words = " ".join(sizes.values()).replace("(", " ").replace(")", " ").split()
        arguments = [_parameter(found.source), *([_parameter(found.numbers)] if found.numbers else [])]
        results = [key for key in ("values", "indices") if key in found.results]
        context = {
            "s": item,
            "type": CPP_TYPE[found.dtype],
            "long": _is_long(item),
            "short": _is_short(found, item),
            "narrow": found.dtype != "float32",
            "ascending": not found.descending,
            "given": bool(found.numbers),
            "parts": found.parts,
            "values": "values" in results,
            "indices": "indices" in results,
            "ub_bytes": ub_bytes(found, item),
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in _tensors(task, found)),
            "arguments": ", ".join((*arguments, *results, *(["workspace"] if item.merges else []))),
            **sizes,
        }
        return StageText(render("sort_tiling", **context), render("sort_kernel", **context), f"{name}_kernel")


def _tensors(task: KernelTask, found: Sort) -> list[str]:
    """The names of the kernel's parameters: inputs, and the results in the task's order."""
    inputs = [_parameter(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
    return [*inputs, *found.results]


def _parameter(name: str) -> str:
    """The name of an input's parameter, unlike those of the results."""
    return f"{camel(name)}Input" if camel(name) in ("values", "indices") else camel(name)


def _schedule(strategy: Strategy) -> SortSchedule:
    return SortSchedule(**dict(strategy.settings))  # type: ignore[arg-type]


def _strategy(item: SortSchedule, move: str) -> Strategy:
    form = f"The best {item.best} of a row so far." if item.best else "Whole rows in a tile."
    form = "Sorted tiles are merged in the workspace." if item.merges else form
    notes = (f"Tiles of {item.elements} elements, {item.buffers} buffer(s) of the input.", form)
    descriptor = Descriptor(3 if item.buffers > 1 else 2, 3, 1)
    return Strategy("sort", asdict(item), notes, descriptor, move)


def _is_long(item: SortSchedule) -> bool:
    """Whether the kernel sorts rows that no tile holds."""
    return bool(item.best or item.merges)


def _is_short(found: Sort, item: SortSchedule) -> bool:
    """Whether the kernel sorts several whole rows a tile, where they are short enough when it runs."""
    columns = found.columns.constant
    return columns is None or columns <= item.elements


def _starts() -> Iterator[SortSchedule]:
    for elements in _TILES:
        for best in (0, *_BEST):
            yield SortSchedule(elements, best)
            yield SortSchedule(elements, best, 1)
        yield SortSchedule(elements, merges=True)


def _steps(here: SortSchedule) -> Iterator[tuple[str, SortSchedule]]:
    """Named neighbours of a schedule."""
    yield "double tile", evolve(here, elements=here.elements * 2)
    yield "half tile", evolve(here, elements=here.elements // 2)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)
    yield "whole rows", evolve(here, best=0, merges=False)


def ub_bytes(found: Sort, item: SortSchedule) -> int:
    """Bytes of all buffers."""
    size = ITEM_SIZE[found.dtype]
    kept = item.elements if _is_short(found, item) or not item.best else item.best
    loaded = item.elements * (size + (8 if found.numbers else 0)) * item.buffers
    numbers = item.elements * 4 * (1 if found.descending else 2)
    work = item.elements * (2 * _PAIR + (4 if size < 4 else 0)) + item.elements // 8
    best = 2 * 2 * item.best * _PAIR
    best += 2 * item.elements * _PAIR if item.merges else 0
    values = size if "values" in found.results else 4
    return loaded + numbers + work + best + kept * (values + (8 if "indices" in found.results else 0))


def refusal(found: Sort, item: SortSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    columns, keep = found.columns.constant, found.keep.constant
    if item.elements not in _TILES or item.best not in (0, *_BEST) or item.best > item.elements:
        return f"A tile has {_TILES[0]} to {_TILES[-1]} elements, a power of two."
    if item.best and (item.merges or keep is None or keep > item.best):
        return f"{found.keep.cpp()} elements of a row may be more than the {item.best} that are kept."
    if not item.best and not item.merges and (columns is None or columns > item.elements):
        return f"Rows of {found.columns.cpp()} elements may not fit a tile of {item.elements}."
    if ub_bytes(found, item) > chip.ub_bytes - _USABLE:
        return "The buffers do not fit the unified buffer."
    return None


def _us(found: Sort, item: SortSchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and its sorting."""
    rows, columns, keep = (part.evaluate(sizes) for part in (found.rows, found.columns, found.keep))
    size = ITEM_SIZE[found.dtype]
    pitch = math.ceil(columns / _RUN) * _RUN
    if columns > item.elements:
        width, per_tile, tiles_a_row = min(item.elements, pitch), 1, math.ceil(columns / item.elements)
    else:
        width, tiles_a_row = pitch, 1
        per_tile = max(1, min(item.elements // pitch, math.ceil(rows / chip.aiv)))
    tiles = math.ceil(rows / per_tile)
    cores = min(tiles, chip.aiv)
    passes = math.ceil(math.log(max(width / _RUN, 1), 4))
    sorted_cycles = (passes + 1) * (_START + per_tile * width / 2.0)
    prepared = 8 * (_START + per_tile * width / 64.0)
    merged = (_START + keep) if item.best and columns > item.elements else 0.0
    if (
        item.merges and columns > item.elements
    ):  # once more through the workspace for each pass, and to take pairs apart
        deeper = max(math.ceil(math.log(max(tiles_a_row, 1), 4)), 0) + 1
        merged = deeper * (4 * _READ_START + width * (1 / 2.0 + 2 * _PAIR / 32.0))
    stored = _START + 40.0 + per_tile * max(keep * (size + 8) / 32.0, 8.0)
    load = _READ_START / item.buffers + per_tile * max(width * size / 32.0, 4.0)
    vector = sorted_cycles + prepared + merged
    tile = max(load, vector) if item.buffers == 2 else load + vector
    cycles = math.ceil(tiles / cores) * (tiles_a_row * tile + stored)
    moved = rows * (columns * size + keep * (size + 8))
    rate = chip.constants.get("gm.hbm_achieved_gbps", chip.hbm_gbps) * 1e3
    return max(cycles / chip.mhz, moved / rate) + launch_us(chip, cores)
