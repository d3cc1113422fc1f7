"""What a turn of a cube core does in C++: its nodes, with the events between the units that they follow
from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from evokernel_core.targets.ascendc.ir.cube import Fixpipe, Keep, Meet, Mmad, Reach, Sum
from evokernel_core.targets.ascendc.ir.expr import FIRST_OF_CORE, LAST_OF_CORE, Side, Var, binary
from evokernel_core.targets.ascendc.ir.handing_cube import L0, L1, UNITS, Handing, does, handing_of
from evokernel_core.targets.ascendc.ir.nodes import (
    Assign,
    Await,
    Fence,
    For,
    If,
    Let,
    Memory,
    Node,
    Region,
    Ring,
    Section,
    Signal,
    Slice,
    Tensor,
    flat,
)
from evokernel_core.targets.ascendc.print import cube_methods
from evokernel_core.targets.ascendc.print.statements import (
    STEP,
    flag,
    framed,
    free_variables,
    indented,
    let,
    method,
    wrapped,
)

SLOTS = {Memory.L1: "PANELS", Memory.L0A: "STEPS", Memory.L0B: "STEPS", Memory.L0C: "SUMS"}
"""How many turns the buffers of a memory are there for."""
TURNS_OWN = "turn.slot"
"""Of panels that a turn of the loops has: which stage they are in. Others are counted as ``panel``."""


def free(verb: str, memory: Memory, slot: str) -> str:
    """The event from the unit that empties a memory to the one that fills it: ``SetFlag`` or ``WaitFlag``."""
    filling, emptying = UNITS[memory]
    return f"{verb}<HardEvent::{emptying}_{filling}>({slot});"


def full(verb: str, memory: Memory, slot: str) -> str:
    """The event the other way."""
    filling, emptying = UNITS[memory]
    return f"{verb}<HardEvent::{filling}_{emptying}>({slot});"


def misses(node: Keep, stage: str) -> str:
    """Whether a stage of a buffer holds something else than what belongs to a key."""
    return f"{node.buffer.name}Key[{stage}] != {_key(node)}"


def _key(node: Keep) -> str:
    return binary("+", node.key, 1).cpp(Side.DEVICE, 1)


@frozen
class Handed:
    """What units hand over in a body: the name of the stage that a turn takes, where (``places``), what its
    number among events begins with, and whether the unit that uses it is told, or learns it by what it waits
    for later."""

    memory: Memory
    slot: str
    places: Handing
    events: str = ""
    told: bool = True

    def free(self, verb: str) -> str:
        return free(verb, self.memory, f"{self.events}{self.slot}")

    def full(self, verb: str) -> str:
        return full(verb, self.memory, f"{self.events}{self.slot}")


class Body:
    """Writes the nodes of a turn; sections become ``methods``. ``is_last``: the condition of a tile's last
    turn; ``panel``: which stage of the buffers in L1 is in use."""

    _always_given: Sequence[tuple[str, str]] = (("const Turn &", "turn"),)
    _slots: Mapping[Memory, str] = {Memory.L0A: "step", Memory.L0B: "step", Memory.L0C: "sum"}
    """Which stage of a memory a turn takes, but for panels."""
    _sides: Sequence[tuple[frozenset[Memory], str]] = ((L0, "step"),)
    """Memories of L0 that are handed over together."""
    _members = frozenset({FIRST_OF_CORE, LAST_OF_CORE})

    def __init__(self, is_last: str, panel: str) -> None:
        self._is_last = is_last
        self._panel = panel
        self._first: list[Var] = []  # the loops in whose first turns a sum begins
        self._is_told = False  # by a state which product begins the sum
        self.methods: list[str] = []

    def lines(self, nodes: Sequence[Node]) -> list[str]:
        """The statements of nodes; between them the units hand over steps in L0A and L0B, and panels that
        are filled and used in one body."""
        handings, ends = self._handings(nodes), self._ends(nodes)
        lines: list[str] = []
        for place, node in enumerate(nodes):
            for handing in handings:
                if place == handing.places.first_fill:
                    lines.append(
                        f"const uint32_t {handing.slot} = {handing.slot}Count++ % {SLOTS[handing.memory]};"
                    )
                    lines.append(handing.free("WaitFlag"))
                if place == handing.places.first_use and handing.told:
                    lines += [handing.full(verb) for verb in ("SetFlag", "WaitFlag")]
            lines += self._node(node)
            lines += [handing.free("SetFlag") for handing in handings if place == handing.places.last_use]
            lines += ends.get(place, [])
        return lines

    def _ends(self, nodes: Sequence[Node]) -> dict[int, list[str]]:
        """What else stands behind nodes, by their places."""
        return {}

    def _handings(self, nodes: Sequence[Node]) -> list[Handed]:
        """What units hand over among nodes."""
        return [
            Handed(memory, slot, result)
            for memory, memories, slot in ((Memory.L1, L1, self._panel), (Memory.L0A, L0, "step"))
            if (result := handing_of(nodes, memories)) is not None
        ]

    def _node(self, node: Node) -> list[str]:
        match node:
            case Let() | Assign():
                result = let(node)
            case Await() | Signal():
                result = [flag(node)]
            case Meet():
                result = ["SyncAll<false>();"]
            case For():
                self._first.append(node.var)
                result = framed(node, [self.lines(node.body)])
                self._first.pop()
            case If():
                result = framed(node, [self.lines(body) for body in node.bodies])
            case Section():
                result = [self._section(node)]
            case Fence():
                result = [f"PipeBarrier<PIPE_{node.unit}>();"]
            case Sum():
                result = self._sum(node)
            case Keep():
                result = self.kept(node, TURNS_OWN)
            case Reach():
                result = [f"ReachChunk({node.chunk.cpp()});"]
            case _:
                result = self._instruction(node)
        return result

    def kept(self, node: Keep, stage: str) -> list[str]:
        """Copies into a stage of a buffer, unless it holds them already. Of keys one more is kept, so that
        zero is none."""
        lines = [*self.lines(node.body), f"{node.buffer.name}Key[{stage}] = {_key(node)};"]
        return _where(misses(node, stage), lines)

    def _instruction(self, node: Node) -> list[str]:
        assert isinstance(node, cube_methods.Instruction)
        places = {child: self._place(child) for _, child in node.slices}
        match node:
            case Fixpipe(target=Region(tensor=Ring(of_turns=False) as ring)):
                return [*_next_place(ring), cube_methods.call(node, places, f"{ring.name}Global[place]")]
            case Fixpipe():
                target = _region(node.target)
            case Mmad(fresh=fresh) if fresh is not None:
                target = f"{fresh.name} != 0"
            case Mmad(ends=True):
                target = "false"
            case Mmad():
                target = " && ".join(f"{var.name} == 0" for var in self._first) or "true"
            case _:
                target = _region(node.source) if isinstance(node, cube_methods.Copy) else ""
        return [cube_methods.call(node, places, target)]

    def _sum(self, node: Sum) -> list[str]:
        """A sum begins when its place is free, and is stored when it is whole."""
        around, self._first = self._first, [] if node.over is None else [node.over]
        self._is_told = any(isinstance(child, Mmad) and child.fresh is not None for child in flat(node.body))
        begins, ends = ("", "") if node.over is None else (f"{node.over.name} == 0", self._is_last)
        body = self.lines(node.body)
        stored = [full(verb, Memory.L0C, "sum") for verb in ("SetFlag", "WaitFlag")]
        stored += [*self.lines(node.stores), free("SetFlag", Memory.L0C, "sum")]
        self._first, self._is_told = around, False
        targets = [child.target.tensor for child in flat(node.stores) if isinstance(child, Fixpipe)]
        if any(isinstance(target, Ring) and not target.of_turns for target in targets):
            stored.append("CrossCoreSetFlag<2, PIPE_FIX>(RESULT_READY);")
        count = "sumCount++" if does(node, L1, fills=True) else "sumCount"
        place = binary("+", Var(count), node.lane).cpp(Side.DEVICE, 2)
        return [
            f"const uint32_t sum = {place} % SUMS;",
            *_where(begins, [free("WaitFlag", Memory.L0C, "sum")]),
            *body,
            *_where(ends, stored),
        ]

    def _section(self, node: Section) -> str:
        """The call of nodes that are a method: it is given what they use and do not define."""
        place = len(self.methods)
        lines = self.lines(node.body)
        outside = [] if _has(node, Sum) or not _begins(node) or self._is_told else self._first
        given = [*self._always_given]
        given += [
            (f"{var.ctype} ", var.name)
            for var in dict.fromkeys([*free_variables(node.body), *outside])
            if not var.name.startswith("turn.") and var not in self._members
        ]
        given += [("uint32_t ", name) for name in self._slots_from_outside(node)]
        parameters = ", ".join(f"{ctype}{name}" for ctype, name in given)
        note = f"// {wrapped(node.note, '// ')}\n" if node.note else ""
        text = note + method("void", node.name, parameters, lines)
        if text not in self.methods:
            self.methods.insert(place, text)
        return f"{node.name}({', '.join(name for _, name in given)});"

    def _slots_from_outside(self, node: Node) -> list[str]:
        """The places of L1, L0 and L0C that a section works on and does not take itself."""
        result = []
        if self._panel != TURNS_OWN and _one_side_of(node, L1):
            result.append(self._panel)
        result += [slot for memories, slot in self._sides if _one_side_of(node, memories)]
        touches = any(does(node, {Memory.L0C}, fills=fills) for fills in (True, False))
        return [*result, *(["sum"] if touches and not _has(node, Sum) else [])]

    def _place(self, slice_: Slice) -> str:
        if slice_.buffer.stages == 1 or slice_.buffer.joined:
            return f"{slice_.buffer.name}[{slice_.offset.cpp()}]"
        slot = self._panel if slice_.buffer.memory is Memory.L1 else self._slots[slice_.buffer.memory]
        stage = binary("*", Var(slot), slice_.buffer.elements)
        return f"{slice_.buffer.name}[{binary('+', stage, slice_.offset).cpp()}]"


def _one_side_of(node: Node, memories: frozenset[Memory]) -> bool:
    """Whether a node fills some memories and does not use what they hold, or the other way round."""
    return does(node, memories, fills=True) != does(node, memories, fills=False)


def _begins(node: Node) -> bool:
    """Whether one of its products may be the first of a sum."""
    return any(isinstance(child, Mmad) and not child.ends for child in flat((node,)))


def _has(node: Node, kind: type) -> bool:
    return any(isinstance(child, kind) for child in flat((node,)))


def _next_place(ring: Ring) -> list[str]:
    """The next place of a ring, when its vector cores have taken what was there."""
    most = ring.places.name
    return [
        f"if (storeCount >= {most}) {{ // its place in the workspace is taken until then",
        f"{STEP}CrossCoreWaitFlag(RESULT_TAKEN);",
        "}",
        f"const uint64_t place = storeCount++ % {most} * {ring.elements.cpp(Side.DEVICE, 2)};",
    ]


def _region(region: Region) -> str:
    if isinstance(region.tensor, Ring):
        place = binary("+", Var("turn.slot") * region.tensor.elements, region.offset)
        return f"{region.tensor.name}Global[{place.cpp()}]"
    assert isinstance(region.tensor, Tensor)
    return f"{region.tensor.name}Global[{region.offset.cpp()}]"


def _where(condition: str, lines: Sequence[str]) -> list[str]:
    return [f"if ({condition}) {{", *indented(lines), "}"] if condition else [*lines]
