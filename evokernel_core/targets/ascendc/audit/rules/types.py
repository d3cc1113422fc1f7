"""Variables, parameters and members are numbers, AscendC's objects and the candidate's own structures."""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import CursorKind
from evokernel_core.targets.ascendc.audit.lists import names
from evokernel_core.targets.ascendc.audit.rules.scopes import is_launcher_node
from evokernel_core.targets.ascendc.audit.unit import Declaration, Type, Unit, at

STD_TYPES = names("""
    is_same is_same_v is_integral is_integral_v is_floating_point is_floating_point_v conditional
    conditional_t enable_if enable_if_t true_type false_type integral_constant bool_constant
    remove_reference remove_reference_t decay decay_t numeric_limits is_signed is_signed_v is_unsigned
    is_unsigned_v
""")
_DECLARING = frozenset(
    (CursorKind.VARIABLE, CursorKind.PARAMETER, CursorKind.FIELD, CursorKind.TYPEDEF, CursorKind.TYPE_ALIAS)
)
_NAMING = frozenset((CursorKind.TYPE_REF, CursorKind.TEMPLATE_REF))


_OF_THE_HOST = frozenset(
    (CursorKind.UNSIGNED_CHAR, CursorKind.SIGNED_CHAR, CursorKind.WIDE_CHAR, CursorKind.LONG_DOUBLE)
)
"""Whether ``char`` and ``wchar_t`` have a sign, and how many digits a ``long double`` has, is another on
x86-64 than on AArch64: host code that asks decides otherwise there."""


def check_types(unit: Unit) -> Iterator[Finding]:
    """Declarations of types that are not on the list, and names of them."""
    for node in unit.nodes:
        if is_launcher_node(node):
            continue
        if node.type.stripped in _OF_THE_HOST and not node.type.pointers:
            message = Sentence(
                "{type} differs between hosts; use int8_t, uint8_t, int32_t or float.",
                type=node.type.spelling,
            )
            yield at(node, "type", message)
        elif node.kind in _DECLARING and (what := _refused(node.type)):
            name = node.name or Sentence("A parameter")
            message = Sentence("{name} is {what}; use numbers and tensors.", name=name, what=what)
            yield at(node, "type", message)
        elif node.type.kind == CursorKind.MEMBER_POINTER:
            yield at(node, "type", Sentence("A pointer to a member is not allowed in a kernel."))
        elif node.kind in _NAMING and _is_foreign(node.declaration, node.type):
            name = node.declaration.name if node.declaration else node.name
            message = Sentence("{name} is not allowed in a kernel; do without it.", name=name)
            yield at(node, "forbidden-name", message)


def _refused(written: Type) -> Sentence:
    """What is wrong with a type, "" where nothing is."""
    if written.stripped == CursorKind.FUNCTION:
        return Sentence("a pointer to a function")
    if CursorKind.MEMBER_POINTER in (written.stripped, written.kind):
        return Sentence("a pointer to a member")
    if written.stripped == CursorKind.RECORD and _is_foreign(written.declaration, written):
        return Sentence("of type {name}", name=written.spelling)
    return Sentence()


def _is_foreign(declaration: Declaration | None, written: Type) -> bool:
    if declaration is None or declaration.origin != "system":
        return False
    return declaration.name not in STD_TYPES and written.stripped not in _NUMBERS


_NUMBERS = frozenset(range(CursorKind.VOID, CursorKind.HALF + 1)) | {int(CursorKind.UNEXPOSED_TYPE)}
