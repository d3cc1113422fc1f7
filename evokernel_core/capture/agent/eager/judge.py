"""What the user's code gave beside what the graph gave: the same but for rounding, or the first difference.

Two ways to compute one thing round otherwise, and one of them may overflow on the way. Both are gone where
the same two ways are run in float64: a difference that stays there is one of meaning, and so is a graph that
loses far more digits than the code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ..sentence import Sentence

_UNITS = 8.0
"""Units in the last place within which two results are the same."""
_LOST = 64.0
"""How many times as far from the exact result the graph may be as the code is."""
_VANISHED = 1e-6
"""The share of a difference that is left of it in float64 where it was one of rounding."""
_EXACT = 1e-9
"""The relative difference of two ways in float64."""
_CLOSE = {torch.float16: 1e-2, torch.bfloat16: 1e-2, torch.float32: 1e-4, torch.float64: 1e-7}
"""The relative difference where nothing is known in float64."""


@dataclass(frozen=True)
class CodeAndGraph:
    """One result: of the code, and of the graph."""

    code: torch.Tensor
    graph: torch.Tensor


Wide = Callable[[], "CodeAndGraph | None"]
"""The same result in float64; None where one of the two cannot be computed so."""


def noise_of(values: Iterable[Any]) -> float:
    """How far sums of the values in two orders may be apart where each is kept in float64, as PyTorch keeps
    those of float32 on a CPU: what is left where the largest cancel is no more exact in float64 itself."""
    sizes = [tensor.abs().double().nan_to_num(0.0, 0.0, 0.0) for tensor in values if _adds(tensor)]
    return max((torch.finfo(torch.float64).eps * float(size.sum()) for size in sizes), default=0.0)


def _adds(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 0


def difference(pair: CodeAndGraph, wide: Wide, *, signed: bool = True, noise: float = 0.0) -> Sentence:
    """What differs, empty where nothing but rounding does. With ``signed`` no zero is the other zero; two
    numbers within the ``noise`` of sums are the same."""
    code, graph = pair.code, pair.graph
    if code.dtype != graph.dtype:
        return Sentence(
            "{code} where the graph has {graph}", code=_name(code.dtype), graph=_name(graph.dtype)
        )
    if code.shape != graph.shape:
        return Sentence(
            "a shape of {code} where the graph has {graph}", code=list(code.shape), graph=list(graph.shape)
        )
    if code.is_complex():
        return difference(
            CodeAndGraph(torch.view_as_real(code.resolve_conj()), torch.view_as_real(graph.resolve_conj())),
            lambda: _parts(wide()),
            signed=signed,
            noise=noise,
        )
    apart = unequal(code, graph, _UNITS)
    if noise and code.is_floating_point():
        apart &= ~_are_finite(pair) | (_lost(code, graph.double()) > noise)
    if not signed:
        apart &= (code != 0) | (graph != 0)
    if not bool(apart.any()):
        return Sentence()
    exact = wide()
    if exact is not None and exact.code.shape == code.shape and exact.graph.shape == code.shape:
        apart &= ~_is_rounding(pair, exact)
    elif code.is_floating_point():
        apart &= ~_is_close(pair)
    return _first(pair, apart) if bool(apart.any()) else Sentence()


def otherwise_in_memory(pair: CodeAndGraph) -> Sentence:
    """What differs of how the code's result and that of the call lie in memory: the order of dimensions of
    more than one element, those that repeat one, and where in a larger tensor the elements of a part lie.
    Empty where nothing does."""
    if not pair.code.numel():
        return Sentence()
    if _place_in_memory(pair.code) == _place_in_memory(pair.graph):
        return Sentence()
    return Sentence(
        "a tensor with strides of {code} where the call gives {graph}",
        code=list(pair.code.stride()),
        graph=list(pair.graph.stride()),
    )


def _place_in_memory(tensor: torch.Tensor) -> tuple[int, ...]:
    """What a program can tell of it; of how much memory a tensor is a part decides who made it."""
    long = [dim for dim, size in enumerate(tensor.shape) if size > 1]
    return tensor.storage_offset(), *(tensor.stride(dim) for dim in long)


def unequal(one: torch.Tensor, other: torch.Tensor, units: float = 0.0) -> torch.Tensor:
    """The elements that differ by more than so many units in the last place: NaN equals NaN, and no zero
    the other zero."""
    if not one.is_floating_point():
        return one != other
    same = (one == other) & (one.signbit() == other.signbit())
    same |= one.isnan() & other.isnan()
    if units:
        limit = units * torch.finfo(one.dtype).eps * other.double().abs()
        near = (one.double() - other.double()).abs() <= limit
        same |= near & one.isfinite() & other.isfinite() & (other != 0)
    return ~same


def _is_rounding(pair: CodeAndGraph, exact: CodeAndGraph) -> torch.Tensor:
    """The elements whose difference is gone in float64."""
    code, graph = exact.code.double(), exact.graph.double()
    same = ~unequal(code, graph)
    if not pair.code.is_floating_point():  # as the last bit decides on which side of a step a number is
        return same
    finite = code.isfinite() & graph.isfinite()
    lost_by_code, lost_by_graph = _lost(pair.code, code), _lost(pair.graph, graph)
    scale = torch.where(_are_finite(pair), graph.abs(), _largest(graph))
    limit = _EXACT * scale + _VANISHED * torch.maximum(lost_by_code, lost_by_graph).nan_to_num(0.0, 0.0)
    distance = (code - graph).abs()
    same |= finite & (distance > 0) & (distance <= limit)  # no zero is the other one
    return same & (_is_as_exact(pair, lost_by_code, lost_by_graph, graph) | ~_are_finite(pair))


def _largest(values: torch.Tensor) -> torch.Tensor:
    """The largest finite size: where one of two ways overflows on the way, what float64 leaves of numbers as
    large is none of meaning."""
    sizes = values.abs().nan_to_num(0.0, 0.0, 0.0)
    return sizes.amax() if sizes.numel() else sizes.sum()


def _lost(value: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    return (value.double() - exact).abs()


def _are_finite(pair: CodeAndGraph) -> torch.Tensor:
    return pair.code.isfinite() & pair.graph.isfinite()


def _is_as_exact(
    pair: CodeAndGraph, by_code: torch.Tensor, by_graph: torch.Tensor, exact: torch.Tensor
) -> torch.Tensor:
    """Whether the graph is as close to the exact results as the code is anywhere in the same row."""
    rows = by_code.nan_to_num(0.0, 0.0, 0.0)
    most = rows.amax(-1, keepdim=True) if rows.dim() and rows.shape[-1] else rows
    limits = torch.finfo(pair.code.dtype)
    unit = limits.eps * exact.abs().clamp(min=limits.tiny)
    return by_graph <= _LOST * torch.maximum(most, unit)


def _is_close(pair: CodeAndGraph) -> torch.Tensor:
    limit = _CLOSE[pair.code.dtype]
    graph = pair.graph.double()
    scale = graph.abs().where(graph.isfinite(), graph.new_zeros(()))
    most = scale.amax(-1, keepdim=True) if scale.dim() and scale.shape[-1] else scale
    distance = (pair.code.double() - graph).abs()
    return _are_finite(pair) & (distance > 0) & (distance <= limit * most)  # no zero is the other one


def _parts(pair: CodeAndGraph | None) -> CodeAndGraph | None:
    if pair is None or not (pair.code.is_complex() and pair.graph.is_complex()):
        return None
    return CodeAndGraph(
        torch.view_as_real(pair.code.resolve_conj()), torch.view_as_real(pair.graph.resolve_conj())
    )


def _first(pair: CodeAndGraph, apart: torch.Tensor) -> Sentence:
    place = apart.nonzero()[0].tolist()
    code, graph = (value[tuple(place)].item() for value in (pair.code, pair.graph))
    return Sentence(
        "{code} at {place} where the graph has {graph}", code=repr(code), place=place, graph=repr(graph)
    )


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
