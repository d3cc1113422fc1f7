"""Numbers over sizes as they stand in host code: the language of ``expressions.py``, printed as Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from evokernel_core.domain.errors import UsageError
from evokernel_core.targets.triton.expressions import CALLS, LONGEST, evaluate

Printer = Callable[[str, Sequence[ast.expr]], ast.expr]
"""Prints a call by its name and its arguments."""
_OF_TRITON = frozenset({"cdiv", "next_power_of_2"})
"""The calls that Triton has for hosts; Python itself has the others."""
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def number_text(text: str, names: Mapping[str, str]) -> str:
    """An expression over sizes of at least 1 in Python, the sizes under other names; a comparison is 0 or 1.
    Raises UsageError for what is no such expression: the text is a stranger's, and host code runs."""
    with _refused(text, names):
        tree = _read(text)
        if not any(isinstance(part, ast.Name) and part.id not in CALLS for part in ast.walk(tree)):
            return str(evaluate(text, {}))
        node = _tree(tree, names, _called)
        return ast.unparse(_call("int", [node]) if isinstance(node, ast.Compare) else node)


def condition_text(text: str, names: Mapping[str, str]) -> str:
    """A comparison of sizes in Python, in words that torch.compile reads too, without taking sizes for fixed:
    it looks into no module of Triton's. Raises UsageError as well."""
    with _refused(text, names):
        return ast.unparse(_tree(_without_power(_read(text)), names, _inlined))


@contextmanager
def _refused(text: str, names: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except (SyntaxError, ValueError, KeyError, RecursionError, MemoryError) as error:
        raise UsageError(
            "launch.json says {text}, which is no number over the sizes {names}; make the kernel again.",
            text=repr(text[:60]),
            names=", ".join(names) or "(none)",
        ) from error


def _read(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise ValueError(text)
    return ast.parse(text, mode="eval").body


def _without_power(node: ast.expr) -> ast.expr:
    """``next_power_of_2(n) <= 100`` as what it says of n: to ask for the bits of a size is to fix it."""
    match node:
        case ast.Compare(
            left=ast.Call(func=ast.Name(id="next_power_of_2"), args=[number]),
            ops=[(ast.LtE() | ast.Lt()) as op],
            comparators=[ast.Constant(value=int() as bound)],
        ):
            most = bound - isinstance(op, ast.Lt)
            if most >= 1:
                return ast.Compare(number, [ast.LtE()], [ast.Constant(1 << (most.bit_length() - 1))])
    return node


def _tree(node: ast.expr, names: Mapping[str, str], call: Printer) -> ast.expr:
    def below(child: ast.expr) -> ast.expr:
        return _tree(child, names, call)

    match node:
        case ast.Constant(value=int() as number):
            return ast.Constant(int(number))
        case ast.Name(id=name):
            return ast.Name(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ast.UnaryOp(ast.USub(), below(operand))
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _ARITHMETIC):
            return ast.BinOp(below(left), op, below(right))
        case ast.Compare(left=left, ops=[compared], comparators=[right]) if isinstance(
            compared, _COMPARISONS
        ):
            return ast.Compare(below(left), [compared], [below(right)])
        case ast.Call(func=ast.Name(id=name), args=[_, *_] as given, keywords=[]) if name in CALLS:
            return call(name, [below(argument) for argument in given])
    raise ValueError(ast.dump(node))


def _call(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name), list(arguments), [])


def _called(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    if name == "next_power_of_2" and not isinstance(arguments[0], ast.Name):
        arguments = [_call("max", [arguments[0], ast.Constant(1)])]  # Triton's own is 0 for 0
    return _call(f"triton.{name}" if name in _OF_TRITON else name, arguments)


def _inlined(name: str, arguments: Sequence[ast.expr]) -> ast.expr:
    match name, arguments:
        case "cdiv", [over, under]:
            return _minus(ast.BinOp(_minus(over), ast.FloorDiv(), under))
        case "next_power_of_2", [number]:
            less = _call("max", [ast.BinOp(number, ast.Sub(), ast.Constant(1)), ast.Constant(0)])
            bits = ast.Call(ast.Attribute(less, "bit_length", ast.Load()), [], [])
            return ast.BinOp(ast.Constant(1), ast.LShift(), bits)
        case (("min" | "max"), [_, _, *_]):
            return _call(name, arguments)
    raise ValueError(name)


def _minus(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), node)
