"""The places that commands name: a region of an open document, or the call of an installed kernel."""

from __future__ import annotations

import asyncio

from attrs import frozen

from evokernel_core.domain.placement import Placement
from evokernel_core.domain.region import Region
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_server.documents.packages import Installed, read_installed
from evokernel_server.documents.workspace import Document
from evokernel_server.errors import Refused
from evokernel_server.jobs.requests import Kernels
from evokernel_server.texts.translations import _


@frozen
class Spot:
    """A place that a command names: a region of an open document, and where its kernel is called already the
    package. ``offered`` is the kernel that waits for a decision there."""

    document: Document
    region: Region
    task: KernelTask
    name: str = ""
    installed: Installed | None = None
    offered: str = ""

    @property
    def wanted(self) -> LatencySource | None:
        """Whose figures compare with those of the installed kernel."""
        return self.installed.latency.source if self.installed else None

    def placement(self, name: str, source_id: str) -> Placement:
        """How outcomes name a kernel that is looked at here."""
        return Placement(self.document.path, name, self.region.id, self.task.task_id, source_id, 0.0)


async def spot_of(kernels: Kernels, uri: str, region_id: str, name: str) -> Spot:
    """What a command's place is. Raises Refused where nothing is there."""
    document = kernels.workspace.get(uri)
    if document is None:
        raise Refused(_("Open the file first."))
    if not kernels.trusts(document.path):
        raise Refused(_("This folder is not trusted, so its code is not run; trust it first."))
    offer = kernels.offers.find(document.path, region_id, name)
    name = name or _called(kernels, document, region_id) or (offer.name if offer and offer.old else "")
    region = await _region(kernels, document, region_id, name)
    if region is None and offer is not None:
        region = offer.region
    if region is None or region.task is None or region.site is None:
        raise Refused(_("The code of this region changed meanwhile; ask again at its present place."))
    installed = await asyncio.to_thread(read_installed, document.path, name) if name else None
    if installed is not None and installed.function:
        raise Refused(
            _("{name} calls the vendor's operator, of which there is no kernel to show.", name=name)
        )
    return Spot(document, region, region.task, name, installed, offer.source_id if offer else "")


def _called(kernels: Kernels, document: Document, region_id: str) -> str:
    """The name of the kernel that took a region's place."""
    placed = kernels.outcomes.placements
    here = (
        placement
        for placement in placed
        if (placement.file, placement.region_id) == (document.path, region_id)
    )
    return next((placement.name for placement in here if placement.name in document.counts()), "")


async def _region(kernels: Kernels, document: Document, region_id: str, name: str) -> Region | None:
    if name:
        return await kernels.region_of(document.path, name)
    tracked = document.region(region_id)
    return tracked.region if tracked is not None else None
