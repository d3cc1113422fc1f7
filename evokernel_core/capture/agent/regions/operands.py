"""Operands of a region that are computed: their names, and the region's code from them on.

The call of a kernel evaluates them, so that the code that runs where a guard fails is the user's text. Where
an operand turns out to be none that the kernel takes, the rest of that text goes on with it.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..graph.names import input_name
from ..loading.source import Source, SourceFunction
from .parts import PARAMETER, Leaf, RegionPlan

_BUILTINS = frozenset(dir(builtins))
_C_FUNCTIONS = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)


@dataclass(frozen=True)
class Computed:
    """``texts`` has the expression of each operand that is more than a name or an attribute, by the name that
    it gets; ``expressions`` the text of every leaf by its key; ``named`` the name for each node of such an
    operand, by its id."""

    texts: Mapping[str, str]
    expressions: Mapping[Any, str]
    named: Mapping[int, str]


@dataclass(frozen=True)
class Rest:
    """Statements that compute a region's value from its computed operands, each of which is popped from a
    list where the text uses it for the last time: nothing keeps it for longer than the source does.
    ``carried`` are the names of the function that they read."""

    text: str = ""
    carried: tuple[str, ...] = ()


NONE_LEFT = Rest()
"""Of a region whose operands are all names and attributes."""


def computed(plan: RegionPlan, source: Source) -> Computed:
    """Names for the operands of a region that must be computed once."""
    taken = set(plan.function.local_names) | {
        node.id for node in ast.walk(plan.function.node) if isinstance(node, ast.Name)
    }
    texts: dict[str, str] = {}
    expressions: dict[Any, str] = {}
    names: dict[Any, str] = {}
    named: dict[int, str] = {}
    for leaf in plan.parts.leaves:
        if _is_path(leaf):
            expressions[leaf.key] = leaf.expression
            continue
        if leaf.key not in names:
            names[leaf.key] = name = input_name(_head(leaf.node), taken)
            taken.add(name)
            texts[name] = source.in_one_line(leaf.node)
            expressions[leaf.key] = leaf.expression.replace(texts[name], name)
        named[id(leaf.node)] = names[leaf.key]
    return Computed(texts, expressions, named)


def _head(node: ast.expr) -> str:
    """What an operand is called after: ``gate`` for ``self.gate(x)``."""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name if name.strip("_") else "operand"


def _is_path(leaf: Leaf) -> bool:
    """Whether reading a leaf twice is no more than reading it once."""
    kinds: tuple[type[ast.AST], ...] = (ast.Name, ast.Attribute, ast.Load)
    if leaf.kind == PARAMETER:  # what a list or a dictionary of tensors holds
        kinds += (ast.Subscript, ast.Constant)
    return bool(leaf.member) or all(isinstance(node, kinds) for node in ast.walk(leaf.node))


def rest_of(plan: RegionPlan, operands: Computed, module_names: Collection[str]) -> Rest:
    """The region's code from its computed operands on; empty where none is computed."""
    if not operands.texts:
        return NONE_LEFT
    used = Counter(name for node in _walked(plan) if (name := operands.named.get(id(node))))

    def given(node: ast.AST) -> ast.AST | None:
        name = operands.named.get(id(node))
        if name is None:
            return None
        used[name] -= 1
        return ast.parse(f"{name}[-1]" if used[name] else f"{name}.pop()", mode="eval").body

    copy = _Copy(given, plan.function.class_name.lstrip("_"))
    body = [copy(node) for node in plan.body]
    last: Any = plan.last
    if isinstance(last, ast.expr):
        body[-1] = ast.Return(body[-1])
    elif not isinstance(last, ast.Return):
        body.append(ast.Return(plan.names))
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    return Rest(text, _carried(text, plan.function, {*operands.texts}, module_names))


def _walked(plan: RegionPlan) -> list[ast.AST]:
    return [node for statement in plan.body for node in ast.walk(statement)]


class _Copy:
    """Copies syntax, with something else for the nodes that ``given`` knows, and private names of a class as
    they are outside of it. Children are visited in the order of the text."""

    def __init__(self, given: Callable[[ast.AST], ast.AST | None], class_name: str) -> None:
        self._given = given
        self._class_name = class_name

    def __call__(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self(child) for child in node]
        if isinstance(node, str):
            return self._public(node)
        if not isinstance(node, ast.AST):
            return node
        new = self._given(node)
        if new is not None:
            return new
        if isinstance(node, ast.Constant):
            return ast.Constant(node.value, node.kind)
        return type(node)(**{name: self(value) for name, value in ast.iter_fields(node)})

    def _public(self, name: str) -> str:
        if self._class_name and name.startswith("__") and not name.endswith("__"):
            return f"_{self._class_name}{name}"
        return name


def _carried(
    text: str, function: SourceFunction, operands: Collection[str], module_names: Collection[str]
) -> tuple[str, ...]:
    """The names that a text reads from its function, or from one around that, in the order of the text."""
    bound = function.bound_names
    result: dict[str, None] = {}
    own: set[str] = set()
    for statement in ast.parse(text).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        for node in names:
            outside = node.id in bound or (node.id not in module_names and node.id not in _BUILTINS)
            if isinstance(node.ctx, ast.Load) and outside and node.id not in own:
                result[node.id] = None
        own.update(node.id for node in names if isinstance(node.ctx, ast.Store))
    return tuple(name for name in result if name not in operands)


def may_run_code(plan: RegionPlan, operands: Computed, value: Callable[[ast.AST], Any]) -> bool:
    """Whether computing an operand may run code other than torch's functions in C, which could change what
    guards have asked. ``value`` gives what an expression evaluated to."""
    nodes = [node for node in _walked(plan) if id(node) in operands.named]
    return any(
        isinstance(child, ast.Call) and not _is_torchs(value(child.func))
        for node in nodes
        for child in ast.walk(node)
    )


def _is_torchs(function: Any) -> bool:
    if not isinstance(function, _C_FUNCTIONS):
        return False
    owner = getattr(function, "__self__", None)
    module = getattr(function, "__module__", None) or getattr(owner, "__name__", None) or ""
    return isinstance(owner, torch.Tensor) or str(module).split(".")[0] in ("torch", "math", "builtins")
