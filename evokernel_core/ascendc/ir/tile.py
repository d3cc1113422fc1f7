"""One tile of a kernel for given sizes: every node with how often it is met and the values around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from evokernel_core.ascendc.ir.expr import Expr, Param, Var
from evokernel_core.ascendc.ir.nodes import For, If, Kernel, Let, Node, Section, expressions_of

_SAMPLES = 5
_GOLDEN = 0.6180339887
"""Multiples of it are spread evenly and meet no period of the tiles."""


@frozen
class Met:
    """A node of a tile. ``times``: how often the loops inside the tile come to it; ``values``: of symbols,
    local constants and loop variables; ``inside``: whether it belongs to the tiles, not to the setup."""

    node: Node
    times: int
    values: Mapping[str, int]
    inside: bool


def samples(kernel: Kernel, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """Numbers of tiles that stand for all: the first where all do the same work but for the last one, else
    some that are spread over them."""
    tiles = kernel.tiles.end.evaluate(sizes)
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


def nodes_of_tile(kernel: Kernel, sizes: Mapping[str, int], tile: int = 0, turn: int = 0) -> Iterator[Met]:
    """The nodes for tile number ``tile``. A loop inside it is met as its first turns, all but one, and as its
    last one, which may be shorter; ``turn``: as if each of the two came so many turns later or earlier."""
    values = dict(sizes)
    for item in kernel.params:
        if isinstance(item, Param):
            values[item.key] = item.evaluate(values)
    yield from _met(kernel.body, 1, values, (tile, turn), inside=False)


def _met(
    nodes: tuple[Node, ...], times: int, values: Mapping[str, int], here: tuple[int, int], *, inside: bool
) -> Iterator[Met]:
    for node in nodes:
        yield Met(node, times, values, inside)
        match node:
            case Let():
                values = {**values, node.var.name: node.value.evaluate(values)}
            case Section():
                yield from _met(node.body, times, values, here, inside=inside)
            case If():
                holds = node.holds(values)
                for taken, body in zip((holds, not holds), node.bodies, strict=True):
                    yield from _met(body, times if taken else 0, values, here, inside=inside)
            case For(cores=True):
                inner = {**values, node.var.name: here[0]}
                yield from _met(node.body, times, inner, here, inside=True)
            case For():
                turns, turn = node.end.evaluate(values), here[1]
                for number, place in ((turns - 1, turn), (1, turns - 1 - turn)):
                    inner = {**values, node.var.name: place}
                    met = times * number if turns > 0 else 0
                    yield from _met(node.body, met, inner, here, inside=inside)
