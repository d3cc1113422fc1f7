"""Training and evaluation: what a region's call must ask before it stands for layers that know both."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import torch

from ..errors import Unsupported
from ..loading.lazy_modules import was_called
from ..loading.source import Source
from .parts import Plan
from .results import escaped

SENSITIVE = (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd)


def mode(text: str, training: bool) -> str:
    """The condition that the module called ``text`` is in a mode."""
    return f"{text}.training" if training else f"not {text}.training"


def guarded(plan: Plan, source: Source, updates: bool) -> str:
    """The plan's replacement, which computes what stood there where a layer is in another mode than now or
    has not been called yet.

    ``updates``: the region changes running statistics. Raises Unsupported where there is no room to ask.
    """
    conditions = list(dict.fromkeys(_conditions(plan)))
    if not conditions:
        if updates:
            raise Unsupported("Running statistics change without a layer whose mode could be asked.")
        return plan.replacement
    condition = " and ".join(conditions)
    if len(plan.body) == 1:
        original = escaped(source.segment(plan.root))
        return plan.replacement.replace("{call}", f"({{call}} if {condition} else {original})")
    if plan.replacement != "return {call}":
        raise Unsupported("Statements in a row that differ in training and evaluation have no one value.")
    indent = " " * plan.first.col_offset
    original = escaped(source.between(plan.first, plan.last))
    return f"if {condition}:\n{indent}    return {{call}}\n{indent}{original}"


def _conditions(plan: Plan) -> Iterator[str]:
    for call in plan.parts.modules:
        if any(_differs(layer) for layer in call.module.modules()):
            yield mode(ast.unparse(call.node), call.module.training)
        yield from was_called(ast.unparse(call.node), call.module)


def _differs(layer: Any) -> bool:
    """Whether the layer computes something else in training than in evaluation."""
    if not isinstance(layer, SENSITIVE):
        return False
    return bool(getattr(layer, "p", 0.0)) or bool(getattr(layer, "track_running_stats", False))
