"""One tile of a kernel for given sizes: every node with how often it is met and the values around it.

Schedules are chosen by walking every candidate's nodes, so a walk visits nothing that a tile does not do, and
keeps one table of values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping

from attrs import frozen

from evokernel_core.ascendc.ir.expr import Expr, Param, Var
from evokernel_core.ascendc.ir.nodes import For, If, Kernel, Let, Node, Section, expressions_of

_SAMPLES = 5
_GOLDEN = 0.6180339887
"""Multiples of it are spread evenly and meet no period of the tiles."""

Visit = Callable[[Node, int, Mapping[str, int], bool], None]
"""What is done with a node that a tile comes to: how often its loops do (more than 0), the values of symbols,
tiling fields, local constants and loop variables there, valid until it returns, and whether it belongs to the
tiles, not to the setup."""


def samples(kernel: Kernel, known: Mapping[str, int]) -> tuple[int, ...]:
    """Numbers of tiles that stand for all: the first where all do the same work but for the last one, else
    some that are spread over them."""
    tiles = kernel.tiles.end.evaluate(known)
    if not _work_depends_on_tile(kernel):
        return (0,)
    if tiles <= _SAMPLES:
        return tuple(range(tiles))
    return tuple(int((0.5 + place * _GOLDEN) % 1 * tiles) for place in range(_SAMPLES))


def _work_depends_on_tile(kernel: Kernel) -> bool:
    """Whether loops and choices inside a tile depend on its number."""
    known = {kernel.tiles.var}
    for node in kernel.nodes:
        if isinstance(node, Let) and known & _variables(node.value):
            known.add(node.var)
        elif isinstance(node, (For, If)) and any(known & _variables(item) for item in expressions_of(node)):
            return True
    return False


def _variables(item: Expr) -> set[Var]:
    return {part for part in item.walk() if isinstance(part, Var)}


@frozen
class _Walk:
    """``tile``: the number of the tile; ``turn``: see ``walk``. ``values`` change as the walk goes on; names
    that two loops give to their constants are given anew by each."""

    visit: Visit
    values: MutableMapping[str, int]
    tile: int
    turn: int
    without: frozenset[int]

    def go(self, nodes: tuple[Node, ...], times: int, inside: bool) -> None:
        values = self.values
        for node in nodes:
            if id(node) in self.without:
                continue
            self.visit(node, times, values, inside)
            if isinstance(node, Let):
                values[node.var.name] = node.value.evaluate(values)
            elif isinstance(node, For):
                self._turns(node, times, inside)
            elif isinstance(node, Section):
                self.go(node.body, times, inside)
            elif isinstance(node, If):
                self.go(node.then if node.holds(values) else node.otherwise, times, inside)

    def _turns(self, node: For, times: int, inside: bool) -> None:
        name, values = node.var.name, self.values
        if node.cores:
            values[name] = self.tile
            self.go(node.body, times, True)
            return
        turns = node.end.evaluate(values)
        for number, place in ((turns - 1, self.turn), (1, turns - 1 - self.turn)):
            if number > 0 and turns > 0:
                values[name] = place
                self.go(node.body, times * number, inside)


def known_values(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """The values of symbols and of the tiling's fields, which all tiles share."""
    values = dict(sizes)
    for item in kernel.params:
        if isinstance(item, Param):
            values[item.key] = item.evaluate(values)
    return values


def walk(
    nodes: tuple[Node, ...],
    known: Mapping[str, int],
    visit: Visit,
    tile: int = 0,
    turn: int = 0,
    *,
    without: frozenset[int] = frozenset(),
) -> None:
    """Visits the nodes that tile number ``tile`` comes to, in order. A loop inside it is met as its first
    turns, all but one, and as its last one, which may be shorter; ``turn``: as if each of the two came so
    many turns later or earlier. ``without``: nodes that are not visited, by their identity."""
    _Walk(visit, dict(known), tile, turn, without).go(nodes, 1, False)
