"""What units of a core hand to each other outside of queues: waits for buffers that the scalar unit reads or
writes.

A step waits for the unit that last worked on one of its buffers, unless an earlier wait for that unit covers
it; a barrier of all units covers all. A block that works on a buffer with one unit alone waits in front of it
where that spares waits inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from evokernel_core.targets.ascendc.ir.allocation import Use
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Fence, For, Get, If, Node, accesses, flat
from evokernel_core.targets.ascendc.ir.steps import Block, Part, Step, StepKind

_UNITS = {StepKind.LOAD: "MTE2", StepKind.STORE: "MTE3", StepKind.COMPUTE: "V", StepKind.SCALAR: "S"}
_Last = Mapping[Buffer, Mapping[str, frozenset[str]]]
"""The units that may have worked on a buffer last, each with those that have waited for it since."""
_Made = tuple[tuple[Part, ...], _Last]


def with_waits(parts: Sequence[Part], used: Mapping[Buffer, Use]) -> tuple[Part, ...]:
    """The parts of a kernel, each with the events that it waits for, such as ``MTE2_S``."""
    return _along(parts, used, {})[0]


def _along(parts: Sequence[Part], used: Mapping[Buffer, Use], last: _Last) -> _Made:
    """Parts one after another, with who worked last behind them."""
    problems: list[Part] = []
    for part in parts:
        made: Part = part
        if isinstance(part, Step):
            if _is_barrier(part.nodes[0]):
                last = {}
            made, last = _waiting(part, _touched(part, used), last)
            if any(map(_is_barrier, part.nodes)):
                last = _behind_barrier(part, used)
        elif isinstance(part, Block):
            made, last = _block(part, used, last)
        problems.append(made)
    return tuple(problems), last


def _is_barrier(node: Node) -> bool:
    return isinstance(node, Fence) and node.unit in ("ALL", "CORES")


def _behind_barrier(step: Step, used: Mapping[Buffer, Use]) -> _Last:
    """Who worked last behind the last barrier of all units in a step: none of those in front of it counts."""
    place = max(index for index, node in enumerate(step.nodes) if _is_barrier(node))
    behind = evolve(step, nodes=step.nodes[place + 1 :])
    return {buffer: {unit: frozenset()} for buffer, (unit,) in _touched(behind, used).items()}


def _block(block: Block, used: Mapping[Buffer, Use], last: _Last) -> tuple[Part, _Last]:
    """A block with waits inside, or in front of it where those are fewer."""
    touched = _touched(block, used)
    if not touched:
        return block, last
    alone = {buffer: units for buffer, units in touched.items() if len(units) == 1}
    first, known = _waiting(block, alone, last)
    assert isinstance(first, Block)
    if not first.waits:
        return _inside(block, used, last)
    early, late = _inside(first, used, known), _inside(block, used, last)
    return early if _waits_in(early[0]) < _waits_in(late[0]) else late


def _waiting(
    part: Step | Block, touched: Mapping[Buffer, frozenset[str]], last: _Last
) -> tuple[Step | Block, _Last]:
    """A part that waits for whoever worked on its buffers last, each of which one unit touches."""
    events = {
        (other, unit): None
        for buffer, (unit,) in touched.items()
        for other, seen in last.get(buffer, {}).items()
        if other != unit and unit not in seen
    }
    known = {
        buffer: {
            other: seen | {unit for waited, unit in events if waited == other}
            for other, seen in units.items()
        }
        for buffer, units in last.items()
    }
    mine = {buffer: {unit: frozenset[str]()} for buffer, (unit,) in touched.items()}
    return evolve(part, waits=tuple(f"{other}_{unit}" for other, unit in events)), {**known, **mine}


def _inside(block: Block, used: Mapping[Buffer, Use], last: _Last) -> tuple[Block, _Last]:
    """A block whose parts have waits, and who worked last behind it."""
    before = last
    while isinstance(block.node, For):
        # What a turn leaves is what the next one finds.
        seen = _merged(before, _along(block.bodies[0], used, before)[1])
        if seen == before:
            break
        before = seen
    made = [_along(body, used, before) for body in block.bodies]
    behind = made[0][1]
    if isinstance(block.node, If):
        behind = _merged(*(node for _, node in made))
    elif isinstance(block.node, For):
        behind = before
    return evolve(block, bodies=tuple(parts for parts, _ in made)), behind


def _merged(one: _Last, other: _Last) -> _Last:
    """What holds after either; of a wait only where it holds after both."""
    return {
        buffer: {
            unit: one.get(buffer, {}).get(unit, other.get(buffer, {}).get(unit, frozenset()))
            & other.get(buffer, {}).get(unit, one.get(buffer, {}).get(unit, frozenset()))
            for unit in (*one.get(buffer, {}), *other.get(buffer, {}))
        }
        for buffer in (*one, *other)
    }


def _touched(part: Part, used: Mapping[Buffer, Use]) -> dict[Buffer, frozenset[str]]:
    """The units that work on the scalar unit's buffers in a part."""
    result: dict[Buffer, frozenset[str]] = {}
    for step in _steps(part):
        for node in flat(step.nodes):
            for _, child in accesses(node):
                if used[child.buffer] is Use.NUMBERS:
                    unit = "S" if isinstance(node, Get) else _UNITS[step.kind]
                    result[child.buffer] = result.get(child.buffer, frozenset()) | {unit}
    return result


def _waits_in(part: Part) -> int:
    """Waits inside a block."""
    if not isinstance(part, Block):
        return 0
    inner = [node for body in part.bodies for node in body if isinstance(node, (Step, Block))]
    return sum(len(element.waits) + _waits_in(element) for element in inner)


def _steps(part: Part) -> Iterator[Step]:
    if isinstance(part, Step):
        yield part
    elif isinstance(part, Block):
        for body in part.bodies:
            for inner in body:
                yield from _steps(inner)
