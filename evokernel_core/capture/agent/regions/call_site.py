"""What takes the place of a region's code: the kernel's call where its guards hold, else that code."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ..errors import Unsupported
from ..graph.names import input_name
from ..guards.guard import Guard
from ..loading.source import Source
from .parts import Leaf, Plan

_KNOWN = frozenset(dir(builtins)) | {"torch", "guards"}
"""Names that guards may use without being passed them, unless the function binds them itself."""


@dataclass(frozen=True)
class CallSite:
    """``template`` has ``{holds}``, ``{call}`` and ``{original}`` where the guard, the call and the code that
    stood there go; ``original`` is that code with the names of ``bindings`` for the values that are computed
    in front of the call. ``local_names`` are those that the function binds, ``module_names`` the globals of
    its file."""

    template: str
    original: str
    bindings: Mapping[str, str]
    guards: tuple[Guard, ...]
    code: Mapping[str, str]
    local_names: frozenset[str]
    module_names: Collection[str]
    enclosed: bool = False

    def data(self, graph: Mapping[str, Any]) -> dict[str, Any]:
        """As the agent reports it, with the names that guards and arguments of the graph use. Raises
        Unsupported where one of them means two things."""
        expressions = [item["expression"] for item in (*graph["inputs"], *graph["updates"])]
        texts = [*expressions, *(guard.condition for guard in self.guards)]
        names = [name for name in names_of(texts, self.local_names) if name not in self.bindings]
        operands = names_of(expressions, self.local_names)
        of_module = [name for name in names if self._is_global(name) and name not in operands]
        return {
            "replacement": self.template,
            "original": self.original,
            "bindings": dict(self.bindings),
            "parameters": [*(name for name in names if name not in of_module), *self.bindings],
            "guards": [guard.data() for guard in self.guards],
            "code": dict(self.code),
            "enclosed": self.enclosed,
            "module_names": of_module,
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        }

    def _is_global(self, name: str) -> bool:
        return name in self.module_names and name not in self.local_names


def names_of(texts: Iterable[str], local_names: frozenset[str] = frozenset()) -> list[str]:
    """The names that Python texts read from around them, in order; a receiver comes first. An ``input`` or
    ``type`` that the function binds is one of them. Raises Unsupported where guards need that name too."""
    found: dict[str, None] = {}
    called: set[str] = set()
    for text in dict.fromkeys(texts):
        for name, is_called, is_own in _names_in(text):
            if name in _KNOWN and (name not in local_names or is_called):
                called.add(name)
            elif not is_own:
                found[name] = None
    if twice := sorted(called & found.keys()):
        raise Unsupported(
            "Its variable {name} hides what guards are made of: give it another name.", name=twice[0]
        )
    return sorted(found, key=lambda name: name != "self")


@lru_cache(maxsize=4096)  # the regions of a file, and its captures, have most of their guards in common
def _names_in(text: str) -> tuple[tuple[str, bool, bool], ...]:
    """The names of a Python text in order, each once for each way: whether it is called there, and whether
    the text itself binds it."""
    nodes = list(ast.walk(ast.parse(text, mode="eval")))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return tuple(dict.fromkeys((node.id, id(node) in functions, node.id in own) for node in names))


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def bound(plan: Plan, source: Source) -> tuple[dict[str, str], dict[Any, str]]:
    """Names for the operands of a region that are more than a variable or an attribute, which must be
    computed once: what each stands for, and the expression of every leaf by its key."""
    taken = set(plan.function.local_names) | {
        node.id for node in ast.walk(plan.function.node) if isinstance(node, ast.Name)
    }
    bindings: dict[str, str] = {}
    expressions: dict[Any, str] = {}
    for leaf in plan.parts.leaves:
        if leaf.key in expressions:
            continue
        if _is_path(leaf):
            expressions[leaf.key] = leaf.expression
            continue
        name = input_name(_head(leaf.node), taken)
        taken.add(name)
        bindings[name] = _segment(leaf, source)
        expressions[leaf.key] = leaf.expression.replace(bindings[name], name)
    return bindings, expressions


def _head(node: ast.expr) -> str:
    """What an operand is called after: ``gate`` for ``self.gate(x)``."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name if name.strip("_") else "operand"


def is_enclosed(plan: Plan, source: Source) -> bool:
    """Whether an expression stands right between two parentheses."""
    node = plan.first
    if len(plan.body) > 1 or not isinstance(node, ast.expr):
        return False
    before = source.lines[node.lineno - 1].encode()[: node.col_offset]
    behind = source.lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
    return before.endswith(b"(") and behind.startswith(b")")


def _segment(leaf: Leaf, source: Source) -> str:
    text = source.segment(leaf.node)
    return text if "\n" not in text else ast.unparse(leaf.node)


def _is_path(leaf: Leaf) -> bool:
    """Whether reading a leaf twice is no more than reading it once."""
    kinds = (ast.Name, ast.Attribute, ast.Load)
    return bool(leaf.member) or all(isinstance(item, kinds) for item in ast.walk(leaf.node))


def of_region(plan: Plan, source: Source, bindings: Mapping[str, str]) -> tuple[str, str]:
    """The template, and the region's code on the names of its bindings. Raises Unsupported for statements
    that cannot stand in a block of their own."""
    names = {text: name for name, text in bindings.items()}
    named = {
        id(leaf.node): names[_segment(leaf, source)]
        for leaf in plan.parts.leaves
        if not _is_path(leaf) and _segment(leaf, source) in names
    }
    if len(plan.body) == 1 and isinstance(plan.first, ast.expr):
        return "{call} if {holds} else {original}", _with_names(plan.first, plan.first, source, named)
    indent, step = source.indent(plan.first)
    original = _with_names(plan.first, plan.last, source, named)
    if plan.replacement == "return {call}":
        return f"if {{holds}}:\n{indent}{step}return {{call}}\n{indent}{{original}}", original
    if _has_text_over_lines(plan):
        raise Unsupported("A text over several lines stands between its statements: put it elsewhere.")
    inner = re.sub(r"\n(?!\n)", f"\n{step}", original)  # an empty line stays empty
    template = f"if {{holds}}:\n{indent}{step}{plan.replacement}\n{indent}else:\n{indent}{step}{{original}}"
    return template, inner


def _has_text_over_lines(plan: Plan) -> bool:
    """Whether moving the statements to the right would change a text."""
    texts = (node for statement in plan.body for node in ast.walk(statement))
    kinds = (ast.JoinedStr, ast.Constant)
    return any(isinstance(node, kinds) and node.lineno != node.end_lineno for node in texts)


def _with_names(first: Any, last: Any, source: Source, named: Mapping[int, str]) -> str:
    """The source text from one node to another, with names for the nodes that have one."""
    text = source.between(first, last)
    lines = [line.encode() for line in text.split("\n")]
    starts = [-first.col_offset] + [0] * (len(lines) - 1)
    nodes = (item for statement in _range(first, last, source) for item in ast.walk(statement))
    places = [(node, named[id(node)]) for node in nodes if id(node) in named]
    for node, name in sorted(places, key=lambda item: (item[0].lineno, item[0].col_offset), reverse=True):
        row, end_row = node.lineno - first.lineno, node.end_lineno - first.lineno
        start, end = node.col_offset + starts[row], node.end_col_offset + starts[end_row]
        joined = lines[row][:start] + name.encode() + lines[end_row][end:]
        lines[row : end_row + 1] = [joined]
        starts[row : end_row + 1] = [starts[row]]
    return b"\n".join(lines).decode()


def _range(first: Any, last: Any, source: Source) -> list[Any]:
    """The nodes from one to another: themselves, or the statements of one block."""
    if first is last:
        return [first]
    for node in ast.walk(source.tree):
        for block in ("body", "orelse", "finalbody"):
            body = getattr(node, block, None)
            if isinstance(body, list) and first in body and last in body:
                return body[body.index(first) : body.index(last) + 1]
    return [first, last]


_IMPORT = "evokernel_kernels"


@dataclass(frozen=True)
class Applied:
    """A call of a kernel in the file, and the code that it and the original take up."""

    call: ast.Call
    first: Any
    last: Any


def applied_calls(source: Source) -> list[Applied]:
    """Every call of a kernel that the file makes where its guards hold."""
    names = {
        alias.asname or alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module == _IMPORT
        for alias in node.names
    }
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.IfExp) and _asks(node.test, names):
            found += [Applied(call, node, node) for call in _runs(node.body, names)]
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            for item in statements if isinstance(statements, list) else ():
                if isinstance(item, ast.If) and _asks(item.test, names):
                    last = item if item.orelse else statements[-1]
                    found += [Applied(call, item, last) for part in item.body for call in _runs(part, names)]
    return found


def _asks(test: ast.expr, names: set[str]) -> bool:
    return _is_method(test, names, "holds")


def _runs(node: ast.AST, names: set[str]) -> list[ast.Call]:
    return [item for item in ast.walk(node) if isinstance(item, ast.Call) and _is_method(item, names, "run")]


def _is_method(node: ast.AST, names: set[str], method: str) -> bool:
    func = getattr(node, "func", None)
    return (
        isinstance(node, ast.Call)
        and isinstance(func, ast.Attribute)
        and func.attr == method
        and isinstance(func.value, ast.Name)
        and func.value.id in names
    )
