"""Random draws inside a region: they stay PyTorch's, and the kernel takes what was drawn.

A draw in a traced graph becomes an input. Its expression draws at the call site, from the same
generator and in the same order, the numbers that the function would have drawn there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

_LIBRARY = torch.library.Library("evokernel_capture", "FRAGMENT")
_LIBRARY.define("draw(Tensor like, SymInt[] size, str text) -> Tensor")
_LIBRARY.impl("draw", lambda like, size, text: like.new_empty(size), "CompositeExplicitAutograd")
torch.fx.node.has_side_effect(torch.ops.evokernel_capture.draw.default)

MARK = "evokernel_capture.draw.default"


def dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """aten.dropout. Dropping out of ones gives the factors, whatever way the device draws them."""
    return _scaled(x, list(x.shape), f"torch.nn.functional.dropout({{ones}}, {p})") if train and p else x


def feature_dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """aten.feature_dropout: one factor a channel of each image."""
    size = [*x.shape[:2], *[1] * (x.dim() - 2)]
    return _scaled(x, size, f"torch.feature_dropout({{ones}}, {p}, True)") if train and p else x


def rrelu(x: torch.Tensor, lower: float, upper: float, train: bool) -> torch.Tensor:
    """aten.rrelu: a slope for each element that is not positive. A slope is drawn for every element, as
    devices do; PyTorch on a CPU draws only those that it reads."""
    if not train:
        return torch.nn.functional.leaky_relu(x, (lower + upper) / 2)
    text = f"-torch.nn.functional.rrelu(-{{ones}}, {lower!r}, {upper!r}, True)"
    slopes = torch.ops.evokernel_capture.draw(x, list(x.shape), text)
    return torch.where(x <= 0, x * slopes, x)


def _scaled(x: torch.Tensor, size: list[Any], text: str) -> torch.Tensor:
    factors = torch.ops.evokernel_capture.draw(x, size, text)
    return x * factors


_ONES = "torch.ones({size}, dtype={dtype}, device={device})"
_EMPTY = "torch.empty({size}, dtype={dtype}, device={device})"
_FACTORY = "({size}, dtype={dtype}, device={device})"

_Writer = Callable[[list[Any], dict[str, Any]], str]


def _in_place(method: str, count: int) -> _Writer:
    """``empty(..).bernoulli_(0.5)``; ``count`` is how many numbers follow the tensor."""

    def write(args: list[Any], kwargs: dict[str, Any]) -> str:
        numbers = args[1 : 1 + count]
        if any(not isinstance(number, (int, float)) or not math.isfinite(number) for number in numbers):
            return ""
        return f"{_EMPTY}.{method}({', '.join(map(repr, numbers))})"

    return write


def _whole_numbers(args: list[Any], kwargs: dict[str, Any]) -> str:
    low, high = (0, args[0]) if len(args) == 2 else args[:2]
    known = isinstance(low, int) and isinstance(high, int)
    return f"torch.randint({low}, {high}, {_FACTORY[1:]}" if known else ""


_WRITERS: Mapping[str, _Writer] = {
    "aten.rand.default": lambda args, kwargs: "torch.rand" + _FACTORY,
    "aten.randn.default": lambda args, kwargs: "torch.randn" + _FACTORY,
    "aten.rand_like.default": lambda args, kwargs: "torch.rand" + _FACTORY,
    "aten.randn_like.default": lambda args, kwargs: "torch.randn" + _FACTORY,
    "aten.randint.default": _whole_numbers,
    "aten.randint.low": _whole_numbers,
    "aten.bernoulli.p": _in_place("bernoulli_", 1),
    "aten.uniform.default": _in_place("uniform_", 2),
    "aten.normal_functional.default": _in_place("normal_", 2),
    "aten.exponential.default": _in_place("exponential_", 1),
    MARK: lambda args, kwargs: args[2].replace("{ones}", _ONES),
}


def draw_text(name: str, args: list[Any], kwargs: dict[str, Any]) -> str:
    """Python text that draws, with ``{size}``, ``{dtype}`` and ``{device}`` left open; empty for an
    operation that draws nothing, or that draws from the values of a tensor."""
    writer = _WRITERS.get(name)
    return writer(args, kwargs) if writer else ""
