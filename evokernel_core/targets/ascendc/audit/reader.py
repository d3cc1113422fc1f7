"""Reads what the parser prints."""

from __future__ import annotations

from collections.abc import Iterable

from evokernel_core.targets.ascendc.audit.kinds import TYPE_BASE
from evokernel_core.targets.ascendc.audit.unit import NO_TYPE, Declaration, Node, ParseError, Type, Unit

MAX_NODES = 400_000
MAX_DEPTH = 400
"""Rules look upwards from a node; this bounds how far."""


class Unreadable(Exception):
    """The parser's output is cut off or too long: the text cannot be audited."""


def read(lines: Iterable[str], text: bytes) -> Unit:
    """The unit behind the parser's records. Raises Unreadable."""
    return _Reader(text).read(lines)


class _Reader:
    """Types and declarations refer to each other by number; nodes to both."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._types: dict[int, Type] = {}
        self._declarations: dict[int, Declaration] = {}
        self._nodes: list[Node] = []
        self._errors: list[ParseError] = []
        self._open: list[Node] = []

    def read(self, lines: Iterable[str]) -> Unit:
        complete = False
        for line in lines:
            fields = line.rstrip("\n").split("\t")
            match fields[0]:
                case "N":
                    self._node(fields)
                case "D":
                    self._declaration(fields)
                case "T":
                    self._type(fields)
                case "E":
                    self._errors.append(ParseError(fields[1], int(fields[2]), fields[3]))
                case "X":
                    complete = True
        if not complete:
            raise Unreadable
        return Unit(self._text, tuple(self._nodes), tuple(self._errors), self._types)

    def _declaration(self, fields: list[str]) -> None:
        number, kind, origin, usr, type_id, name = fields[1:7]
        self._declarations[int(number)] = Declaration(int(kind), origin, usr, name, int(type_id))

    def _type(self, fields: list[str]) -> None:
        number, kind, pointers, stripped, size, declaration, spelling = fields[1:8]
        self._types[int(number)] = Type(
            kind=int(kind) + TYPE_BASE,
            pointers=int(pointers),
            stripped=int(stripped) + TYPE_BASE,
            size=int(size),
            declaration=self._declarations.get(int(declaration)),
            spelling=spelling,
        )

    def _node(self, fields: list[str]) -> None:
        depth, kind, file, line, begin, end, operator, type_id, declaration, storage, name = fields[1:12]
        node = Node(
            kind=int(kind),
            file=file,
            line=int(line),
            begin=int(begin),
            end=int(end),
            operator=int(operator),
            type=self._types.get(int(type_id), NO_TYPE),
            declaration=self._declarations.get(int(declaration)),
            storage=int(storage),
            name=name,
        )
        if len(self._open) > MAX_DEPTH or len(self._nodes) > MAX_NODES:
            raise Unreadable
        del self._open[int(depth) :]
        if self._open:
            above = self._open[-1]
            node.parent, node.in_launcher = above, above.in_launcher or above.is_launcher
            above.children.append(node)
        self._open.append(node)
        self._nodes.append(node)
