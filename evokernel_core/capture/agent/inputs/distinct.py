"""Arguments that are one tensor each: ``(c, c)`` for cosines and sines must not make one of the other."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree


def distinct(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with a new tensor in each place after the first that held the same one."""
    seen: set[int] = set()

    def own(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) not in seen:
            seen.add(id(value))
            return value
        made = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)
        return made.requires_grad_(value.requires_grad)

    flat, spec = pytree.tree_flatten((args, kwargs))
    result: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(
        [own(element) for element in flat], spec
    )
    return result
