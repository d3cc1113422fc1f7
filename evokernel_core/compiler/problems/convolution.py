"""What a convolution on the cube cores computes: sizes, taps and steps, in three spatial dimensions."""

from __future__ import annotations

from attrs import evolve, frozen

from evokernel_core.compiler.aten import RELU
from evokernel_core.compiler.ops import CONVOLUTION, FLOATS
from evokernel_core.compiler.problems.reading import below_views, input_below, one_node
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef, literal, literals
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim

_READER = Sentence("a convolution")


@frozen
class Frame:
    """Zeros in front of an image, both (depth, height, width)."""

    sizes: tuple[Extent, ...]
    before: tuple[int, ...]


@frozen
class Convolution:
    """Spatial tuples run (depth, height, width); dimensions that can be one are one.

    ``read`` are the sizes of x in memory (its width that of one phase), of the image where the kernel puts it
    into a ``frame``; ``made`` those of the result;
    ``dilation`` counts elements, whole for all but the last dimension of phases.
    """

    x: str
    weight: str
    batch: Extent
    groups: int
    channels: Extent
    outputs: Extent
    read: tuple[Extent, ...]
    made: tuple[Extent, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[Extent, ...]
    phases: int
    rows_first: bool
    dtype: str
    bias: str | None = None
    relu: bool = False
    frame: Frame | None = None

    @property
    def inner(self) -> int:
        """Channels and taps of one row of the kernel, 0 where channels are not known before it runs."""
        return (self.channels.constant or 0) * self.kernel[0] * self.kernel[2]


@frozen
class _Axis:
    read: Extent
    made: Extent
    kernel: int
    stride: int
    dilation: Extent


def read_convolution(task: KernelTask) -> Convolution:
    """The one convolution of a task, with a ReLU or without. Raises PlanError where the task is anything
    else."""
    graph, node = task.graph, convolution_node(task)
    nodes = {each.name: each for each in graph.nodes}
    if len(graph.outputs) != 1:
        raise PlanError("The convolution has more than one result.")
    made = below_views(graph, graph.outputs[0])
    relu = made.name in nodes and nodes[made.name].op == RELU
    if relu:
        made = below_views(graph, next(iter(nodes[made.name].operands())))
    if made != ValueRef(node.name):
        raise PlanError("The result is more than a convolution.")
    return evolve(convolution_of(task, node), relu=relu)


def convolution_node(task: KernelTask) -> Node:
    """The one convolution of a task. Raises PlanError where it has none or several."""
    return one_node(task, {CONVOLUTION.name}, Sentence("The kernel has not exactly one convolution."))


def convolution_of(task: KernelTask, node: Node) -> Convolution:
    """What a node computes. Raises PlanError where its operands are not inputs of the task."""
    graph = task.graph
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS:
        raise PlanError("A convolution in {dtype} is not covered.", dtype=dtype)
    x, weight, *bias = (input_below(graph, ref, _READER) for ref in node.operands())
    return evolve(_geometry(graph, node, x, weight), bias=bias[0] if bias else None)


def _geometry(graph: Graph, node: Node, x: str, weight: str) -> Convolution:
    read, shape = (graph.spec(ref).shape for ref in tuple(node.operands())[:2])
    made = node.outputs[0].shape
    groups, phases, rows_first = literal(node.args[4]), literal(node.args[5]), bool(node.args[6])
    if rows_first:
        shape = (shape[0], shape[2], *shape[3:-1], shape[1], shape[-1])
    before = node.args[8] if len(node.args) > 8 else None
    if phases > 1 and before is None:
        read = (*read[:-2], read[-1])
    steps, gaps = (literals(arg, len(read) - 2) for arg in node.args[2:4])
    axes = [
        _Axis(extent(a), extent(b), _static(k), s, Extent(d))
        for a, b, k, s, d in zip(read[2:], made[2:], shape[2:], steps, gaps, strict=True)
    ]
    outputs = extent(shape[0]).divided_by(Extent(groups))
    if outputs is None:
        raise PlanError("The output channels of a convolution are no multiple of its groups.")
    axes = axes if phases > 1 or rows_first or before is not None else _merged(axes)
    missing = 3 - len(axes)
    axes = [_Axis(ONE, ONE, 1, 1, ONE)] * (3 - len(axes)) + axes
    sizes = tuple(axis.read for axis in axes)
    return Convolution(
        x,
        weight,
        extent(made[0]),
        groups,
        extent(shape[1]),
        outputs,
        sizes,
        tuple(axis.made for axis in axes),
        tuple(axis.kernel for axis in axes),
        tuple(axis.stride for axis in axes),
        tuple(axis.dilation for axis in axes),
        phases,
        rows_first,
        node.outputs[0].dtype,
        frame=None if before is None else Frame(sizes, (0,) * missing + literals(before, 3 - missing)),
    )


def _merged(axes: list[_Axis]) -> list[_Axis]:
    """Joins the last two dimensions as long as the last one is only carried along."""
    while len(axes) > 1:
        last, next_ = axes[-1], axes[-2]
        if last.kernel > 1 or last.read != last.made or next_.stride > 1:
            break
        width = last.read
        joined = _Axis(
            next_.read.times(width),
            next_.made.times(width),
            next_.kernel,
            1,
            next_.dilation.times(width) if next_.kernel > 1 else ONE,
        )
        axes = [*axes[:-2], joined]
    return axes


def _static(dim: Dim) -> int:
    if not isinstance(dim, int):
        raise PlanError("The size of a convolution's kernel is not known before it runs.")
    return dim
