"""A kernel consists of the constructs on the list and of no others."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import CONSTRUCTS, CursorKind
from evokernel_core.targets.ascendc.audit.rules.scopes import is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Unit, at

_WORDS = {
    3: Sentence("A union"),
    121: Sentence("A statement expression"),
    125: "dynamic_cast",
    127: "const_cast",
    129: "typeid",
    133: "throw",
    134: "new",
    135: "delete",
    144: Sentence("A lambda"),
    201: Sentence("A label"),
    210: "goto",
    211: "goto",
    215: Sentence("Assembly"),
    224: "try",
    603: "friend",
}
_ALLOWED_ATTRIBUTES = frozenset((404, 405, 440))
"""final, override, nodiscard; maybe_unused has no number of its own and is read as a word."""


def check_constructs(unit: Unit) -> Iterator[Finding]:
    """Nodes of kinds that are not on the list."""
    for node in unit.nodes:
        if node.kind >= CursorKind.FIRST_ATTRIBUTE and node.kind < CursorKind.STATIC_ASSERT - 2:
            if node.kind not in _ALLOWED_ATTRIBUTES and node.kind != CursorKind.FIRST_ATTRIBUTE:
                yield at(node, "forbidden-name", Sentence("An attribute is not allowed here."))
        elif node.kind not in CONSTRUCTS or (node.kind == CursorKind.LAMBDA and not is_launcher_node(node)):
            what = _WORDS.get(node.kind, Sentence("This construct"))
            message = Sentence("{what} is not allowed in a kernel; use plain code.", what=what)
            yield at(node, "construct", message)
        elif node.kind == CursorKind.UNEXPOSED_DECL and unit.slice(node).strip(" ;\n"):
            yield at(node, "construct", Sentence("This declaration is not allowed in a kernel."))
