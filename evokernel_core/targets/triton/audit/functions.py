"""Rules on the bodies of jit functions: statements, expressions and names from closed lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.triton.audit import allowed
from evokernel_core.targets.triton.audit.module import is_free, taken
from evokernel_core.targets.triton.audit.problems import at

CONSTEXPR = "tl.constexpr"
_STATEMENTS = (
    *(ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.While, ast.Return, ast.Pass),
)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call),
    *(ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.keyword),
)
_SIGNS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_NOT_SIGNS = (ast.Pow, ast.MatMult, ast.In, ast.NotIn)
_LARGEST = 1 << 64


def is_constexpr(parameter: ast.arg) -> bool:
    """Whether a parameter's value is known when the kernel is compiled."""
    return parameter.annotation is not None and ast.unparse(parameter.annotation) == CONSTEXPR


def check_function(node: ast.FunctionDef, functions: Set[str]) -> Iterator[Finding]:
    """What of a function is not on the lists; ``functions``: the names of those of its file."""
    yield from _check_parameters(node.args)
    own = _own_names(node)
    for name, where in own.items():
        if not is_free(name) or name in functions:
            yield at(where, "name", taken(name))
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    reader = _BodyRules(functions, own.keys())
    for statement in body:
        yield from reader.statement(statement)


def _check_parameters(arguments: ast.arguments) -> Iterator[Finding]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    stars = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    for each in (*arguments.posonlyargs, *arguments.kwonlyargs, *stars):
        message = Sentence(
            "The parameter {name} is not a plain one; write it without / and *.", name=each.arg
        )
        yield at(each, "parameter", message)
    for each in (*every, *stars):
        if each.annotation is not None and not is_constexpr(each):
            message = Sentence("{name} has an annotation other than tl.constexpr; remove it.", name=each.arg)
            yield at(each, "annotation", message)
    for default in (*arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)):
        if not _is_number(default):
            yield at(default, "default", Sentence("A default is a number; write one, or remove it."))


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float)


def _own_names(node: ast.FunctionDef) -> dict[str, ast.AST]:
    """Parameters and variables with the first place of each."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    names: dict[str, ast.AST] = {}
    for each in every:
        names.setdefault(each.arg, each)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and not isinstance(inner.ctx, ast.Load):
            names.setdefault(inner.id, inner)
    return names


class _BodyRules:
    """Walks a function; ``functions`` and ``own`` are the names that it may speak of."""

    def __init__(self, functions: Set[str], own: Set[str]) -> None:
        self._functions, self._own = functions, own

    def statement(self, node: ast.stmt) -> Iterator[Finding]:
        if not isinstance(node, _STATEMENTS):
            yield _no_construct(node)
            return
        yield from self._shape_of(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self.statement(child)
            elif not (isinstance(node, ast.AnnAssign) and child is node.annotation):
                yield from self._expression(child)

    def _shape_of(self, node: ast.stmt) -> Iterator[Finding]:
        """What a statement may be made of, beside the expressions in it."""
        match node:
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target]) if _are_names(target):
                return
            case ast.AnnAssign(target=ast.Name(), annotation=kind, value=ast.expr()):
                if ast.unparse(kind) != CONSTEXPR:
                    name = ast.unparse(node.target)
                    message = Sentence(
                        "{name} has an annotation other than tl.constexpr; remove it.", name=name
                    )
                    yield at(node, "annotation", message)
            case (
                ast.AugAssign(target=ast.Name()) | ast.If() | ast.While(orelse=[]) | ast.Return() | ast.Pass()
            ):
                return
            case ast.Expr(value=ast.Call()):
                return
            case ast.For(target=ast.Name(), iter=ast.Call(func=function), orelse=[]) if ast.unparse(
                function
            ) in ("range", "tl.range", "tl.static_range"):
                return
            case _:
                yield _no_construct(node)

    def _expression(self, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, _SIGNS):
            if isinstance(node, _NOT_SIGNS):
                yield _no_construct(node)
            return
        if not isinstance(node, _EXPRESSIONS):
            yield _no_construct(node)
            return
        match node:
            case ast.Name():
                yield from self._name(node)
            case ast.Constant():
                yield from _constant(node)
            case ast.Attribute():
                yield from self._attribute(node)
                return
            case ast.Call():
                yield from self._call(node)
                return
            case ast.Slice(lower=None, upper=None, step=None):
                return
            case ast.Slice():
                yield _no_construct(node)
        for child in ast.iter_child_nodes(node):
            yield from self._expression(child)

    def _name(self, node: ast.Name) -> Iterator[Finding]:
        known = node.id in self._own or node.id in self._functions or node.id in allowed.BUILTINS
        if not known:
            message = Sentence(
                "{name} is no parameter, variable or function of this file, and none of {known}.",
                name=node.id,
                known=", ".join(sorted(allowed.BUILTINS)),
            )
            yield at(node, "name", message)

    def _attribute(self, node: ast.Attribute) -> Iterator[Finding]:
        match node.value:
            case ast.Name(id="tl") if node.attr in allowed.TL:
                return
            case ast.Attribute(value=ast.Name(id="tl"), attr=module) if node.attr in allowed.MODULES.get(
                module, ()
            ):
                return
            case ast.Name(id="tl") | ast.Attribute(value=ast.Name(id="tl")):
                name = ast.unparse(node).removeprefix("tl.")
                reason = allowed.REFUSED.get(name.partition(".")[0], allowed.OTHERWISE)
                message = Sentence(
                    "tl.{name} is not allowed in a kernel: {reason}.", name=name, reason=reason
                )
                yield at(node, "attribute", message)
            case _:
                if node.attr not in allowed.VALUE:
                    message = Sentence(
                        "Values have no {name} in a kernel; use tl instead.", name=f".{node.attr}"
                    )
                    yield at(node, "attribute", message)
                yield from self._expression(node.value)

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        function = node.func
        if isinstance(function, ast.Name | ast.Attribute):
            yield from self._expression(function)
        else:
            yield _no_construct(function)
        is_float = isinstance(function, ast.Name) and function.id == "float"
        for argument in node.args:
            if is_float and isinstance(argument, ast.Constant) and argument.value in allowed.FLOATS:
                continue
            yield from self._expression(argument)
        for keyword in node.keywords:
            if keyword.arg is None:
                yield _no_construct(keyword)
            elif isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str):
                if keyword.value.value not in allowed.WORDS.get(keyword.arg, ()):
                    yield _no_text(keyword.value)
            else:
                yield from self._expression(keyword.value)


def _are_names(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) or (
        isinstance(target, ast.Tuple) and all(isinstance(each, ast.Name) for each in target.elts)
    )


def _constant(node: ast.Constant) -> Iterator[Finding]:
    value = node.value
    if isinstance(value, int) and not -_LARGEST < value < _LARGEST:
        yield at(node, "number", Sentence("A whole number has at most 64 bits; write a smaller one."))
    elif value is not None and not isinstance(value, int | float):
        yield _no_text(node)


def _no_text(node: ast.Constant) -> Finding:
    message = Sentence(
        "The text {text} stands where a kernel has none; only {names} take words.",
        text=repr(node.value)[:40],
        names=", ".join(sorted(allowed.WORDS)),
    )
    return at(node, "text", message)


def _no_construct(node: ast.AST) -> Finding:
    message = Sentence(
        "{construct} is no part of a kernel here; write assignments, if, for over range, while and calls.",
        construct=type(node).__name__,
    )
    return at(node, "construct", message)
