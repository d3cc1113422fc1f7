"""Results that share memory: as in the user's code, they are views of one tensor that the call gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

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
    """``base`` is the node that no view made; ``steps`` are the nodes of the views from it on."""

    base: Any
    steps: tuple[Any, ...]

    def text(self, base: str, size_text: Callable[[Any], str]) -> str:
        """The view of a Python text for the base; ``size_text`` gives that of a size."""
        for step in self.steps:
            base += _method(step, size_text)
        return base


def viewed(node: Any) -> Viewed:
    """Goes back through views to what they are views of."""
    steps: list[Any] = []
    while isinstance(node, torch.fx.Node) and _is_view(node):
        steps.append(node)
        source = node.args[0]
        node = source.args[0] if _is_item(node) else source
    return Viewed(node, tuple(reversed(steps)))


def _is_item(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem"


def _is_view(node: Any) -> bool:
    if node.op != "call_function":
        return False
    name = str(node.target)
    if _is_item(node):
        return str(node.args[0].target) in _SEVERAL
    return name in _SIZED or name in _PLAIN or name == _ALIAS or (name == _SLICE and _step(node) == 1)


def _step(node: Any) -> Any:
    return node.args[4] if len(node.args) > 4 else 1


def _method(node: Any, size_text: Callable[[Any], str]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"({', '.join(map(text, value))}{',' * (len(value) == 1)})"
        return size_text(value.meta["val"] if isinstance(value, torch.fx.Node) else value)

    name = str(node.target)
    if name == _ALIAS:
        return ""
    if _is_item(node):
        several = node.args[0]
        return f".{_SEVERAL[str(several.target)]}({', '.join(map(text, several.args[1:]))})[{node.args[1]}]"
    if name == _SLICE:
        dim, start, *_ = (*node.args[1:3], 0)[:2] if len(node.args) > 1 else (0, 0)
        return f".narrow({dim}, {text(start or 0)}, {text(node.meta['val'].shape[dim])})"
    if name in _SIZED:
        return f".{_SIZED[name]}({text(tuple(node.meta['val'].shape))})"
    return f".{_PLAIN[name]}({', '.join(map(text, node.args[1:]))})"
