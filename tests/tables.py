"""Tables and draws of which make test takes what differs in its path, and make thorough the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings


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


def drawn(
    check: Callable[..., None], few: int, many: int, *, derandomize: bool = False, **strategies: Any
) -> tuple[Any, Any]:
    """Two tests of one property: a ``few`` examples that make test draws, and ``many`` for make thorough."""
    slow = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
    tests = [
        settings(max_examples=count, deadline=None, derandomize=derandomize, suppress_health_check=slow)(
            given(**strategies)(check)
        )
        for count in (few, many)
    ]
    return tests[0], pytest.mark.thorough(tests[1])
