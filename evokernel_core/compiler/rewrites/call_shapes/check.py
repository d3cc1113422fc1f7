"""Holds each call of a task against the rule of its operation."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from evokernel_core.compiler.rewrites.call_shapes import indices, layers, pointwise, products, views
from evokernel_core.compiler.rewrites.call_shapes.call import Rule, Shape, ShapedCall, Unfit
from evokernel_core.compiler.rewrites.call_shapes.pointwise import elementwise, reduced
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, ValueRef
from evokernel_core.domain.operations import Operation, operations
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec

_PAIRS = frozenset({"sort", "topk", "kthvalue", "max.dim", "min.dim", "cummax", "cummin", "var_mean",
                    "nll_loss_forward", "nll_loss2d_forward"})  # fmt: skip
"""Operations of two results."""
_RULES: Mapping[str, Rule] = {
    **pointwise.RULES,
    **views.RULES,
    **products.RULES,
    **indices.RULES,
    **layers.RULES,
}


def check_calls(task: KernelTask) -> None:
    """Raises PlanError for the first node whose operands do not go together, or do not give what it says it
    gives, or have no elements."""
    specs = dict(_values(task))
    shapes = {ref: spec.sizes(task.sizes) for ref, spec in specs.items()}
    masks = frozenset(ref for ref, spec in specs.items() if spec.dtype in ("bool", "uint8"))
    _check_elements(task.graph, shapes)
    for node in task.graph.nodes:
        operation = operations().get(node.op)
        if operation is not None:
            _check(ShapedCall(node, operation, shapes, masks, task.sizes))


def _values(task: KernelTask) -> Iterator[tuple[ValueRef, TensorSpec]]:
    for operand in task.graph.inputs:
        yield ValueRef(operand.name), operand.spec
    for node in task.graph.nodes:
        yield from ((ValueRef(node.name, index), spec) for index, spec in enumerate(node.outputs))


def _check_elements(graph: Graph, shapes: Mapping[ValueRef, Shape]) -> None:
    """A result that nobody reads may be empty, as a bag's own figures are where no gradient is asked for."""
    ops = {node.name: node.op for node in graph.nodes}
    read = [(ref, node.op) for node in graph.nodes for ref in node.operands()]
    for ref, op in [*read, *((ref, ops.get(ref.name, Sentence("The task"))) for ref in graph.outputs)]:
        if 0 in shapes[ref]:
            raise PlanError(
                "{op} of tensors without elements is not covered: {name} has the shape {shape}.",
                op=op,
                name=ref.name,
                shape=list(shapes[ref]),
            )


def _check(call: ShapedCall) -> None:
    node = call.node
    try:
        expected = _rule(node.op, call.operation)(call)
    except (Unfit, ValueError, ZeroDivisionError, IndexError) as error:
        shapes = ", ".join(str(list(call.shapes[ref])) for ref in node.operands())
        reason = error.args[0] if isinstance(error, Unfit) and error.args else None
        reason = reason or Sentence(
            "does not take tensors of the shapes {shapes} with its arguments", shapes=shapes
        )
        raise PlanError("{op} {reason}.", op=node.op, reason=reason) from error
    if expected is None:
        return
    given = [call.shapes[ValueRef(node.name, index)] for index in range(len(node.outputs))]
    least = 2 if _named_in(_PAIRS, node.op) else len(expected)
    if len(given) < least:
        raise PlanError("{op} gives {found} results, not {given}.", op=node.op, found=least, given=len(given))
    for element, shape in zip(given, expected, strict=False):
        if tuple(element) != tuple(shape):
            raise PlanError(
                "{op} gives the shape {shape}, not {found}.",
                op=node.op,
                shape=list(shape),
                found=list(element),
            )


def _named_in(table: Container[str], op: str) -> str:
    """The operation's name in a table, with its overload or without it; "" where it is not there."""
    name = op.removeprefix("aten.")
    return next((key for key in (name, name.split(".", maxsplit=1)[0]) if key in table), "")


def _rule(op: str, operation: Operation) -> Rule:
    key = _named_in(_RULES, op)
    if key:
        return _RULES[key]
    return reduced if operation.parameter("keepdim") is not None else elementwise
