"""Complex tensors: a call of a kernel passes and gives real and imaginary parts, side by side.

``torch.view_as_real`` and ``torch.view_as_complex`` are views, so neither costs anything. Inside of a
graph values are complex as PyTorch has them; what it takes and gives is real.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..regions.parts import PARAMETER, Leaf
from .complex_names import is_complex


def leaf(node: ast.expr, kind: str, text: str, value: Any, owner: int, member: str = "") -> Leaf:
    """The leaf of a value that Python reaches as ``text``."""
    if not is_complex(value):
        return Leaf(node, kind, text, value, owner, member)
    # a caller may pass what is only noted to be conjugate, which cannot be viewed as it lies in memory
    resolved = "" if kind == PARAMETER and not value.is_conj() else ".resolve_conj()"
    return Leaf(node, kind, f"torch.view_as_real({text}{resolved})", as_real(value), owner, member, value)


def as_real(value: Any) -> torch.Tensor:
    """The parts of a complex tensor along a last dimension of two."""
    return torch.view_as_real(value.resolve_conj())


def _as_complex(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x.contiguous())


RULES: Mapping[str, Callable[..., Any]] = {
    "aten.view_as_complex.default": _as_complex,
    "aten.view_as_real.default": as_real,
}
"""By ATen name, views as they are taken where values need not lie in memory as they did when traced."""


def restored(leaf: Leaf, value: Any) -> Any:
    """What the user's code has for a leaf, from what a kernel's call passes."""
    return value if leaf.original is None else torch.view_as_complex(value)


def real_results(results: Any) -> tuple[Any, list[int]]:
    """The results with real views for complex tensors, and the positions of those among the flat ones."""
    flat, spec = pytree.tree_flatten(results)
    positions = [position for position, element in enumerate(flat) if is_complex(element)]
    flat = [as_real(element) if is_complex(element) else element for element in flat]
    return pytree.tree_unflatten(flat, spec), positions
