"""Let small tensors of known content be real while a model is built.

Constructors read such values: ``[p.item() for p in torch.linspace(0, 0.1, depth)]``. Random tensors stay
fake unless asked for, and so does everything that is large.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

from ..torch_compat import tensors_among

_MOST_ELEMENTS = 4096


_SCALAR_READS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)


class SmallTensors(TorchDispatchMode):
    """To be entered inside a FakeTensorMode. With ``draws`` small random tensors are real too."""

    def __init__(self, *, draws: bool = False) -> None:
        super().__init__()
        self._draws = draws
        self._unknown: list[Any] = []  # storages of real tensors that fake values were written to

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = tensors_among((args, kwargs))
        if self._is_known(func, tensors):
            return _run(func, args, kwargs, tensors)
        if func._schema.is_mutable:
            self._unknown += [
                tensor.untyped_storage() for tensor in tensors if not isinstance(tensor, FakeTensor)
            ]
        return func(*args, **kwargs)

    def _is_known(self, func: Any, tensors: list[torch.Tensor]) -> bool:
        random = torch.Tag.nondeterministic_seeded in func.tags or "empty" in func.name()
        if random and not self._draws:
            return False
        if any(isinstance(tensor, FakeTensor) for tensor in tensors):
            return False
        unknown = {storage._cdata for storage in self._unknown}
        return not unknown or not any(tensor.untyped_storage()._cdata in unknown for tensor in tensors)


def _run(func: Any, args: Any, kwargs: Any, tensors: list[torch.Tensor]) -> Any:
    """The real result if it is small, else the fake one."""
    if not func._schema.is_mutable and func not in _SCALAR_READS:
        fake = func(*args, **kwargs)
        if any(tensor.numel() > _MOST_ELEMENTS for tensor in [*tensors_among(fake), *tensors]):
            return fake
    with unset_fake_temporarily():
        return func(*args, **kwargs)
