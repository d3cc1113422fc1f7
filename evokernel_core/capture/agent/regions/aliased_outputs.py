"""Results that share memory: as in the user's code, they are views of one tensor that the call gives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from .layouts import ITEM, Step

_SIZED = {"aten.expand.default": "expand"}
# what was a view of a tensor's own layout may be none of a contiguous one: there it is a copy
_SIZED |= dict.fromkeys(("aten.view.default", "aten._unsafe_view.default", "aten.reshape.default"), "reshape")
_PLAIN = {
    "aten.permute.default": "permute",
    "aten.transpose.int": "transpose",
    "aten.t.default": "t",
    "aten.squeeze.default": "squeeze",
    "aten.squeeze.dim": "squeeze",
    "aten.squeeze.dims": "squeeze",
    "aten.unsqueeze.default": "unsqueeze",
    "aten.select.int": "select",
    "aten.detach.default": "detach",
    "aten.diagonal.default": "diagonal",
    "aten.unfold.default": "unfold",
    "aten.as_strided.default": "as_strided",
}
"""Views by name, and the method that makes them of the same arguments."""
_SEVERAL = {
    "aten.split.Tensor": "split",
    "aten.split_with_sizes.default": "split",
    "aten.unbind.int": "unbind",
}
_SLICE = "aten.slice.Tensor"
_ALIAS = "aten.alias.default"


@dataclass(frozen=True)
class Viewed:
    """``base`` is the node that no view made; ``views`` are the nodes of the views from it on."""

    base: Any
    views: tuple[Any, ...]

    def steps(self, size: Callable[[Any], Any]) -> tuple[Step, ...]:
        """What makes the last view of the base; ``size`` gives a size as a number or as its text."""
        return tuple(step for view in self.views for step in _steps(view, size))


def viewed(node: Any) -> Viewed:
    """Goes back through views to what they are views of."""
    views: list[Any] = []
    while isinstance(node, torch.fx.Node) and _is_view(node):
        views.append(node)
        source = node.args[0]
        node = source.args[0] if _is_item(node) else source
    return Viewed(node, tuple(reversed(views)))


def _is_item(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def _is_view(node: Any) -> bool:
    if node.op != "call_function" or node.kwargs:
        return False
    name = str(node.target)
    if _is_item(node):
        return str(node.args[0].target) in _SEVERAL
    return name in _SIZED or name in _PLAIN or name in (_ALIAS, _SLICE)


def _steps(node: Any, size: Callable[[Any], Any]) -> list[Step]:
    def known(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(map(known, value))
        value = value.meta["val"] if isinstance(value, torch.fx.Node) else value
        return size(value) if isinstance(value, torch.SymInt) else value

    name = str(node.target)
    if name == _ALIAS:
        return []
    if _is_item(node):
        several = node.args[0]
        made = (_SEVERAL[str(several.target)], known(several.args[1:]))
        return [made, (ITEM, (node.args[1],))]
    if name == _SLICE:
        return [_sliced(node, known)]
    if name in _SIZED:
        return [(_SIZED[name], (known(tuple(node.meta["val"].shape)),))]
    return [(_PLAIN[name], known(node.args[1:]))]


def _sliced(node: Any, known: Callable[[Any], Any]) -> Step:
    defaults: tuple[Any, ...] = (None, 0, None, None, 1)
    _, dim, start, end, step = tuple(node.args) + defaults[len(node.args) :]
    if step == 1 and not (isinstance(start, int) and start < 0):
        return "narrow", (dim, known(start or 0), known(node.meta["val"].shape[dim]))
    end = None if isinstance(end, int) and end >= sys.maxsize else end
    before = (slice(None),) * int(dim % node.meta["val"].dim())
    return ITEM, (*before, slice(known(start), known(end), known(step)))
