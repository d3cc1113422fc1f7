"""A kernel calls AscendC, itself, and the arithmetic of a short list."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.interface import Interface, is_public
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, RECORDS, CursorKind
from evokernel_core.targets.ascendc.audit.lists import names
from evokernel_core.targets.ascendc.audit.rules.scopes import is_launcher_node
from evokernel_core.targets.ascendc.audit.rules.types import STD_TYPES
from evokernel_core.targets.ascendc.audit.unit import Declaration, Node, Unit, at
from evokernel_core.targets.ascendc.source import TILING

TILING_FUNCTIONS = names("""
    min max clamp ceil floor sqrt abs log2 gcd lcm round
""")
BUILT_IN = frozenset(("__builtin_inff", "__builtin_inf", "__builtin_huge_valf", "__builtin_nanf"))


def check_callees(unit: Unit, interface: Interface) -> Iterator[Finding]:
    """Calls, and names of functions, that are neither AscendC's nor the candidate's own."""
    own = frozenset(node.name.partition("<")[0] for node in unit.nodes if node.kind in FUNCTIONS | RECORDS)
    for node in unit.nodes:
        if node.kind not in (
            CursorKind.CALL,
            CursorKind.DECL_REF,
            CursorKind.MEMBER_REF_EXPR,
        ) or is_launcher_node(node):
            continue
        declaration = node.declaration
        if declaration is not None and declaration.kind in FUNCTIONS:
            if not is_allowed(unit, declaration, node.file, interface):
                yield at(node, "callee", _foreign(declaration.name, node.file))
        elif node.kind == CursorKind.CALL:
            yield from _open_call(unit, node, own, interface)


def is_allowed(unit: Unit, declaration: Declaration, file: str, interface: Interface) -> bool:
    """Whether a kernel may name this function."""
    match declaration.origin:
        case "own":
            return True
        case "twin":
            if declaration.is_internal:
                return declaration.name in interface.machinery or "@S@Expression" in declaration.usr
            return is_public(declaration, unit.signature(declaration))
    if declaration.name in BUILT_IN:
        return True
    if any(f"@S@{name}" in declaration.usr or f"@ST>{name}" in declaration.usr for name in STD_TYPES):
        return True
    return file == TILING and declaration.name in TILING_FUNCTIONS


def _open_call(unit: Unit, node: Node, own: frozenset[str], interface: Interface) -> Iterator[Finding]:
    """A call that a template leaves open, of something that is no function, or of a set of overloads."""
    parts = [child.declaration.name for child in node.children if child.declaration is not None]
    if any(name.startswith("operator") for name in parts):
        return  # of arithmetic on types that are open: whose it is, each type's own functions say
    name = unit.callee_name(node)
    target = node.declaration
    if target is not None and target.kind in (CursorKind.VARIABLE, CursorKind.PARAMETER, CursorKind.FIELD):
        signature = unit.signature(target)
        if signature.kind not in (CursorKind.RECORD, CursorKind.UNEXPOSED_TYPE, CursorKind.LVALUE_REFERENCE):
            message = Sentence(
                "{name} is called through a pointer; call the function by its name.", name=name
            )
            yield at(node, "callee", message)
        return
    if not name or (target is not None and target.kind in RECORDS):
        return
    if name not in own and name not in interface.callables and not name.startswith("operator"):
        yield at(node, "callee", _foreign(name, node.file))


def _foreign(name: str, file: str) -> Sentence:
    if file == TILING:
        return Sentence(
            "{name}() is none of the functions that the tiling may call: {known}; use one of these.",
            name=name,
            known=", ".join(f"{known}()" for known in sorted(TILING_FUNCTIONS)),
        )
    return Sentence("{name}() is not AscendC's nor the kernel's own; do without it.", name=name)
