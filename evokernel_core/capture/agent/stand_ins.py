"""Functions of ours that a capture puts in the place of others: what a program has there."""

from __future__ import annotations

import types
from typing import Any

_STANDS_FOR = "__evokernel_stands_for__"


def stands_for(value: Any, other: Any) -> None:
    """Note what a function takes the place of; the first one counts, where places are taken twice."""
    if isinstance(value, types.FunctionType) and other is not value:
        vars(value).setdefault(_STANDS_FOR, other)


def stood_for(value: Any) -> Any:
    """What a program has where a capture has a function of ours; anything else is itself."""
    return getattr(value, _STANDS_FOR, value)
