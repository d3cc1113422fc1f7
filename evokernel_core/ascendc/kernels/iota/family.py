"""Family iota: whole numbers in equal steps, which other kernels compare with indices."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attrs import frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Settings, Sizes
from evokernel_core.ascendc.kernels.family import StageText
from evokernel_core.ascendc.kernels.reading import only_node
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameters_of, symbols_in
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.shapes.sizes import extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node
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
class IotaSchedule(Settings):
    """``tile`` elements at a time."""

    tile: int


def _read(task: KernelTask) -> Node:
    """The one node of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {IOTA}, "The kernel makes more than whole numbers in equal steps.")
    spec = node.outputs[0]
    if spec.rank != 1 or spec.dtype not in _DTYPES:
        raise PlanError(f"Numbers in equal steps of dtype {spec.dtype} are not covered.")
    return node


def _refusal(node: Node, item: IotaSchedule, sizes: Sizes, chip: Chip) -> str | None:
    return None if item.tile in _TILES else "The tile has another size."


def _cost_us(node: Node, item: IotaSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the tiles of the busiest core, and the launch of all."""
    count = extent(node.outputs[0].shape[0]).evaluate(sizes)
    tiles = math.ceil(count / item.tile)
    cores = min(tiles, chip.aiv)
    elements = min(item.tile, count)
    cycles = 150.0 + elements * (3 / 64 + ITEM_SIZE[node.outputs[0].dtype] / 32)
    return math.ceil(tiles / cores) * cycles / chip.mhz + launch_us(chip, cores)


def _starts(node: Node, sizes: Sizes, chip: Chip) -> Iterator[IotaSchedule]:
    return map(IotaSchedule, _TILES)


def _steps(node: Node, here: IotaSchedule, sizes: Sizes, chip: Chip) -> Iterator[tuple[str, IotaSchedule]]:
    yield "double tile", IotaSchedule(here.tile * 2)
    yield "halve tile", IotaSchedule(here.tile // 2)


def _strategy(node: Node, item: IotaSchedule, move: str) -> Strategy:
    return Strategy("iota", {"tile": item.tile}, ("Tiles round-robin.",), Descriptor(1, 0, 2), move)


def _text(node: Node, item: IotaSchedule, task: KernelTask, name: str) -> StageText:
    """One store for each tile; the numbers are made where they are stored from."""
    spec = node.outputs[0]
    count = extent(spec.shape[0]).cpp()
    return kernel_text(
        "iota",
        name,
        tile=item.tile,
        ub_bytes=item.tile * (ITEM_SIZE[spec.dtype] + (4 if spec.dtype != "int32" else 0)),
        start=node.args[0],
        step=node.args[1],
        most=node.args[2] if len(node.args) > 2 else _MOST,
        count=count,
        type=CPP_TYPE[spec.dtype],
        symbols=symbols_in(task, [count]),
        parameters=parameters_of(task),
    )


FAMILY = SearchingFamily(
    name="iota",
    ops={IOTA: "kernel"},
    read=_read,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=IotaSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
)
