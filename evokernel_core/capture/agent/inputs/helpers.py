"""Functions of a file that take no tensors: they build, train, load, save. No shapes of theirs can be said.
Nor can those of a definition without a body, which is there for subclasses to write.

A parameter is taken for a tensor unless its annotation, its default or what the body does with it says that
it is none.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..loading.source import Source, SourceFunction

_OPEN = frozenset({"Any", "object", "list", "List", "tuple", "Tuple", "dict", "Dict", "Sequence", "Iterable"})
"""Annotations that say nothing of what they hold."""
_NO_TENSOR = (torch.nn.Module, torch.optim.Optimizer, torch.utils.data.Dataset, torch.utils.data.DataLoader)
"""Classes whose constructors take numbers, settings and modules."""
_NAMES_OF_SETTINGS = frozenset({"device", "dtype", "map_location", "rank", "world_size", "backend", "lr"})
"""Keywords of PyTorch's functions that are given no tensors."""
_TAKE_FUNCTIONS = (
    torch.compile, torch.jit.script, torch.jit.ignore,
    functools.wraps, functools.partial, functools.lru_cache,
)  # fmt: skip
"""What functions and modules are given to, as in a decorator of the file's own."""
_SHOWN = frozenset({"print", "format", "range", "open", "join"})
"""Functions and methods that take texts and numbers, or show what they are given."""


def helpers(source: Source, module: types.ModuleType) -> frozenset[str]:
    """The functions at the top of a file that take no tensors, by name, and what has no body: functions, and
    classes whose ``forward`` has none."""
    names = vars(module)
    result = (function for function in source.functions if "." not in function.qualname)
    without_tensors = {element.qualname for element in result if not _takes_tensors(element, names)}
    stubs = (element.qualname for element in source.functions if _is_stub(element.node))
    return frozenset(without_tensors.union(name.removesuffix(".forward") for name in stubs))


def _is_stub(function: ast.FunctionDef) -> bool:
    """Whether a function does nothing but say that another one is to be written."""
    return all(map(_is_nothing, function.body))


def _is_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise) and statement.exc is not None:
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return getattr(raised, "id", "") == "NotImplementedError"
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.Pass)


def _takes_tensors(function: SourceFunction, names: Mapping[str, Any]) -> bool:
    arguments = function.node.args
    if arguments.vararg or arguments.kwarg:
        return True
    parameters = [*arguments.posonlyargs, *arguments.args]
    defaults = [*[None] * (len(parameters) - len(arguments.defaults)), *arguments.defaults]
    pairs = [
        *zip(parameters, defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    used = _Uses(function.node, names)
    return any(_may_be_tensor(parameter, default, used, names) for parameter, default in pairs)


def _may_be_tensor(
    parameter: ast.arg, default: ast.expr | None, used: _Uses, names: Mapping[str, Any]
) -> bool:
    said = _of_tensors(parameter.annotation, names)
    return said if said is not None else not (_is_setting(default) or used.say_no_tensor(parameter.arg))


def _of_tensors(annotation: ast.expr | None, names: Mapping[str, Any]) -> bool | None:
    """Whether an annotation says that a parameter is a tensor or holds some, None where it does not say."""
    words = re.findall(r"\w+", ast.unparse(annotation)) if annotation is not None else []
    if not words or words[-1] in _OPEN or not {"Any", "object"}.isdisjoint(words):
        return None
    if any("Tensor" in word or "Parameter" in word or "Array" in word for word in words):
        return True
    return any(_speaks_of_tensors(names.get(word)) for word in words)


def _speaks_of_tensors(value: Any) -> bool:
    """Whether an alias or a class of data is of tensors, or has any."""
    if isinstance(value, type):
        annotations = inspect.get_annotations(value)
        return not issubclass(value, torch.nn.Module) and "Tensor" in repr(annotations)
    return type(value).__module__ in ("typing", "types") and "Tensor" in repr(value)


def _is_setting(default: ast.expr | None) -> bool:
    """Whether a default is a text, a number or several of those."""
    if isinstance(default, (ast.Tuple, ast.List)):
        return all(map(_is_setting, default.elts))
    if isinstance(default, ast.UnaryOp):
        return _is_setting(default.operand)
    return isinstance(default, ast.Constant) and default.value is not None


class _Uses:
    """What a function's body does with its parameters."""

    def __init__(self, function: ast.FunctionDef, names: Mapping[str, Any]) -> None:
        self._names = names
        self._parents: dict[ast.AST, ast.AST] = {}
        self._uses: dict[str, list[ast.Name]] = {}
        for statement in function.body:
            for node in ast.walk(statement):
                self._parents.update((child, node) for child in ast.iter_child_nodes(node))
                if isinstance(node, ast.Name):
                    self._uses.setdefault(node.id, []).append(node)

    def say_no_tensor(self, name: str) -> bool:
        """Whether one use is of what is no tensor, or all uses only show a value or ask whether it is set."""
        uses = self._uses.get(name, [])
        return any(map(self._is_of_no_tensor, uses)) or all(map(self._is_shown, uses))

    def _is_of_no_tensor(self, use: ast.Name) -> bool:
        above = self._parents.get(use)
        if isinstance(above, ast.Attribute):
            return not hasattr(torch.Tensor, above.attr)
        if isinstance(above, ast.Call):
            return above.func is use or self._is_loader(above) or self._takes_settings(above)
        if isinstance(above, ast.keyword):
            call = self._parents[above]
            return above.arg in _NAMES_OF_SETTINGS or (
                isinstance(call, ast.Call) and self._takes_settings(call)
            )
        if isinstance(above, ast.Compare) and any(map(_is_text, _sides(above))):
            return True
        return self._decides(use)

    def _decides(self, node: ast.AST) -> bool:
        """Whether a value itself says what runs next, which a tensor's elements seldom do; whether one is
        there at all says nothing."""
        for above in self._above(node):
            if isinstance(above, ast.Compare) and isinstance(above.ops[0], (ast.Is, ast.IsNot)):
                return False
            if not isinstance(above, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
                return isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)) and above.test is node
            node = above
        return False

    def _is_loader(self, call: ast.Call) -> bool:
        """``for i, (x, y) in enumerate(loader)``."""
        loop = self._parents.get(call)
        if getattr(call.func, "id", "") != "enumerate" or not isinstance(loop, ast.For):
            return False
        return isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[-1], ast.Tuple)

    def _takes_settings(self, call: ast.Call) -> bool:
        """Whether a call takes no tensors: ``x.to(device)``, ``range(n)``, ``nn.Linear(n, n)``."""
        if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            return True
        called = self._value_of(call.func)
        if called in (range, open, torch.load, torch.device, torch.manual_seed, *_TAKE_FUNCTIONS):
            return True
        of = getattr(called, "__module__", None) or ""
        return (isinstance(called, type) and issubclass(called, _NO_TENSOR)) or of.startswith("torch.cuda")

    def _value_of(self, node: ast.expr) -> Any:
        """What a dotted name is at the top of the file, None for anything else."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            owner = self._value_of(node.value)
            return getattr(owner, node.attr, None) if isinstance(owner, types.ModuleType) else None
        return None

    def _is_shown(self, use: ast.Name) -> bool:
        """Whether a use only makes a text of a value."""
        for above in self._above(use):
            if isinstance(above, ast.JoinedStr):
                return True
            if isinstance(above, ast.Call):
                name = (
                    above.func.attr
                    if isinstance(above.func, ast.Attribute)
                    else getattr(above.func, "id", "")
                )
                return name in _SHOWN
        return False

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _sides(node: ast.Compare) -> Iterator[ast.expr]:
    for part in (node.left, *node.comparators):
        yield from part.elts if isinstance(part, (ast.Tuple, ast.List, ast.Set)) else (part,)
