"""The code of a region as a function of tensors, which runs as it stands or is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..regions.parts import Leaf

Place = tuple[int, int, tuple[tuple[str, tuple[Any, ...]], ...]]
KEY = "subject"
"""Where a region holds its subject until the request that captured it ends."""


@dataclass(frozen=True)
class Subject:
    """``call`` takes one value for each of ``leaves``, in their order; ``specs`` are those of the values,
    with names for sizes that may vary. ``places`` have a position among the flat results of the call, the
    number of the graph's output that is computed for it, and the views (method and arguments) that the call
    gives of that output, which is contiguous; ``copies`` are pairs of the numbers of an
    input that becomes a copy of another one, which is no work of the graph's, and of that one."""

    call: Callable[..., Any]
    leaves: tuple[Leaf, ...]
    specs: tuple[dict[str, Any], ...]
    places: tuple[Place, ...]
    copies: tuple[tuple[int, int], ...] = ()


def taken_out(regions: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Subject]]:
    """The regions that have a subject, with it; none holds it any more, so that all are JSON."""
    return [(region, region.pop(KEY)) for region in regions if KEY in region]
