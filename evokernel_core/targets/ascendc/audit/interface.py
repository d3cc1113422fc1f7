"""AscendC as the twin's headers declare it: what a kernel may call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, RECORDS, CursorKind
from evokernel_core.targets.ascendc.audit.lists import names
from evokernel_core.targets.ascendc.audit.unit import Declaration, Type, Unit

WITHHELD = names("""
    PRINTF DumpTensor DumpAccChkPoint AscendCTimeStamp GetSystemCycle GetProgramCounter Trap ToFile
    Print printf assert
""")
"""Documented, but no part of computing a result: output, clocks, traps."""

_PUBLIC, _NOT_A_MEMBER = 1, 0
_MACHINERY = re.compile(r"evokernel::twin::(?:\w+::)*(?!At\b|Expression\b)\w+")
_NAMED = re.compile(r"evokernel::twin::(\w+)")
_WITHHELD_MACHINERY = frozenset(("Print", "ReadTiling", "TilingInPlace", "At"))
"""Output, and reading global memory past the tensors: a candidate gets its tiling by value."""


@frozen
class Interface:
    """``callables`` are names that a kernel may call; ``machinery`` those of the twin that its public
    macros stand for, such as ASCEND_IS_AIC."""

    callables: frozenset[str]
    machinery: frozenset[str]

    def to_json(self) -> Mapping[str, Any]:
        """The interface as plain data."""
        return {"callables": sorted(self.callables), "machinery": sorted(self.machinery)}

    @classmethod
    def from_json(cls, data: Mapping[str, Iterable[str]]) -> Interface:
        """The interface behind ``to_json``."""
        return cls(frozenset(data["callables"]), frozenset(data["machinery"]))


def interface_of(unit: Unit, include: Path) -> Interface:
    """The interface in a tree of all the twin's headers."""
    callables = {
        node.name.partition("<")[0]
        for node in unit.nodes
        if node.declaration is not None
        and node.kind in FUNCTIONS | RECORDS
        and (node.storage >> 12) in (_PUBLIC, _NOT_A_MEMBER)
        and is_public(node.declaration, node.type)
    }
    return Interface(frozenset(callables), _macro_names(include))


def is_public(declaration: Declaration, signature: Type) -> bool:
    """Whether something of the twin's is AscendC's: in its namespaces or global, with a signature that
    names no machinery and gives no address away."""
    if declaration.usr.startswith(("c:@N@evokernel", "c:@N@std")) or declaration.name in WITHHELD:
        return False
    if declaration.kind in RECORDS or declaration.kind == CursorKind.CONSTRUCTOR:
        return declaration.kind in RECORDS or not _MACHINERY.search(signature.spelling)
    result = signature.spelling.partition("(")[0].strip()
    return not _MACHINERY.search(signature.spelling) and not _is_number_address(result)


def _is_number_address(result: str) -> bool:
    if not result.endswith("*"):
        return False
    pointee = result.rstrip("* ").removeprefix("const ").strip()
    return "::" not in pointee


def _macro_names(include: Path) -> frozenset[str]:
    """What the bodies of public macros name of the twin."""
    names: set[str] = set()
    for header in include.rglob("*.h"):
        text = header.read_text(errors="replace").replace("\\\n", " ")
        for macro, body in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(.*)$", text, re.MULTILINE):
            if not macro.startswith(("EVK_", "EVOKERNEL")):
                names.update(_NAMED.findall(body))
    return frozenset(names - _WITHHELD_MACHINERY)
