"""Accepting verified kernels: their packages, one edit of the file, and what is recorded of it.

Several kernels of one file are put in place by one edit, which one undo takes back. What is refused, by
the editor, by changed code or by another window, leaves neither an edit nor a package, and the kernels still
wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen
from lsprotocol import types

from evokernel_core.domain.job import JobKind
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.placement import Placement, place_key
from evokernel_core.domain.region import Region
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.import_root import import_root
from evokernel_server.documents.branches import head_of
from evokernel_server.documents.calls import CHANGED, Calls, Package, write_package
from evokernel_server.documents.edits import Refusal
from evokernel_server.documents.packages import package_folder
from evokernel_server.documents.workspace import Document, Workspace
from evokernel_server.errors import Refused
from evokernel_server.jobs.queue import Best, JobQueue
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.worker import Worker, WorkerError
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.pending import Offer, Offers, microseconds, was_words
from evokernel_server.offers.placement_state import waiting
from evokernel_server.offers.ready import verified
from evokernel_server.offers.undo import Undo
from evokernel_server.options import Confirm, Options
from evokernel_server.texts.translations import _, sourced


@frozen
class ChosenKernel:
    """A verified kernel for a region's place; ``offer`` is decided with it."""

    region: Region
    best: Best
    offer: Offer | None = None


@frozen
class WrittenPackage:
    """The package of a choice, and whether it was not there before."""

    choice: ChosenKernel
    package: Package
    fresh: bool

    @property
    def name(self) -> str:
        return self.package.name


@define(eq=False)
class Acceptance:
    """Every method raises Refused with a sentence for the person."""

    workspace: Workspace
    worker: Worker
    calls: Calls
    jobs: JobQueue
    outcomes: OutcomeLog
    offers: Offers
    store: Store
    undo: Undo
    options: Callable[[], Options]
    own_client: Callable[[], bool]
    installed_changed: Callable[[Document], Awaitable[None]]
    _busy: set[str] = field(factory=set)

    # --- which kernels

    async def choose(self, document: Document, region_id: str, source_id: str = "") -> ChosenKernel:
        """The kernel that waits for a region, or a verified one that is named."""
        offer = self.offers.find(document.path, region_id)
        tracked = document.region(region_id)
        region = offer.region if offer else tracked.region if tracked else None
        if region is None or region.task is None:
            raise Refused(_(CHANGED))
        if offer is not None and offer.old is not None:
            raise Refused(
                _("{name} is called here already: choose its kernel by that name.", name=offer.name)
            )
        if offer is not None and source_id in ("", offer.source_id):
            return ChosenKernel(region, Best(offer.source_id, offer.new, offer.verifier), offer)
        return ChosenKernel(region, await self.verified(region, source_id), offer)

    async def verified(self, region: Region, source_id: str = "") -> Best:
        """A verified kernel of a region's task: the named one, else the fastest."""
        assert region.task is not None
        task_id, chip = region.task.task_id, self.options().settings.chip
        if source_id:
            best = await self.store(lambda memory: verified(memory, task_id, source_id))
        else:
            best = await self.store(lambda memory: _fastest(memory, task_id, chip))
        if best is None:
            raise Refused(_("No verified kernel is known for this code: generate one first."))
        return best

    # --- accepting

    async def accept(self, uri: str, choices: Sequence[ChosenKernel]) -> dict[str, Any]:
        """Puts kernels in place of the code of their regions by one edit."""
        document = self.workspace.opened(uri)
        async with self._claimed(document.path, choices):
            await self._check(document, choices)
            written = await self._packages(document.path, choices)
            regions = [(call.choice.region, call.name) for call in written]
            undone = self.undo.set_aside(document.path, [call.name for call in written])
            before = await self.calls.put(uri, regions, self._annotation(written))
            if isinstance(before, Refusal):
                self.undo.put_back(undone)
                await self._remove_fresh(document.path, written)
                raise Refused(before.reason)
            chosen = {choice.region.id for choice in choices}
            self.offers.cover(document.path, document.replaced.keys() - chosen)
            await self._record(document, written, before)
        await self.installed_changed(document)
        if self.options().settings.refine_in_background:
            for choice in choices:
                await self._refine(document.path, choice.region)
        return _answer(written)

    async def accept_some(self, uri: str, region_ids: Sequence[str], whole_id: str = "") -> dict[str, Any]:
        """The same for several regions of a file; ``whole_id`` is a larger region around them whose kernel
        was reviewed, and is taken in part."""
        document = self.workspace.opened(uri)
        whole = self.offers.find(document.path, whole_id) if whole_id not in ("", *region_ids) else None
        answer = await self.accept(
            uri, [await self.choose(document, region_id_) for region_id_ in region_ids]
        )
        if whole is not None and whole.old is None:
            self.offers.take(whole)
            await self.outcomes.record(OutcomeKind.PARTIALLY_ACCEPTED, whole.placement(0.0))
        return answer

    async def replace(self, file: Path, name: str, choice: ChosenKernel) -> dict[str, Any]:
        """Puts another kernel into the package of a call; the file is not edited."""
        region, best = choice.region, choice.best
        assert region.task is not None
        async with self._claimed(file, [choice]):
            package = await write_package(self.worker, region, best.source_id)
            old = self.outcomes.find(file, name)
            here = Placement(file, name, region.id, region.task.task_id, best.source_id, time.time())
            head = await asyncio.to_thread(head_of, file)
            placement = evolve(
                here, before=old.before if old else "", created=bool(old and old.created),
                head=head, region=region,
            )  # fmt: skip
            await self.outcomes.accept(placement)
        if choice.offer is not None:
            self.offers.take(choice.offer)
        document = self.workspace.at(file)
        if document is not None:
            await self.installed_changed(document)
        return {
            "status": "applied",
            "message": _sentences(_("{name} is now {new}.", name=name, new=_figure(best)), package.words),
            "name": name,
            "sourceId": best.source_id,
        }

    @asynccontextmanager
    async def _claimed(self, file: Path, choices: Sequence[ChosenKernel]) -> AsyncIterator[None]:
        """One acceptance at a time for a place, over all windows."""
        keys = sorted({_claim(file, choice.region.id) for choice in choices})
        if self._busy.intersection(keys):
            raise Refused(_("This kernel is being accepted already."))
        self._busy.update(keys)
        try:
            if not all(self.jobs.claims.take(key) for key in keys):
                raise Refused(_("Another window is accepting this kernel; look at the file there."))
            yield
        finally:
            for key in keys:
                self.jobs.claims.release(key, finished=True)
            self._busy.difference_update(keys)

    async def _check(self, document: Document, choices: Sequence[ChosenKernel]) -> None:
        """What is to be known before anything is written."""
        for choice in choices:
            if choice.offer is not None and choice.offer.old is None:
                await self._check_waiting(choice.offer)
        anchored = [document.anchored(choice.region) for choice in choices]
        if None in anchored:
            raise Refused(_(CHANGED))
        spans = [region.span for region in anchored if region is not None]
        for number, span in enumerate(spans):
            if any(span.overlaps(other) for other in spans[:number]):
                raise Refused(_("Two of these kernels are for the same code: accept one of them."))

    async def _check_waiting(self, offer: Offer) -> None:
        key = offer.placement(0.0).key
        outcomes = await self.store(lambda memory: memory.outcomes(key))
        if waiting(outcomes) is None:
            self.offers.take(offer)
            raise Refused(_("Another window decided about this kernel meanwhile; look at the file there."))

    async def _packages(self, file: Path, choices: Sequence[ChosenKernel]) -> list[WrittenPackage]:
        written: list[WrittenPackage] = []
        try:
            for choice in choices:
                before = await asyncio.to_thread(package_names, file)
                package = await write_package(self.worker, choice.region, choice.best.source_id)
                written.append(WrittenPackage(choice, package, package.name not in before))
        except WorkerError:
            await self._remove_fresh(file, written)
            raise
        return written

    async def _remove_fresh(self, file: Path, written: Sequence[WrittenPackage]) -> None:
        for call in written:
            if call.fresh:
                await asyncio.to_thread(shutil.rmtree, package_folder(file, call.name), True)

    async def _record(self, document: Document, written: Sequence[WrittenPackage], before: str) -> None:
        head = await asyncio.to_thread(head_of, document.path)
        created = await self._created(document.path, written)
        placements = [_placement(document.path, call, before, call.name in created, head) for call in written]
        await self.outcomes.accept(*placements)
        for call in written:
            if call.choice.offer is not None:
                self.offers.take(call.choice.offer)

    async def _created(self, file: Path, written: Sequence[WrittenPackage]) -> set[str]:
        """The packages that are there by acceptances alone: by these, or by some of equal code in other
        places that call them still."""
        created = {call.name for call in written if call.fresh}
        shared = {call.name for call in written} - created
        called = await self.store(lambda memory: [p for name in shared for p in memory.called(name)])

        def same() -> set[str]:
            root = import_root(file)
            return {
                placement.name
                for placement in called
                if placement.created and import_root(placement.file) == root
            }

        return created | await asyncio.to_thread(same)

    async def _refine(self, file: Path, region: Region) -> None:
        await self.jobs.add(JobKind.REFINE, file, region, self.options().settings.budget)

    def _annotation(self, written: Sequence[WrittenPackage]) -> types.ChangeAnnotation | None:
        """Where a person accepts without our review, the editor is asked to show the change first."""
        confirm = self.options().server.confirm_edits
        if confirm is Confirm.NEVER or (confirm is Confirm.AUTO and self.own_client()):
            return None
        names = ", ".join(call.name for call in written)
        label = _("Use {name}", name=names)
        return types.ChangeAnnotation(label, needs_confirmation=True, description=_words(written))


def _claim(file: Path, region_id: str) -> str:
    return f"accept-{hashlib.sha256(place_key(file, region_id).encode()).hexdigest()[:32]}"


def _fastest(memory: Any, task_id: str, chip: str) -> Best | None:
    """The fastest verified kernel by measured latencies, else by modelled ones."""
    for source in (LatencySource.MEASURED, LatencySource.MODELLED):
        result = memory.best(task_id, chip, source)
        if result is not None:
            return Best(result.source.source_id, result.verdict.latency, result.verdict.verifier)
    return None


def _placement(file: Path, written: WrittenPackage, before: str, created: bool, head: str) -> Placement:
    region, best = written.choice.region, written.choice.best
    assert region.task is not None
    return Placement(
        file, written.name, region.id, region.task.task_id, best.source_id, time.time(),
        before, created, head, region,
    )  # fmt: skip


def package_names(file: Path) -> set[str]:
    """The packages beside a file."""
    folder = package_folder(file, "x").parent
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _figure(best: Best) -> str:
    return sourced(microseconds(best.latency.us), best.latency.source.value)


def kernel_words(best: Best) -> str:
    """A kernel's figures and who verified it."""
    latency = best.latency
    return _(
        "{figure} (was {was}), verified by {verifier}",
        figure=_figure(best),
        was=was_words(latency),
        verifier=best.verifier,
    )


def _sentences(*said: str) -> str:
    return " ".join(filter(None, said))


def _words(written: Sequence[WrittenPackage]) -> str:
    return "; ".join(f"{call.name}: {kernel_words(call.choice.best)}" for call in written)


def _answer(written: Sequence[WrittenPackage]) -> dict[str, Any]:
    return {
        "status": "applied",
        "message": _sentences(_("{what}.", what=_words(written)), *(call.package.words for call in written)),
        "name": written[0].name,
        "sourceId": written[0].choice.best.source_id,
        "names": [call.name for call in written],
    }
