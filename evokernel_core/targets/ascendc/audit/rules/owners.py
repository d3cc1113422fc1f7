"""A candidate adds nothing to what others own: namespaces, templates, classes."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, RECORDS, CursorKind
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

_FOREIGN = ("c:@N@AscendC", "c:@N@std", "c:@N@evokernel", "c:@N@matmul", "c:@N@optiling")
_DECLARING = (
    FUNCTIONS | RECORDS | {CursorKind.VARIABLE, CursorKind.ENUM, CursorKind.TYPEDEF, CursorKind.TYPE_ALIAS}
)
_NAMES = frozenset(("AscendC", "std", "evokernel", "twin", "matmul", "optiling", "__gnu_cxx"))


def check_owners(unit: Unit) -> Iterator[Finding]:
    """Namespaces of others, specialisations of their templates, classes derived from theirs."""
    for node in unit.nodes:
        if node.kind in (CursorKind.NAMESPACE, CursorKind.NAMESPACE_ALIAS) and node.name in _NAMES:
            message = Sentence(
                "Namespace {name} belongs to others; put helpers in one of your own.", name=node.name
            )
            yield at(node, "namespace", message)
        elif node.kind == CursorKind.BASE and _is_foreign_base(node):
            yield at(node, "namespace", Sentence("A class of AscendC's is no base; keep one as a member."))
        elif node.kind in _DECLARING and _is_of_others(node):
            message = Sentence("{name} belongs to others; declare something of your own.", name=node.name)
            yield at(node, "namespace", message)


def _is_foreign_base(node: Node) -> bool:
    declaration = node.type.declaration
    return declaration is not None and declaration.origin != "own" and declaration.name != "integral_constant"


def _is_of_others(node: Node) -> bool:
    """A member or a specialisation: its name begins with the namespace of others."""
    return node.declaration is not None and node.declaration.usr.startswith(_FOREIGN)
