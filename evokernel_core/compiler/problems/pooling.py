"""What a windowed computation asks: pooling and depthwise convolution read from a graph.

Both slide a window over the last one to three dimensions of every image and channel (a plane), and
combine the elements below it: their maximum, their sum, or their sum with a weight for each tap.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from attrs import evolve, frozen

from evokernel_core.compiler.aten import CONVOLUTION, MAX_POOLS
from evokernel_core.compiler.ops import DEPTHWISE, FLOATS
from evokernel_core.compiler.problems.reading import below_views, one_node
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef, literal, literals
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

CONVOLUTIONS = frozenset({CONVOLUTION, DEPTHWISE.name})


class Combine(StrEnum):
    """What becomes of the elements below a window."""

    MAX = "max"
    SUM = "sum"
    WEIGHTED = "weighted"


@frozen
class PoolingAxis:
    """One dimension of the window: taps, their distance, the windows' distance, and the zeros (or
    minus infinities) in front; ``size`` and ``result`` are the lengths of input and output. Where the latter
    ``ceils``, it is rounded up or of any length, and windows may end behind as many elements as in front."""

    size: Extent
    result: Extent
    taps: int = 1
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    ceils: bool = False

    @property
    def reach(self) -> int:
        """Input elements from a window's first to its last."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def is_plain(self) -> bool:
        """Whether the output is the input as far as this dimension goes."""
        return (self.taps, self.stride, self.padding) == (1, 1, 0) and self.size == self.result

    @property
    def stays_inside(self) -> bool:
        """Whether no window reaches past the input, whatever its size."""
        return self.padding == 0 and not self._overshoots(0)

    def counts_all(self, counts_padding: bool) -> bool:
        """Whether every window of an average counts all of its taps."""
        return (counts_padding or self.padding == 0) and not self._overshoots(self.padding)

    def _overshoots(self, behind: int) -> bool:
        """Whether the last window may end more than ``behind`` elements after the input."""
        if not self.ceils:
            return False
        size, result = self.size.constant, self.result.constant
        if size is None or result is None:
            return True
        return (result - 1) * self.stride - self.padding + self.reach > size + behind


@frozen
class Divisor:
    """What an average divides by: ``fixed``, else the taps on the input, its padding included or not."""

    counts_padding: bool = True
    fixed: int | None = None


@frozen
class Window:
    """The computation with its dimensions brought into the order depth, rows, columns.

    ``planes`` counts images and channels of the output; ``inner`` of them in a row have one channel,
    and ``channels`` channels follow one another. ``spread`` output channels read each input channel.
    Where ``weighs_rows``, the rows of the one plane are the channels. ``results`` are those that are
    read: 0 the values, 1 where in its image each maximum lies.
    """

    combine: Combine
    source: str
    dtype: str
    planes: Extent
    depth: PoolingAxis
    rows: PoolingAxis
    columns: PoolingAxis
    divisor: Divisor = Divisor()
    weight: str = ""
    bias: str = ""
    channels: Extent = ONE
    inner: Extent = ONE
    spread: int = 1
    weighs_rows: bool = False
    results: tuple[int, ...] = (0,)

    @property
    def finds(self) -> bool:
        """Whether the places of maxima are asked."""
        return 1 in self.results

    @property
    def axes(self) -> tuple[PoolingAxis, PoolingAxis, PoolingAxis]:
        return self.depth, self.rows, self.columns

    @property
    def taps(self) -> int:
        """Of a window."""
        return self.depth.taps * self.rows.taps * self.columns.taps

    @property
    def stays_inside(self) -> bool:
        """Whether no window reaches past the input."""
        return all(axis.stays_inside for axis in self.axes)

    @property
    def is_across(self) -> bool:
        """Whether windows combine neighbours along the columns, or leave some out."""
        return not self.columns.is_plain


def read_window(task: KernelTask, ops: frozenset[str]) -> Window:
    """The one windowed computation of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    nodes = graph.nodes_by_name
    node = one_node(task, ops, Sentence("The kernel has not exactly one pooling or depthwise convolution."))
    bases = [below_views(graph, ref) for ref in graph.outputs]
    if any(base.name != node.name for base in bases) or len(set(bases)) < len(bases):
        raise PlanError("The result is more than that of one pooling or depthwise convolution.")
    if node.outputs[0].dtype not in FLOATS:
        raise PlanError("{op} in {dtype} is not covered.", op=node.op, dtype=node.outputs[0].dtype)
    window = _convolution(task, node) if node.op in CONVOLUTIONS else _pool(task, node)
    source, weight, bias = (
        below_views(graph, ValueRef(name)).name if name else ""
        for name in (window.source, window.weight, window.bias)
    )
    if missing := [name for name in (source, weight, bias) if name in nodes]:
        raise PlanError(
            "{op} before {reader} is a kernel of its own.", op=nodes[missing[0]].op, reader=node.op
        )
    results = tuple(base.index for base in bases)
    window = evolve(window, source=source, weight=weight, bias=bias, results=results)
    return _checked(window if window.finds else _simplified(window))


def _pool(task: KernelTask, node: Node) -> Window:
    rank = 3 if "3d" in node.op else 2 if "2d" in node.op else 1
    is_max = node.op in MAX_POOLS
    names = ("kernel_size", "stride", "padding") + (
        ("dilation", "ceil_mode") if is_max else ("ceil_mode", "count_include_pad", "divisor_override")
    )
    given = dict(zip(names, node.args[1:], strict=False)) | dict(node.kwargs)
    taps = literals(given["kernel_size"], rank)
    stride = literals(given.get("stride") or taps, rank)
    padding = literals(given.get("padding", 0), rank)
    dilation = literals(given.get("dilation", 1), rank)
    source = next(iter(node.operands()))
    ceils = (bool(given.get("ceil_mode", False)),) * rank
    axes = _axes(task, source, node, (taps, stride, padding, dilation, ceils))
    planes = product(map(extent, task.graph.spec(source).shape[:-rank]))
    if is_max:
        return Window(Combine.MAX, source.name, node.outputs[0].dtype, planes, *axes)
    fixed = given.get("divisor_override")
    divisor = Divisor(bool(given.get("count_include_pad", True)), literal(fixed) if fixed else None)
    return Window(Combine.SUM, source.name, node.outputs[0].dtype, planes, *axes, divisor)


def _axes(
    task: KernelTask, source: ValueRef, node: Node, numbers: Sequence[Sequence[int]]
) -> tuple[PoolingAxis, PoolingAxis, PoolingAxis]:
    """Depth, rows and columns; those that the computation has not are of size one."""
    rank = len(numbers[0])
    sizes = task.graph.spec(source).shape[-rank:]
    results = node.outputs[0].shape[-rank:]
    axes = [
        PoolingAxis(extent(size), extent(result), *each)
        for size, result, each in zip(sizes, results, zip(*numbers, strict=True), strict=True)
    ]
    depth, rows, columns = [PoolingAxis(ONE, ONE)] * (3 - rank) + axes
    return depth, rows, columns


def _convolution(task: KernelTask, node: Node) -> Window:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
    assert isinstance(x, ValueRef)
    assert isinstance(weight, ValueRef)
    shape, kernel = task.graph.spec(x).shape, task.graph.spec(weight).shape
    if transposed or kernel[1] != 1 or extent(shape[1]) != extent(_dim(groups)):
        raise PlanError("A convolution over several channels is none of depthwise.")
    rank = len(shape) - 2
    channels, groups_extent = extent(node.outputs[0].shape[1]), extent(_dim(groups))
    spread = channels.divided_by(groups_extent)
    taps = kernel[2:]
    if spread is None or spread.constant is None or not all(isinstance(size, int) for size in taps):
        raise PlanError("A depthwise convolution with weights of unknown shape is not covered.")
    each = [literals(numbers, rank) for numbers in (taps, stride, padding, dilation)]
    axes = _axes(task, x, node, (*each, (node.op == DEPTHWISE.name,) * rank))
    return Window(
        Combine.WEIGHTED,
        x.name,
        node.outputs[0].dtype,
        extent(shape[0]).times(channels),
        *axes,
        weight=weight.name,
        bias=bias.name if isinstance(bias, ValueRef) else "",
        channels=channels,
        spread=spread.constant,
    )


def _dim(value: Arg) -> int | str:
    if isinstance(value, int):
        return value
    raise PlanError("A convolution with a number of groups that depends on sizes is not covered.")


def _simplified(window: Window) -> Window:
    """Dimensions that the window leaves alone join their neighbours, so that rows are long and many."""
    if window.columns.is_plain and window.rows.is_plain:
        joined = window.rows.size.times(window.columns.size)
        window = evolve(
            window, depth=PoolingAxis(ONE, ONE), rows=window.depth, columns=PoolingAxis(joined, joined)
        )
    elif window.columns.is_plain and window.depth.is_plain:
        window = _depth_to_planes(window)
    elif window.rows.is_plain and window.depth.is_plain:
        window = _depth_to_planes(window)
        return _planes_to_rows(window)
    if window.depth.is_plain:
        window = _depth_to_planes(window)
    return window


def _depth_to_planes(window: Window) -> Window:
    size = window.depth.size
    return evolve(
        window,
        planes=window.planes.times(size),
        inner=window.inner.times(size),
        depth=PoolingAxis(ONE, ONE),
    )


def _planes_to_rows(window: Window) -> Window:
    """A window along the columns alone: all rows of all planes are rows of one."""
    if window.spread > 1:
        return window
    rows = window.planes.times(window.rows.size)
    return evolve(
        window,
        planes=ONE,
        rows=PoolingAxis(rows, rows),
        inner=window.inner.times(window.rows.size),
        weighs_rows=window.combine is Combine.WEIGHTED,
    )


def _checked(window: Window) -> Window:
    if window.columns.dilation > 2**15 or window.columns.stride > 2**15:
        raise PlanError("A window whose columns lie more than 32768 apart is not covered.")
    return window
