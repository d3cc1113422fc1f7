"""What a transposed convolution is asked to do, and the arithmetic of its phases.

Along one dimension, output ``o`` sums the inputs ``i`` and taps ``t`` with ``o + padding = i * stride +
t * dilation``. Outputs of one phase ``o = stride * j + q`` share their taps, and each tap reads the input
at a constant distance from ``j``: a phase is a convolution of stride 1 over the input as it lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeVar

from attrs import evolve, frozen

from evokernel_core.compiler.aten import MAX_POOLS
from evokernel_core.compiler.ops import FLOATS
from evokernel_core.compiler.problems.direct_convolution import direct_convolution_node
from evokernel_core.compiler.problems.reading import below_views, input_below
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Graph, Node, ValueRef, literal, literals
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.conv_transpose.behind import Behind, fitted, fitted_channels
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import read_channels, read_epilogue

_T = TypeVar("_T")
_POOLED = frozenset(("float32", "float16"))
"""Types of which the vector unit takes the larger number."""


@frozen
class ConvTransposeAxis:
    """One spatial dimension."""

    stride: int = 1
    padding: int = 0
    dilation: int = 1
    output_padding: int = 0

    @property
    def tap_step(self) -> int:
        """Taps of one phase are this far apart."""
        return self.stride // math.gcd(self.stride, self.dilation)

    def may_miss(self, kernel: Extent) -> bool:
        """Whether some phase may have no tap at all."""
        taps = kernel.constant
        if math.gcd(self.stride, self.dilation) > 1:
            return True
        return self.stride > 1 and (taps is None or taps < self.stride)

    def taps(self, phase: int, kernel: int) -> Iterator[tuple[int, int]]:
        """The taps of a phase, each with the input's distance from ``j``."""
        for tap in range(kernel):
            distance, rest = divmod(phase + self.padding - tap * self.dilation, self.stride)
            if rest == 0:
                yield tap, distance

    def lowest(self, kernel: int) -> int:
        """No tap of any phase reads further below ``j`` than this."""
        return -(((kernel - 1) * self.dilation - self.padding) // self.stride)

    @property
    def highest(self) -> int:
        """No tap of any phase reads further above ``j`` than this."""
        return -(-self.padding // self.stride)

    def outputs(self, length: int, kernel: int) -> int:
        """Outputs along the dimension."""
        return (
            (length - 1) * self.stride
            - 2 * self.padding
            + self.dilation * (kernel - 1)
            + self.output_padding
            + 1
        )


@frozen
class Sizes:
    """Numbers for one binding of the symbols; depth, height, width from the outside in."""

    images: int
    channels: int
    results: int
    inputs: tuple[int, int, int]
    kernel: tuple[int, int, int]
    outputs: tuple[int, int, int]
    made: tuple[int, int, int]
    """What is stored of the outputs."""


@frozen
class Transposed:
    """A transposed convolution of ``x`` with ``weight``, three spatial dimensions whatever its rank.

    ``channels`` and ``results`` are those of one of ``groups`` groups. ``chip``: whose memories its tiles are
    cut for.
    """

    x: str
    weight: str
    bias: str | None
    batch: Extent
    channels: Extent
    results: Extent
    inputs: tuple[Extent, Extent, Extent]
    kernel: tuple[Extent, Extent, Extent]
    axes: tuple[ConvTransposeAxis, ConvTransposeAxis, ConvTransposeAxis]
    groups: int
    dtype: str
    chip: Chip
    behind: Behind | None = None
    """What the vector cores do to the results."""
    is_pooled: bool = False
    """Whether the largest of the outputs of all phases at a place is the result there."""

    @property
    def strides(self) -> tuple[int, int, int]:
        depth, height, width = (axis.stride for axis in self.axes)
        return depth, height, width

    @property
    def alternating(self) -> tuple[int, int, int]:
        """Outputs that alternate in the result along each dimension."""
        return (1, 1, 1) if self.is_pooled else self.strides

    @property
    def sweeps_depth(self) -> bool:
        """Whether tiles follow one another along the depth, else along the height."""
        return (
            self.inputs[0].constant != 1
            or self.kernel[0].constant != 1
            or self.axes[0] != ConvTransposeAxis()
        )

    @property
    def needs_constant(self) -> bool:
        """Whether a product with ones is added: the bias, or a zero where no tap reaches."""
        phases = zip(self.axes, self.kernel, strict=True)
        return self.bias is not None or any(axis.may_miss(kernel) for axis, kernel in phases)

    def sizes(self, symbols: Mapping[str, int]) -> Sizes:
        inputs, kernel = (
            tuple(item.evaluate(symbols) for item in items) for items in (self.inputs, self.kernel)
        )
        outputs = tuple(axis.outputs(n, k) for axis, n, k in zip(self.axes, inputs, kernel, strict=True))
        made = tuple(n // axis.stride for n, axis in zip(outputs, self.axes, strict=True))
        return Sizes(
            self.batch.evaluate(symbols) * self.groups,
            self.channels.evaluate(symbols),
            self.results.evaluate(symbols),
            inputs,  # type: ignore[arg-type]
            kernel,  # type: ignore[arg-type]
            outputs,  # type: ignore[arg-type]
            made if self.is_pooled else outputs,  # type: ignore[arg-type]
        )


def read_transposed(task: KernelTask, chip: Chip) -> Transposed:
    """The one transposed convolution of a task and what follows it element by element. Raises PlanError
    where the task is anything else."""
    graph = task.graph
    node = direct_convolution_node(task)
    convolution = _read_convolution(task, node, chip)
    pooled = _pooled(graph, node, convolution)
    if pooled is not None:
        node, convolution = pooled, evolve(convolution, is_pooled=True)
    if len(graph.outputs) == 1 and below_views(graph, graph.outputs[0]) == ValueRef(node.name):
        return convolution
    shape = node.outputs[0].shape
    return evolve(convolution, behind=_behind(task, convolution, ValueRef(node.name), shape, chip))


def _pooled(graph: Graph, node: Node, problem: Transposed) -> Node | None:
    """The pooling whose windows are the outputs of all phases at a place, where nothing else reads these."""
    readers = [child for child in graph.nodes if ValueRef(node.name) in child.operands()]
    if len(readers) != 1 or readers[0].op not in MAX_POOLS or ValueRef(node.name) in graph.outputs:
        return None
    (pool,), strides = readers, problem.strides
    rank = len(node.outputs[0].shape) - 2
    defaults: tuple[Arg, ...] = ((), (), 0, 1, False)
    window, steps, padding, dilation, ceils = (*pool.args[1:], *defaults[len(pool.args) - 1 :])
    windows = [literals(choice, rank) for choice in (window, steps or window)]
    if (
        any(window != strides[3 - rank :] for window in windows)
        or problem.dtype not in _POOLED
        or strides[2] == 1
    ):
        return None
    plain = literals(padding, rank) == (0,) * rank and literals(dilation, rank) == (1,) * rank
    read = {ref for node in graph.nodes for ref in node.operands()} | set(graph.outputs)
    if not plain or literal(ceils) or ValueRef(pool.name, 1) in read:
        return None
    return pool


def _behind(
    task: KernelTask, problem: Transposed, ref: ValueRef, shape: tuple[Dim, ...], chip: Chip
) -> Behind:
    """What follows element by element, or reduces the channels of each pixel."""
    phases = math.prod(problem.strides) if problem.is_pooled else 1
    try:
        epilogue = read_epilogue(task, ref, shape[:2], shape[2:], chip)
    except PlanError:
        channels = problem.results.constant
        if channels is None or problem.groups > 1:
            raise
        reduced = read_channels(task, ref, shape[:1], shape[1:2], shape[2:], chip)
        return fitted_channels(reduced, channels, problem.dtype, phases, chip)
    return fitted(epilogue, problem.dtype, phases, chip)


def _read_convolution(task: KernelTask, node: Node, chip: Chip) -> Transposed:
    graph = task.graph
    x, weight, bias, strides, paddings, dilations, transposed, output_paddings, groups = node.args[:9]
    if transposed is not True:
        raise PlanError("The convolution is not transposed.")
    assert isinstance(x, ValueRef) and isinstance(weight, ValueRef)
    groups = literal(groups)
    shape, kernel = graph.spec(x).shape, graph.spec(weight).shape
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS:
        raise PlanError("A convolution in {dtype} is not covered.", dtype=dtype)
    channels = extent(shape[1]).divided_by(Extent(groups))
    if channels is None:
        raise PlanError("The channels do not divide into the groups for every size.")
    rank = len(shape) - 2
    numbers = [literals(choice, rank) for choice in (strides, paddings, dilations, output_paddings)]
    axes = [ConvTransposeAxis(*values) for values in zip(*numbers, strict=True)]
    missing = 3 - rank
    return Transposed(
        input_below(graph, x, Sentence("a convolution")),
        input_below(graph, weight, Sentence("a convolution")),
        input_below(graph, bias, Sentence("a convolution")) if isinstance(bias, ValueRef) else None,
        extent(shape[0]),
        channels,
        extent(kernel[1]),
        _three(missing, [extent(dim) for dim in shape[2:]], Extent()),
        _three(missing, [extent(dim) for dim in kernel[2:]], Extent()),
        _three(missing, axes, ConvTransposeAxis()),
        groups,
        dtype,
        chip,
    )


def _three(missing: int, items: list[_T], filler: _T) -> tuple[_T, _T, _T]:
    first, second, third = [filler] * missing + items
    return first, second, third
