"""The twin's machinery lies behind AscendC; a kernel names nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.interface import Interface
from evokernel_core.targets.ascendc.audit.kinds import CursorKind
from evokernel_core.targets.ascendc.audit.rules.scopes import is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

_REFERENCES = frozenset(
    (
        CursorKind.TYPE_REF,
        CursorKind.TEMPLATE_REF,
        CursorKind.DECL_REF,
        CursorKind.MEMBER_REF_EXPR,
        CursorKind.MEMBER_REF,
        CursorKind.OVERLOADED_REF,
    )
)
_RENAMING = frozenset((CursorKind.NAMESPACE_ALIAS, CursorKind.USING_DIRECTIVE, CursorKind.USING_DECLARATION))


def check_internals(unit: Unit, interface: Interface) -> Iterator[Finding]:
    """References to the twin's namespace, but for what its public macros stand for."""
    for node in unit.nodes:
        declaration = node.declaration
        if declaration is None or not declaration.is_internal or not _is_reference(node):
            continue
        if declaration.name in interface.machinery or _is_passed_on(node) or is_launcher_node(node):
            continue
        message = Sentence("{name} is the verifier's; choose another name.", name=declaration.name)
        yield at(node, "forbidden-name", message)
    for node in unit.nodes:
        if node.kind == CursorKind.INIT_LIST and _names_machinery(node) and not is_launcher_node(node):
            message = Sentence("A value of the verifier's own is made here; remove it.")
            yield at(node, "forbidden-name", message)


def _is_reference(node: Node) -> bool:
    """A namespace alone is named by using and by aliases; elsewhere what follows it decides."""
    renamed = node.parent is not None and node.parent.kind in _RENAMING
    return node.kind in _REFERENCES or (node.kind == CursorKind.NAMESPACE_REF and renamed)


def _names_machinery(node: Node) -> bool:
    return node.type.declaration is not None and node.type.declaration.is_internal


def _is_passed_on(node: Node) -> bool:
    """What ``a + b`` of two tensors is."""
    declaration = node.declaration
    return declaration is not None and "@ST>1#T@Expression" in declaration.usr
