"""The reference of a kernel: its graph as PyTorch code."""

from __future__ import annotations

import keyword
import math
from collections.abc import Mapping

from evokernel_core.compiler.shapes.sizes import names_in
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, DTypeArg, GraphInput, InputKind, Node, SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask

_TAKEN = frozenset({"torch", "reference", "guards", "type", "NAME"})
"""Names that a package uses itself."""

_MAKES_TENSORS = frozenset({"full", "scalar_tensor", "arange", "zeros", "ones", "empty"})
"""Operations without a tensor argument: they need to be told the device."""

_LISTS = frozenset({"aten.split.Tensor", "aten.split_with_sizes.default", "aten.unbind.int"})
"""Operations that answer with a list, also of one tensor."""

_SEEN_OTHERWISE = {"view_as_complex": ".contiguous()", "view_as_real": ".resolve_conj()"}
"""What is called first where a tensor may not lie in memory as PyTorch's operation wants it."""


def python_name(name: str) -> str:
    """A graph name as a Python identifier."""
    cleaned = "".join(char if char.isalnum() or char == "_" else "_" for char in name)
    if not cleaned[0].isalpha() and cleaned[0] != "_":
        cleaned = f"value_{cleaned}"
    return f"{cleaned}_" if keyword.iskeyword(cleaned) or cleaned in _TAKEN else cleaned


def tensor_inputs(task: KernelTask) -> tuple[GraphInput, ...]:
    return tuple(operand for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR)


def symbol_sources(task: KernelTask) -> dict[str, tuple[str, int]]:
    """For each symbol the tensor input and the dimension that have exactly that size."""
    result: dict[str, tuple[str, int]] = {}
    for operand in tensor_inputs(task):
        for axis, dim in enumerate(operand.spec.shape):
            if isinstance(dim, str) and dim.isidentifier():
                result.setdefault(dim, (python_name(operand.name), axis))
    missing = [symbol.name for symbol in task.symbols if symbol.name not in result]
    if missing:
        raise PlanError(
            "No input has the size {size} as a dimension, so a call cannot tell it.", size=missing[0]
        )
    return result


def statements(task: KernelTask) -> list[str]:
    """The body of the reference: one line a node."""
    used = frozenset().union(*map(names_in, _expressions(task)))
    lines = [
        f"{symbol} = {name}.size({axis})"
        for symbol, (name, axis) in symbol_sources(task).items()
        if symbol in used
    ]
    # a number was traced as a tensor, which most operations of ATen take no number for
    numbers = [python_name(operand.name) for operand in task.graph.inputs if operand.kind is InputKind.SCALAR]
    lines += [f"{name} = torch.scalar_tensor({name}, dtype=torch.float32)" for name in numbers]
    several = {node.name: len(node.outputs) > 1 or node.op in _LISTS for node in task.graph.nodes}
    tensors = tensor_inputs(task)
    device = f"{python_name(tensors[0].name)}.device" if tensors else '"cpu"'
    buffers = {
        task.graph.outputs[update.output] for update in task.graph.updates if update.output is not None
    }
    for node in task.graph.nodes:
        # what a buffer holds has no gradient, and is what later statements read
        ending = ".detach()" if ValueRef(node.name) in buffers and not several[node.name] else ""
        lines.append(f"{_node(node, several, device)}{ending}")
    results = [_argument(ref, several) for ref in task.graph.outputs]
    result = results[0] if len(results) == 1 else f"({', '.join(results)})"
    return [*lines, f"return {result}"]


def _expressions(task: KernelTask) -> list[str]:
    result: list[str] = []

    def visit(arg: Arg) -> None:
        if isinstance(arg, SymbolicInt):
            result.append(arg.expression)
        elif isinstance(arg, tuple):
            for element in arg:
                visit(element)

    for node in task.graph.nodes:
        visit(node.args)
        visit(tuple(value for _, value in node.kwargs))
    return result


def _node(node: Node, several: Mapping[str, bool], device: str) -> str:
    packet = node.op.removeprefix("aten.").split(".")[0]
    arguments = [_argument(arg, several) for arg in node.args]
    if packet in _SEEN_OTHERWISE:
        arguments[0] += _SEEN_OTHERWISE[packet]
    for key, value in node.kwargs:
        if key not in ("device", "pin_memory", "layout"):
            arguments.append(f"{key}={_argument(value, several)}")
    if packet in _MAKES_TENSORS:
        arguments.append(f"device={device}")
    # what was traced on contiguous tensors is called with any, of which not all have every view
    op = "aten.reshape.default" if packet in ("view", "_unsafe_view") else node.op
    return f"{python_name(node.name)} = torch.ops.{op}({', '.join(arguments)})"


def _argument(arg: Arg, several: Mapping[str, bool]) -> str:
    match arg:
        case ValueRef(name=name, index=index):
            return f"{python_name(name)}[{index}]" if several.get(name) else python_name(name)
        case SymbolicInt(expression=expression):
            return expression
        case DTypeArg(name=name):
            return f"torch.{name}"
        case tuple():
            return "[" + ", ".join(_argument(element, several) for element in arg) + "]"
        case float() if not math.isfinite(arg):
            return f'float("{arg}")'
    return repr(arg)
