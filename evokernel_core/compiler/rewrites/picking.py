"""Building blocks of rewrites that compare a dimension with indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evokernel_core.compiler.ops import IOTA
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim, TensorSpec


def argument(node: Node, position: int, name: str, default: Arg = None) -> Arg:
    """An argument by position or keyword."""
    if position < len(node.args):
        return node.args[position]
    return dict(node.kwargs).get(name, default)


def as_arg(dim: Dim) -> Arg:
    """A size as an argument of a node."""
    return dim if isinstance(dim, int) else SymbolicInt(dim)


def view(writer: GraphWriter, x: ValueRef, shape: tuple[Dim, ...]) -> ValueRef:
    """The same elements in another shape."""
    if writer.shape(x) == shape:
        return x
    sizes = tuple(map(as_arg, shape))
    return writer.call("aten.view.default", x, sizes, shape=shape, dtype=writer.spec(x).dtype)


def numbers(writer: GraphWriter, size: Dim, dtype: str = "float32") -> ValueRef:
    """0, 1, .. up to ``size``, made once for all who need them."""
    spec = TensorSpec((size,), dtype)
    for node in writer.nodes:
        if node.op == IOTA.name and node.args == (0, 1) and node.outputs == (spec,):
            return ValueRef(node.name)
    return writer.call(IOTA.name, 0, 1, shape=(size,), dtype=dtype)


def one_hot(writer: GraphWriter, index: ValueRef, dim: int, shape: tuple[Dim, ...]) -> ValueRef:
    """Truth values of ``shape``: where the position along ``dim`` is the index, which has the shape
    without that dimension. An index outside of the dimension is nowhere."""
    behind = (1,) * (len(shape) - dim - 1)
    places = view(writer, numbers(writer, shape[dim]), (shape[dim], *behind))
    wanted = view(writer, index, (*shape[:dim], 1, *shape[dim + 1 :]))
    return writer.call("aten.eq.Tensor", wanted, places, shape=shape, dtype="bool")


def pick(writer: GraphWriter, x: ValueRef, mask: ValueRef, dim: int) -> ValueRef:
    """The sum over ``dim`` of what a mask keeps of ``x``, which may be broadcast to the mask's shape."""
    shape, dtype = writer.shape(mask), writer.spec(x).dtype
    kept = writer.call("aten.where.ScalarOther", mask, x, 0.0, shape=shape, dtype=dtype)
    return writer.call(
        "aten.sum.dim_IntList", kept, (dim,), shape=(*shape[:dim], *shape[dim + 1 :]), dtype=dtype
    )


def permuted(writer: GraphWriter, x: ValueRef, order: Sequence[int]) -> ValueRef:
    """The dimensions in another order."""
    if list(order) == sorted(order):
        return x
    shape = tuple(writer.shape(x)[axis] for axis in order)
    return writer.call("aten.permute.default", x, tuple(order), shape=shape, dtype=writer.spec(x).dtype)


def read_once(task: KernelTask) -> set[str]:
    """The names of values that one node alone reads, or the task gives and nothing reads."""
    readers = Counter(ref.name for node in task.graph.nodes for ref in set(node.operands()))
    readers.update(ref.name for ref in task.graph.outputs)
    return {name for name, count in readers.items() if count == 1}


def producer(writer: GraphWriter, ref: ValueRef) -> Node | None:
    """The node that makes a value, None for an input."""
    return next((node for node in writer.nodes if node.name == ref.name), None)


def others_are_read(node: Node, writer: GraphWriter) -> bool:
    """Whether something reads more than the first result of a node of the graph that is rewritten."""
    graph = writer.task.graph
    read = (ref for other in graph.nodes for ref in other.operands())
    return any(ref.name == node.name and ref.index for ref in (*read, *graph.outputs))
