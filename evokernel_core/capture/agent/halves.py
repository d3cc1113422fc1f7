"""Operations that PyTorch's kernels for a CPU lack in half types, though those for devices have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

_LACKS = ("not implemented for 'Half'", "not implemented for 'BFloat16'")
_HALF = (torch.float16, torch.bfloat16)


def computed(operator: Callable[..., Any]) -> Callable[..., Any]:
    """The operator; where it is not implemented for half types, computed in float32 and rounded once, as
    kernels of devices do."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        try:
            return operator(*args, **kwargs)
        except NotImplementedError as error:
            if not any(words in str(error) for words in _LACKS):
                raise
        return _in_float32(operator, args, kwargs)

    return compute


def _in_float32(operator: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    narrow: list[torch.dtype] = []

    def widened(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype not in _HALF:
            return tensor
        narrow.append(tensor.dtype)
        return tensor.float()

    wide_args, wide_kwargs = tree_map_only(torch.Tensor, widened, (args, kwargs))
    result = operator(*wide_args, **wide_kwargs)
    return tree_map_only(
        torch.Tensor, lambda found: found.to(narrow[0]) if found.dtype == torch.float32 else found, result
    )
