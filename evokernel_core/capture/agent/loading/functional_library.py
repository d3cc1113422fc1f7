"""Functions of PyTorch that write in place on a CPU, said without: a region of one line may hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..decompositions import compositions

_WITHOUT_WRITES: dict[Any, Callable[..., torch.Tensor]] = {
    torch.rms_norm: compositions.rms_norm,
    torch.nn.functional.rms_norm: compositions.rms_norm,
}


class WithoutWrites(TorchFunctionMode):
    """While it is on, such a function is called in its other form."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return _WITHOUT_WRITES.get(func, func)(*args, **(kwargs or {}))
