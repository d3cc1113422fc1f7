"""Family iota: whole numbers in equal steps, which other kernels compare with indices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from attrs import evolve, field, frozen

from evokernel_core.ascendc.families.family import Move, StageText
from evokernel_core.ascendc.families.rendering import render
from evokernel_core.ascendc.families.text import CPP_TYPE
from evokernel_core.ascendc.lowering_program import camel
from evokernel_core.ascendc.lowering_sizes import extent
from evokernel_core.ascendc.lowering_views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import InputKind, Node
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

IOTA = "evokernel.iota.default"
"""``iota(start, step, most=2**31 - 1)``: the elements of its one dimension are start, start + step, and so
on; a kernel refuses sizes for which they go beyond ``most``."""
_MOST = (1 << 31) - 1
_TILES = (512, 1024, 2048, 4096, 8192)
_DTYPES = frozenset({"float32", "int32", "int64"})


@frozen
class IotaSchedule:
    """``tile`` elements at a time."""

    tile: int


@frozen
class IotaFamily:
    """One store for each tile; the numbers are made where they are stored from."""

    name: str = field(default="iota", init=False)
    strategies: frozenset[str] = field(default=frozenset({"iota"}), init=False)

    @property
    def ops(self) -> Mapping[str, str]:
        return {IOTA: "kernel"}

    def check(self, task: KernelTask, chip: Chip) -> None:
        _node(task)

    def initial(self, task: KernelTask, chip: Chip) -> Strategy:
        node = _node(task)
        return _strategy(min(map(IotaSchedule, _TILES), key=lambda item: _us(node, item, task, chip)), "")

    def moves(self, task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
        here = _schedule(strategy)
        return tuple(
            Move(name, _strategy(item, name), self.name) for name, item in _steps(here) if item.tile in _TILES
        )

    def adapt(self, task: KernelTask, strategy: Strategy, chip: Chip) -> Strategy | None:
        _node(task)
        return _strategy(_schedule(strategy), "")

    def estimate_us(self, task: KernelTask, strategy: Strategy, chip: Chip) -> float:
        return _us(_node(task), _schedule(strategy), task, chip)

    def text(self, task: KernelTask, strategy: Strategy, chip: Chip, name: str) -> StageText:
        node, tile = _node(task), _schedule(strategy).tile
        spec = node.outputs[0]
        count = extent(spec.shape[0]).cpp()
        words = count.replace("(", " ").replace(")", " ").split()
        inputs = [camel(item.name) for item in task.graph.inputs if item.kind is not InputKind.SCALAR]
        context = {
            "tile": tile,
            "ub_bytes": tile * (ITEM_SIZE[spec.dtype] + (4 if spec.dtype != "int32" else 0)),
            "start": node.args[0],
            "step": node.args[1],
            "most": node.args[2] if len(node.args) > 2 else _MOST,
            "count": count,
            "type": CPP_TYPE[spec.dtype],
            "symbols": [(i, symbol.name) for i, symbol in enumerate(task.symbols) if symbol.name in words],
            "name": name,
            "class_name": "".join(part.capitalize() for part in name.split("_") if part) + "Kernel",
            "parameters": ", ".join(f"GM_ADDR {tensor}" for tensor in (*inputs, "output")),
        }
        return StageText(render("iota_tiling", **context), render("iota_kernel", **context), f"{name}_kernel")


def _node(task: KernelTask) -> Node:
    """The one node of a task. Raises PlanError where the task is anything else."""
    found = [node for node in task.graph.nodes if node.op == IOTA]
    others = [node for node in task.graph.nodes if node.op != IOTA]
    if len(found) != 1 or len(task.graph.outputs) != 1 or any(n.op not in SAME_ORDER for n in others):
        raise PlanError("The kernel makes more than whole numbers in equal steps.")
    spec = found[0].outputs[0]
    if spec.rank != 1 or spec.dtype not in _DTYPES:
        raise PlanError(f"Numbers in equal steps of dtype {spec.dtype} are not covered.")
    return found[0]


def _us(node: Node, item: IotaSchedule, task: KernelTask, chip: Chip) -> float:
    """Modelled microseconds: the tiles of the busiest core, and the launch of all."""
    count = extent(node.outputs[0].shape[0]).evaluate(task.sizes)
    tiles = math.ceil(count / item.tile)
    cores = min(tiles, chip.aiv)
    elements = min(item.tile, count)
    cycles = 150.0 + elements * (3 / 64 + ITEM_SIZE[node.outputs[0].dtype] / 32)
    return math.ceil(tiles / cores) * cycles / chip.mhz + launch_us(chip, cores)


def _steps(here: IotaSchedule) -> Iterator[tuple[str, IotaSchedule]]:
    yield "double tile", evolve(here, tile=here.tile * 2)
    yield "halve tile", evolve(here, tile=here.tile // 2)


def _schedule(strategy: Strategy) -> IotaSchedule:
    return IotaSchedule(int(dict(strategy.settings)["tile"]))


def _strategy(item: IotaSchedule, move: str) -> Strategy:
    return Strategy("iota", {"tile": item.tile}, ("Tiles round-robin.",), Descriptor(1, 0, 2), move)
