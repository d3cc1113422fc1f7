"""Composite operations said otherwise than PyTorch says them on a CPU, while a whole function is traced.

On a CPU, attention runs a kernel of its own, and dropout and batch normalisation write into tensors;
nothing of that belongs into a graph for another device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher

from . import attention, compositions, draws, recurrent

aten = torch.ops.aten
_KEY = torch._C.DispatchKey.CompositeImplicitAutograd


@dataclass
class Modes:
    """Whether something was traced that depends on training, and which way."""

    training: set[bool] = field(default_factory=set)


@contextmanager
def overridden(fits: Callable[[str], bool]) -> Iterator[Modes]:
    """The operations below are traced as said here. ``fits`` tells which have kernels of their own. To
    be used with torch's Python dispatcher."""
    modes = Modes()
    with ExitStack() as stack:
        for operation, rule in _rules(modes, fits).items():
            stack.enter_context(_override(operation, rule))
        yield modes


@contextmanager
def stacks_kept(fits: Callable[[str], bool] | None = None) -> Iterator[None]:
    """Recurrent layers run as one operation each, whatever their arguments; with ``fits`` only where they
    are traced so."""
    rules = recurrent.kept() if fits is None else recurrent.rules(fits)
    with ExitStack() as stack:
        stack.enter_context(enable_python_dispatcher())
        for operation, rule in rules.items():
            stack.enter_context(_override(operation, rule))
        yield


def _rules(modes: Modes, fits: Callable[[str], bool]) -> Mapping[Any, Callable[..., Any]]:
    def dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        _note(modes, p, train)
        return draws.dropout(x, p, train)

    def dropout_in_place(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        _note(modes, p, train)
        return x.copy_(draws.dropout(x, p, train)) if train and p else x

    def feature_dropout(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        _note(modes, p, train)
        return draws.feature_dropout(x, p, train)

    def batch_norm(  # noqa: PLR0913, PLR0917 - as its op
        x: torch.Tensor,
        weight: torch.Tensor | None,
        bias: torch.Tensor | None,
        mean: torch.Tensor | None,
        variance: torch.Tensor | None,
        training: bool,
        momentum: float,
        eps: float,
        cudnn: bool,
    ) -> torch.Tensor:
        if mean is not None:
            modes.training.add(training)
        # said here and not by a decomposition, so that what it writes is seen
        return compositions.batch_norm(x, weight, bias, mean, variance, training, momentum, eps)[0]

    rules: dict[Any, Callable[..., Any]] = {
        aten.dropout.default: dropout,
        aten.dropout_.default: dropout_in_place,
        aten.feature_dropout.default: feature_dropout,
        aten.batch_norm.default: batch_norm,
        aten.scaled_dot_product_attention.default: attention.rule(fits),
    }
    return rules | recurrent.rules(fits)


def copied(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """aten.copy: what writing ``source`` into ``target`` leaves there."""
    cast = source.to(target.dtype) if source.dtype != target.dtype else source
    return cast.expand(target.shape)


def restrided(x: torch.Tensor, size: Any, stride: Any, offset: int | None = None) -> Any:
    """aten.as_strided where it changes no element's place, as for layouts of one-pixel images."""
    same = (
        len(size) == x.dim()
        and not offset
        and all(
            new == old and (new == 1 or step == own)
            for new, old, step, own in zip(size, x.shape, stride, x.stride(), strict=True)
        )
    )
    return x.view(x.shape) if same else NotImplemented


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


def added(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, alpha: float = 1
) -> torch.Tensor:
    """aten.index_add: nothing of the source is repeated."""
    dim %= max(x.dim(), 1)
    sizes = [index.numel() if axis == dim else size for axis, size in enumerate(x.shape)]
    if list(source.shape) != sizes:
        raise RuntimeError(f"a source of {tuple(source.shape)} does not fit {tuple(sizes)}")
    values = source if alpha == 1 else source * alpha
    if not x.dim():
        return x + values.sum()
    return aten.index_put(x, [*[None] * dim, index], values, True)


TABLE = {
    aten.copy.default: copied,
    aten.as_strided.default: restrided,
    aten.index_put.default: put,
    aten.index_add.default: added,
}
"""What writes into tensors become, in operations that families know."""


ATEN_NAMES: Mapping[str, str] = {
    **recurrent.ATEN_NAMES,
    attention.MARK: "aten.scaled_dot_product_attention.default",
}
"""What nodes that stand for composite operations are called in a graph."""


def _note(modes: Modes, p: float, train: bool) -> None:
    if p:
        modes.training.add(train)


@contextmanager
def _override(operation: Any, rule: Callable[..., Any]) -> Iterator[None]:
    before = dict(operation.py_kernels)
    operation.py_kernels.pop(_KEY, None)
    operation.py_impl(_KEY)(rule)
    operation._dispatch_cache.clear()
    try:
        yield
    finally:
        operation.py_kernels.clear()
        operation.py_kernels.update(before)
        operation._dispatch_cache.clear()
