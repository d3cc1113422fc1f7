"""The audit's rules on the syntax tree, one to a file.

Each is a function of the unit, and of the interface where it needs that, that yields findings; it looks
at every node once.
"""

from __future__ import annotations

from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.targets.ascendc.audit.interface import Interface
from evokernel_core.targets.ascendc.audit.rules.callees import check_callees
from evokernel_core.targets.ascendc.audit.rules.casts import check_casts
from evokernel_core.targets.ascendc.audit.rules.constructs import check_constructs
from evokernel_core.targets.ascendc.audit.rules.internals import check_internals
from evokernel_core.targets.ascendc.audit.rules.literals import check_literals
from evokernel_core.targets.ascendc.audit.rules.members import check_members
from evokernel_core.targets.ascendc.audit.rules.owners import check_owners
from evokernel_core.targets.ascendc.audit.rules.pointers import check_pointers
from evokernel_core.targets.ascendc.audit.rules.state import check_state
from evokernel_core.targets.ascendc.audit.rules.tiling import check_tiling
from evokernel_core.targets.ascendc.audit.rules.types import check_types
from evokernel_core.targets.ascendc.audit.unit import Unit

__all__ = ["findings"]


def findings(unit: Unit, interface: Interface, operations: int) -> Iterator[Finding]:
    """Every finding of every rule but that of the launcher, for a task of so many ``operations``."""
    yield from check_constructs(unit)
    yield from check_callees(unit, interface)
    yield from check_internals(unit, interface)
    yield from check_types(unit)
    yield from check_casts(unit)
    yield from check_pointers(unit)
    yield from check_state(unit)
    yield from check_owners(unit)
    yield from check_members(unit)
    yield from check_literals(unit)
    yield from check_tiling(unit, operations)
