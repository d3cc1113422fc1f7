"""Which inputs of a graph a recurrent layer takes, drawn so that its states depend on them steadily.

A layer of weights that are too large is chaotic: after some dozen steps, what one rounding changes is as
large as the states themselves, and two right results have nothing in common.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from .operands import names_in

_LAYERS = frozenset(f"aten.{kind}.input" for kind in ("lstm", "gru", "rnn_tanh", "rnn_relu"))
_TURNS = ("aten.t.default", "aten.permute.default", "aten.transpose.int")
"""What a layer does to its weights each time."""
_LEAST_STEPS = 4
_ROW = 3**-0.5
"""Length of a row of weights as PyTorch draws them: uniform, within 1 / sqrt(hidden)."""


def layers_take(graph: dict[str, Any]) -> frozenset[str]:
    """The names of inputs that are weights, biases or first states of a recurrent layer, or weights that a
    loop over steps multiplies with again and again."""
    names = {operand["name"] for operand in graph["inputs"]}
    layers = (node for node in graph["nodes"] if node["op"] in _LAYERS)
    taken = {name for node in layers for name in names_in(node["args"][1:3])}
    factors = Counter(
        name for node in graph["nodes"] if node["op"] in _TURNS for name in names_in(node["args"])
    )
    again = {name for name, count in factors.items() if count >= _LEAST_STEPS}
    return frozenset((taken | again) & names)


def steadied(value: torch.Tensor) -> torch.Tensor:
    """Rows of a matrix at most as long as those that layers begin with, anything else within [-1, 1]."""
    if not value.is_floating_point() or value.numel() == 0:
        return value
    if value.dim() == 2:
        lengths = torch.linalg.vector_norm(value.float(), dim=1, keepdim=True)
        return (value * (_ROW / lengths.clamp(min=_ROW))).to(value.dtype)
    return (value / value.abs().max().clamp(min=1)).to(value.dtype)
