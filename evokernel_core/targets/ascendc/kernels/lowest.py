"""The cheapest of many candidates that come in groups, without a look at groups that cannot hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

G = TypeVar("G")
T = TypeVar("T")

_ROUNDED = 1 - 1e-9
"""Bounds are compared as this part of what they are: their sums are rounded in another order than costs."""


def lowest(
    groups: Iterable[G],
    at_least: Callable[[G], float],
    items: Callable[[G], Iterable[T]],
    cost: Callable[[T], float],
) -> T | None:
    """The item of the lowest cost, the first of several: what ``min`` over the items of all groups gives.

    ``at_least`` is what no item of a group costs less than. None where there is no item.
    """
    bounds = [(at_least(group), place, group) for place, group in enumerate(groups)]
    result: list[tuple[float, int, T]] = []
    for bound, place, group in sorted(bounds, key=lambda entry: entry[:2]):
        if result and bound * _ROUNDED > result[0][0]:
            break
        best = min(((cost(item), item) for item in items(group)), key=lambda pair: pair[0], default=None)
        if best is not None:
            result = [min([*result, (best[0], place, best[1])], key=lambda entry: entry[:2])]
    return result[0][2] if result else None
