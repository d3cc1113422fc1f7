"""Writing by index said so that sizes which must agree are compared while a region is traced.

PyTorch looks at some of them only when it runs: traced as they are, they would stay symbols of their own.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten


def put(x: torch.Tensor, indices: Any, values: torch.Tensor, accumulate: bool = False) -> Any:
    """aten.index_put as it is, once the sizes of the values are those of what is written: PyTorch looks at
    them only when it runs. One value for all places of a mask needs no count of them."""
    if any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in indices):
        # how much a mask chooses is known only when it runs
        return NotImplemented if accumulate or values.dim() else _chosen(x, list(indices), values)
    written = aten.index.Tensor(x, indices).shape
    if not values.dim() and written:
        return aten.index_put(x, indices, values.expand(written), accumulate)
    for given, wanted in zip(reversed(values.shape), reversed(written)):  # noqa: B905 - values may be fewer
        if given not in (1, wanted):
            raise RuntimeError(f"values of {tuple(values.shape)} do not fit {tuple(written)}")
    return NotImplemented


def _chosen(x: torch.Tensor, indices: list[torch.Tensor | None], value: torch.Tensor) -> Any:
    """``x[:, mask] = value``, for a mask over neighbouring dimensions."""
    places = [place for place, index in enumerate(indices) if index is not None]
    mask = indices[places[0]]
    if len(places) > 1 or mask is None:
        return NotImplemented
    behind = x.shape[places[0] :]
    if list(mask.shape) != list(behind[: mask.dim()]):
        raise RuntimeError(f"a mask of {tuple(mask.shape)} does not fit {tuple(behind)}")
    for _ in behind[mask.dim() :]:
        mask = mask.unsqueeze(-1)
    return torch.where(mask.bool(), value.expand(x.shape), x)


def added(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1) -> Any:
    """aten.index_add as it is, once the sizes of the source are those of what is written: unlike
    aten.index_put it takes no indices that count from the end, and nothing of the source is repeated."""
    dim %= max(x.dim(), 1)
    _check_source(x, dim, index, source)
    return NotImplemented if x.dim() else x + (source if alpha == 1 else source * alpha).sum()


def copied(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> Any:
    """aten.index_copy as it is, as ``added``."""
    dim %= max(x.dim(), 1)
    _check_source(x, dim, index, source)
    return NotImplemented


def filled(x: torch.Tensor, dim: int, index: torch.Tensor, value: Any) -> Any:
    """aten.index_fill: indices may count from the end, unlike those of aten.index_copy."""
    if not x.dim():
        return NotImplemented
    number = value.to(x.dtype) if isinstance(value, torch.Tensor) else x.new_full((), value)
    return put(x, [*[None] * (dim % x.dim()), index], number)


def reduced(
    x: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> torch.Tensor:
    """aten.index_reduce: every index is that of a whole slice of the source."""
    dim %= max(x.dim(), 1)
    _check_source(x, dim, index, source)
    if not x.dim():
        return aten.scatter_reduce(x, dim, index, source, reduce, include_self=include_self)
    sizes = [-1 if axis == dim else 1 for axis in range(x.dim())]
    places = index.view(sizes).expand(source.shape)
    return aten.scatter_reduce(x, dim, places, source, reduce, include_self=include_self)


def _check_source(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> None:
    sizes = [index.numel() if axis == dim else size for axis, size in enumerate(x.shape)]
    if list(source.shape) != sizes:
        raise RuntimeError(f"a source of {tuple(source.shape)} does not fit {tuple(sizes)}")


def written(x: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False) -> Any:
    """aten.put: indices count through all elements."""
    if not x.dim():
        return NotImplemented
    result = aten.index_put(x.flatten(), [index.flatten()], source.flatten(), accumulate)
    return result.view(x.shape)


def taken_by_mask(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """aten.masked_scatter: the elements of the source, one after the other, where the mask holds."""
    whole = torch.broadcast_shapes(x.shape, mask.shape)
    chosen = mask.expand(whole)
    order = torch.cumsum(chosen.flatten(), 0) - 1
    result = source.flatten().index_select(0, torch.clamp(order, 0, source.numel() - 1))
    return torch.where(chosen, result.view(whole), x)


def gradient(
    given: torch.Tensor, indices: torch.Tensor, rows: int, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    """aten.embedding_dense_backward as it is, once there is one gradient for each index."""
    if list(given.shape[:-1]) != list(indices.shape):
        raise RuntimeError(f"gradients of {tuple(given.shape)} do not fit {tuple(indices.shape)} indices")
    return NotImplemented


TABLE = {
    aten.embedding_dense_backward.default: gradient,
    aten.index_put.default: put,
    aten.index_add.default: added,
    aten.index_copy.default: copied,
    aten.index_fill.int_Scalar: filled,
    aten.index_fill.int_Tensor: filled,
    aten.index_reduce.default: reduced,
    aten.masked_scatter.default: taken_by_mask,
    aten.put.default: written,
}
