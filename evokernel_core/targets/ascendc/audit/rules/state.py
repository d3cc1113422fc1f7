"""Nothing survives from one launch to the next, and nothing runs before the first one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.kinds import FUNCTIONS, CursorKind
from evokernel_core.targets.ascendc.audit.unit import Node, Unit, at

_EXTERN, _STATIC = 2, 3


def check_state(unit: Unit) -> Iterator[Finding]:
    """Variables outside of functions, static and thread-local ones, unless they are constexpr."""
    for node in unit.nodes:
        if node.kind != CursorKind.VARIABLE or not _lasts(node) or _is_constexpr(unit, node):
            continue
        message = Sentence("The variable {name} outlives a launch; make it constexpr.", name=node.name)
        yield at(node, "global-state", message)


def _lasts(node: Node) -> bool:
    storage, thread_local = node.storage & 0xFF, node.storage >> 8 & 0xF
    if storage in (_EXTERN, _STATIC) or thread_local:
        return True
    return not any(above.kind in FUNCTIONS or above.kind == CursorKind.LAMBDA for above in node.ancestors())


def _is_constexpr(unit: Unit, node: Node) -> bool:
    head = re.split(r"[={(]", unit.slice(node), maxsplit=1)[0]
    return re.search(r"\bconstexpr\b", head) is not None
