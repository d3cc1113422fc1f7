"""What a person asks for: generate a kernel, apply or turn down a faster one, take one out again."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.serial import to_data
from evokernel_server.edits import Refusal, apply, read_edits
from evokernel_server.jobs import VERIFIER_AWAY, AttemptEvent, Best, JobQueue, Report, region_of
from evokernel_server.offers import Offer, Offers, microseconds
from evokernel_server.options import Options
from evokernel_server.outcomes import OutcomeLog, Placement
from evokernel_server.packages import Installed, package_folder, read_installed
from evokernel_server.progress import Operation, Operations
from evokernel_server.store import Store
from evokernel_server.words import _, source_word
from evokernel_server.worker import Cancelled, Worker, WorkerError
from evokernel_server.workspace import Document, Workspace, text_hash

log = logging.getLogger(__name__)

_EDIT_TRIES = 5
REPLACEABLE = (RegionStatus.CANDIDATE, RegionStatus.VERIFIED, RegionStatus.INFEASIBLE)


class Refused(EvoKernelError):
    """What was asked for cannot be done; the message says why."""


@define(eq=False)
class Kernels:
    """The work behind the commands. Every method raises EvoKernelError with a sentence for the person."""

    server: LanguageServer
    workspace: Workspace
    worker: Worker
    jobs: JobQueue
    outcomes: OutcomeLog
    offers: Offers
    operations: Operations
    store: Store
    options: Callable[[], Options]
    trusts: Callable[[Path], bool]
    installed_changed: Callable[[Document], Awaitable[None]]
    verified_by: Callable[[str], None]

    async def generate(self, uri: str, region_id: str) -> dict[str, Any]:
        """Writes, verifies and puts in place a kernel for a region. Gives ``{"status", "message", ...}``."""
        document, region = self._region(uri, region_id)
        title = _("EvoKernel: {what} at line {line}", what=region.op_category, line=region.span.line)
        async with self.operations.begin(title, "ended") as operation:
            job = await self.jobs.add(JobKind.GENERATE, document.path, region, self.options().settings.budget)
            try:
                answer = await self._generate(document, region, job, operation)
            except Cancelled:
                answer = {"status": "cancelled", "message": _("The generation was cancelled.")}
            except WorkerError as error:
                away = error.reason == VERIFIER_AWAY
                answer = {"status": "queued" if away else "failed", "message": str(error)}
            operation.label = answer["message"]
        self._tell(answer)
        return answer

    async def preview(self, uri: str, region_id: str) -> str:
        """The exact request that a model would be asked first for a region, as JSON; nothing is sent."""
        _, region = self._region(uri, region_id)
        try:
            answer = await self.worker.request_again("preview", {"region": to_data(region)})
        except WorkerError as error:
            raise Refused(str(error)) from error
        return str(answer["text"])

    def _region(self, uri: str, region_id: str) -> tuple[Document, Region]:
        document = self.workspace.get(uri)
        tracked = document.region(region_id) if document else None
        if document is None or tracked is None:
            raise Refused(_("The code of this region changed meanwhile; ask again at its present place."))
        self._need_trust(document)
        if tracked.region.status not in REPLACEABLE:
            raise Refused(tracked.region.reason or _("No kernel can be written for this region."))
        return document, tracked.region

    def _need_trust(self, document: Document) -> None:
        if not self.trusts(document.path):
            raise Refused(_("This folder is not trusted, so its code is not run; trust it first."))

    async def _generate(
        self, document: Document, region: Region, job: Job, operation: Operation
    ) -> dict[str, Any]:
        report = await self.jobs.run_now(job, lambda event: _report(operation, event), operation.cancel)
        if report.best is None:
            return {"status": "infeasible", "message": _infeasible(report), "attempts": report.attempts}
        operation.report(_("verified; writing the package"), 1.0)
        try:
            return await self.place(document.uri, region, report.best, job)
        except EvoKernelError as error:
            await self.jobs.finish(job, JobState.FAILED, str(error))
            raise

    async def place(self, uri: str, region: Region, best: Best, job: Job | None) -> dict[str, Any]:
        """Writes the package of a verified kernel and puts its call into the document."""
        document = self.workspace.get(uri)
        if document is None:
            raise Refused(_("The file was closed before its kernel was ready; open it and ask again."))
        name, fresh = await self._package(document.path, region, best.source_id)
        before = await self._edit(uri, region, name)
        if isinstance(before, Refusal):
            await self._withdraw(document, name, fresh, job, before)
            return {"status": "refused", "message": before.reason, "name": name}
        self.verified_by(best.verifier)
        placement = Placement(
            document.path, name, region.id, _task_id(region), best.source_id, time.time(), before
        )
        await self.outcomes.accept(placement, job)
        if job is not None:
            self.jobs.claims.release(job.id, finished=True)
        await self.installed_changed(document)
        if self.options().settings.refine_in_background:
            await self.refine(document.path, region)
        return {
            "status": "applied",
            "message": _(
                "{name}: {new} {source} (was {old}), verified by {verifier}.",
                name=name,
                new=microseconds(best.latency.us),
                source=source_word(best.latency.source.value),
                old=microseconds(best.latency.baseline_us),
                verifier=best.verifier,
            ),
            "name": name,
            "sourceId": best.source_id,
        }

    async def use_vendor(self, uri: str, region_id: str) -> dict[str, Any]:
        """Puts a call of the vendor's operator in a region's place, under the guards of kernels."""
        document, region = self._region(uri, region_id)
        before = await asyncio.to_thread(_package_names, document.path)
        name = str((await self.worker.request_again("borrow", {"region": to_data(region)}))["name"])
        done = await self._edit(uri, region, name)
        if isinstance(done, Refusal):
            await self._withdraw(document, name, name not in before, None, done)
            raise Refused(done.reason)
        await self.installed_changed(document)
        return {
            "status": "applied",
            "message": _("{name} calls the vendor's operator.", name=name),
            "name": name,
        }

    async def _package(self, file: Path, region: Region, source_id: str) -> tuple[str, bool]:
        """The package's name, and whether it was not there before."""
        before = await asyncio.to_thread(_package_names, file)
        result = await self.worker.request_again(
            "package", {"region": to_data(region), "source_id": source_id}
        )
        name = str(result["name"])
        return name, name not in before

    async def _withdraw(
        self, document: Document, name: str, fresh: bool, job: Job | None, refusal: Refusal
    ) -> None:
        """A package whose call was refused is not left behind."""
        if fresh:
            await asyncio.to_thread(shutil.rmtree, package_folder(document.path, name), True)
        if job is not None:
            await self.jobs.finish(job, JobState.FAILED, refusal.reason)

    async def _edit(self, uri: str, region: Region, name: str) -> Refusal | str:
        """Puts the call in place; gives the hash of the text before, or why it was refused.

        The edit is planned on one version. Where the document moved on meanwhile it is planned again
        on the region's new place.
        """
        for _turn in range(_EDIT_TRIES):
            document = self.workspace.get(uri)
            anchored = document.anchored(region) if document else None
            if document is None or anchored is None:
                return Refusal(_("The code of this region changed while its kernel was made; ask again."))
            text, version = document.text, document.version
            params = {"text": text.content, "region": to_data(anchored), "name": name}
            try:
                result = await self.worker.request_again("edit", params)
            except WorkerError as error:
                return Refusal(str(error))
            if document.version != version:
                continue
            refusal = await apply(
                self.server,
                document,
                read_edits(text, result["edits"]),
                _("EvoKernel: use {name}", name=name),
            )
            if refusal is None:
                return text_hash(text.content)
            if document.version == version:
                return refusal
        return Refusal(_("The file changes too fast for an edit; ask again when you pause."))

    async def refine(self, file: Path, region: Region) -> Job:
        """Queues background refinement of a region's kernel."""
        return await self.jobs.add(JobKind.REFINE, file, region, self.options().settings.budget)

    async def refine_now(self, uri: str, name: str) -> dict[str, Any]:
        """Queues refinement of an installed kernel because a person asked."""
        document = self._document(uri)
        self._need_trust(document)
        region = await self.region_of(document.path, name)
        await self.refine(document.path, region)
        return {"status": "queued", "message": _("{name} is queued for refinement.", name=name)}

    def _document(self, uri: str) -> Document:
        document = self.workspace.get(uri)
        if document is None:
            raise Refused(_("Open the file first."))
        return document

    async def region_of(self, file: Path, name: str) -> Region:
        """The region that a generated call replaced, from the job that made it."""
        installed = await asyncio.to_thread(read_installed, file, name)
        if installed is not None and installed.region is not None:
            return evolve(installed.region, file=str(file))  # a manifest may name another
        jobs = await self.store(lambda memory: memory.jobs(file=str(file)))
        placed = self.outcomes.find(file, name)
        wanted = placed.task_id if placed else installed.task_id if installed else ""
        for job in reversed(jobs):
            if job.task_id == wanted and (placed is None or placed.region_id == job.region_id):
                return region_of(job)
        raise Refused(
            _("Nothing is known about the code that {name} replaced; use your version control.", name=name)
        )

    async def revert(self, uri: str, name: str) -> dict[str, Any]:
        """Takes a generated call out and puts the person's code back."""
        document = self._document(uri)
        region = await self.region_of(document.path, name)
        placement = self.outcomes.unwatch(document.path, name)
        refusal = await self._revert_edit(document, region, name)
        if refusal is not None:
            if placement is not None:
                self.outcomes.watch(placement)
            raise Refused(refusal.reason)
        if placement is not None:
            await self.outcomes.record(OutcomeKind.REVERTED, placement, "command")
        offer = self.offers.find(document.path, region.id)
        if offer is not None:
            self.offers.take(offer)
        await self.installed_changed(document)
        return {"status": "reverted", "message": _("{name} was taken out; your code is back.", name=name)}

    async def _revert_edit(self, document: Document, region: Region, name: str) -> Refusal | None:
        for _turn in range(_EDIT_TRIES):
            text, version = document.text, document.version
            params = {"text": text.content, "region": to_data(region), "name": name}
            try:
                result = await self.worker.request_again("revert_edit", params)
            except WorkerError as error:
                return Refusal(str(error))
            if document.version == version:
                edits = read_edits(text, result["edits"])
                return await apply(self.server, document, edits, _("EvoKernel: revert {name}", name=name))
        return Refusal(_("The file changes too fast for an edit; ask again when you pause."))

    async def apply_offer(self, offer: Offer) -> dict[str, Any]:
        """Puts an offered kernel in place: into its package, or into the file where it is not yet called."""
        self.offers.take(offer)
        best = Best(offer.source_id, offer.new, offer.verifier)
        document = self.workspace.at(offer.file)
        if offer.old is None:
            if document is None:
                raise Refused(_("Open the file first."))
            return await self.place(document.uri, offer.region, best, None)
        await self._package(offer.file, offer.region, offer.source_id)
        now = time.time()
        placement = offer.placement(now)
        old = self.outcomes.find(offer.file, offer.name)
        await self.outcomes.accept(evolve(placement, before=old.before if old else ""))
        if document is not None:
            await self.installed_changed(document)
        message = _("{name} is now {new}.", name=offer.name, new=microseconds(offer.new.us))
        return {"status": "applied", "message": message,
                "name": offer.name, "sourceId": offer.source_id}  # fmt: skip

    async def reject(self, offer: Offer, reason: str = "") -> dict[str, Any]:
        """Turns an offered kernel down for good."""
        self.offers.take(offer)
        await self.outcomes.record(OutcomeKind.REJECTED, offer.placement(0.0), reason)
        return {"status": "rejected", "message": _("{name} stays as it is.", name=offer.name)}

    async def snooze(self, offer: Offer) -> dict[str, Any]:
        """Keeps an offer for later."""
        self.offers.snooze(offer)
        await self.outcomes.record(OutcomeKind.SNOOZED, offer.placement(0.0))
        return {"status": "snoozed", "message": _("{name} will be offered again later.", name=offer.name)}

    async def restore_package(self, uri: str, name: str) -> dict[str, Any]:
        """Writes the package of a call again whose folder was deleted."""
        document = self._document(uri)
        self._need_trust(document)
        region = await self.region_of(document.path, name)
        placed = self.outcomes.find(document.path, name)
        if placed is None:
            raise Refused(
                _("No accepted kernel of {name} is known; revert it and generate it again.", name=name)
            )
        await self._package(document.path, region, placed.source_id)
        await self.installed_changed(document)
        return {"status": "applied", "message": _("The package of {name} is back.", name=name)}

    async def resumed(self, job: Job, report: Report) -> None:
        """A job ended that no command waits for: an offer, where there is something to offer."""
        file = Path(job.file)
        region = region_of(job)
        document = self.workspace.at(file)
        if document is not None:
            await self.outcomes.restore(document)
        if job.kind is JobKind.REFINE:
            await self._offer_refined(file, region)
            return
        fresh = await self.store(lambda memory: memory.job(job.id))
        if fresh is None or fresh.state is JobState.DONE:
            return
        await self.jobs.finish(job, JobState.DONE, "ready")
        if report.best is not None:
            await self._offer_first(file, region, report.best)

    async def _offer_refined(self, file: Path, region: Region) -> None:
        for placement in [p for p in self.outcomes.placements if p.file == file]:
            if placement.region_id == region.id:
                installed = await asyncio.to_thread(read_installed, file, placement.name)
                if installed is not None:
                    await self.offers.consider(self._uri(file), file, region, installed)

    async def _offer_first(self, file: Path, region: Region, best: Best) -> None:
        name = region.task.name if region.task else region.op_category
        offer = Offer(self._uri(file), file, region, name, best.source_id, None, best.latency, best.verifier)
        await self.offers.put(offer)

    def _uri(self, file: Path) -> str:
        document = self.workspace.at(file)
        return document.uri if document else file.as_uri()

    def _tell(self, answer: Mapping[str, Any]) -> None:
        """A request that did not end in an edit is answered in words."""
        if answer["status"] in {"applied", "cancelled"}:
            return
        self.server.window_show_message(
            types.ShowMessageParams(types.MessageType.Warning, f"EvoKernel: {answer['message']}")
        )


def _task_id(region: Region) -> str:
    assert region.task is not None
    return region.task.task_id


def _package_names(file: Path) -> set[str]:
    folder = package_folder(file, "x").parent
    return {item.name for item in folder.iterdir()} if folder.is_dir() else set()


def _report(operation: Operation, event: AttemptEvent) -> None:
    share = event.n / event.budget if event.budget else None
    words = _("attempt {n}/{budget}", n=event.n, budget=event.budget)
    if event.best_us:
        words += _(", best {us} modelled", us=microseconds(event.best_us))
    operation.report(words, share)


def _infeasible(report: Report) -> str:
    why = report.reason or _("no reason was given")
    return _("No kernel was verified in {count} attempts: {why}", count=report.attempts, why=why)


async def installed_kernels(document: Document) -> dict[str, Installed | None]:
    """The package of every generated call in a document; None for one that is missing."""
    return {name: await asyncio.to_thread(read_installed, document.path, name) for name in document.counts()}
