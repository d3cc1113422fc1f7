"""What follows a convolution in the same kernel: the vector cores take each result as it is done."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.ascendc.kernels.convolution.geometry import (
    Convolution,
    convolution_node,
    convolution_of,
    read_convolution,
)
from evokernel_core.ascendc.kernels.cube import Behind
from evokernel_core.ascendc.kernels.epilogue.cost import Cost, cost_of
from evokernel_core.ascendc.kernels.epilogue.tiles import Epilogue, EpilogueText, read_epilogue, write
from evokernel_core.ascendc.lowering.opset import fused_ops
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.twin.chip import Chip

MOST_OUTPUTS, MOST_PIXELS = 128, 512
"""Rows and columns of a result that vector cores take up."""
_TOO_LARGE = "What follows the convolution takes more than the unified buffer of a vector core."


@frozen
class Layer:
    """A convolution, and what vector cores do to its results before they are stored."""

    convolution: Convolution
    epilogue: Epilogue | None = None
    cost: Cost | None = None


def read_layer(task: KernelTask, chip: Chip) -> Layer:
    """The convolution of a task and what follows it. Raises PlanError where one kernel does not do both."""
    node = convolution_node(task)
    try:
        return Layer(read_convolution(task))
    except PlanError:
        if not any(other.op in fused_ops() for other in task.graph.nodes):
            raise
    shape = node.outputs[0].shape
    epilogue = read_epilogue(task, ValueRef(node.name), shape[:2], shape[2:], chip)
    kernel = epilogue.kernel(MOST_OUTPUTS, MOST_PIXELS, chip)
    if kernel is None:
        raise PlanError(_TOO_LARGE)
    return Layer(convolution_of(task, node), epilogue, cost_of(kernel, epilogue.source, chip))


_TAKE = """\
const uint64_t core = GetBlockIdx() / GetTaskRatio();
uint32_t count = 0;
{tiles}
    const Tile tile = TileAt(tiling_, index);
    const uint64_t channel = (tile.image * {groups} + tile.group) * tiling_.outputs + tile.output;
    for (uint32_t first = 0; first < tile.columns; first += tiling_.partColumns) {{
        const Pixels pixels = PixelsAt(tiling_, tile, first);
        const uint64_t row = tile.plane * tiling_.outH + tile.row + pixels.row;
        const uint64_t pixel = row * tiling_.outW + tile.column + pixels.column;
        const uint64_t place = count++ % HANDED * BASE_M * PART_N;
        CrossCoreWaitFlag(RESULT_READY);
        Take(Region{{channel, pixel, place, tile.outputs, pixels.rows * pixels.width}});
        CrossCoreSetFlag<2, PIPE_MTE2>(RESULT_TAKEN);
    }}
}}"""
_IN_A_ROW = """\
const uint64_t last = tiling_.tiles * (core + 1) / tiling_.blockDim;
for (uint64_t index = tiling_.tiles * core / tiling_.blockDim; index < last; ++index) {"""


def epilogue_text(layer: Layer, base_m: int, part_n: int, chip: Chip, class_name: str) -> EpilogueText | None:
    """The class of the vector cores for results of at most ``base_m`` channels by ``part_n`` pixels, where a
    core goes down its strips."""
    if layer.epilogue is None:
        return None
    take = _TAKE.format(groups=layer.convolution.groups, tiles=_IN_A_ROW)
    return _written(layer.epilogue, base_m, part_n, chip, class_name, take.splitlines())


def behind_of(layer: Layer, base_m: int, part_n: int, chip: Chip) -> Behind | None:
    """The vector cores behind results of at most ``base_m`` channels by ``part_n`` pixels."""
    epilogue = layer.epilogue
    if epilogue is None:
        return None
    return Behind(
        lambda name, process: _written(epilogue, base_m, part_n, chip, name, process), epilogue.reads_numbers
    )


def _written(
    epilogue: Epilogue, base_m: int, part_n: int, chip: Chip, class_name: str, process: Sequence[str]
) -> EpilogueText:
    kernel = epilogue.kernel(base_m, part_n, chip)
    if kernel is None:
        raise PlanError(_TOO_LARGE)
    lines = [*process, *(["Finish();"] if kernel.schedule.ahead else [])]
    memory = "workspace + GetBlockIdx() / GetTaskRatio() * HANDED_BYTES"
    return write(epilogue, kernel, class_name, lines, "tiling_.pixels", memory)
