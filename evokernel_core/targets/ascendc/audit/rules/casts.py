"""Addresses are made from addresses, inside SetGlobalBuffer, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import CASTS, CursorKind
from evokernel_core.targets.ascendc.audit.rules.scopes import is_in_call_of, is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

BUFFER = "SetGlobalBuffer"


def check_casts(unit: Unit) -> Iterator[Finding]:
    """Casts from and to pointers and references."""
    for node in unit.nodes:
        if _is_array(node) and is_in_call_of(node, BUFFER):
            message = Sentence(
                "{name} is no global memory; pass an address that the kernel was given.", name=node.name
            )
            yield at(node, "raw-pointer", message)
        if node.kind not in CASTS or node.type.kind == CursorKind.VOID or is_launcher_node(node):
            continue
        operand = _operand(node)
        to_pointer = node.type.kind == CursorKind.POINTER or node.type.is_reference
        from_pointer = operand is not None and operand.type.kind == CursorKind.POINTER
        if not (to_pointer or from_pointer or node.kind == CursorKind.REINTERPRET_CAST):
            continue
        if not is_in_call_of(node, BUFFER):
            message = Sentence(
                "A cast to or from a pointer is allowed only inside {name}(...); use tensors.", name=BUFFER
            )
            yield at(node, "raw-pointer", message)
        elif node.type.kind != CursorKind.POINTER or not from_pointer or not _is_number_address(operand):
            message = Sentence(
                "{name} takes an address that the kernel was given, with the type of its elements.",
                name=BUFFER,
            )
            yield at(node, "raw-pointer", message)


def _is_array(node: Node) -> bool:
    return node.type.is_array and node.kind in (CursorKind.DECL_REF, CursorKind.MEMBER_REF_EXPR)


def _operand(node: Node) -> Node | None:
    operands = [child for child in node.children if child.kind >= CursorKind.UNEXPOSED_EXPR]
    return operands[-1].inner() if operands else None


def _is_number_address(operand: Node | None) -> bool:
    return operand is not None and operand.type.pointers == 1 and operand.type.is_address
