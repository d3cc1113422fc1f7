"""Which tile tensors lie in the other half of the bank groups.

A vector instruction that reads two tensors from the same bank group takes twice as long. Tile sizes
are multiples of 512 bytes, one turn over the 16 groups of 32 bytes; a shift by half a turn keeps
two tensors apart. Each tensor gets one of the two halves so that few instructions read one twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram

SHIFT_BYTES = 256
_MOST_EXACT = 12
"""Tensors up to which every assignment is tried."""

Conflicts = Mapping[frozenset[str], int]


def conflicts(programs: Iterable[TileProgram]) -> Conflicts:
    """How many instructions read each pair of tile tensors together."""
    counter: Counter[frozenset[str]] = Counter()
    for program in programs:
        for statement in program.body:
            names = {program.registers.name(s) for s in statement.sources if s.domain is Domain.FULL}
            if len(names) == 2 and len(statement.sources) == 2:
                counter[frozenset(names)] += 1
    return counter


def shifted(pairs: Conflicts, movable: Iterable[str]) -> frozenset[str]:
    """The tensors to shift by half a turn; only ``movable`` ones may be."""
    names = sorted({name for pair in pairs for name in pair} & set(movable))
    if len(names) <= _MOST_EXACT:
        return _exact(frozenset(pairs.items()), tuple(names))
    return _greedy(pairs, names)


@lru_cache(maxsize=1024)
def _exact(counted: frozenset[tuple[frozenset[str], int]], names: tuple[str, ...]) -> frozenset[str]:
    """The best of all assignments, once for kernels of the same instructions whose tiles differ."""
    pairs = dict(counted)
    choices = (frozenset(n for i, n in enumerate(names) if bits >> i & 1) for bits in range(2 ** len(names)))
    return min(choices, key=lambda chosen: (_cost(pairs, chosen), len(chosen), sorted(chosen)))


def _greedy(pairs: Conflicts, names: list[str]) -> frozenset[str]:
    chosen: frozenset[str] = frozenset()
    for name in sorted(names, key=lambda name: -sum(n for pair, n in pairs.items() if name in pair)):
        chosen = min(chosen, chosen | {name}, key=lambda option: _cost(pairs, option))
    return chosen


def _cost(pairs: Conflicts, chosen: frozenset[str]) -> int:
    """Instructions whose two sources stay in the same half."""
    return sum(count for pair, count in pairs.items() if len(pair & chosen) != 1)
