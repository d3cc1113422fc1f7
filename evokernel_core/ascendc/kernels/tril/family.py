"""Family triangle: the upper or lower triangle of matrices, row by row."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from evokernel_core.ascendc.ir.traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.kernels.layout import copy as copying
from evokernel_core.ascendc.kernels.layout.copy import CopySchedule
from evokernel_core.ascendc.kernels.reading import input_below, only_node
from evokernel_core.ascendc.kernels.rendering import RAW, kernel_text, parameter, parameters_of, symbols_in
from evokernel_core.ascendc.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import literal
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

OPS = frozenset({"aten.triu.default", "aten.tril.default"})
_FILL_BYTES = 16384


@frozen
class Triangle:
    """``matrices`` of ``height`` rows and ``columns``, of which row 0 keeps (``upper``) or loses what lies
    from column ``first`` on."""

    source: str
    upper: bool
    first: int
    matrices: Extent
    height: Extent
    columns: Extent
    width: int


def read_triangle(task: KernelTask) -> Triangle:
    """The one triangle of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, OPS, "The kernel is more than one triangle of matrices.")
    source = input_below(task.graph, next(iter(node.operands())), "a triangle of matrices")
    spec = node.outputs[0]
    width = ITEM_SIZE[spec.dtype]
    if width > 4:
        raise PlanError(f"A triangle of {spec.dtype} is not covered.")
    shift = literal(node.args[1]) if len(node.args) > 1 else literal(dict(node.kwargs).get("diagonal", 0))
    upper = node.op == "aten.triu.default"
    sizes = tuple(map(extent, spec.shape))
    return Triangle(source, upper, shift + (not upper), product(sizes[:-2]), sizes[-2], sizes[-1], width)


def _starts(found: Triangle, sizes: Sizes, chip: Chip) -> Iterator[CopySchedule]:
    return copying.starts()


def _steps(
    found: Triangle, here: CopySchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, CopySchedule]]:
    return copying.steps(here)


def _refusal(found: Triangle, item: CopySchedule, sizes: Sizes, chip: Chip) -> str | None:
    used = item.tile_bytes * item.buffers + _FILL_BYTES
    return "The tiles do not fit the unified buffer." if used > chip.ub_bytes else None


def _cost_us(found: Triangle, item: CopySchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: a tile is a row, half of it kept."""
    rows = found.matrices.evaluate(sizes) * found.height.evaluate(sizes)
    length = found.columns.evaluate(sizes) * found.width / 2
    kept = Burst(max(1.0, length / item.tile_bytes), 1, min(length, item.tile_bytes), grain_of([found.width]))
    zero = Burst(max(1.0, length / _FILL_BYTES), 1, min(length, _FILL_BYTES), grain_of([found.width]))
    tile = Tile((kept,), (kept, zero), bound=True)
    return kernel_us([(rows, tile)], 3 * rows * length, (item.buffers, item.buffers), chip)


def _strategy(found: Triangle, item: CopySchedule, move: str) -> Strategy:
    notes = (
        f"The kept part of each row is copied in tiles of {item.tile_bytes} bytes, the rest is zeros.",
        f"{item.buffers} tiles are in flight.",
    )
    return Strategy("triangle", item.settings(), notes, Descriptor(1, item.buffers, 1), move)


def _text(found: Triangle, item: CopySchedule, task: KernelTask, name: str) -> StageText:
    """What lies beside the triangle is not even read, so that it may be anything."""
    sizes = {key: getattr(found, key).cpp() for key in ("matrices", "height", "columns")}
    return kernel_text(
        "tril",
        name,
        s=item,
        fill_bytes=_FILL_BYTES,
        upper=found.upper,
        first=found.first,
        width=found.width,
        type=RAW[found.width],
        symbols=symbols_in(task, sizes.values()),
        source=parameter(found.source),
        parameters=parameters_of(task),
        **sizes,
    )


FAMILY = SearchingFamily(
    name="triangle",
    ops=dict.fromkeys(sorted(OPS), "kernel"),
    read=read_triangle,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=CopySchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
