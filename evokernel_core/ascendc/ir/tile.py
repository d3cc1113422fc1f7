"""One tile of a kernel for given sizes: every node with how often it is met and the values around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

from evokernel_core.ascendc.ir.nodes import For, Kernel, Let, Node, Section


@frozen
class Met:
    """A node of a tile. ``times``: how often the loops inside the tile come to it; ``values``: of symbols,
    local constants and loop variables; ``inside``: whether it belongs to the tiles, not to the setup."""

    node: Node
    times: int
    values: Mapping[str, int]
    inside: bool


def nodes_of_tile(kernel: Kernel, sizes: Mapping[str, int], tile: int = 0, turn: int = 0) -> Iterator[Met]:
    """The nodes for tile number ``tile``, in the first turn (or another one) of the loops inside it."""
    values = dict(sizes)
    yield from _met(kernel.body, 1, values, (tile, turn), inside=False)


def _met(
    nodes: tuple[Node, ...], times: int, values: dict[str, int], here: tuple[int, int], *, inside: bool
) -> Iterator[Met]:
    for node in nodes:
        yield Met(node, times, dict(values), inside)
        match node:
            case Let():
                values[node.var.name] = node.value.evaluate(values)
            case Section():
                yield from _met(node.body, times, values, here, inside=inside)
            case For(cores=True):
                values[node.var.name] = here[0]
                yield from _met(node.body, times, values, here, inside=True)
            case For():
                values[node.var.name] = here[1]
                yield from _met(node.body, times * node.end.evaluate(values), values, here, inside=inside)
