"""How the units of a cube core hand buffers to each other: where each is filled and where it is used.

Panels in L1 are loaded for as many turns of the loops around them as they have stages, while those of a turn
are multiplied, and what is kept there when its key changes; steps in L0A and L0B are loaded and multiplied in
one body; a sum in L0C is handed to Fixpipe by its node. Where vector cores make of a turn's results what the
rest of the turn reads, results are computed for as many turns as the rings between the cores have places;
panels are loaded and multiplied in one body then, as steps are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from evokernel_core.targets.ascendc.ir.cube import Fixpipe, Keep, Nd2Nz, Reach
from evokernel_core.targets.ascendc.ir.expr import Condition
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Memory,
    Node,
    Ring,
    Role,
    accesses,
    flat,
)

L1 = frozenset({Memory.L1})
L0 = frozenset({Memory.L0A, Memory.L0B})
UNITS = {Memory.L1: ("MTE2", "MTE1"), Memory.L0A: ("MTE1", "M"), Memory.L0B: ("MTE1", "M"),
         Memory.L0C: ("M", "FIX")}  # fmt: skip
"""For each memory the unit that fills it and the one that empties it."""


@frozen
class Stream:
    """The turns of a cube core's loops, as one run: those of ``panels`` for each of ``tiles``, every one of
    which has one at least; where a condition ``only`` stands around them, those tiles for which it holds have
    any. ``shared`` and ``own`` are their local constants, ``loads`` fill L1, ``uses`` take what it holds; or
    ``loads`` make what vector cores take, ``uses`` take what they make of it, through ``rings`` of turns."""

    tiles: For
    only: Condition | None
    shared: tuple[Let, ...]
    panels: For
    own: tuple[Let, ...]
    loads: tuple[Node, ...]
    uses: tuple[Node, ...]
    rings: tuple[Ring, ...] = ()


def stream_of(kernel: Kernel) -> Stream | None:
    """The run of a kernel's turns; None where its loops are no such run."""
    tiles = kernel.tiles
    shared, inner = _behind_constants(tiles.body)
    only = None
    if len(inner) == 1 and isinstance(inner[0], If) and not inner[0].otherwise and tiles.apart is None:
        only = Condition(inner[0].left, inner[0].sign, inner[0].right)
        more, inner = _behind_constants(inner[0].then)
        shared += more
    if len(inner) != 1 or not isinstance(inner[0], For):
        return None
    panels = inner[0]
    own, nodes = _behind_constants(panels.body)
    rings = tuple(ring for ring in kernel.rings if ring.of_turns)
    if rings:
        back = [bool(rings_of((node,), Role.INPUT)) for node in nodes]
        if not any(back[1:]) or back[0] or len({ring.places for ring in rings}) > 1:
            return None
        count = back.index(True)
        return Stream(tiles, only, shared, panels, own, nodes[:count], nodes[count:], rings)
    filling = [isinstance(node, Reach) or does(node, {Memory.L1}, fills=True) for node in nodes]
    count = filling.count(True)
    if not count or not all(filling[:count]) or any(does(node, L0, fills=True) for node in nodes[:count]):
        return None
    return Stream(tiles, only, shared, panels, own, nodes[:count], nodes[count:])


def _behind_constants(nodes: Sequence[Node]) -> tuple[tuple[Let, ...], tuple[Node, ...]]:
    lets: list[Let] = []
    for node in nodes:
        if not isinstance(node, Let):
            break
        lets.append(node)
    return tuple(lets), tuple(nodes[len(lets) :])


@frozen
class Handing:
    """The places in a body at which buffers are filled first and last, and used first and last."""

    first_fill: int
    last_fill: int
    first_use: int
    last_use: int


def handing_of(body: Sequence[Node], memories: frozenset[Memory] = L0) -> Handing | None:
    """Where the units hand L0A and L0B over in a body, or other ``memories``; None where they do not, or
    deeper in it alone."""
    fills = [place for place, node in enumerate(body) if does(node, memories, fills=True)]
    takes = [place for place, node in enumerate(body) if does(node, memories, fills=False)]
    if not fills or not takes or set(fills) & set(takes):
        return None
    return Handing(fills[0], fills[-1], takes[0], takes[-1])


def does(node: Node, memories: Iterable[Memory], *, fills: bool) -> bool:
    """Whether a node, with all that is in it, writes buffers of some memories, or reads them."""
    result = (access for each in flat((node,)) for access in accesses(each))
    return any(writes is fills and node.buffer.memory in memories for writes, node in result)


def rings_of(nodes: Sequence[Node], role: Role) -> tuple[Ring, ...]:
    """The rings of turns that nodes fill, or those that they read, in the order of the first time."""
    kind = Fixpipe if role is Role.OUTPUT else Nd2Nz
    regions = (
        node.target if isinstance(node, Fixpipe) else node.source
        for node in flat(nodes)
        if isinstance(node, (Fixpipe, Nd2Nz)) and isinstance(node, kind)
    )
    result = (
        region.tensor for region in regions if isinstance(region.tensor, Ring) and region.tensor.of_turns
    )
    return tuple(dict.fromkeys(result))


def kept(kernel: Kernel) -> tuple[Buffer, ...]:
    """The buffers that serve all turns."""
    return tuple(node.buffer for node in kernel.nodes if isinstance(node, Keep) and node.is_common)


def of_memories(kernel: Kernel, memories: Iterable[Memory]) -> tuple[Buffer, ...]:
    """The buffers that lie in some memories."""
    return tuple(buffer for buffer in kernel.buffers if buffer.memory in memories)
