"""Dimensions that nodes name: outside a tensor they are refused, and of a single number it is given one."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.ascendc.rewrites.picking import view
from evokernel_core.ascendc.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.operations import operations
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.twin.chip import Chip

_NAMES = frozenset({"dim", "dims", "dim0", "dim1", "dimension"})
_INSERTS = frozenset({"aten.unsqueeze.default", "aten.stack.default"})
"""Operations whose dimension is one of the result."""
_ALONG = (
    *("cumsum.default", "cumprod.default", "logcumsumexp.default", "cummax.default", "cummin.default"),
    *(
        "sort.default",
        "sort.stable",
        "topk.default",
        "gather.default",
        "index_select.default",
        "flip.default",
    ),
    *("scatter.src", "scatter.value", "scatter_add.default", "scatter_reduce.two", "index_add.default"),
    *("flip.default", "_softmax.default", "_log_softmax.default"),
)
"""Operations along a dimension that give a number for a number."""
_PARTS = frozenset(
    f"aten.{name}"
    for name in (
        *("slice.Tensor", "select.int", "unfold.default", "split_with_sizes.default"),
        *("slice_scatter.default", "select_scatter.default", "index_put.default"),
    )
)
"""Operations on parts of a tensor, which a single number does not have."""


def checked_dimensions(task: KernelTask, chip: Chip) -> KernelTask:
    """The task where single numbers have a dimension as soon as a node works along it. Raises PlanError for
    a node that names a dimension which its operand lacks."""
    for node in task.graph.nodes:
        rank = _rank(task, node)
        for dim in _named(node) if rank is not None else ():
            most = max(1, rank or 0)
            if not -most <= dim < most:
                raise PlanError(f"{node.op} names dimension {dim} of a tensor that has {rank}.")
        if rank == 0 and node.op in _PARTS:
            raise PlanError(f"{node.op} of a single number is not covered.")
    return rewritten(task, _REWRITES, chip)


def _rank(task: KernelTask, node: Node) -> int | None:
    """How many dimensions a node may name, None where it reads no tensor."""
    first = next(iter(node.operands()), None)
    if first is None:
        return None
    return task.graph.spec(first).rank + (node.op in _INSERTS)


def _named(node: Node) -> Iterator[int]:
    """The dimensions that a node names."""
    operation = operations().get(node.op)
    if operation is None:
        return
    places = zip((item.name for item in operation.positional), node.args, strict=False)
    for name, value in (*places, *node.kwargs):
        if name in _NAMES:
            yield from (item for item in _numbers(value))


def _numbers(value: Arg) -> Iterator[int]:
    if isinstance(value, tuple):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value


def _as_one_element(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The node on tensors of one element in place of numbers."""
    if all(writer.shape(ref) for ref in node.operands()):
        return None
    args = tuple(_widened(arg, writer) for arg in node.args)
    kwargs = {name: _widened(arg, writer) for name, arg in node.kwargs}
    outputs = tuple(TensorSpec(spec.shape or (1,), spec.dtype) for spec in node.outputs)
    found = writer.call_many(node.op, *args, outputs=outputs, **kwargs)
    return tuple(view(writer, ref, spec.shape) for ref, spec in zip(found, node.outputs, strict=True))


def _widened(arg: Arg, writer: GraphWriter) -> Arg:
    if isinstance(arg, ValueRef) and not writer.shape(arg):
        return view(writer, arg, (1,))
    return arg


_REWRITES: dict[str, Rewrite] = {f"aten.{name}": _as_one_element for name in _ALONG}
