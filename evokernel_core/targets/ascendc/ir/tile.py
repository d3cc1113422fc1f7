"""One tile of a kernel for given sizes: every node with how often it is met and the values around it.

Schedules are chosen by walking every candidate's nodes, so a walk visits nothing that a tile does not do, and
keeps one table of values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping
from functools import lru_cache

from attrs import define

from evokernel_core.targets.ascendc.ir.cube import Fetch
from evokernel_core.targets.ascendc.ir.expr import (
    CORES,
    FIRST_OF_CORE,
    LAST_OF_CORE,
    Expr,
    Int,
    Param,
    Var,
    compared,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Assign,
    Atomic,
    For,
    Get,
    If,
    Instruction,
    Kernel,
    Let,
    Node,
    Require,
    Section,
    Work,
    expressions_of,
    flat,
)

_SAMPLES = 5
_GOLDEN = 0.6180339887
"""Multiples of it are spread evenly and meet no period of the tiles."""

Visit = Callable[[Node, float, Mapping[str, int], bool], None]
"""What is done with a node that a tile comes to: how often its loops do (more than 0), the values of symbols,
tiling fields, local constants and loop variables there, valid until it returns, and whether it belongs to the
tiles, not to the setup."""


def samples(kernel: Kernel, known: Mapping[str, int]) -> tuple[int, ...]:
    """Numbers of tiles that stand for all: the first where all do the same work but for the last one, else
    some that are spread over them."""
    tiles = kernel.tiles.end.evaluate(known)
    if kernel.tiles.even or id(kernel.tiles) not in uneven_loops(kernel):
        return (0,)
    if tiles <= _SAMPLES:
        return tuple(range(tiles))
    return tuple(int((0.5 + place * _GOLDEN) % 1 * tiles) for place in range(_SAMPLES))


@lru_cache(maxsize=64)
def uneven_loops(kernel: Kernel) -> frozenset[int]:
    """The loops whose turns differ in more than how much they copy and compute at a time, by identity."""
    return frozenset(
        id(node) for node in kernel.nodes if isinstance(node, For) and _work_depends_on_turn(node)
    )


def _work_depends_on_turn(loop: For) -> bool:
    """Whether loops and choices inside a loop depend on its variable."""
    known = {loop.var}
    for node in flat(loop.body):
        if isinstance(node, Let) and known & _variables(node.value):
            known.add(node.var)
        elif isinstance(node, If) and node.share != Int(1):
            continue
        elif isinstance(node, (For, If)) and any(known & _variables(child) for child in expressions_of(node)):
            return True
    return False


def _variables(expr: Expr) -> set[Var]:
    return {part for part in expr.walk() if isinstance(part, Var)}


@define
class _TileWalk:
    """``tile``: the number of the tile; ``turn``: see ``walk``. ``values`` change as the walk goes on; names
    that two loops give to their constants are given anew by each."""

    visit: Visit
    values: MutableMapping[str, int]
    tile: int
    turn: int
    without: frozenset[int]
    uneven: frozenset[int]

    def go(self, nodes: tuple[Node, ...], times: float, inside: bool) -> None:
        values = self.values
        for node in nodes:
            if id(node) in self.without:
                continue
            self.visit(node, times, values, inside)
            if isinstance(node, Instruction):
                for told in node.told:
                    values[told.state.name] = told.likely.evaluate(values)
            elif isinstance(node, Assign):
                values[node.state.name] = node.value.evaluate(values)
            elif isinstance(node, Let):
                values[node.var.name] = node.value.evaluate(values)
            elif isinstance(node, For):
                self._turns(node, times, inside)
            elif isinstance(node, Get):
                values[node.var.name] = node.likely.evaluate(values)
            elif isinstance(node, (Section, Atomic, Work)):
                for body in node.bodies:
                    self.go(body, times, inside)
            elif isinstance(node, If) and node.share != Int(1):
                mean = times / node.share.evaluate(values)
                then = mean if node.even else _most_often(times, mean)
                self.go(node.then, then, inside)
                self.go(node.otherwise, times - then, inside)
            elif isinstance(node, If):
                self.go(node.then if node.holds(values) else node.otherwise, times, inside)

    def _turns(self, node: For, times: float, inside: bool) -> None:
        name, values = node.var.name, self.values
        if node.cores:
            values[name] = values[FIRST_OF_CORE.name] = self.tile
            values[LAST_OF_CORE.name] = self.tile + 1
            self.go(node.body, times, True)
            return
        turns = node.end.evaluate(values)
        last = turns - 1 - self.turn
        met, uneven = [(turns - 1, self.turn), (1, last)], self.uneven
        if node.each:
            met = [(1, place) for place in range(turns)]
        elif turns > 2 and id(node) in uneven:
            met = [(1, self.turn), (turns - 2, 1), (1, last)]
            self.uneven = frozenset()  # loops in it are met in two ways, so that a walk stays short
        for number, place in met:
            if number > 0 and turns > 0:
                values[name] = place
                self.go(node.body, times * number, inside)
        self.uneven = uneven


def _most_often(times: float, mean: float) -> float:
    """How often the unluckiest of many cores comes to what happens ``mean`` times on average."""
    return min(times, mean + 2 * math.sqrt(mean))


def known_values(
    kernel: Kernel, sizes: Mapping[str, int], cores: int
) -> tuple[dict[str, int], Require | None]:
    """The values of symbols and of the tiling's fields, which all tiles share, on a chip with so many cores;
    and the first requirement that they do not meet, before which the fields end."""
    values = {**sizes, CORES: cores}
    for param in kernel.params:
        if isinstance(param, Param):
            values[param.key] = param.evaluate(values)
        elif isinstance(param, Require) and not compared(param.left, param.sign, param.right, values):
            return values, param
    return values, None


def walk(
    kernel: Kernel,
    known: Mapping[str, int],
    visit: Visit,
    tile: int = 0,
    turn: int = 0,
    *,
    without: frozenset[int] = frozenset(),
) -> None:
    """Visits the nodes that tile number ``tile`` comes to, in order. A loop inside it is met as its first
    turns, all but one, and as its last one, which may be shorter, or as a first, a second for all between and
    a last where turns differ otherwise; ``turn``: as if the first and the last came so many turns later or
    earlier. ``without``: nodes that are not visited, by identity. What is fetched is in its last stage."""
    stages = {node.stage.name: node.buffer.stages - 1 for node in kernel.nodes if isinstance(node, Fetch)}
    _TileWalk(visit, {**known, **stages}, tile, turn, without, uneven_loops(kernel)).go(kernel.body, 1, False)
