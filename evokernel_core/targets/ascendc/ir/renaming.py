"""Nodes and expressions whose variables have other names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve, fields

from evokernel_core.targets.ascendc.ir.expr import Condition, Constant, CubeSpan, Expr, Int, Param, Size, Var
from evokernel_core.targets.ascendc.ir.nodes import Node, Region, Slice

T = TypeVar("T")
_WITHOUT = (Constant, Int, Param, Size)
"""Expressions without variables."""


def renamed(node: T, names: Mapping[Var, Var]) -> T:
    """A node, an expression or several of them, in which variables have the names given; what they call, and
    where they work, is the same."""
    result: T = _renamed(node, names)
    return result


def _renamed(child: Any, names: Mapping[Var, Var]) -> Any:
    if isinstance(child, Var):
        return names.get(child, child)
    if isinstance(child, tuple):
        return tuple(_renamed(each, names) for each in child)
    if isinstance(child, _WITHOUT) or not isinstance(
        child, Node | Expr | Slice | Region | CubeSpan | Condition
    ):
        return child
    node: Any = child
    changes = {field.name: _renamed(getattr(node, field.name), names) for field in fields(type(node))}
    return evolve(node, **changes)
