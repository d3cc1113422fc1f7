"""Tables that the user's code makes of numbers: a call makes them anew, as the code did, and passes them."""

from __future__ import annotations

import math
import re
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .names import without_view

_MOST_WRITTEN = 256
"""Numbers that an edit writes into the user's file; a larger table belongs into a buffer."""
_DIGITS = range(6, 10)
"""Nine digits tell any two numbers of float32 apart."""
_PLAIN = re.compile(r"[A-Za-z_][\w.]*")


def is_table(value: Any) -> bool:
    """Whether a captured constant can stand in a call."""
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) or value.requires_grad:
        return False
    return value.numel() <= _MOST_WRITTEN and bool(value.isfinite().all())


def table(value: torch.Tensor, device: str) -> str:
    """Python text that makes the tensor on a device."""
    return f"torch.tensor({_text(value.tolist(), value.dtype)}, dtype={value.dtype}, device={device})"


def device_of(inputs: list[dict[str, Any]]) -> str:
    """Python text of the device of the first input that a plain name reaches; empty where none does."""
    texts = (without_view(operand["expression"]) for operand in inputs if operand["kind"] != "scalar")
    return next((f"{text}.device" for text in texts if _PLAIN.fullmatch(text)), "")


def _text(value: Any, dtype: torch.dtype) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(element, dtype) for element in value)}]"
    if not isinstance(value, float) or math.isclose(value, round(value, 4), rel_tol=0, abs_tol=0):
        return repr(value)
    # double precision of a number of fewer digits has digits that nobody wrote
    exact = torch.tensor(value, dtype=dtype)
    texts = (f"{value:.{digits}g}" for digits in _DIGITS)
    return next((text for text in texts if torch.tensor(float(text), dtype=dtype) == exact), repr(value))
