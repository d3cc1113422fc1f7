"""One call that exercises a file's functions, and why another could not be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..loading.lazy_modules import first_called
from ..sentence import Sentence


@dataclass(frozen=True)
class Trial:
    """``what`` names the call for messages; an ``observed`` one was not asked for in the file, so that its
    failure costs nothing but itself."""

    what: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    observed: bool = False

    def run(self) -> None:
        self.function(*self.args, **self.kwargs)


@dataclass(frozen=True)
class CallProblem:
    """Why a definition that something is known of could not be called."""

    symbol: str
    reason: str
    message: Sentence

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {"symbol": self.symbol, "reason": self.reason, "message": self.message.data()}


def trial_of(
    what: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, observed: bool = False
) -> Trial:
    """A call of a module or function; lazy layers learn their sizes from a first one."""
    trial = Trial(what, target, *distinct(args, kwargs), observed)
    if isinstance(target, torch.nn.Module):
        first_called(target, trial.run)
    return trial


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
