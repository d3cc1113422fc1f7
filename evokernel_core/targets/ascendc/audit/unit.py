"""A candidate's own part of a translation unit as libclang's syntax tree tells it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attrs import define, field, frozen

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import CursorKind

NO_SIZE = -1
LAUNCHER = "LaunchOp"
_CALLEE = re.compile(r"([A-Za-z_]\w*|operator\W+)\s*$")


@frozen
class Declaration:
    """What a name refers to. ``origin`` is own, twin or system; ``usr`` is libclang's own name of it."""

    kind: int
    origin: str
    usr: str
    name: str
    type_id: int

    @property
    def is_internal(self) -> bool:
        """Whether it belongs to the twin's machinery and not to AscendC."""
        return self.origin == "twin" and self.usr.startswith("c:@N@evokernel")


@frozen
class Type:
    """A canonical type: ``pointers`` levels and arrays around ``stripped``, whose declaration is known.

    ``size`` is in bytes, NO_SIZE for what has none, such as a template's parameter.
    """

    kind: int
    pointers: int
    stripped: int
    size: int
    declaration: Declaration | None
    spelling: str

    @property
    def is_array(self) -> bool:
        return CursorKind.CONSTANT_ARRAY <= self.kind <= CursorKind.DEPENDENT_ARRAY

    @property
    def is_reference(self) -> bool:
        return self.kind in (CursorKind.LVALUE_REFERENCE, CursorKind.RVALUE_REFERENCE)

    @property
    def is_object(self) -> bool:
        """Around it or not: an object of AscendC's or a structure of the candidate's. The twin's number
        types that C++ lacks, such as half, are classes there, but no objects."""
        return self.stripped == CursorKind.RECORD and not _is_number(self.declaration)

    @property
    def is_address(self) -> bool:
        """A pointer to a number, as an address in global memory is."""
        return self.kind == CursorKind.POINTER and not self.is_object and self.stripped != CursorKind.FUNCTION


def _is_number(declaration: Declaration | None) -> bool:
    if declaration is None or declaration.origin != "twin":
        return False
    return declaration.usr.startswith("c:@S@") or declaration.name.endswith("_t")


NO_TYPE = Type(0, 0, 0, NO_SIZE, None, "")


@define(eq=False)
class Node:
    """A declaration, statement, expression or reference; ``begin`` to ``end`` are bytes of the text."""

    kind: int
    file: str
    line: int
    begin: int
    end: int
    operator: int
    type: Type
    declaration: Declaration | None
    storage: int
    name: str
    parent: Node | None = None
    children: list[Node] = field(factory=list)
    in_launcher: bool = False

    @property
    def is_launcher(self) -> bool:
        """Whether this is the launcher: no member, and in no namespace."""
        if self.name != LAUNCHER or self.kind != CursorKind.FUNCTION_DECL:
            return False
        return self.parent is not None and self.parent.kind == CursorKind.LINKAGE

    def ancestors(self) -> Iterator[Node]:
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[Node]:
        """Every node below this one."""
        waiting = list(self.children)
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children)

    def inner(self) -> Node:
        """The expression within brackets and implicit conversions."""
        node = self
        while node.kind in (CursorKind.UNEXPOSED_EXPR, CursorKind.PAREN) and len(node.children) == 1:
            node = node.children[0]
        return node


@frozen
class ParseError:
    """What the front end does not understand, and where."""

    file: str
    line: int
    message: str


@frozen
class Unit:
    """Preprocessed text and its nodes in the order of the text."""

    text: bytes
    nodes: tuple[Node, ...]
    errors: tuple[ParseError, ...]
    types: dict[int, Type]

    def slice(self, node: Node) -> str:
        return self.text[node.begin : node.end].decode()

    def signature(self, declaration: Declaration) -> Type:
        """The type of what a declaration declares."""
        return self.types.get(declaration.type_id, NO_TYPE)

    def callee_name(self, call: Node) -> str:
        """The last name of a call's callee, also where a template leaves open what it is."""
        if call.declaration is not None:
            return call.declaration.name
        if not call.children:
            return call.name
        written = _without_arguments(self.slice(call.children[0]).rstrip())
        match = _CALLEE.search(written)
        return match[1].strip() if match else call.name


def _without_arguments(text: str) -> str:
    """A name without the template arguments at its end."""
    if not text.endswith(">"):
        return text
    depth = 0
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == ">") - (text[index] == "<")
        if depth == 0:
            return text[:index]
    return text


def at(node: Node, code: str, message: Sentence) -> Finding:
    """A finding at a node of the tree."""
    return Finding(f"audit-{code}", message, node.file, node.line)
