"""Which values the arguments of a graph's nodes name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def names_in(data: Any) -> Iterator[str]:
    """The names of inputs and nodes in an argument, however deep in lists, in their order."""
    if isinstance(data, (list, tuple)):
        for element in data:
            yield from names_in(element)
    elif isinstance(data, dict) and "ref" in data:
        yield data["ref"]
