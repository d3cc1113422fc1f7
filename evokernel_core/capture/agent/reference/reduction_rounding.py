"""How much of the long sums of a graph is left in what is computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..graph.names import refs_in
from . import precision

_MOST_LOST = 0.5
"""Values smaller than this share of a sum hide how much its rounding weighs."""
SHALLOW = 8
"""Long sums in a graph through which a rounding passes without growing by much."""


class LongSums:
    """The long sums of one run of a graph. ``note`` is called after each node, in the graph's order."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        self._jumps = precision.jumps(dict(graph))
        self._before = _sums_before(graph["nodes"])
        self.clear()

    def clear(self) -> None:
        """Forget a run that did not end."""
        self._sizes: list[float] = []
        self._lost = False

    def __bool__(self) -> bool:
        return bool(self._sizes)

    def note(self, op: str, args: list[Any], _kwargs: dict[str, Any], result: Any) -> Any:
        """Takes note of the node if it is a long sum, and gives its result back."""
        if op in precision.SUMS:
            before = self._before[len(self._sizes)]
            if before:
                self._lost |= self._hidden(args[:2], before)
            self._sizes.append(precision.size_of_sums(op, args, result))
        return result

    def _hidden(self, factors: Sequence[Any], before: Mapping[int, frozenset[int]]) -> bool:
        """Whether a factor is much smaller than a sum it comes from: a difference, or a value within bounds,
        whose rounding is as large as that of the sum and grows again with the next sum."""
        return any(
            precision.magnitude(factors[place]) < _MOST_LOST * max(self._sizes[number] for number in numbers)
            for place, numbers in before.items()
        )

    def weigh(self, results: Sequence[torch.Tensor]) -> bool:
        """Whether the rounding of these sums may weigh more in the results than their own: they, or factors
        of later sums, are smaller than sums that they come from, many sums follow each other, or the last bit
        of one decides where something goes."""
        if not self._sizes:
            return False
        least = min((precision.magnitude(value) for value in results), default=0.0)
        hidden = least < _MOST_LOST * max(self._sizes)
        return hidden or self._lost or self._jumps or len(self._sizes) > SHALLOW


def _sums_before(nodes: Sequence[Mapping[str, Any]]) -> list[dict[int, frozenset[int]]]:
    """For each long sum, the numbers of the earlier ones that its first two arguments come from, by argument;
    those that come from none are left out."""
    result: list[dict[int, frozenset[int]]] = []
    known: dict[str, frozenset[int]] = {}
    for node in nodes:
        by_place = [_union(known, argument) for argument in node["args"]]
        known[node["name"]] = _union(known, [node["args"], node["kwargs"]])
        if node["op"] in precision.SUMS:
            known[node["name"]] |= {len(result)}
            result.append({place: numbers for place, numbers in enumerate(by_place[:2]) if numbers})
    return result


def _union(known: Mapping[str, frozenset[int]], data: Any) -> frozenset[int]:
    """What is known of the nodes that an argument names."""
    return frozenset().union(*(known.get(name, frozenset()) for name in refs_in(data)))
