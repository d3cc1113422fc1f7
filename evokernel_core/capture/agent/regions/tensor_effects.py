"""What a call does besides computing tensors: a kernel's call does none of it."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..errors import Refused
from ..sentence import Sentence

Seen = dict[str, Any]
"""What a program sees of a tensor besides its values, by the name of the attribute."""
Warned = tuple[str, str]
"""The name of a warning's category, which Python has, and its text."""
_OF_TORCH = Path(torch.__file__).parent
_LONGEST = 160
"""Characters of a warning that are shown."""


def seen(tensor: torch.Tensor) -> Seen:
    """The sizes and the memory of a tensor, its gradient, and the attributes that were put on it."""
    return {
        "shape": (tensor.shape, tensor.stride(), tensor.storage_offset()),
        "data": tensor.untyped_storage()._cdata,
        "requires_grad": tensor.requires_grad,
        "grad": id(tensor.grad) if tensor.is_leaf else None,
        **{name: id(value) for name, value in vars(tensor).items()},
    }


class _WithoutText(TorchFunctionMode):
    """Refuses to turn a tensor into text, which would tell its values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("__repr__", "__format__"):
            raise Refused(
                "It turns a tensor into text, which a kernel's call would not: do that outside of it."
            )
        return func(*args, **(kwargs or {}))


@contextmanager
def watched() -> Iterator[list[Warned]]:
    """In the end the list has what PyTorch's Python code warned of inside, which a kernel's call can say as
    well. Raises Refused where the user's code or a library warns, or a tensor is turned into text."""
    repeated: list[Warned] = []
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else a warning may be told only to whom asks first in this process
    try:
        with warnings.catch_warnings(record=True) as told, _WithoutText():
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # when it comes depends on the garbage collector
            yield repeated
    finally:
        torch.set_warn_always(before)
    for message in told:
        if not _is_repeatable(message):
            raise Refused(warning_of(message.message))
        repeated.append((message.category.__name__, str(message.message)))


def _is_repeatable(message: warnings.WarningMessage) -> bool:
    """Whether PyTorch's Python code warned: its compiled code does so at a line of the user's."""
    known = getattr(builtins, message.category.__name__, None) is message.category
    return known and _OF_TORCH in Path(message.filename).parents


def warning_of(message: Warning | str) -> Sentence:
    """The reason for what warns."""
    text = " ".join(str(message).split())
    return Sentence(
        "It warns, which a kernel's call would not: {text}",
        text=text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}...",
    )


def check_effects(
    given: Iterable[tuple[str, torch.Tensor, Seen]], results: Iterable[Any], plain: Mapping[str, Any]
) -> None:
    """Raises Refused where a call has changed what is seen of a tensor that it was given, or has put
    something on one of its results. ``given`` are tensors with their texts and what was seen before,
    ``plain`` is what there is to see of a new tensor."""
    own, memory = set(), set()
    for text, tensor, before in given:
        own.add(id(tensor))
        memory.add(tensor.untyped_storage()._cdata)
        after = seen(tensor)
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                _refuse(name, text)
    for result in results:
        if isinstance(result, torch.Tensor) and id(result) not in own:
            # a fake view takes over that its base wants gradients, which a real one does not here
            if result.requires_grad and result.untyped_storage()._cdata not in memory:
                _refuse("requires_grad", "a result")
            for name in sorted(vars(result).keys() - plain.keys()):
                _refuse(name, "a result")


def _refuse(attribute: str, owner: str) -> None:
    raise Refused(
        "It sets {attribute} of {owner}, which a kernel's call would not: set it outside.",
        attribute=attribute,
        owner=owner,
    )
