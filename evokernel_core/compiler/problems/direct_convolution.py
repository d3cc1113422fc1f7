"""What a convolution computes as PyTorch writes it: padding, strides and groups, transposed or not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.aten import CONVOLUTION
from evokernel_core.compiler.ops import FLOATS
from evokernel_core.compiler.problems.reading import input_below, one_node
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal, literals
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_READER = Sentence("a convolution")


@frozen
class ConvolutionAxis:
    """One spatial dimension: lengths of the image and of the result, and the kernel along it."""

    size: Extent = ONE
    result: Extent = ONE
    taps: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1


@frozen
class DirectConvolution:
    """x [batch, groups * channels, *sizes] with weight [groups * outputs, channels, *taps], or ``transposed``
    with weight [groups * channels, outputs, *taps]. The axes are depth, rows and columns."""

    x: str
    weight: str
    bias: str | None
    batch: Extent
    groups: int
    channels: Extent
    outputs: Extent
    axes: tuple[ConvolutionAxis, ConvolutionAxis, ConvolutionAxis]
    transposed: bool
    dtype: str

    @property
    def taps(self) -> int:
        """Of the kernel."""
        return math.prod(axis.taps for axis in self.axes)

    def evaluate(self, sizes: Mapping[str, int]) -> tuple[int, int, int]:
        """Of each group: outputs, pixels of all results, and products that make up each, in numbers."""
        pixels = math.prod(axis.result.evaluate(sizes) for axis in self.axes)
        return (
            self.outputs.evaluate(sizes),
            self.batch.evaluate(sizes) * pixels,
            self.channels.evaluate(sizes) * self.taps,
        )


def direct_convolution_node(task: KernelTask) -> Node:
    """The one convolution of a task. Raises PlanError where it has none or several."""
    return one_node(task, {CONVOLUTION}, Sentence("The kernel has not exactly one convolution."))


def direct_convolution_of(task: KernelTask, node: Node) -> DirectConvolution:
    """What a node computes. Raises PlanError where its operands are not inputs of the task."""
    graph = task.graph
    x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
    assert isinstance(x, ValueRef) and isinstance(weight, ValueRef)
    spec, shape = graph.spec(x), graph.spec(weight).shape
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS or spec.dtype != dtype:
        raise PlanError("A convolution in {dtype} is not covered.", dtype=dtype)
    rank, count = len(shape) - 2, literal(groups)
    if not all(isinstance(size, int) for size in shape[2:]):
        raise PlanError("The size of a convolution's kernel is not known before it runs.")
    numbers = [literals(arg, rank) for arg in (shape[2:], stride, padding, dilation)]
    axes = [
        ConvolutionAxis(extent(size), extent(result), *each)
        for size, result, each in zip(
            spec.shape[2:], node.outputs[0].shape[2:], zip(*numbers, strict=True), strict=True
        )
    ]
    depth, rows, columns = [ConvolutionAxis()] * (3 - rank) + axes
    outputs = extent(shape[1]) if transposed else extent(shape[0]).divided_by(Extent(count))
    channels = extent(shape[0]).divided_by(Extent(count)) if transposed else extent(shape[1])
    if outputs is None or channels is None:
        raise PlanError("The channels of a convolution are no multiple of its groups.")
    return DirectConvolution(
        input_below(graph, x, _READER),
        input_below(graph, weight, _READER),
        input_below(graph, bias, _READER) if isinstance(bias, ValueRef) else None,
        extent(spec.shape[0]),
        count,
        channels,
        outputs,
        (depth, rows, columns),
        bool(transposed),
        dtype,
    )
