"""The user's file as numbered expressions, and a copy of it that reports each value.

Every expression in a function body gets a number. In the instrumented copy an expression ``e`` with
number 7 becomes ``__evokernel_exit__(7, __evokernel_enter__(7), e)``: Python evaluates arguments from
left to right, in the same frame, so names, ``super()`` and exceptions behave as before.
"""

from __future__ import annotations

import ast
import copy
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .imports import Imports

ENTER, EXIT = "__evokernel_enter__", "__evokernel_exit__"

OPAQUE = (
    ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
    ast.JoinedStr, ast.Await, ast.Yield, ast.YieldFrom,
)  # fmt: skip
"""Expressions whose inside runs in another scope, repeatedly or suspended: never looked into."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class SourceFunction:
    """A function or method at module or class level. ``receiver`` is ``self`` or its like."""

    qualname: str
    node: ast.FunctionDef
    class_name: str = ""
    receiver: str = ""
    local_names: frozenset[str] = frozenset()
    imports: tuple[ast.stmt, ...] = ()
    """Its own imports of names that nothing else in it binds: they mean the same in every call."""

    @cached_property
    def bound_names(self) -> frozenset[str]:
        """What its code knows beside the globals of its file."""
        return self.local_names.union(*(_imported(import_) for import_ in self.imports))


@dataclass
class Source:
    """A parsed file. ``nodes[i]`` is expression i, ``parents[i]`` the number of its parent or -1."""

    path: str
    text: str
    tree: ast.Module
    functions: tuple[SourceFunction, ...]
    imports: Imports
    nodes: list[ast.expr] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)

    @cached_property
    def lines(self) -> list[str]:
        """Lines as Python counts them: a form feed or a Unicode separator does not end one."""
        return re.split(r"\r\n|\r|\n", self.text)

    def inside(self, number: int, ancestor: int) -> bool:
        """Whether expression ``number`` lies in the text of expression ``ancestor``."""
        while number > ancestor:
            number = self.parents[number]
        return number == ancestor

    def between(self, first: Any, last: Any) -> str:
        """The text from one statement to the end of another."""
        start, end = first.lineno - 1, last.end_lineno or last.lineno
        lines = self.lines[start:end]
        lines[-1] = lines[-1].encode()[: last.end_col_offset].decode()
        lines[0] = lines[0].encode()[first.col_offset :].decode()
        return "\n".join(lines)

    def indent(self, statement: ast.stmt) -> tuple[str, str]:
        """What a statement's line is indented with, and what one level more adds to it: a tab where a person
        indents with tabs, since Python takes no mixture that depends on a tab's width."""
        before = self.lines[statement.lineno - 1].encode()[: statement.col_offset].decode()
        indent = before if not before.strip() else " " * statement.col_offset
        return indent, "\t" if "\t" in indent else "    "

    def number_among_equals(self, function: ast.FunctionDef, first: Any, last: Any) -> int:
        """How many times the text of some code stands in its function up to there, whatever its indentation.
        Code that is a kernel's fallback by now counts, so accepting one kernel renumbers no other code."""
        text = "".join(self.between(first, last).split())
        return "".join(self.between(function, last).split()).count(text)

    def has_own_lines(self, first: ast.stmt, last: ast.stmt) -> bool:
        """Whether no other statement shares a line with these, from the first to the last of a block: only
        then can a guard stand before them, or a block around them."""
        before = self.lines[first.lineno - 1].encode()[: first.col_offset].decode()
        behind = self.lines[(last.end_lineno or last.lineno) - 1].encode()[last.end_col_offset :].decode()
        return not before.strip() and behind.strip()[:1] in ("", "#")

    def segment(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def in_one_line(self, node: ast.AST) -> str:
        text = self.segment(node)
        return text if "\n" not in text else ast.unparse(node)


def definitions(source: Source, *qualnames: str) -> list[SourceFunction]:
    """The functions of a name, without those that only say the types of one: ``typing.overload``."""
    return [
        function
        for function in source.functions
        if function.qualname in qualnames and not _is_overload(function.node)
    ]


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator).rpartition(".")[2] == "overload" for decorator in node.decorator_list)


def number_of(node: ast.AST) -> int:
    """The number of an expression, -1 where it has none (a constant, or inside an opaque one)."""
    return getattr(node, "evokernel_number", -1)


def numbers_of(function: SourceFunction) -> Iterator[int]:
    """The numbers of the expressions in a function."""
    return (number for node in ast.walk(function.node) if (number := number_of(node)) >= 0)


def parse(path: str, text: str, imports: Imports) -> Source:
    """Parse and number. Raises SyntaxError."""
    tree = ast.parse(text, filename=path)
    source = Source(path, text, tree, tuple(_functions(tree.body, "", "")), imports)
    for function in source.functions:
        for statement in function.node.body:
            _number(statement, -1, source)
    return source


def _functions(body: list[ast.stmt], prefix: str, class_name: str) -> Iterator[SourceFunction]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.", node.name)
        elif isinstance(node, ast.FunctionDef):
            imports, bound = _imports(node)
            names = frozenset(_bound(node)) - bound
            yield SourceFunction(
                prefix + node.name, node, class_name, _receiver(node, class_name), names, imports
            )
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from _functions(getattr(node, name, []), prefix, class_name)


def _receiver(node: ast.FunctionDef, class_name: str) -> str:
    static = any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod"
        for decorator in node.decorator_list
    )
    arguments = [*node.args.posonlyargs, *node.args.args]
    return arguments[0].arg if class_name and arguments and not static else ""


def _bound(node: ast.FunctionDef) -> Iterator[str]:
    """Every name that the function binds, as often as it does."""
    yield from (child.arg for child in ast.walk(node.args) if isinstance(child, ast.arg))
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and not isinstance(child.ctx, ast.Load):
            yield child.id
        elif isinstance(child, (*_FUNCTIONS, ast.ClassDef)) and child is not node:
            yield child.name
        elif isinstance(child, (ast.Import, ast.ImportFrom)):
            yield from _imported(child)


def _imported(node: ast.stmt) -> Iterator[str]:
    """The names that an import binds."""
    return ((alias.asname or alias.name).split(".")[0] for alias in getattr(node, "names", ()))


def _imports(node: ast.FunctionDef) -> tuple[tuple[ast.stmt, ...], frozenset[str]]:
    """Imports whose names are bound once, and those names."""
    times = Counter(_bound(node))
    nodes = [child for child in ast.walk(node) if isinstance(child, (ast.Import, ast.ImportFrom))]
    once = [node for node in nodes if all(times[name] == 1 for name in _imported(node))]
    return tuple(once), frozenset(name for statement in once for name in _imported(statement))


def _number(node: ast.AST, parent: int, source: Source) -> None:
    """Depth first, parents before children, so that a descendant's number is larger."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        return
    own = parent
    if _numbered(node):
        own = len(source.nodes)
        node.evokernel_number = own  # type: ignore[attr-defined]
        source.nodes.append(node)  # type: ignore[arg-type]
        source.parents.append(parent)
    if not isinstance(node, OPAQUE):
        for child in _evaluated_children(node):
            _number(child, own, source)


def _numbered(node: ast.AST) -> bool:
    if isinstance(node, (ast.Constant, ast.Slice, ast.Starred, ast.Yield, ast.YieldFrom)):
        return False
    return isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _evaluated_children(node: ast.AST) -> Iterator[ast.AST]:
    """Children that run in this scope: no annotations, and no patterns of ``match``."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "pattern", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


class _Instrument(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, OPAQUE):
            return self._wrap(node)
        super().generic_visit(node)
        return self._wrap(node)

    def _wrap(self, node: ast.AST) -> ast.AST:
        number = number_of(node)
        if number < 0:
            return node
        enter = ast.Call(ast.Name(ENTER, ast.Load()), [ast.Constant(number)], [])
        call = ast.Call(ast.Name(EXIT, ast.Load()), [ast.Constant(number), enter, node], [])  # type: ignore[list-item]
        for made in (call, call.func, call.args[0], enter, enter.func, enter.args[0]):
            ast.copy_location(made, node)
        return call


def instrument(source: Source) -> ast.Module:
    """The reporting copy of the file; line numbers are the file's."""
    tree: ast.Module = _Instrument().visit(copy.deepcopy(source.tree))
    return tree
