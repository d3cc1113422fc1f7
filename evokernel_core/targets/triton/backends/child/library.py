"""Stages that PyTorch's own libraries compute, of the operations that kernels may call, and of no other."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def _operations() -> frozenset[str]:
    """Those of ``targets/triton/library.py``, which imports nothing."""
    path = Path(__file__).resolve().parents[2] / "library.py"
    spec = importlib.util.spec_from_file_location("evokernel_triton_operations", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    operations: frozenset[str] = module.OPERATIONS
    return operations


class LibraryStage:
    """An operation with its arguments: tensors as ``{"tensor", "dtype", "shape", "strides"}``, else numbers.
    Its result is a new tensor, which stands for ``result`` from then on."""

    def __init__(self, torch: Any, about: Mapping[str, Any]) -> None:
        """Raises ValueError for an operation that is not on the list."""
        if about["op"] not in _operations():
            raise ValueError(f"{about['op']} is no operation that a kernel may call")
        self._torch, self._about = torch, about
        self._operation = torch.ops
        for part in about["op"].split("."):
            self._operation = getattr(self._operation, part)

    def run(self, results: Any) -> None:
        """Calls it; ``results.tensor(name)`` has a tensor's bytes, ``results.put`` takes the new one. Raises
        torch's errors, and ValueError for a result of another shape than was said."""
        arguments = [self._given(argument, results) for argument in self._about["arguments"]]
        made = self._operation(*arguments)
        if list(made.shape) != list(self._about["shape"]):
            raise ValueError(f"{self._about['op']} made {tuple(made.shape)} of {self._about['result']}")
        results.put(self._about["result"], made.contiguous())

    def _given(self, argument: Any, results: Any) -> Any:
        if not isinstance(argument, Mapping):
            return argument
        elements = results.tensor(argument["tensor"]).view(getattr(self._torch, argument["dtype"]))
        shape, strides = argument["shape"], argument["strides"]
        if reach(shape, strides) > elements.numel():
            raise ValueError(f"{self._about['op']} reads beyond {argument['tensor']}")
        return elements.as_strided(shape, strides, elements.storage_offset())


def reach(shape: list[int], strides: list[int]) -> int:
    """Elements of memory from the first to the last that a strided tensor has, both counted; 0 for none."""
    if not all(shape):
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
