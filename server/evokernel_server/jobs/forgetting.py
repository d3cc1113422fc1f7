"""Deleting what the memory holds of a person, because that person asked for it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from evokernel_server.errors import Refused
from evokernel_server.texts.translations import _

if TYPE_CHECKING:
    from evokernel_server.host import Host


class What(StrEnum):
    DECISIONS = "decisions"
    """What the person did with kernels, and what that taught."""
    ALL = "all"
    """The whole memory: kernels, verdicts, experience, jobs. Packages and code of the person stay."""


async def forget(server: Host, what: str) -> str:
    """Deletes it; gives a sentence about what is left. Raises Refused while a person waits for a kernel."""
    if what == What.DECISIONS:
        await server.store(lambda memory: memory.forget_decisions())
        return _("Your decisions and learned preferences were deleted; kernels in your code stay.")
    if what != What.ALL:
        raise Refused(_("Say what to delete: your decisions, or the whole memory."))
    if server.operations.active:
        raise Refused(_("A kernel is being generated: cancel it or wait for it, then delete the memory."))

    async def empty() -> None:
        await server.store(lambda memory: memory.forget_everything())

    await server.jobs.alone(empty)
    for offer in list(server.offers.pending.values()):
        server.offers.take(offer)
    for placement in list(server.outcomes.placements):
        server.outcomes.unwatch(placement.file, placement.name)
    return _("The memory is empty now; kernels in your code stay.")
