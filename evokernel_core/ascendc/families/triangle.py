"""Family triangle: the upper or lower triangle of matrices, row by row."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import asdict, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.layout_copy import LANE, CopySchedule, starts, steps, symbols_in
from evokernel_core.ascendc.families.layout_traffic import Burst, Tile, grain_of, kernel_us
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.lowering_sizes import Extent, extent, product
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

FAMILY = "triangle"
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


@frozen
class TriangleFamily:
    """What lies beside the triangle is not even read, so that it may be anything."""

    name: str = field(default=FAMILY, init=False)
    strategies: frozenset[str] = field(default=frozenset({FAMILY}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return dict.fromkeys(sorted(OPS), "kernel")

    def check(self, task: KernelTask, chip: Chip) -> None:
        read_triangle(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        found = read_triangle(task)
        legal = [item for item in starts() if refusal(item, chip) is None]
        best = min(legal, key=lambda item: estimate_us(found, item, task.sizes, chip))
        return strategy_of(best, "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        return tuple(
            Move(name, strategy_of(item, name), self.name)
            for name, item in steps(CopySchedule.of(strategy))
            if refusal(item, chip) is None
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        read_triangle(task)
        item = CopySchedule.of(strategy)
        return strategy_of(item, "") if refusal(item, chip) is None else None

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return estimate_us(read_triangle(task), CopySchedule.of(strategy), task.sizes, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        return text(read_triangle(task), CopySchedule.of(strategy), task, name)


def read_triangle(task: KernelTask) -> Triangle:
    """The one triangle of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = {node.name: node for node in graph.nodes}
    found = [node for node in graph.nodes if node.op in OPS]
    others = [node for node in graph.nodes if node.op not in OPS and node.op not in SAME_ORDER]
    if len(found) != 1 or others or len(graph.outputs) != 1:
        raise PlanError("The kernel is more than one triangle of matrices.")
    node = found[0]
    result, source = graph.outputs[0], next(iter(node.operands()))
    while result.name in nodes and result.name != node.name:
        result = next(iter(nodes[result.name].operands()))
    while source.name in nodes:
        source = next(iter(nodes[source.name].operands()))
    if result.name != node.name:
        raise PlanError("The result of the kernel is no triangle.")
    spec = node.outputs[0]
    width = ITEM_SIZE[spec.dtype]
    if width > 4:
        raise PlanError(f"A triangle of {spec.dtype} is not covered.")
    shift = int(str(node.args[1])) if len(node.args) > 1 else int(str(dict(node.kwargs).get("diagonal", 0)))
    upper = node.op == "aten.triu.default"
    sizes = tuple(map(extent, spec.shape))
    return Triangle(source.name, upper, shift + (not upper), product(sizes[:-2]), sizes[-2], sizes[-1], width)


def refusal(item: CopySchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    used = item.tile_bytes * item.buffers + _FILL_BYTES
    return "The tiles do not fit the unified buffer." if used > chip.ub_bytes else None


def estimate_us(found: Triangle, item: CopySchedule, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds: a tile is a row, half of it kept."""
    rows = found.matrices.evaluate(sizes) * found.height.evaluate(sizes)
    length = found.columns.evaluate(sizes) * found.width / 2
    kept = Burst(max(1.0, length / item.tile_bytes), 1, min(length, item.tile_bytes), grain_of([found.width]))
    zero = Burst(max(1.0, length / _FILL_BYTES), 1, min(length, _FILL_BYTES), grain_of([found.width]))
    tile = Tile((kept,), (kept, zero), bound=True)
    return kernel_us([(rows, tile)], 3 * rows * length, (item.buffers, item.buffers), chip)


def strategy_of(item: CopySchedule, move: str) -> Strategy:
    notes = (
        f"The kept part of each row is copied in tiles of {item.tile_bytes} bytes, the rest is zeros.",
        f"{item.buffers} tiles are in flight.",
    )
    return Strategy(FAMILY, asdict(item), notes, Descriptor(1, item.buffers, 1), move)


def text(found: Triangle, item: CopySchedule, task: KernelTask, name: str) -> StageText:
    tensors = [camel(i.name) for i in task.graph.inputs if i.kind is not InputKind.SCALAR]
    sizes = {key: getattr(found, key).cpp() for key in ("matrices", "height", "columns")}
    context = {
        "s": item,
        "fill_bytes": _FILL_BYTES,
        "upper": found.upper,
        "first": found.first,
        "width": found.width,
        "type": LANE[found.width],
        "symbols": symbols_in(task, list(sizes.values())),
        "source": camel(found.source),
        "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*tensors, "output")),
        "name": name,
        "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
        **sizes,
    }
    return StageText(
        render("triangle_tiling", **context),
        render("triangle_kernel", **context),
        f"{name}_kernel",
    )
