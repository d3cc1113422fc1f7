"""Packages and calls of kernels: the worker writes and plans them, the editor makes one edit of all calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from operator import attrgetter

from attrs import define, evolve, frozen
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_server.documents.edits import Refusal, apply, read_edits
from evokernel_server.documents.line_index import Edit, Extent, Text, edited, edits_between, re_anchor, shift
from evokernel_server.documents.workspace import Document, Tracked, Workspace, text_hash
from evokernel_server.jobs.worker import Worker, WorkerError
from evokernel_server.texts.translations import _, marked, told

log = logging.getLogger(__name__)

CHANGED = marked(
    "The code of this region changed since its kernel was made: undo that change, or generate it again."
)
EDIT_TRIES = 5
TOO_FAST = marked("The file changes too fast for an edit; ask again when you pause.")


@define(eq=False)
class Calls:
    """Plans and makes the edits that put calls of packages in place."""

    server: LanguageServer
    workspace: Workspace
    worker: Worker

    async def put(
        self,
        uri: str,
        regions: Sequence[tuple[Region, str]],
        annotation: types.ChangeAnnotation | None = None,
    ) -> Refusal | str:
        """Puts calls of packages in place; gives the hash of the text before, or why it was refused.

        The edit is planned on one version. Where the document moved on meanwhile it is planned again
        on the regions' new places.
        """
        label = _("EvoKernel: use {name}", name=", ".join(name for _region, name in regions))
        for _turn in range(EDIT_TRIES):
            document = self.workspace.get(uri)
            if document is None:
                return Refusal(_("The file was closed meanwhile; open it and ask again."))
            text, version = document.text, document.version
            try:
                edits = await self._plan(document, regions)
            except WorkerError as error:
                return Refusal(told(error))
            if isinstance(edits, Refusal):
                return edits
            if document.version != version:
                continue
            mark, covered = document.mark(), _covered(document, regions)
            refusal = await apply(self.server, document, edits, label, annotation)
            if refusal is None:
                document.replace(covered, mark)
                return text_hash(text.content)
            if document.version == version or annotation is not None:  # a person is asked once
                return refusal
        return Refusal(_(TOO_FAST))

    async def _plan(
        self, document: Document, regions: Sequence[tuple[Region, str]]
    ) -> Refusal | tuple[Edit, ...]:
        """The edit of all calls. Each is planned on the text that the ones before leave."""
        start = text = document.text
        anchored = [document.anchored(region) for region, _name in regions]
        extents = [start.extent(region.span) if region else None for region in anchored]
        edits: tuple[Edit, ...] = ()
        for number, (region, name) in enumerate(regions):
            extent = extents[number] or re_anchor(text.content, None, region.source)
            if extent is None:
                return Refusal(_(CHANGED))
            params = {
                "text": text.content, "region": to_data(evolve(region, span=text.span(extent))), "name": name,
            }  # fmt: skip
            edits = read_edits(text, (await self.worker.request_again("edit", params))["edits"])
            text, extents = _applied(text, edits, extents)
        if len(regions) == 1:
            return edits
        return await asyncio.to_thread(edits_between, start.content, text.content)


def _covered(document: Document, regions: Sequence[tuple[Region, str]]) -> tuple[Tracked, ...]:
    """The regions with code that is about to be a kernel's fallback."""
    anchored = [document.anchored(region) for region, _ in regions]
    return document.overlapping([document.text.extent(region.span) for region in anchored if region])


@frozen
class Package:
    """A package that was written; ``backup`` is the folder of the one that a person had changed, or empty."""

    name: str
    backup: str

    @property
    def words(self) -> str:
        """What a person is told of it; empty where there was no need for a backup."""
        if not self.backup:
            return ""
        return _(
            "{name} was changed by hand; your version is in {folder}.", name=self.name, folder=self.backup
        )


async def write_package(worker: Worker, region: Region, source_id: str) -> Package:
    """Writes a kernel's package, whole or not at all. Raises WorkerError."""
    params = {"region": to_data(region), "source_id": source_id}
    answer = await worker.request_again("package", params)
    package = Package(str(answer["name"]), str(answer["backup"]))
    if package.backup:
        log.warning("%s", package.words)
    return package


def _applied(
    text: Text, edits: Sequence[Edit], extents: Sequence[Extent | None]
) -> tuple[Text, list[Extent | None]]:
    """A text after edits, and where spans are then; None for those that an edit touched."""
    moved = list(extents)
    for edit in sorted(edits, key=attrgetter("start"), reverse=True):
        moved = [shift(extent, edit) if extent else None for extent in moved]
    return edited(text, edits), moved
