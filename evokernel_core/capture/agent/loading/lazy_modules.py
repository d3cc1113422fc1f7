"""Modules that learn the sizes of their parameters from their first call, such as ``nn.LazyConv2d``.

Their first call is made before anything is captured. A region that stands for such a module must ask
whether it was called before: the first call stays PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any
from weakref import WeakSet

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

_first_called: WeakSet[torch.nn.Module] = WeakSet()


@contextmanager
def lazy_modules() -> Iterator[None]:
    """Lets tensors without a size be made inside a FakeTensorMode, whose tensors cannot become them."""
    kinds = (UninitializedParameter, UninitializedBuffer)
    kept = [(kind, name, getattr(kind, name)) for kind in kinds for name in ("__new__", "materialize")]
    try:
        for kind, name, method in kept:
            made = _really(method)
            setattr(kind, name, staticmethod(made) if name == "__new__" else made)
        yield
    finally:
        for kind, name, method in kept:
            if name == "__new__":
                setattr(kind, name, staticmethod(method))
            else:
                delattr(kind, name)


def _really(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with unset_fake_temporarily():
            return method(*args, **kwargs)

    return call


def first_called(module: torch.nn.Module, call: Callable[[], Any]) -> None:
    """Makes the first call of a module that has layers without sizes. Where it fails, the layers that it did
    not reach stay as they are, and the next call fails alike."""
    waiting = [layer for layer in module.modules() if _is_waiting(layer)]
    if not waiting:
        return
    with suppress(Exception):
        call()
    for layer in waiting:
        _without_elements(layer)
    _first_called.update(layer for layer in waiting if not _is_waiting(layer))


def _is_waiting(layer: torch.nn.Module) -> bool:
    return any(map(is_lazy, chain(layer._parameters.values(), layer._buffers.values())))


def _without_elements(layer: torch.nn.Module) -> None:
    """What became a tensor becomes a fake one."""
    for name, parameter in layer._parameters.items():
        if parameter is not None and not is_lazy(parameter) and not isinstance(parameter, FakeTensor):
            fake = torch.empty_like(parameter)
            layer._parameters[name] = torch.nn.Parameter(fake, parameter.requires_grad)
    for name, buffer in layer._buffers.items():
        if buffer is not None and not is_lazy(buffer) and not isinstance(buffer, FakeTensor):
            layer._buffers[name] = torch.empty_like(buffer)


def was_called(text: str, module: torch.nn.Module) -> list[str]:
    """The condition that the module called ``text`` has all its sizes; none where it was built with them."""
    if not any(layer in _first_called for layer in module.modules()):
        return []
    return [f"not any(map(torch.nn.parameter.is_lazy, [*{text}.parameters(), *{text}.buffers()]))"]
