"""What a person asks for: generate a kernel, turn one down, take one out again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve
from lsprotocol import types
from pygls.lsp.server import LanguageServer

from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import to_data
from evokernel_server.documents.calls import EDIT_TRIES, TOO_FAST, write_package
from evokernel_server.documents.edits import Refusal, apply, read_edits
from evokernel_server.documents.line_index import edited
from evokernel_server.documents.packages import Installed, package_folder, read_installed
from evokernel_server.documents.workspace import Document, Workspace, text_hash
from evokernel_server.errors import Refused
from evokernel_server.jobs.progress import Operations, WorkProgress
from evokernel_server.jobs.queue import CANNOT_JUDGE_YET, AttemptEvent, Best, JobQueue, Report, region_of
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.worker import Cancelled, Worker, WorkerError
from evokernel_server.offers.acceptance import Acceptance, ChosenKernel, kernel_words, package_names
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.overlaps import REPLACEABLE
from evokernel_server.offers.pending import NO_KERNEL_WAITS, Offer, Offers, microseconds
from evokernel_server.offers.ready import Ready
from evokernel_server.options import Options
from evokernel_server.texts.hazards import with_help
from evokernel_server.texts.translations import _, many, sourced, told


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
    ready: Ready
    acceptance: Acceptance
    options: Callable[[], Options]
    trusts: Callable[[Path], bool]
    own_client: Callable[[], bool]
    installed_changed: Callable[[Document], Awaitable[None]]

    async def generate(self, uri: str, region_id: str) -> dict[str, Any]:
        """Writes and verifies a kernel for a region, which then waits for review; with ``editAtOnce`` it is
        put in place. Gives ``{"status", "message", ...}``."""
        document, region = self._region(uri, region_id)
        title = _("EvoKernel: {what} at line {line}", what=region.op_category, line=region.span.line)
        async with self.operations.begin(title, "ended") as operation:
            job = await self.jobs.add(JobKind.GENERATE, document.path, region, self.options().settings.budget)
            try:
                answer = await self._generate(document, region, job, operation)
            except Cancelled:
                answer = {"status": "cancelled", "message": _("The generation was cancelled.")}
            except WorkerError as error:
                answer = {"status": "failed", "message": told(error)}
                if error.reason in CANNOT_JUDGE_YET:
                    answer = {
                        "status": "queued",
                        "message": _(
                            "{why} The kernel is written by itself as soon as that is done.",
                            why=error.sentence,
                        ),
                    }
            operation.label = answer["message"]
        self._tell(answer)
        return answer

    async def preview(self, uri: str, region_id: str) -> str:
        """The exact request that a model would be asked first for a region, as JSON; nothing is sent."""
        _document, region = self._region(uri, region_id)
        try:
            answer = await self.worker.request_again("preview", {"region": to_data(region)})
        except WorkerError as error:
            raise Refused(error.sentence) from error
        return str(answer["text"])

    def _region(self, uri: str, region_id: str) -> tuple[Document, Region]:
        document = self.workspace.get(uri)
        if document is not None and region_id in document.hidden:
            raise Refused(
                _("You said never here: run EvoKernel's *Offer Kernels Again* for this file first.")
            )
        tracked = document.region(region_id) if document else None
        if document is None or tracked is None:
            raise Refused(_("The code of this region changed meanwhile; ask again at its present place."))
        self._need_trust(document)
        if tracked.region.status not in REPLACEABLE:
            raise Refused(told(tracked.region.reason) or _("No kernel can be written for this region."))
        return document, tracked.region

    def _need_trust(self, document: Document) -> None:
        if not self.trusts(document.path):
            raise Refused(_("This folder is not trusted, so its code is not run; trust it first."))

    async def _generate(
        self, document: Document, region: Region, job: Job, operation: WorkProgress
    ) -> dict[str, Any]:
        report = await self.jobs.run_now(job, lambda event: _report(operation, event), operation.cancel)
        if report.best is None:
            return {"status": "infeasible", "message": _infeasible(report), "attempts": report.attempts}
        offer = await self.ready.become(document.uri, document.path, region, report.best, job, told=True)
        if offer is None:
            message = _("Only a kernel that you rejected was found.")
            return {"status": "infeasible", "message": message}
        if self.options().server.edit_at_once:
            operation.report(_("verified; writing the package"), 1.0)
            return await self.acceptance.accept(
                document.uri, [await self.acceptance.choose(document, region.id)]
            )
        return {
            "status": "ready",
            "message": _(
                "{name} is ready: {what}. Nothing was edited; review it.",
                name=offer.name,
                what=kernel_words(report.best),
            ),
            "regionId": region.id,
            "sourceId": offer.source_id,
        }

    async def use_vendor(self, uri: str, region_id: str) -> dict[str, Any]:
        """Puts a call of the vendor's operator in a region's place, under the guards of kernels."""
        document, region = self._region(uri, region_id)
        before = await asyncio.to_thread(package_names, document.path)
        name = str((await self.worker.request_again("borrow", {"region": to_data(region)}))["name"])
        done = await self.acceptance.calls.put(uri, [(region, name)])
        if isinstance(done, Refusal):
            if name not in before:
                await asyncio.to_thread(shutil.rmtree, package_folder(document.path, name), True)
            raise Refused(done.reason)
        await self.installed_changed(document)
        return {
            "status": "applied",
            "message": _("{name} calls the vendor's operator.", name=name),
            "name": name,
        }

    async def refine(self, file: Path, region: Region) -> Job:
        """Queues background refinement of a region's kernel."""
        return await self.jobs.add(JobKind.REFINE, file, region, self.options().settings.budget)

    async def refine_now(self, uri: str, name: str) -> dict[str, Any]:
        """Queues refinement of an installed kernel because a person asked."""
        document = self.workspace.opened(uri)
        self._need_trust(document)
        region = await self.region_of(document.path, name)
        await self.refine(document.path, region)
        return {"status": "queued", "message": _("{name} is queued for refinement.", name=name)}

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
        document = self.workspace.opened(uri)
        region = await self.region_of(document.path, name)
        with self.outcomes.leaving(document.path, name) as placement:
            done = await self._revert_edit(document, region, name)
            if isinstance(done, Refusal):
                if placement is not None:
                    self.outcomes.watch(placement)
                raise Refused(done.reason)
            if placement is not None:
                self.outcomes.reverted_to(placement, done)
                await self.outcomes.record(OutcomeKind.REVERTED, placement, "command")
        if placement is not None:
            await self.acceptance.undo.gone(placement, Standing.REVERTED, with_package=True)
        await self.jobs.drop(str(document.path), region.id)
        offer = self.offers.find(document.path, region.id)
        if offer is not None:
            self.offers.take(offer)
        await self.ready.restore(document)
        await self.installed_changed(document)
        return {"status": "reverted", "message": _("{name} was taken out; your code is back.", name=name)}

    async def _revert_edit(self, document: Document, region: Region, name: str) -> Refusal | str:
        """Gives the hash of the text without the call, or why it was refused."""
        for _turn in range(EDIT_TRIES):
            text, version = document.text, document.version
            params = {"text": text.content, "region": to_data(region), "name": name}
            try:
                result = await self.worker.request_again("revert_edit", params)
            except WorkerError as error:
                return Refusal(told(error))
            if document.version == version:
                edits = read_edits(text, result["edits"])
                label = _("EvoKernel: revert {name}", name=name)
                refusal = await apply(self.server, document, edits, label)
                return refusal or text_hash(edited(text, edits).content)
        return Refusal(_(TOO_FAST))

    async def apply(
        self, uri: str, region_id: str, name: str, source_id: str, region_ids: Sequence[str]
    ) -> dict[str, Any]:
        """Accepts the kernel that waits for a region or is offered for a call, the verified one that is
        named, or those of several regions."""
        document = self.workspace.opened(uri)
        if region_ids:
            return await self.acceptance.accept_some(uri, region_ids, region_id)
        offer = self.offers.find(document.path, region_id, name)
        if offer is not None and source_id in ("", offer.source_id):
            return await self.apply_offer(offer)
        if not source_id:
            raise Refused(_(NO_KERNEL_WAITS))
        self._need_trust(document)
        name = name or (offer.name if offer is not None and offer.old is not None else "")
        if not name:
            return await self.acceptance.accept(
                uri, [await self.acceptance.choose(document, region_id, source_id)]
            )
        region = await self.region_of(document.path, name)
        choice = ChosenKernel(region, await self.acceptance.verified(region, source_id), offer)
        return await self.acceptance.replace(document.path, name, choice)

    async def apply_offer(self, offer: Offer) -> dict[str, Any]:
        """Puts an offered kernel in place: into its package, or into the file where it is not yet called."""
        choice = ChosenKernel(offer.region, Best(offer.source_id, offer.new, offer.verifier), offer)
        if offer.old is not None:
            return await self.acceptance.replace(offer.file, offer.name, choice)
        document = self.workspace.at(offer.file)
        if document is None:
            raise Refused(_("Open the file first."))
        return await self.acceptance.accept(document.uri, [choice])

    async def reject(self, offer: Offer, reason: str = "") -> dict[str, Any]:
        """Turns an offered kernel down for good."""
        await self.outcomes.record(OutcomeKind.REJECTED, offer.placement(0.0), reason)
        self.offers.take(offer)
        message = _("{name} is unchanged.", name=offer.name)
        if offer.old is None:
            message = _("Your code is unchanged, and this kernel is not offered again.")
        return {"status": "rejected", "message": message}

    async def snooze(self, offer: Offer) -> dict[str, Any]:
        """Keeps an offer for later."""
        self.offers.snooze(offer)
        await self.outcomes.record(OutcomeKind.SNOOZED, offer.placement(0.0))
        return {"status": "snoozed", "message": _("{name} will be offered again later.", name=offer.name)}

    async def restore_package(self, uri: str, name: str) -> dict[str, Any]:
        """Writes the package of a call again whose folder was deleted."""
        document = self.workspace.opened(uri)
        self._need_trust(document)
        region = await self.region_of(document.path, name)
        placed = self.outcomes.find(document.path, name)
        if placed is None:
            raise Refused(
                _("No accepted kernel of {name} is known; revert it and generate it again.", name=name)
            )
        await write_package(self.worker, region, placed.source_id)
        await self.installed_changed(document)
        return {"status": "applied", "message": _("The package of {name} is back.", name=name)}

    async def repackage(self, placement: Placement) -> None:
        """Writes the package of a call whose file was moved, beside its new place and with its new name."""
        file = placement.file
        if self.trusts(file):
            region = await self.region_of(file, placement.name)
            await write_package(self.worker, evolve(region, file=str(file)), placement.source_id)
        document = self.workspace.at(file)
        if document is not None:
            await self.installed_changed(document)

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
        if report.best is None:
            await self.jobs.finish(job, JobState.DONE)
        else:
            await self.ready.become(self._uri(file), file, region, report.best, job)

    async def _offer_refined(self, file: Path, region: Region) -> None:
        for placement in [p for p in self.outcomes.placements if p.file == file]:
            if placement.region_id == region.id:
                installed = await asyncio.to_thread(read_installed, file, placement.name)
                if installed is not None:
                    await self.offers.consider(self._uri(file), file, region, installed)

    def _uri(self, file: Path) -> str:
        document = self.workspace.at(file)
        return document.uri if document else file.as_uri()

    def _tell(self, answer: Mapping[str, Any]) -> None:
        """That a kernel is ready, or that there is none; a client of ours shows the former itself. Of all
        else the hint and the status speak."""
        is_ready = answer["status"] == "ready"
        if answer["status"] in {"applied", "cancelled", "queued"} or (is_ready and self.own_client()):
            return
        kind = types.MessageType.Info if is_ready else types.MessageType.Warning
        self.server.window_show_message(types.ShowMessageParams(kind, f"EvoKernel: {answer['message']}"))


def _report(operation: WorkProgress, event: AttemptEvent) -> None:
    share = event.n / event.budget if event.budget else None
    words = _("attempt {n}/{budget}", n=event.n, budget=event.budget)
    if event.best_us:
        words += _(", best {figure}", figure=sourced(microseconds(event.best_us), event.best_source))
    operation.report(words, share)


def _infeasible(report: Report) -> str:
    why = with_help(report.reason) or _("no reason was given")
    return many(
        "No kernel was verified in {count} attempt: {why}",
        "No kernel was verified in {count} attempts: {why}",
        report.attempts,
        why=why,
    )


async def installed_kernels(document: Document) -> dict[str, Installed | None]:
    """The package of every generated call in a document; None for one that is missing."""
    return {name: await asyncio.to_thread(read_installed, document.path, name) for name in document.counts()}
