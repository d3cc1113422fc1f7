"""What a cube core does in C++ whose operands travel into L1 by themselves: loops as they stand, and beside
them the turns for which something is fetched.

A fetch is as many turns ahead as its buffer has stages but for one. It finds its turns by itself: the loops
around it, with their local constants and conditions, are walked once more, from where it was last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from evokernel_core.targets.ascendc.ir.cube import Ahead, Fetch, Keep
from evokernel_core.targets.ascendc.ir.expr import FIRST_OF_CORE, LAST_OF_CORE, Condition, Expr, State, Var
from evokernel_core.targets.ascendc.ir.handing_cube import does, handing_of
from evokernel_core.targets.ascendc.ir.nodes import For, If, Let, Memory, Node, accesses, flat
from evokernel_core.targets.ascendc.ir.renaming import renamed
from evokernel_core.targets.ascendc.print.cube_body import TURNS_OWN, Body, Handed, free, full
from evokernel_core.targets.ascendc.print.statements import STEP, converted, framed, indented, method, needed

_SIDES = {Memory.L0A: ("leftStep", ""), Memory.L0B: ("rightStep", "STEPS + ")}
"""Operands in L0 are handed over one by one, since weights may stay for several steps of pixels."""
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@frozen
class Level:
    """A loop around a fetch, with what stands in front of the next one inside it."""

    loop: For
    constants: tuple[Let, ...]
    conditions: tuple[Condition, ...]


def levels_of(fetch: Fetch, loop: For) -> tuple[Level, ...]:
    """The loops around a fetch, from the one that cores share on."""
    return tuple(_levels(fetch, loop))


def _levels(fetch: Fetch, loop: For) -> Iterator[Level]:
    lets: list[Let] = []
    conditions: list[Condition] = []
    nodes: Sequence[Node] = loop.body
    while True:
        lets += [node for node in nodes if isinstance(node, Let)]
        if any(node is fetch for node in nodes):
            asked = () if fetch.only is None else (fetch.only,)
            yield Level(loop, tuple(lets), (*conditions, *asked))
            return
        around = next(node for node in nodes if any(child is fetch for child in flat((node,))))
        if isinstance(around, For):
            yield Level(loop, tuple(lets), tuple(conditions))
            yield from _levels(fetch, around)
            return
        assert not isinstance(around, Let)
        nodes = next(body for body in around.bodies if any(node is fetch for node in flat(body)))  # type: ignore[union-attr]
        if isinstance(around, If):
            sign = around.sign if nodes is around.then else _OPPOSITE[around.sign]
            conditions.append(Condition(around.left, sign, around.right))


class FetchingBody(Body):
    """Writes the nodes of a core whose fetches have turns of their own."""

    _always_given = ()
    _slots = {memory: slot for memory, (slot, _) in _SIDES.items()} | {Memory.L0C: "sum"}
    _sides = tuple((frozenset({memory}), slot) for memory, (slot, _) in _SIDES.items())

    def __init__(self, fetches: Sequence[Fetch], keeps: Sequence[Keep]) -> None:
        super().__init__("", TURNS_OWN)
        self._members = self._members | {node.stage for node in fetches}
        self._number = {node.buffer.name: place for place, node in enumerate(keeps)}

    def _handings(self, nodes: Sequence[Node]) -> list[Handed]:
        result = {memory: handing_of(nodes, frozenset({memory})) for memory in _SIDES}
        places = {memory: value for memory, value in result.items() if value is not None}
        last = max((place.last_fill for place in places.values()), default=0)
        made = []
        for memory, value in places.items():
            slot, events = _SIDES[memory]
            # Units take their instructions in order: who waits for the operand that is loaded last has both.
            deeper = any(does(nodes[value.first_use], {other}, fills=True) for other in _SIDES)
            made.append(Handed(memory, slot, value, events, not deeper and value.last_fill == last))
        return made

    def _ends(self, nodes: Sequence[Node]) -> dict[int, list[str]]:
        """Behind the last node that uses what is fetched among them its stage is free."""
        ends: dict[int, list[str]] = {}
        for fetch in nodes:
            if isinstance(fetch, Fetch) and fetch.only is None:
                last = max(place for place, node in enumerate(nodes) if _uses(node, fetch))
                ends.setdefault(last, []).append(freed(fetch, fetch.stage.name))
        return ends

    def _node(self, node: Node) -> list[str]:
        match node:
            case Fetch():
                lines = [f"Take{_capital(node.name)}();"]
                return lines if node.only is None else framed(_asked(node.only), [lines, []])
            case Ahead():
                return [f"Ahead{_capital(node.name)}();"]
            case Keep():
                event = f"KEPT_EVENTS + {self._number[node.buffer.name]}"
                ready = [free(verb, Memory.L1, event) for verb in ("SetFlag", "WaitFlag")]
                filled = [full(verb, Memory.L1, event) for verb in ("SetFlag", "WaitFlag")]
                head, *copies, end = self.kept(node, "0")
                return [head, *indented(ready), *copies, *indented(filled), end]
        return super()._node(node)


class Fetches:
    """The methods and members of a kernel's fetches."""

    def __init__(self, nodes: Sequence[Fetch], late: frozenset[str], loop: For, body: FetchingBody) -> None:
        self._nodes, self._late, self._body = nodes, late, body
        self._levels = {node.name: levels_of(node, loop) for node in nodes}
        self._fields = {node.name: self._fields_of(node) for node in nodes}

    @property
    def constants(self) -> list[str]:
        count, lines = 0, []
        for node in self._nodes:
            lines.append(
                f"constexpr uint32_t {node.name.upper()}_EVENTS = {count}; // their ids begin with this"
            )
            count += node.buffer.stages
        return [*lines, f"constexpr uint32_t KEPT_EVENTS = {count};"]

    @property
    def members(self) -> list[str]:
        lines = []
        for node in self._nodes:
            name = node.name
            lines += [
                f"{_capital(name)}Turn {name}Next; // of the copies still to come",
                f"uint32_t {name}Fetched = 0;",
                f"uint32_t {name}Taken = 0;",
                f"uint32_t {node.stage.name} = 0;",
                *(
                    [f"bool {name}IsDue = false; // its next copies have not begun"]
                    if name in self._late
                    else []
                ),
            ]
        return lines

    def begin(self) -> list[str]:
        """The first copies of a core."""
        lines = []
        for node in self._nodes:
            first = self._levels[node.name][0].loop.var.name
            lines.append(f"{node.name}Next.{first} = {FIRST_OF_CORE.name};")
        for node in self._nodes:
            lines += [f"Fetch{_capital(node.name)}();"] * (node.buffer.stages - 1)
        return lines

    def free_stages(self) -> list[str]:
        """All stages are free in the beginning; one whose turn ends when the next begins is free then."""
        return [
            freed(node, str(stage))
            for node in self._nodes
            for stage in range(node.buffer.stages - (node.only is not None))
        ]

    def end(self) -> list[str]:
        """And in the end."""
        return [
            freed(node, f"({node.name}Taken + {ahead}) % {node.buffer.stages}", "WaitFlag")
            for node in self._nodes
            for ahead in range(node.buffer.stages - (node.only is not None))
        ]

    def methods(self) -> list[str]:
        """For each fetch the struct of its turns, and how these are found, fetched and taken."""
        parts = [
            (self._struct(node), self._seek(node), self._fetch(node), *self._taking(node))
            for node in self._nodes
        ]
        return [text for texts in parts for text in texts]

    def _fields_of(self, node: Fetch) -> tuple[Var, ...]:
        """The loops' variables, and the local constants that copies and ends of loops take."""
        levels = self._levels[node.name]
        lets = [constant for level in levels for constant in level.constants]
        asked = [_asked(condition) for level in levels for condition in level.conditions]
        ends = [_asked(Condition(level.loop.end, "==", level.loop.end)) for level in levels[1:]]
        used = {child.var for child in needed(lets, (*node.body, *asked, *ends))}
        result = (
            (level.loop.var, *(constant.var for constant in level.constants if constant.var in used))
            for level in levels
        )
        return tuple(var for names in result for var in names)

    def _inside(self, node: Fetch) -> dict[Var, Var]:
        return {var: Var(f"turn.{var.name}", var.ctype) for var in self._fields[node.name]}

    def _struct(self, node: Fetch) -> str:
        lines = [f"{STEP}{var.ctype} {var.name} = 0;" for var in self._fields[node.name]]
        note = f"// Where {node.name} is fetched: one turn of the loops."
        return "\n".join([note, f"struct {_capital(node.name)}Turn {{", *lines, "};", ""])

    def _seek(self, node: Fetch) -> str:
        """Loops that go on where they were."""
        levels, names = self._levels[node.name], self._inside(node)
        lines = ["return;"]
        for place in reversed(range(len(levels))):
            level = levels[place]
            var = names[level.loop.var]
            for asked in reversed(level.conditions):
                if not _is_fixed(asked):
                    lines = framed(_asked(renamed(asked, names)), [lines, []])
            constants = [
                f"{names[let.var].name} = {converted(renamed(let.value, names), let.var.ctype)};"
                for let in level.constants
                if let.var in names
            ]
            inner = f", {names[levels[place + 1].loop.var].name} = 0" if place + 1 < len(levels) else ""
            end = LAST_OF_CORE if place == 0 else renamed(level.loop.end, names)
            head = f"for (; {var.name} < {_tight(end)}; ++{var.name}{inner}) {{"
            lines = [head, *indented([*constants, *lines]), "}"]
        note = (
            "// The first turn from this one on that fetches anything; behind a core's last tile is none.\n"
        )
        name = _capital(node.name)
        return note + method("void", f"Seek{name}", f"{name}Turn &turn", lines)

    def _fetch(self, node: Fetch) -> str:
        levels, names, name = self._levels[node.name], self._inside(node), _capital(node.name)
        never = [condition for level in levels for condition in level.conditions if _is_fixed(condition)]
        lines = []
        for child in never:
            opposite = Condition(child.left, _OPPOSITE[child.sign], child.right)
            lines += framed(_asked(opposite), [["return;"], []])
        stage = Var("stage", node.stage.ctype)
        turn = f"{name}Turn &turn = {node.name}Next;"
        body = renamed(node.body, {**names, node.stage: stage})
        place = next(i for i, node in enumerate(body) if does(node, {Memory.L1}, fills=True))
        lines += [
            turn,
            f"Seek{name}(turn);",
            f"if (turn.{levels[0].loop.var.name} >= {LAST_OF_CORE.name}) {{",
            f"{STEP}return;",
            "}",
            f"const uint32_t stage = {node.name}Fetched++ % {node.buffer.stages};",
            *self._body.lines(body[:place]),
            free("WaitFlag", Memory.L1, f"{node.name.upper()}_EVENTS + stage"),
            *self._body.lines(body[place:]),
            full("SetFlag", Memory.L1, f"{node.name.upper()}_EVENTS + stage"),
            f"++turn.{levels[-1].loop.var.name};",
        ]
        return method("void", f"Fetch{name}", "", lines)

    def _taking(self, node: Fetch) -> Iterator[str]:
        name, events, stages = _capital(node.name), f"{node.name.upper()}_EVENTS", node.buffer.stages
        is_late = node.name in self._late
        ends = [freed(node, f"({node.name}Taken + {stages - 1}) % {stages}")] if node.only is not None else []
        lines = [
            *([f"Ahead{name}();"] if is_late else []),
            *ends,
            f"{node.stage.name} = {node.name}Taken++ % {stages};",
            full("WaitFlag", Memory.L1, f"{events} + {node.stage.name}"),
            f"{node.name}IsDue = true;" if is_late else f"Fetch{name}();",
        ]
        note = "// What was in use is free, and what was fetched is there.\n" if node.only is not None else ""
        yield note + method("void", f"Take{name}", "", lines)
        if is_late:
            ahead = [
                f"if ({node.name}IsDue) {{",
                f"{STEP}{node.name}IsDue = false;",
                f"{STEP}Fetch{name}();",
                "}",
            ]
            yield method("void", f"Ahead{name}", "", ahead)


def freed(node: Fetch, stage: str, verb: str = "SetFlag") -> str:
    """Nothing reads a stage any more."""
    return free(verb, Memory.L1, f"{node.name.upper()}_EVENTS + {stage}")


def _uses(node: Node, fetch: Fetch) -> bool:
    """Whether a node takes what is fetched, or reads it."""
    result = (access for each in flat((node,)) for access in accesses(each))
    return node is fetch or any(not writes and node.buffer == fetch.buffer for writes, node in result)


def _asked(condition: Condition) -> If:
    return If(condition.left, condition.sign, condition.right, ())


def _is_fixed(condition: Condition) -> bool:
    """Whether the tiling alone decides."""
    parts = (part for side in (condition.left, condition.right) for part in side.walk())
    return not any(isinstance(part, (Var, State)) for part in parts)


def _tight(expr: Expr) -> str:
    return expr.cpp(tightness=1)


def _capital(name: str) -> str:
    return f"{name[0].upper()}{name[1:]}"
