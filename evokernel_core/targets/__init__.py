"""Target languages, a folder each. This module alone knows them by name; it imports one when it is asked
for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evokernel_core.domain.errors import UsageError

if TYPE_CHECKING:
    from evokernel_core.compiler.author import KernelAuthor
    from evokernel_core.compiler.knowledge import Knowledge
    from evokernel_core.compiler.target import Target

TARGETS = ("ascendc",)


def load_target(name: str) -> Target:
    """The target of that name. Raises UsageError for an unknown one."""
    if name == "ascendc":
        from evokernel_core.targets.ascendc.target import ASCENDC

        return ASCENDC
    raise _unknown(name)


def load_knowledge(name: str) -> Knowledge:
    """What the target of that name tells in words. Raises UsageError for an unknown one."""
    if name == "ascendc":
        from evokernel_core.targets.ascendc.knowledge.prompting import AscendCKnowledge

        return AscendCKnowledge()
    raise _unknown(name)


def _unknown(name: str) -> UsageError:
    return UsageError(
        "There is no target called {name}; choose one of: {known}.", name=repr(name), known=", ".join(TARGETS)
    )


def author_for(device: str, target: str = TARGETS[0]) -> KernelAuthor:
    """The author of kernels for a device, by its name. Raises UsageError for an unknown one."""
    from evokernel_core.compiler.author import KernelAuthor

    written = load_target(target)
    return KernelAuthor(written, written.device(device))
