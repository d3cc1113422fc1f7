"""The turns of a cube core's loops as one run: what a turn is, the first one of a tile, and the next one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from attrs import evolve, frozen

from evokernel_core.targets.ascendc.ir.expr import FIRST_OF_CORE, Condition, Expr, Side, Var
from evokernel_core.targets.ascendc.ir.handing_cube import Stream
from evokernel_core.targets.ascendc.ir.nodes import If, Let, Node
from evokernel_core.targets.ascendc.ir.renaming import renamed
from evokernel_core.targets.ascendc.print.statements import (
    STEP,
    converted,
    free_variables,
    indented,
    let,
    method,
    needed,
)


@frozen(slots=False)
class Turns:
    """The methods of a stream. In what a turn does, its variables are fields of ``turn``."""

    stream: Stream

    @property
    def slots(self) -> str:
        """How many turns are under way at a time."""
        return self.stream.rings[0].places.name if self.stream.rings else "PANELS"

    @property
    def index(self) -> str:
        """The variable of the tiles."""
        return self.stream.tiles.var.name

    @property
    def last_index(self) -> str:
        """What the number of every tile of a core is below."""
        if self.stream.tiles.in_a_row:
            return "lastOfCore"
        return self.stream.tiles.end.cpp(Side.DEVICE, 1)

    @property
    def members(self) -> list[str]:
        """What the class keeps from turn to turn."""
        counted = ["uint32_t turnCount = 0;"]
        if self.stream.tiles.in_a_row:
            counted += [
                f"uint64_t {FIRST_OF_CORE.name} = 0; // tiles of this core",
                "uint64_t lastOfCore = 0;",
            ]
        if self.stream.tiles.apart is not None:
            counted += ["uint64_t apartCount = 0; // tiles of all cores so far", "uint64_t otherCount = 0;"]
        return counted

    @property
    def begin(self) -> list[str]:
        """The statement that makes the first turn of a core."""
        tiles = self.stream.tiles
        if tiles.in_a_row:
            end, first = tiles.end.cpp(Side.DEVICE, 2), FIRST_OF_CORE.name
            return [
                f"{first} = {end} * GetBlockIdx() / tiling_.blockDim;",
                f"lastOfCore = {end} * (GetBlockIdx() + 1) / tiling_.blockDim;",
                f"Turn ahead = First({first});",
            ]
        return [f"Turn ahead = First({'0' if tiles.apart is not None else 'GetBlockIdx()'});"]

    def inside(self, nodes: tuple[Node, ...], turn: str = "turn") -> tuple[Node, ...]:
        """Nodes of a turn under a name."""
        return renamed(nodes, self._named(turn))

    @property
    def is_last(self) -> str:
        """Whether a turn is the last one of its tile."""
        panels = self.stream.panels
        return f"turn.{panels.var.name} + 1 == {renamed(panels.end, self._names).cpp(Side.DEVICE, 1)}"

    def methods(self) -> list[str]:
        """The struct of a turn, and what makes turns."""
        chosen = [self._next_tile()] if self._chooses else []
        return [self._struct(), *chosen, self._first(), self._next(), self._enter()]

    @property
    def _chooses(self) -> bool:
        """Whether a core's next tile is another one than that of its turn."""
        return self.stream.tiles.apart is not None or self.stream.only is not None

    @cached_property
    def _fields(self) -> tuple[Var, ...]:
        """What loads and uses take of a turn, and what the next one is made of."""
        stream = self.stream
        taken = {*free_variables((*stream.loads, *stream.uses)), *_variables_in(stream.panels.end)}
        taken.update(*(_variables_in(node.value) for node in self._own))
        constants = (part.var for part in (*stream.shared, *stream.own))
        return (stream.tiles.var, stream.panels.var, *(var for var in constants if var in taken))

    @cached_property
    def _names(self) -> dict[Var, Var]:
        return self._named("turn")

    def _named(self, turn: str) -> dict[Var, Var]:
        return {var: Var(f"{turn}.{var.name}", var.ctype) for var in self._fields}

    @cached_property
    def _own(self) -> tuple[Let, ...]:
        stream = self.stream
        return needed(stream.own, (*stream.loads, *stream.uses))

    def _struct(self) -> str:
        lines = [f"{STEP}{var.ctype} {var.name};" for var in self._fields]
        held = "what is in the rings" if self.stream.rings else "what is in L1"
        note = f"// One turn of the loops: {held} at a time."
        return "\n".join([note, "struct Turn {", *lines, f"{STEP}uint32_t slot;", "};", ""])

    def _next_tile(self) -> str:
        apart, index, only = self.stream.tiles.apart, self.index, self.stream.only
        if only is not None:
            return self._next_with(only)
        assert apart is not None
        asked = If(apart.left, apart.sign, apart.right, ())
        lines = [
            f"for (; {index} < {self.last_index}; ++{index}) {{",
            *indented(_constants(needed(self.stream.shared, (asked,)))),
            f"{STEP}uint64_t &count = {apart.cpp()} ? apartCount : otherCount;",
            f"{STEP}if (count++ % tiling_.blockDim == GetBlockIdx()) {{",
            f"{STEP}{STEP}return {index};",
            f"{STEP}}}",
            "}",
            f"return {index};",
        ]
        note = f"// The core's next tile from `{index}` on: tiles of two kinds are dealt out apart.\n"
        return note + method("uint64_t", "NextTile", f"uint64_t {index}", lines)

    def _next_with(self, only: Condition) -> str:
        index = self.index
        asked = If(only.left, only.sign, only.right, ())
        lines = [
            f"for (; {index} < {self.last_index}; {index} += tiling_.blockDim) {{",
            *indented(_constants(needed(self.stream.shared, (asked,)))),
            f"{STEP}if ({only.cpp()}) {{",
            f"{STEP}{STEP}return {index};",
            f"{STEP}}}",
            "}",
            f"return {index};",
        ]
        note = f"// The core's next tile from `{index}` on that has anything to do.\n"
        return note + method("uint64_t", "NextTile", f"uint64_t {index}", lines)

    def _first(self) -> str:
        stream, index = self.stream, self.index
        end = If(stream.panels.end, "==", stream.panels.end, ())
        constants = needed(stream.shared, (*self._own, *stream.loads, *stream.uses, end))
        lines = [f"{index} = NextTile({index});"] if self._chooses else []
        lines += [
            "Turn turn;",
            f"turn.{index} = {index};",
            f"if ({index} < {self.last_index}) {{",
            *indented(self._known(constants)),
            f"{STEP}Enter(turn, 0);",
            "}",
            "return turn;",
        ]
        return method("Turn", "First", f"uint64_t {index}", lines)

    def _next(self) -> str:
        tiles = self.stream.tiles
        step = "1" if tiles.apart is not None or tiles.in_a_row else "tiling_.blockDim"
        lines = [
            f"if ({self.is_last}) {{",
            f"{STEP}return First(turn.{self.index} + {step});",
            "}",
            "Turn next = turn;",
            f"Enter(next, turn.{self.stream.panels.var.name} + 1);",
            "return next;",
        ]
        note = "// The next one of the same tile, or the first one of the core's next tile.\n"
        return note + method("Turn", "Next", "const Turn &turn", lines)

    def _enter(self) -> str:
        panel = self.stream.panels.var
        begin, end = f"turn.{panel.name} = {panel.name};", f"turn.slot = turnCount++ % {self.slots};"
        lines = [begin, *self._known(self._own), end]
        return method("void", "Enter", f"Turn &turn, {panel.ctype} {panel.name}", lines)

    def _known(self, items: Sequence[Let]) -> list[str]:
        """Local constants, of which a turn keeps some."""
        lines: list[str] = []
        for item in items:
            inside = evolve(item, value=renamed(item.value, self._names))
            value = converted(inside.value, item.var.ctype)
            lines += [f"turn.{item.var.name} = {value};"] if item.var in self._names else let(inside)
        return lines


def _variables_in(value: Expr) -> set[Var]:
    return {node for node in value.walk() if isinstance(node, Var)}


def _constants(items: Sequence[Let]) -> list[str]:
    return [line for item in items for line in let(item)]
