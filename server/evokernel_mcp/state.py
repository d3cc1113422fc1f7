"""What the server remembers between calls: the regions of files as they were last planned."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from pathlib import Path

from attrs import define, field, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import from_data
from evokernel_core.synthesis.offers import Offer
from evokernel_core.targets import target_for
from evokernel_mcp.access import Access, Rules
from evokernel_mcp.foreign import told
from evokernel_mcp.pool import Pool

MOST_PLANS = 32


@frozen
class FilePlan:
    """The offers of a text of a file, or of one class or function in it."""

    digest: str
    offers: tuple[Offer, ...]
    interpreter: str


@define(eq=False)
class ServerState:
    """One server's."""

    rules: Rules
    pool: Pool
    _plans: OrderedDict[tuple[Path, str, bool], FilePlan] = field(factory=OrderedDict)
    _guides: OrderedDict[str, str] = field(factory=OrderedDict)

    @property
    def target(self) -> str:
        """The target that kernels are written in, by its name."""
        settings = self.pool.settings
        return target_for(settings.chip, settings.target)

    async def plan(self, path: Path, access: Access, symbol: str = "", *, programs: bool = True) -> FilePlan:
        """The offers of a file now. Raises UsageError, WorkerError."""
        text = access.text(access.trusted(path))
        params = {
            "path": str(path),
            "text": text,
            "symbol": symbol or None,
            "programs": programs,
            "workspace": str(access.root_of(path)),
        }
        answer = await self.pool.request("regions", params)
        offers = tuple(from_data(region, Offer) for region in answer["regions"])
        plan = FilePlan(_digest(text), offers, told(sentence_of(answer.get("interpreter", ""))))
        key = (path, symbol, programs)
        self._plans[key] = plan
        self._plans.move_to_end(key)
        while len(self._plans) > MOST_PLANS:
            self._plans.popitem(last=False)
        return plan

    async def offer(self, path: Path, region: str, access: Access) -> Offer:
        """A region of a file as it is now; planned again where the text has changed. Raises UsageError,
        WorkerError."""
        offers = self._known(path, region, _digest(access.text(access.trusted(path))))
        if not offers:
            plan = await self.plan(path, access)
            offers = [offer for offer in plan.offers if offer.region.id == region]
        if offers:
            return offers[0]
        raise UsageError(
            "{file} has no region {region} now: plan the file again for its regions.",
            file=path.name,
            region=region[:32],
        )

    def _known(self, path: Path, region: str, digest: str) -> list[Offer]:
        """A region in the plans of a text, the latest first. One that has no kernel of its own may have one
        in a plan with programs, which says all."""
        plans = (plan for (of, _, _), plan in reversed(self._plans.items()) if of == path)
        offers = (offer for plan in plans if plan.digest == digest for offer in plan.offers)
        matches = [offer for offer in offers if offer.region.id == region]
        return sorted(matches, key=lambda match: match.region.task is None)

    async def region(self, path: Path, region: str, access: Access) -> Region:
        """A region for which a kernel can be written. Raises UsageError that says why another has none."""
        planned = (await self.offer(path, region, access)).region
        if planned.task is None:
            raise UsageError(
                "No kernel can be written for line {line}: {reason}",
                line=planned.span.line,
                reason=planned.reason,
            )
        return planned

    def keep_guide(self, region_id: str, text: str) -> str:
        """Keeps a guide to be read; gives its URI."""
        self._guides[region_id] = text
        self._guides.move_to_end(region_id)
        while len(self._guides) > MOST_PLANS:
            self._guides.popitem(last=False)
        return f"evokernel://guide/{region_id}"

    def guide(self, region_id: str) -> str:
        """A guide that was kept. Raises UsageError."""
        if region_id not in self._guides:
            raise UsageError(
                "There is no guide for {region} yet: call brief for the region first.", region=region_id
            )
        return self._guides[region_id]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
