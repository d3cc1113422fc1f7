"""Features of an experience as the file keeps them."""

from __future__ import annotations

import json

from evokernel_core.memory.packed import unpacked

_MOST = 1e100
"""Features are counts and logarithms; squares of larger ones would be infinite."""


def features_of(kept: object) -> dict[str, float]:
    """Raises ValueError or TypeError for what are none."""
    data: dict[str, float] = json.loads(unpacked(kept))
    if not isinstance(data, dict) or not all(_is_number(value) for value in data.values()):
        raise TypeError("features")
    return data


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _MOST
