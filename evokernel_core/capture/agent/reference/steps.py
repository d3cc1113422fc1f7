"""Results where values beside a step fall to its other side.

Where a value lies next to the middle of two integers, two right kernels may round it to either: a sum or a
quotient of float32 is not the same in every order. PyTorch's result says one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from ..torch_compat import tensors_among

SIDES = (-1.0, 1.0)
_BESIDE = 2.0**-18
"""How far from a step a value may be, in units of itself: 64 roundings of float32, a hundredth of what values
that no step follows may differ by."""
_FARTHEST = 2.0**-4
"""And at most, in units of a step: large values come no nearer to the next but one, and infinities stay."""
_STEPS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "aten.round.default": torch.round,
    "aten.floor.default": torch.floor,
    "aten.ceil.default": torch.ceil,
    "aten.trunc.default": torch.trunc,
}
_CONVERSION = "aten._to_copy.default"
_FLOATS = (torch.float32, torch.float64)
_EXACT = frozenset(
    f"aten.{name}"
    for name in (
        "_to_copy.default", "abs.default", "amax.default", "amin.default", "cat.default", "clamp.default",
        "clamp_max.default", "clamp_min.default", "clone.default", "expand.default", "maximum.default",
        "minimum.default", "neg.default", "permute.default", "relu.default", "select.int", "slice.Tensor",
        "squeeze.dims", "transpose.int", "t.default", "unsqueeze.default", "view.default", "where.self",
    )
)  # fmt: skip
"""Operations that give elements of their operands, or these without their sign."""
_ONCE = frozenset(f"aten.{name}.Tensor" for name in ("add", "mul", "sub"))
"""Operations whose exact result, of values that no rounding has touched, every right kernel has."""


def has_steps(graph: Mapping[str, Any]) -> bool:
    """Whether a graph rounds to integers, or converts to a type of them."""
    return any(
        node["op"] in _STEPS
        or (
            node["op"] == _CONVERSION
            and not any(kind in node["outputs"][0]["dtype"] for kind in ("float", "complex", "bool"))
        )
        for node in graph["nodes"]
    )


class Beside:
    """What becomes of the results of a graph's nodes if values beside a step are a little larger, or smaller
    (``side`` 1 or -1). Values that no rounding has touched since they came in, or since a step, stay: of
    those one result is right."""

    def __init__(self, side: float) -> None:
        self._side = side
        # By identity, which only a tensor that is kept has alone: the tensor, and which elements are rounded.
        self._rounded: dict[int, tuple[torch.Tensor, Any]] = {}

    def __call__(self, op: str, args: list[Any], kwargs: Mapping[str, Any], result: Any) -> Any:
        touched = any(id(tensor) in self._rounded for tensor in tensors_among((args, kwargs)))
        if touched and _is_step(op, result) and args[0].dtype in _FLOATS:
            moved = args[0] + self._side * (_BESIDE * args[0].abs()).clamp(max=_FARTHEST)
            moved = torch.where(self._where(args[0]), moved, args[0])
            result = _STEPS[op](moved) if op in _STEPS else torch.ops.aten._to_copy.default(moved, **kwargs)
        if not _is_step(op, result) and (touched or op not in _EXACT):
            # integers are exact
            where = None if touched else _inexact(op, args, kwargs, result)
            floats = (made for made in tensors_among(result) if made.is_floating_point())
            self._rounded |= {id(made): (made, where) for made in floats}
        return result

    def _where(self, value: torch.Tensor) -> torch.Tensor:
        """The elements of a value that rounding has touched."""
        _, where = self._rounded.get(id(value), (value, None))
        return torch.ones_like(value, dtype=torch.bool) if where is None else where


def _inexact(op: str, args: list[Any], kwargs: Mapping[str, Any], result: Any) -> torch.Tensor | None:
    """Where an operation on values that came in rounds; None where any element may be rounded."""
    if op not in _ONCE or not result.is_floating_point():
        return None
    wide = [arg.double() if isinstance(arg, torch.Tensor) else arg for arg in args]
    _, name, overload = op.split(".")
    exact: torch.Tensor = getattr(getattr(torch.ops.aten, name), overload)(*wide, **kwargs)
    return exact != result.double()


def _is_step(op: str, result: Any) -> bool:
    if op != _CONVERSION:
        return op in _STEPS
    kind = result.dtype
    return not (kind.is_floating_point or kind.is_complex or kind is torch.bool)
