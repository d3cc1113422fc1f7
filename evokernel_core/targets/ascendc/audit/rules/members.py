"""A member of the kernel's own class that is read is set somewhere: nothing else gives it a value."""

from __future__ import annotations

from collections.abc import Iterator, Set

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import CursorKind
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

_CLASSES = (CursorKind.CLASS, CursorKind.STRUCT)
_REFERENCES = (CursorKind.MEMBER_REF, CursorKind.MEMBER_REF_EXPR, CursorKind.DECL_REF)


def check_members(unit: Unit) -> Iterator[Finding]:
    """Numbers among the members of classes with a constructor or Init that are read and that no expression
    may set. An object of a class without a constructor that is made by braces begins with 0."""
    begun = {
        node.type.declaration.usr
        for node in unit.nodes
        if node.kind == CursorKind.VARIABLE and node.type.declaration and unit.slice(node)[-1:] in (")", "}")
    }
    fields = {
        node.declaration.usr: node
        for node in unit.nodes
        if node.kind == CursorKind.FIELD and node.declaration is not None and _is_number(node, begun)
    }
    used: set[str] = set()
    for node in unit.nodes:
        usr = node.declaration.usr if node.declaration is not None and node.kind in _REFERENCES else ""
        if usr not in fields:
            continue
        if _is_read(node):
            used.add(usr)
        else:
            del fields[usr]
    for usr, node in fields.items():
        if usr in used:
            message = Sentence("Nothing sets the member {name}; set it where it is declared.", name=node.name)
            yield at(node, "unset-member", message)


def _is_number(node: Node, begun: Set[str]) -> bool:
    """Whether a member is a number without a value of its own, of a class that sets its members by itself;
    those of ``begun`` have objects made by braces."""
    owner = node.parent
    is_plain = (
        not (node.type.pointers or node.type.is_object or node.type.is_reference) and node.type.size > 0
    )
    if owner is None or owner.kind not in _CLASSES or not is_plain or node.children:
        return False
    if any(child.kind == CursorKind.CONSTRUCTOR for child in owner.children):
        return True
    is_begun = owner.declaration is not None and owner.declaration.usr in begun
    is_set = any(child.kind == CursorKind.METHOD and child.name == "Init" for child in owner.children)
    return is_set and not is_begun


def _is_read(node: Node) -> bool:
    """Whether a member's value is taken, and no reference to it: the front end converts one to the other."""
    parent = node.parent
    while parent is not None and parent.kind == CursorKind.PAREN:
        parent = parent.parent
    if node.kind != CursorKind.MEMBER_REF_EXPR or parent is None:
        return False
    return parent.kind == CursorKind.UNEXPOSED_EXPR
