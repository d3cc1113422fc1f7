"""No numbers in the text that could hold results which were computed elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import LITERALS, CursorKind
from evokernel_core.targets.ascendc.audit.rules.scopes import is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

MAX_TABLE = 64
"""Numbers in one initialiser; a longer list is a table of results rather than of masks or strides."""
MAX_DISTINCT_BYTES = 2048
"""Bytes of all different numbers of a kernel together."""
MAX_CONSTANT = 512
"""Bytes of one array or structure that the compiler fills."""


MAX_CASES = 256
"""Cases of all switches, and names of all enumerations: each can stand for an entry of a table."""
_TABLES = (
    (CursorKind.CASE, Sentence("cases")),
    (CursorKind.ENUM_CONSTANT, Sentence("names in enumerations")),
)


def check_literals(unit: Unit) -> Iterator[Finding]:
    """Long tables, tables cut in pieces, constants that the compiler computed, strings."""
    for node in unit.nodes:
        if node.kind == CursorKind.INIT_LIST and (
            node.parent is None or node.parent.kind != CursorKind.INIT_LIST
        ):
            numbers = sum(below.kind in LITERALS for below in node.below())
            if numbers > MAX_TABLE:
                message = Sentence(
                    "A table of {count} numbers is not allowed; compute the values in the kernel.",
                    count=numbers,
                )
                yield at(node, "constant-table", message)
        elif node.kind == CursorKind.STRING and not _is_explanation(node) and not is_launcher_node(node):
            yield at(node, "constant-table", Sentence("A string is not allowed in a kernel."))
        elif node.kind == CursorKind.VARIABLE and _is_big_constant(unit, node):
            message = Sentence(
                "{name} takes {size} bytes; the limit for a constant is {most}.",
                name=node.name,
                size=node.type.size,
                most=MAX_CONSTANT,
            )
            yield at(node, "constant-table", message)
    yield from _all_together(unit)
    for kind, what in _TABLES:
        nodes = [node for node in unit.nodes if node.kind == kind]
        if len(nodes) > MAX_CASES:
            message = Sentence(
                "A kernel of {count} {what} is a table; the limit is {most}.",
                count=len(nodes),
                what=what,
                most=MAX_CASES,
            )
            yield at(nodes[MAX_CASES], "constant-table", message)


def _is_explanation(node: Node) -> bool:
    return any(above.kind in (CursorKind.STATIC_ASSERT, CursorKind.LINKAGE) for above in node.ancestors())


def _is_big_constant(unit: Unit, node: Node) -> bool:
    return node.type.size > MAX_CONSTANT and "constexpr" in unit.slice(node).partition("=")[0]


def _all_together(unit: Unit) -> Iterator[Finding]:
    different: dict[str, Node] = {}
    for node in unit.nodes:
        if node.kind in LITERALS:
            different.setdefault(unit.slice(node), node)
    total = sum(_bytes_of(text) for text in different)
    if total > MAX_DISTINCT_BYTES:
        first = next(iter(different.values()))
        message = Sentence(
            "The kernel's {count} different numbers hold {total} bytes; the limit is {most}: compute values, "
            "do not list them.",
            count=len(different),
            total=total,
            most=MAX_DISTINCT_BYTES,
        )
        yield at(first, "constant-table", message)


def _bytes_of(literal: str) -> int:
    """What a literal can tell: its digits, at 2.4 to the byte; small numbers count one."""
    digits = sum(character.isalnum() for character in literal)
    return 1 if digits <= 2 else -(-digits * 5 // 12)
