"""Composite operations said otherwise than PyTorch says them on a CPU, while a whole function is traced.

On a CPU, attention runs a kernel of its own, and dropout and batch normalisation write into tensors;
nothing of that belongs into a graph for another device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher

from ..errors import Unsupported
from ..tracing import random_samples
from ..tracing.eager_calls import call_of
from . import attention, compositions, index_put, one_hot, recurrent
from .embedding_bag import BagsOfRows

aten = torch.ops.aten
_KEY = torch._C.DispatchKey.CompositeImplicitAutograd


@contextmanager
def overridden(fits: Callable[[str], bool]) -> Iterator[None]:
    """The operations below are traced as said here. ``fits`` tells which have kernels of their own. To
    be used with torch's Python dispatcher."""
    with ExitStack() as stack:
        for operation, rule in _rules(fits).items():
            stack.enter_context(_override(operation, rule))
        stack.enter_context(BagsOfRows())
        yield


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


@contextmanager
def classes_kept(fits: Callable[[str], bool]) -> Iterator[None]:
    """One-hot encodings are traced as nodes of their own, in parts of functions as in whole ones. To be used
    with torch's Python dispatcher."""
    with ExitStack() as stack:
        for operation, rule in one_hot.rules(fits).items():
            stack.enter_context(_override(operation, rule))
        yield


def _rules(fits: Callable[[str], bool]) -> Mapping[Any, Callable[..., Any]]:

    def dropout_in_place(x: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        return x.copy_(random_samples.dropout(x, p, train)) if train and p else x

    def rrelu(
        x: torch.Tensor,
        lower: float = 1 / 8,
        upper: float = 1 / 3,
        training: bool = False,
        generator: torch.Generator | None = None,
    ) -> torch.Tensor:
        if generator is not None:
            raise Unsupported("rrelu draws from a generator of its own: leave that argument out.")
        return random_samples.rrelu(x, lower, upper, training)

    def rrelu_in_place(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        return x.copy_(rrelu(x, *args, **kwargs))

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
        # said here and not by a decomposition, so that what it writes is seen
        return compositions.batch_norm(x, weight, bias, mean, variance, training, momentum, eps)[0]

    rules: dict[Any, Callable[..., Any]] = {
        aten.dropout.default: random_samples.dropout,
        aten.dropout_.default: dropout_in_place,
        aten.feature_dropout.default: random_samples.feature_dropout,
        aten.rrelu.default: rrelu,
        aten.rrelu_.default: rrelu_in_place,
        aten.bilinear.default: compositions.bilinear,
        aten.fill_diagonal_.default: compositions.diagonal_filled,
        aten.batch_norm.default: batch_norm,
        aten.scaled_dot_product_attention.default: attention.rule(fits),
    }
    return rules | recurrent.rules(fits) | one_hot.rules(fits)


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


TABLE = {
    aten.copy.default: copied,
    aten.as_strided.default: restrided,
    **index_put.TABLE,
}
"""What writes into tensors become, in operations that families know."""


ATEN_NAMES: Mapping[str, str] = {
    **recurrent.ATEN_NAMES,
    attention.MARK: "aten.scaled_dot_product_attention.default",
    one_hot.MARK: "aten.one_hot.default",
}
"""What nodes that stand for composite operations are called in a graph."""


def _as_call(operation: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        with call_of(operation):
            return rule(*args, **kwargs)

    return run


@contextmanager
def _override(operation: Any, rule: Callable[..., Any]) -> Iterator[None]:
    before = dict(operation.py_kernels)
    operation.py_kernels.pop(_KEY, None)
    operation.py_impl(_KEY)(_as_call(operation, rule))
    operation._dispatch_cache.clear()
    try:
        yield
    finally:
        operation.py_kernels.clear()
        operation.py_kernels.update(before)
        operation._dispatch_cache.clear()


_KEYS = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
_RESIZING = (
    aten.upsample_linear1d,
    aten.upsample_bilinear2d,
    aten.upsample_trilinear3d,
    aten.upsample_bicubic2d,
    aten.upsample_nearest1d,
    aten.upsample_nearest2d,
    aten.upsample_nearest3d,
    aten._upsample_nearest_exact1d,
    aten._upsample_nearest_exact2d,
    aten._upsample_nearest_exact3d,
    aten._upsample_bilinear2d_aa,
    aten._upsample_bicubic2d_aa,
)


@contextmanager
def kept_whole(fits: Callable[[str], bool]) -> Iterator[None]:
    """Those that have kernels of their own, by ``fits``, appear in graphs as they are."""
    packets = [packet for packet in _RESIZING if fits(str(packet.default))]
    operations = [getattr(packet, overload) for packet in packets for overload in ("default", "vec")]
    before = [dict(operation.py_kernels) for operation in operations]
    for operation in operations:
        for key in _KEYS:
            operation.py_kernels.pop(key, None)
        operation._dispatch_cache.clear()
    try:
        yield
    finally:
        for operation, kernels in zip(operations, before, strict=True):
            operation.py_kernels.update(kernels)
            operation._dispatch_cache.clear()
