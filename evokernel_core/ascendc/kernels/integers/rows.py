"""Family integer rows: exact sums, products and extremes of rows of integers, whole or running.

Whole ones are computed lane by lane in words of 32 bits, like element-wise arithmetic; a running one passes
through the scalar unit, which has 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.family import VECTORS_ALONE, StageText
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import class_name, parameter, parameters_of, render, sized
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.legalization.graph import Read, WordPlan, Written
from evokernel_core.ascendc.legalization.limbs import BITS, Words
from evokernel_core.ascendc.legalization.program import WordProgram, literal, word_program
from evokernel_core.ascendc.legalization.wide import WIDTHS, Arithmetic, Whole
from evokernel_core.ascendc.ops import REDUCE_INTEGERS, REDUCED_INTEGERS, SCAN_INTEGERS, categories
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_METHODS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
_WORDS = {"sum": "sum", "prod": "product", "max": "maximum", "min": "minimum"}
_TILES = (256, 512, 1024, 2048, 4096)
_RESULTS = 64 * 8
"""Bytes of the results that are stored at a time."""
_SCALAR = 20.0
"""Cycles of an element that passes through the scalar unit."""
_COPY = 400.0
"""Cycles of a copy and its flags before its first byte."""


@frozen
class IntegerRows:
    """``columns`` elements of each of ``rows``."""

    source: str
    kind: str
    running: bool
    dtype: str
    rows: Extent
    columns: Extent

    @property
    def program(self) -> WordProgram:
        return combination(self.kind, self.dtype)


@frozen
class RowsSchedule(Settings):
    """``tile`` elements at a time, ``buffers`` of the input; ``scalar``: on the scalar unit, as running ones
    are and short rows may be."""

    tile: int
    buffers: int = 2
    scalar: bool = False


@cache
def combination(kind: str, dtype: str) -> WordProgram:
    """The statements that combine two integers, word by word, into the first one."""
    words, bits = Words(), WIDTHS[dtype]
    names = ("low", "otherLow") if bits == BITS else ("low", "otherLow", "high", "otherHigh")
    a_low, b_low, *high = (words.read("narrow", name) for name in names)
    a, b = (Whole(a_low, high[0]), Whole(b_low, high[1])) if high else (Whole(a_low), Whole(b_low))
    result: Whole = getattr(Arithmetic(words, bits), _METHODS[kind])(a, b)
    outputs = [Written("int32", (result.low,))]
    if result.high is not None:
        outputs.append(Written("int32", (result.high,)))
    reads = tuple(Read(name, name, "int32", (), True) for name in names)
    return word_program(WordPlan((), 0, reads, tuple(outputs)), ("low", "high")[: len(outputs)])


def _neutral(kind: str, dtype: str) -> int:
    """What changes nothing."""
    least = -(1 << (WIDTHS[dtype] - 1))
    return {"sum": 0, "prod": 1, "max": least, "min": -1 - least}[kind]


def _read(task: KernelTask) -> IntegerRows:
    node = only_node(
        task, (REDUCE_INTEGERS.name, SCAN_INTEGERS.name), "The kernel is more than one reduction of integers."
    )
    ref = next(iter(node.operands()))
    source, spec = input_below(task.graph, ref, "a reduction of integers"), task.graph.spec(ref)
    if spec.dtype not in REDUCED_INTEGERS or spec.dtype != node.outputs[0].dtype:
        raise PlanError(f"Reductions of {spec.dtype} to {node.outputs[0].dtype} are not covered.")
    sizes = tuple(map(extent, spec.shape))
    kind = str(node.args[1])
    return IntegerRows(
        source, kind, node.op == SCAN_INTEGERS.name, spec.dtype, product(sizes[:-1]), sizes[-1]
    )


def _ub_bytes(found: IntegerRows, item: RowsSchedule) -> int:
    size = ITEM_SIZE[found.dtype]
    if item.scalar:
        return 2 * 2 * item.tile * size
    words = found.program.words + 2 * size // 4
    return item.tile * (item.buffers * size + 4 * words) + _RESULTS


def _refusal(found: IntegerRows, item: RowsSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.tile not in _TILES or item.buffers not in (1, 2) or (item.scalar and item.buffers != 2):
        return "The tile or the number of buffers is another one."
    if found.running and not item.scalar:
        return "What runs along a row takes one element after the other."
    if _ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def _cost_us(found: IntegerRows, item: RowsSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds of the busiest core and the launch of all."""
    start = chip.vector.startup_cycles
    rows, columns = found.rows.evaluate(sizes), found.columns.evaluate(sizes)
    share = math.ceil(rows / chip.aiv)
    tiles, size = math.ceil(columns / item.tile), ITEM_SIZE[found.dtype]
    if item.scalar:
        cycles = share * columns * _SCALAR + math.ceil(share * columns / item.tile) * _COPY
    else:
        steps, width = found.program.steps + 4, min(item.tile, columns)
        copied = width * size / chip.mte.load_bytes_per_cycle
        halves = max(math.ceil(math.log2(width)) - 3, 0)
        passes = tiles * (steps * (start + width / LANES) + _COPY / item.buffers + copied)
        cycles = share * (passes + halves * steps * start + steps * width / LANES + 16 * _SCALAR)
    return cycles / chip.mhz + launch_us(chip, math.ceil(rows / share))


def _starts(found: IntegerRows, sizes: Sizes, chip: Chip) -> Iterator[RowsSchedule]:
    for tile in _TILES:
        yield RowsSchedule(tile, 2)
        yield RowsSchedule(tile, 1)
        yield RowsSchedule(tile, 2, True)


def _steps(
    found: IntegerRows, here: RowsSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, RowsSchedule]]:
    yield "double tile", evolve(here, tile=here.tile * 2)
    yield "halve tile", evolve(here, tile=here.tile // 2)
    yield "lanes" if here.scalar else "scalar unit", evolve(here, scalar=not here.scalar)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def _strategy(found: IntegerRows, item: RowsSchedule, move: str) -> Strategy:
    way = "Element after element, on scalar units." if item.scalar else "Lanes, then halves of them."
    notes = (way, f"Tiles of {item.tile} elements, {item.buffers} buffer(s).")
    return Strategy("integer_rows", item.settings(), notes, Descriptor(1 + item.buffers, 1, 1), move)


def _combined(kind: str, dtype: str) -> str:
    """The same combination as a C++ expression; unsigned integers wrap around."""
    if kind in ("max", "min"):
        return f"a {'>' if kind == 'max' else '<'} b ? a : b"
    unsigned, sign = f"u{CPP_TYPE[dtype]}", "+" if kind == "sum" else "*"
    return f"static_cast<{CPP_TYPE[dtype]}>(static_cast<{unsigned}>(a) {sign} static_cast<{unsigned}>(b))"


def _text(found: IntegerRows, item: RowsSchedule, task: KernelTask, name: str) -> StageText:
    sizes = sized(task, {"rows": found.rows, "columns": found.columns})
    start = _neutral(found.kind, found.dtype)
    low, high = Arithmetic(Words(), WIDTHS[found.dtype]).number(start).low, start >> BITS
    context: Mapping[str, object] = {
        "name": name,
        "class_name": class_name(name),
        "s": item,
        "type": CPP_TYPE[found.dtype],
        "wide": found.dtype == "int64",
        "running": found.running,
        "scalar": item.scalar,
        "what": _WORDS[found.kind],
        "combined": _combined(found.kind, found.dtype),
        "program": found.program,
        "start_low": literal(low),
        "start_high": literal(high),
        "ub_bytes": _ub_bytes(found, item),
        "source": parameter(found.source),
        "parameters": parameters_of(task),
        **sizes,
    }
    parts = ("rows_tiling", "rows_compute", "scalar_kernel" if item.scalar else "fold_kernel")
    tiling, compute, kernel = (render(f"integers/{part}", **context) for part in parts)
    return StageText(tiling, compute, kernel, f"{name}_kernel", VECTORS_ALONE)


FAMILY = SearchingFamily(
    name="integer_rows",
    ops=categories(REDUCE_INTEGERS, SCAN_INTEGERS),
    read=on_any_chip(_read),
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=RowsSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
