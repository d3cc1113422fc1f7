"""What code asks of the classes of objects: ``isinstance``, ``type`` and patterns of ``match``."""

from __future__ import annotations

import ast
import dis
import functools
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from .code import Ran, tree_of

_OF_CLASSES = frozenset({"isinstance", "issubclass", "type", "__class__"})
_LOADS_OF_NAMES = frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"})
_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_BETWEEN = frozenset({"PRECALL", "CALL", "CACHE", "PUSH_NULL", "NOP"})
_NAMES_OF_TENSORS = frozenset({"Tensor", "Parameter", "FakeTensor"})


@functools.lru_cache(maxsize=2048)
def asks_classes(code: types.CodeType) -> bool:
    """Whether code may ask which class an object is of."""
    steps = dis.get_instructions(code)
    return not _OF_CLASSES.isdisjoint(code.co_names) or any(step.opname == "MATCH_CLASS" for step in steps)


@functools.lru_cache(maxsize=2048)
def asks_class_of_receiver(code: types.CodeType) -> bool:
    """Whether code asks so of its first argument itself, as ``isinstance(self, A)``, ``type(self) is Model``
    and ``type(self).__name__`` do, not ``type(self).factor``, which is a read."""
    if not code.co_argcount:
        return False
    steps = [step for step in dis.get_instructions(code) if step.opname not in _BETWEEN]
    receiver = code.co_varnames[0]
    for at, step in enumerate(steps):
        if step.opname not in _LOADS_OF_NAMES or step.argval != receiver:
            continue
        asking = steps[at - 1].argval if at and steps[at - 1].opname == "LOAD_GLOBAL" else ""
        after = steps[at + 1 : at + 3]
        if asking in ("isinstance", "issubclass"):
            return True
        if asking == "type" and _asks(after[:1]):
            return True
        if after and after[0].opname in _READS and after[0].argval == "__class__" and _asks(after[1:]):
            return True
    return False


def _asks(after: list[dis.Instruction]) -> bool:
    """Whether what follows a class on the stack is a question about it, and no read of what it holds."""
    return not after or after[0].opname not in _READS or str(after[0].argval).startswith("__")


def compares_tensor_classes(ran: Ran) -> bool:
    """Whether code compares the class of something with one of tensors: while it is traced, tensors are of
    another class than in the program."""
    if {"type", "__class__"}.isdisjoint(ran.code.co_names):
        return False
    tree = tree_of(ran.code)
    nodes = ast.walk(tree) if tree is not None else ()
    for node in nodes:
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(_is_class_of_something, sides)) and any(
                _names_tensors(side, ran.names) for side in sides
            ):
                return True
    return False


def _is_class_of_something(node: ast.expr) -> bool:
    """``type(x)``, ``x.__class__``, and their names."""
    for child in ast.walk(node):
        if isinstance(child, ast.Attribute) and child.attr == "__class__":
            return True
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "type":
            return len(child.args) == 1
    return False


def _names_tensors(node: ast.expr, names: Mapping[str, Any]) -> bool:
    return any(
        (isinstance(part, ast.Constant) and part.value in _NAMES_OF_TENSORS)
        or (isinstance(value := _reached(part, names), type) and issubclass(value, torch.Tensor))
        for part in _parts(node)
    )


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node, and those below it that are none of what an attribute is read from."""
    yield node
    if not isinstance(node, ast.Attribute):
        for child in ast.iter_child_nodes(node):
            yield from _parts(child)


def _reached(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """What a global, and the attributes behind it, give."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_reached(node.value, names), node.attr, None)
    return None
