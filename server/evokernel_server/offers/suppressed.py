"""Places where a person wants no kernel: no hint, lens, action, diagnostic, offer or background work.

A place is a region's identity in its file (symbol, text, and its number among equals), so it stays what it
is while other lines change and across restarts; code that was rewritten is new code.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from attrs import define

from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.placement import place_key
from evokernel_core.domain.region import Region
from evokernel_server.documents.workspace import Document
from evokernel_server.errors import Refused
from evokernel_server.jobs.queue import JobQueue
from evokernel_server.jobs.store import Store
from evokernel_server.offers.pending import Offers
from evokernel_server.offers.placement_state import is_never
from evokernel_server.texts.translations import _, many

_KINDS = (OutcomeKind.NEVER, OutcomeKind.OFFERED_AGAIN)


@define(eq=False)
class Nevers:
    """``changed`` hears of a document with other regions to show; ``again`` captures one anew."""

    store: Store
    jobs: JobQueue
    offers: Offers
    changed: Callable[[Document], None]
    again: Callable[[Document], None]

    async def holds(self, file: Path, region_id: str) -> bool:
        key = place_key(file, region_id)
        return is_never(await self.store(lambda memory: memory.outcomes(key)))

    async def load(self, document: Document) -> None:
        """Takes off a document's page what is wanted nowhere in it, and brings back what is wanted again, as
        where another window said so."""
        hidden = await self._of(document.path)
        if hidden - document.hidden:
            document.hide(hidden)
            self.changed(document)
        elif document.hidden - hidden:
            document.hide(hidden)
            self.again(document)

    async def _of(self, file: Path) -> frozenset[str]:
        """The ids of the regions of a file where no kernel is wanted."""
        end = place_key(file, "")
        result: dict[str, OutcomeKind] = {}
        for outcome in await self.store(lambda memory: memory.outcomes_of(_KINDS)):
            if outcome.region_id.endswith(end):
                result[outcome.region_id.removesuffix(end)] = outcome.kind
        return frozenset(id for id, kind in result.items() if kind is OutcomeKind.NEVER)

    async def say(self, document: Document, region_id: str) -> dict[str, str]:
        """Never here: what is known of the place goes, and so does work for it."""
        offer = self.offers.find(document.path, region_id)
        tracked = document.region(region_id)
        region = tracked.region if tracked else offer.region if offer else None
        if region is None:
            raise Refused(_("The code of this region changed meanwhile; ask again at its present place."))
        await self._record(OutcomeKind.NEVER, document.path, region, offer.source_id if offer else "")
        await self.jobs.drop(str(document.path), region_id)
        if offer is not None:
            self.offers.take(offer)
        document.hide(document.hidden | {region_id})
        self.changed(document)
        return {
            "status": "never",
            "message": _(
                "No kernel is offered any more for this {what} in {where}; *Offer Kernels Again* "
                "takes that back.",
                what=region.op_category,
                where=region.symbol,
            ),
        }

    async def offer_again(self, document: Document) -> dict[str, str]:
        """Takes back every never of a file."""
        hidden = await self._of(document.path)
        for region_id in sorted(hidden):
            await self._save(OutcomeKind.OFFERED_AGAIN, place_key(document.path, region_id), "", "")
        document.hide(frozenset())
        self.again(document)
        message = (
            _("Kernels were offered everywhere in this file.")
            if not hidden
            else many(
                "Kernels are offered again at {count} place.",
                "Kernels are offered again at {count} places.",
                len(hidden),
            )
        )
        return {"status": "offered_again", "message": message}

    async def _record(self, kind: OutcomeKind, file: Path, region: Region, source_id: str) -> None:
        task_id = region.task.task_id if region.task else ""
        await self._save(kind, place_key(file, region.id), task_id, source_id)

    async def _save(self, kind: OutcomeKind, key: str, task_id: str, source_id: str) -> None:
        outcome = Outcome(kind, key, task_id, source_id, time.time())
        await self.store(lambda memory: memory.record_outcome(outcome))
