"""Nodes and expressions whose variables have other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve, fields

from evokernel_core.targets.ascendc.ir.cube import Span
from evokernel_core.targets.ascendc.ir.expr import Condition, Constant, Expr, Int, Param, Size, Var
from evokernel_core.targets.ascendc.ir.nodes import Node, Region, Slice

T = TypeVar("T")
_WITHOUT = (Constant, Int, Param, Size)
"""Expressions without variables."""


def renamed(item: T, names: Mapping[Var, Var]) -> T:
    """A node, an expression or several of them, in which variables have the names given; what they call, and
    where they work, is the same."""
    found: T = _renamed(item, names)
    return found


def _renamed(item: Any, names: Mapping[Var, Var]) -> Any:
    if isinstance(item, Var):
        return names.get(item, item)
    if isinstance(item, tuple):
        return tuple(_renamed(each, names) for each in item)
    if isinstance(item, _WITHOUT) or not isinstance(item, Node | Expr | Slice | Region | Span | Condition):
        return item
    node: Any = item
    changes = {field.name: _renamed(getattr(node, field.name), names) for field in fields(type(node))}
    return evolve(node, **changes)
