"""What takes the place of a region's code: the kernel's call where its guards hold, else that code."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch

from ..errors import Unsupported
from ..guards.guard import CapturedGuard
from ..loading.source import Source
from .operands import NONE_LEFT, Rest
from .parts import RegionPlan
from .tensor_effects import Warned

_KNOWN = frozenset(dir(builtins)) | {"torch", "guards", "__name__"}
"""Names that guards may use without being passed them, unless the function binds them itself."""


@dataclass(frozen=True)
class CallSite:
    """``template`` has ``{holds}``, ``{call}`` and ``{original}`` where the guard, the call and the code that
    stood there go. ``bindings`` name the operands that the call computes, from which ``rest`` goes on where
    the kernel does not take them; ``asks_late``: to compute them may change what guards ask, so that they are
    asked behind it. ``local_names`` are those that the function binds, ``bound_names`` these and what it
    imports, ``module_names`` the globals of its file, ``whole_numbers`` the expressions of operands that
    are Python ints, ``warned`` what the call says that the code warns of."""

    template: str
    original: str
    guards: tuple[CapturedGuard, ...]
    code: Mapping[str, str]
    local_names: frozenset[str]
    bound_names: frozenset[str]
    module_names: Collection[str]
    bindings: Mapping[str, str] = field(default_factory=dict)
    rest: Rest = NONE_LEFT
    asks_late: bool = False
    enclosed: bool = False
    whole_numbers: tuple[str, ...] = ()
    warned: tuple[Warned, ...] = ()

    def data(self, graph: Mapping[str, Any]) -> dict[str, Any]:
        """As the agent reports it, with the names that guards and arguments of the graph use. Raises
        Unsupported where one of them means two things, or nothing where the call stands."""
        expressions = [part["expression"] for part in (*graph["inputs"], *graph["updates"])]
        texts = [*expressions, *(guard.condition for guard in self.guards)]
        names = [name for name in names_of(texts, self.local_names) if name not in self.bindings]
        self._check_known(names)
        operands = names_of(expressions, self.local_names)
        of_module = [name for name in names if self._is_global(name) and name not in operands]
        parameters = [name for name in names if name not in of_module]
        return {
            "replacement": self.template,
            "original": self.original,
            "bindings": dict(self.bindings),
            "rest": self.rest.text,
            "carried": [name for name in self.rest.carried if name not in parameters],
            "asks_late": self.asks_late,
            "parameters": [*parameters, *self.bindings],
            "guards": [guard.data() for guard in self.guards],
            "code": dict(self.code),
            "enclosed": self.enclosed,
            "whole_numbers": list(self.whole_numbers),
            "warned": [list(warning) for warning in self.warned],
            "module_names": of_module,
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        }

    def _check_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.bound_names and name not in self.module_names and name not in _KNOWN:
                raise Unsupported("Its guards ask for {name}, a name that its code does not have.", name=name)

    def _is_global(self, name: str) -> bool:
        return name in self.module_names and name not in self.local_names


def names_of(texts: Iterable[str], local_names: frozenset[str] = frozenset()) -> list[str]:
    """The names that Python texts read from around them, in order; a receiver comes first. An ``input`` or
    ``type`` that the function binds is one of them. Raises Unsupported where guards need that name too."""
    result: dict[str, None] = {}
    called: set[str] = set()
    for text in dict.fromkeys(texts):
        for name, is_called, is_own in _names_in(text):
            if name in _KNOWN and (name not in local_names or is_called):
                called.add(name)
            elif not is_own:
                result[name] = None
    if twice := sorted(called & result.keys()):
        raise Unsupported(
            "Its variable {name} hides what guards are made of: give it another name.", name=twice[0]
        )
    return sorted(result, key=lambda name: name != "self")


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


def is_enclosed(plan: RegionPlan, source: Source) -> bool:
    """Whether an expression stands right between two parentheses."""
    node = plan.first
    if len(plan.body) > 1 or not isinstance(node, ast.expr):
        return False
    before = source.lines[node.lineno - 1].encode()[: node.col_offset]
    behind = source.lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :]
    return before.endswith(b"(") and behind.startswith(b")")


def of_region(plan: RegionPlan, source: Source) -> tuple[str, str]:
    """The template, and the region's code as it stands there. Raises Unsupported for statements that cannot
    stand in a block of their own."""
    original = source.between(plan.first, plan.last)
    if len(plan.body) == 1 and isinstance(plan.first, ast.expr):
        return "{call} if {holds} else {original}", original
    indent, step = source.indent(plan.first)
    if plan.replacement == "return {call}":
        return f"if {{holds}}:\n{indent}{step}return {{call}}\n{indent}{{original}}", original
    if _has_text_over_lines(plan):
        raise Unsupported("A text over several lines stands between its statements: put it elsewhere.")
    inner = re.sub(r"\n(?!\n)", f"\n{step}", original)  # an empty line stays empty
    template = f"if {{holds}}:\n{indent}{step}{plan.replacement}\n{indent}else:\n{indent}{step}{{original}}"
    return template, inner


def _has_text_over_lines(plan: RegionPlan) -> bool:
    """Whether moving the statements to the right would change a text."""
    texts = (node for statement in plan.body for node in ast.walk(statement))
    kinds = (ast.JoinedStr, ast.Constant)
    return any(isinstance(node, kinds) and node.lineno != node.end_lineno for node in texts)


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
    result = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.IfExp) and _asks(node.test, names):
            result += [Applied(call, node, node) for call in _runs(node.body, names)]
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            for statement in statements if isinstance(statements, list) else ():
                if isinstance(statement, ast.If) and _asks(statement.test, names):
                    last = statement if statement.orelse else statements[-1]
                    result += [
                        Applied(call, statement, last)
                        for part in statement.body
                        for call in _runs(part, names)
                    ]
    return result


def _asks(test: ast.expr, names: set[str]) -> bool:
    if isinstance(test, ast.IfExp):  # False if torch.jit.is_scripting() else ...
        test = test.orelse
    return _is_method(test, names, "holds")


def _runs(node: ast.AST, names: set[str]) -> list[ast.Call]:
    return [
        child for child in ast.walk(node) if isinstance(child, ast.Call) and _is_method(child, names, "run")
    ]


def _is_method(node: ast.AST, names: set[str], method: str) -> bool:
    func = getattr(node, "func", None)
    return (
        isinstance(node, ast.Call)
        and isinstance(func, ast.Attribute)
        and func.attr == method
        and isinstance(func.value, ast.Name)
        and func.value.id in names
    )
