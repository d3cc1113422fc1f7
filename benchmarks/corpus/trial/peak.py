"""How much memory a program's tensors take at most, whatever device they are on."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class Peak(TorchDispatchMode):
    """Counts the bytes of all storages that operations made inside and that are still alive, after each one.
    What an operation needs within itself is not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        given = {item.untyped_storage()._cdata for item in _tensors((args, kwargs))}
        for tensor in _tensors(results):
            storage = tensor.untyped_storage()
            if storage._cdata not in given:
                reference = StorageWeakRef(storage)
                self._alive[reference.cdata] = (reference, storage.nbytes())
        self._alive = {key: item for key, item in self._alive.items() if not item[0].expired()}
        self.bytes = max(self.bytes, sum(size for _, size in self._alive.values()))
        return results


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [
        item
        for item in pytree.tree_leaves(tree)
        if isinstance(item, torch.Tensor) and item.layout is torch.strided
    ]
