"""What follows a convolution in the same kernel: the vector cores take each result as it is done."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from attrs import frozen

from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.problems.convolution import (
    Convolution,
    convolution_node,
    convolution_of,
    read_convolution,
)
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.ir.nodes import Ring
from evokernel_core.targets.ascendc.kernels.convolution.convolution_design import ConvDesign
from evokernel_core.targets.ascendc.kernels.epilogue.epilogue_cost import Cost, cost_of
from evokernel_core.targets.ascendc.kernels.epilogue.regions import Regions, Walk
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import Epilogue, read_epilogue
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel

MOST_OUTPUTS, MOST_PIXELS = 128, 512
"""Rows and columns of a result that vector cores take up."""
_TOO_LARGE = Sentence("What follows the convolution takes more than the unified buffer of a vector core.")


@frozen
class Layer:
    """A convolution, and what vector cores do to its results before they are stored."""

    convolution: Convolution
    epilogue: Epilogue | None = None
    cost: Cost | None = None


def read_layer(task: KernelTask, chip: Chip) -> Layer:
    """The convolution of a task and what follows it. Raises PlanError where one kernel does not do both."""
    return _read(ById(task), chip)


@lru_cache(maxsize=256)
def _read(key: ById, chip: Chip) -> Layer:
    task = key.task
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


Taker = Callable[[ConvDesign, Walk], IRKernel]
"""The vector cores behind a convolution, which take results up in the loops of a walk."""


def behind_of(layer: Layer, base_m: int, part_n: int, chip: Chip) -> Taker | None:
    """The vector cores behind results of at most ``base_m`` channels by ``part_n`` pixels. Raises PlanError
    where they take more than the unified buffer."""
    epilogue = layer.epilogue
    if epilogue is None:
        return None
    kernel = epilogue.kernel(base_m, part_n, chip)
    if kernel is None:
        raise PlanError(_TOO_LARGE)
    return partial(_taken, kernel, epilogue.source)


def _taken(kernel: Kernel, source: str, design: ConvDesign, walk: Walk) -> IRKernel:
    assert isinstance(design.target, Ring)
    return Regions(kernel, source, design.target, design.tiling.counts.pixels).kernel_of(walk)
