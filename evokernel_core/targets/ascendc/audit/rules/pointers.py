"""Global memory is reached through GlobalTensor only: a raw access is neither checked nor timed."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, Binary, CursorKind, Unary
from evokernel_core.targets.ascendc.audit.rules.casts import BUFFER
from evokernel_core.targets.ascendc.audit.rules.scopes import call_around, is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Node, Type, Unit, at
from evokernel_core.targets.ascendc.source import TILING

TILING_POINTERS = ("const long *", "const float *", "const long long *")
"""``const int64_t *sizes`` and ``const float *scalars``."""


def check_pointers(unit: Unit) -> Iterator[Finding]:
    """Accesses through addresses, addresses of numbers, comparisons of them, and functions that give
    addresses away."""
    for node in unit.nodes:
        if is_launcher_node(node):
            continue
        if node.kind == CursorKind.UNARY and node.operator == Unary.DEREFERENCE:
            yield from _access(unit, node, node.children[-1:])
        elif (
            node.kind == CursorKind.CALL and _is_open_dereference(node)
        ) or node.kind == CursorKind.SUBSCRIPT:
            yield from _access(unit, node, node.children[:1])
        elif node.kind == CursorKind.MEMBER_REF_EXPR and node.children:
            yield from _member(unit, node)
        elif node.kind == CursorKind.UNARY and node.operator == Unary.ADDRESS_OF:
            yield from _address_of(node)
        elif node.kind == CursorKind.BINARY and _compares_addresses(node):
            message = Sentence("Where tensors lie differs from call to call; do not compare their addresses.")
            yield at(node, "raw-pointer", message)
        elif node.kind in FUNCTIONS and _result(node.type).endswith("*"):
            message = Sentence("{name} returns an address; pass tensors instead.", name=node.name)
            yield at(node, "raw-pointer", message)


def _access(unit: Unit, node: Node, bases: list[Node]) -> Iterator[Finding]:
    for base in bases:
        inner = base.inner()
        if inner.type.is_array or _is_object(inner.type) or _is_open_tensor(inner):
            continue
        if node.file == TILING and inner.type.spelling in TILING_POINTERS:
            continue
        name = unit.slice(inner)[:40]
        message = Sentence(
            "{name} is an address in global memory; read and write it with DataCopy.", name=name
        )
        yield at(node, "raw-pointer", message)


def _compares_addresses(node: Node) -> bool:
    """Also by their difference: a kernel that asks is right in one place and wrong in another."""
    asks = node.operator == Binary.SUBTRACT or Binary.THREE_WAY <= node.operator <= Binary.NOT_EQUAL
    return asks and all(_is_pointer(child.inner().type) for child in node.children)


def _is_pointer(written: Type) -> bool:
    return written.kind == CursorKind.POINTER


def _is_open_dereference(node: Node) -> bool:
    """``*x`` inside a template where some ``operator*`` might be meant: the operand and that name."""
    named = [child.declaration.name for child in node.children[1:] if child.declaration is not None]
    return node.declaration is None and len(node.children) == 2 and named == ["operator*"]


def _is_object(written: Type) -> bool:
    """An object or one behind a pointer, or what overloads the operator itself."""
    return written.kind == CursorKind.RECORD or (written.pointers <= 1 and written.is_object)


def _is_open_tensor(node: Node) -> bool:
    """A value that a template leaves open, but one of AscendC's templates or the result of a call."""
    written = node.type
    if written.kind in (CursorKind.UNEXPOSED_TYPE, CursorKind.LVALUE_REFERENCE) and written.pointers == 0:
        return "<" in written.spelling or node.kind == CursorKind.CALL
    if written.kind in (CursorKind.DEPENDENT, CursorKind.AUTO):  # of unknown type inside a template
        return node.kind in (CursorKind.CALL, CursorKind.DECL_REF, CursorKind.MEMBER_REF_EXPR)
    return node.kind == CursorKind.CALL and written.kind == 0


def _member(unit: Unit, node: Node) -> Iterator[Finding]:
    """``address->member``: only of objects."""
    inner = node.children[0].inner()
    if (
        inner.type.kind == CursorKind.POINTER
        and not _is_object(inner.type)
        and inner.type.stripped != CursorKind.UNEXPOSED_TYPE
    ):
        message = Sentence("{name} is an address; use tensors.", name=unit.slice(inner)[:40])
        yield at(node, "raw-pointer", message)


def _address_of(node: Node) -> Iterator[Finding]:
    if node.type.kind != CursorKind.POINTER or node.type.is_object:
        return
    if node.type.stripped == CursorKind.UNEXPOSED_TYPE and "<" in node.type.spelling:
        return
    around = call_around(node)
    target = around.declaration if around is not None else None
    if target is not None and target.origin == "twin" and target.name != BUFFER:
        return
    message = Sentence("The address of a number is not allowed; pass the number.")
    yield at(node, "raw-pointer", message)


def _result(signature: Type) -> str:
    return signature.spelling.partition("(")[0].strip()
