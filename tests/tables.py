"""Tables of which make test takes the rows that differ in their path, and make thorough the rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def few(
    names: str | tuple[str, ...], rows: Iterable[Any], *, keep: tuple[int, ...], **options: Any
) -> pytest.MarkDecorator:
    """``pytest.mark.parametrize``, in which all rows but those at the places ``keep`` are thorough: they take
    the same paths with other numbers. Raises AssertionError for a place that the table does not have."""
    several = not isinstance(names, str) or "," in names
    table = list(rows)
    assert set(keep) < set(range(len(table))), f"{keep} are not some of {len(table)} rows"
    found = [
        pytest.param(*(row if several else (row,)), marks=() if place in keep else (pytest.mark.thorough,))
        for place, row in enumerate(table)
    ]
    return pytest.mark.parametrize(names, found, **options)
