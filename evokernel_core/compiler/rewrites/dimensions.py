"""Calls as families can rely on them: fitting operands that have elements, and a dimension to work along."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.compiler.rewrites.call_shapes import check_calls
from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.device import Device

_CAT = "aten.cat.default"
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
    *("scatter.reduce", "scatter.value_reduce"),
    *("scatter.src", "scatter.value", "scatter_add.default", "scatter_reduce.two"),
    *("index_add.default", "index_copy.default"),
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


def checked_calls(task: KernelTask, device: Device) -> KernelTask:
    """The task where every call fits its operands, and where single numbers have a dimension as soon as a
    node works along it. Raises PlanError for a node whose operands do not go together, name a dimension that
    is not there or have no elements."""
    task = rewritten(task, {_CAT: _without_empty_parts}, device)
    check_calls(task)
    for node in task.graph.nodes:
        if node.op in _PARTS and not all(task.graph.spec(ref).shape for ref in _first(node)):
            raise PlanError("{op} of a single number is not covered.", op=node.op)
    return rewritten(task, _REWRITES, device)


def _first(node: Node) -> tuple[ValueRef, ...]:
    return tuple(node.operands())[:1]


def _without_empty_parts(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A join of the tensors that have elements."""
    refs = list(node.operands())
    kept = [ref for ref in refs if 0 not in writer.shape(ref)]
    if len(kept) in (0, len(refs)) or not isinstance(node.args[0], tuple):
        return None
    if len(kept) == 1:
        return (kept[0],)
    return writer.keep(evolve(node, args=(tuple(kept), *node.args[1:])))


def _as_one_element(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The node on tensors of one element in place of numbers."""
    if all(writer.shape(ref) for ref in node.operands()):
        return None
    args = tuple(_widened(arg, writer) for arg in node.args)
    kwargs = {name: _widened(arg, writer) for name, arg in node.kwargs}
    outputs = tuple(TensorSpec(spec.shape or (1,), spec.dtype) for spec in node.outputs)
    result = writer.call_many(node.op, *args, outputs=outputs, **kwargs)
    return tuple(view(writer, ref, spec.shape) for ref, spec in zip(result, node.outputs, strict=True))


def _widened(arg: Arg, writer: GraphWriter) -> Arg:
    if isinstance(arg, ValueRef) and not writer.shape(arg):
        return view(writer, arg, (1,))
    return arg


_REWRITES: dict[str, Rewrite] = {f"aten.{name}": _as_one_element for name in _ALONG}
