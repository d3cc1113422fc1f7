"""Whether one region is all the work of its function: what a benchmark problem must show."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from evokernel_core.domain.region import Region, Span
from evokernel_core.domain.sentence import Sentence


def uncovered(text: str, region: Region) -> str:
    """Why the function is not covered by the region, empty where it is.

    Covered means: outside the span the function only names, returns and documents, and every
    argument of the call is a plain name, attribute or member, or a random draw, which must stay
    PyTorch's, so that no tensor work is left to PyTorch.
    """
    function = _function(ast.parse(text), region.symbol)
    if function is None:
        return Sentence("The file has no function {symbol}.", symbol=region.symbol)
    for statement in function.body:
        if not _inside(statement, region.span, text) and not _idle(statement, region.span, text):
            return Sentence("Line {line} works on tensors outside of the region.", line=statement.lineno)
    for _, expression in region.site.bindings if region.site else ():
        return Sentence("The argument {expression} is computed outside of the region.", expression=expression)
    for argument in region.task.graph.inputs if region.task else ():
        operand = ast.parse(argument.expression, mode="eval").body
        if not _plain(operand) and not _draws(operand):
            return Sentence(
                "The argument {expression} is computed outside of the region.", expression=argument.expression
            )
    return ""


def _function(tree: ast.Module, symbol: str) -> ast.FunctionDef | None:
    node: ast.AST = tree
    for name in symbol.split("."):
        definitions = [definition for definition in _definitions(node) if definition.name == name]
        if not definitions:
            return None
        node = definitions[-1]
    return node if isinstance(node, ast.FunctionDef) else None


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for child in getattr(node, "body", ()):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield child


def _idle(statement: ast.stmt, span: Span, text: str) -> bool:
    """A statement that, but for the region, does nothing with a tensor."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Return(value=None):
            return True
        case ast.Return(value=value) | ast.Assign(targets=[ast.Name()], value=value) if value is not None:
            return _plain(value) or _inside(value, span, text)
    return False


def _plain(node: ast.expr) -> bool:  # noqa: PLR0911 - one return a kind of expression
    match node:
        case ast.Name() | ast.Constant():
            return True
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return _plain(value)
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant()]):
            return _plain(value)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(_plain(item) for item in items)
        # views of complex numbers, which compute nothing
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="view_as_real"), args=[value]):
            return _plain(value)
        case ast.Call(func=ast.Attribute(value=value, attr="resolve_conj"), args=[]):
            return _plain(value)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr="tensor"), args=[value]):
            return _is_written_out(value) and all(_plain(keyword.value) for keyword in node.keywords)
    return False


def _is_written_out(node: ast.expr) -> bool:
    """Numbers, and lists of them."""
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


_DRAWING = ("rand", "randn", "randint")
_DROPPING = ("dropout", "feature_dropout", "rrelu")
"""Layers that leave of a tensor of ones the factors that they draw."""
_DRAWING_IN_PLACE = ("bernoulli_", "uniform_", "normal_", "exponential_")


def _draws(node: ast.expr) -> bool:
    """A call that makes a new tensor of random numbers, from nothing but a size, a dtype and a device."""
    node = _without_sign(node)
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr=name)) if name in _DRAWING_IN_PLACE:
            return _makes(made, ("empty",))
        case ast.Call(func=ast.Attribute(attr=name), args=[made, *_]) if name in _DROPPING:
            made = _without_sign(made)
            return isinstance(made, ast.Call) and _makes(made, ("ones",))
    return isinstance(node, ast.Call) and _makes(node, _DRAWING)


def _without_sign(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return operand
    return node


def _makes(call: ast.Call, names: tuple[str, ...]) -> bool:
    function = ast.unparse(call.func)
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    calls = any(isinstance(node, ast.Call) for argument in arguments for node in ast.walk(argument))
    return function in {f"torch.{name}" for name in names} and not calls


def _inside(node: ast.stmt | ast.expr, span: Span, text: str) -> bool:
    lines = text.splitlines()
    start = (node.lineno, _characters(lines[node.lineno - 1], node.col_offset))
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    end = (end_line, _characters(lines[end_line - 1], end_column))
    return (span.line, span.column) <= start and end <= (span.end_line, span.end_column)


def _characters(line: str, byte_offset: int) -> int:
    """ast counts bytes of UTF-8, spans count characters."""
    return len(line.encode()[:byte_offset].decode())
