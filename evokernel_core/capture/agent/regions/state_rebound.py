"""Attributes that no ``__init__`` makes, and that each call sets: the statistics of a layer that normalises
now and turns back later. A call of a kernel sets them too, the first one as any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..inputs.state import Change
from ..loading.source import SourceFunction


def is_set_by_each_call(
    change: Change, later: frozenset[str], graph: dict[str, Any], functions: Iterable[SourceFunction]
) -> bool:
    """Whether what the first call set is a tensor that a ``later`` call sets too, without reading it before
    and without a condition of the ``functions`` on it."""
    text = change.expression
    if not isinstance(change.value, torch.Tensor) or text not in later:
        return False
    if any(operand["expression"] == text for operand in graph["inputs"]):
        return False
    name = text.rpartition(".")[2]
    nodes = (node for function in functions for node in ast.walk(function.node))
    return name.isidentifier() and not any(_asks_for(node, name) for node in nodes)


def _asks_for(node: ast.AST, name: str) -> bool:
    """Whether what runs depends on the attribute itself: a condition reads it, or ``hasattr`` names it."""
    if isinstance(node, ast.Constant):
        return bool(node.value == name)
    return any(
        isinstance(child, ast.Attribute) and child.attr == name and isinstance(child.ctx, ast.Load)
        for part in _conditions(node)
        for child in ast.walk(part)
    )


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        yield node.test
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Match)):
        yield node
    elif isinstance(node, ast.Try):
        yield from node.body
