"""The language server, put together: the protocol, the open documents and the services behind them."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve
from cattrs import Converter
from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from evokernel_core import __version__, paths, temporary
from evokernel_core.capture.observations import ObservationStore
from evokernel_core.domain.job import Job, JobKind
from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import Settings
from evokernel_core.foreign import read_foreign
from evokernel_core.targets import AUTO, present_targets
from evokernel_server import features
from evokernel_server.documents.calls import Calls
from evokernel_server.documents.capture import Capture
from evokernel_server.documents.mode import mode_of, status_of, step_of
from evokernel_server.documents.outside_changes import Watcher
from evokernel_server.documents.packages import FOLDER, heal
from evokernel_server.documents.private_pages import Pages
from evokernel_server.documents.publish import Diagnostics, can_pull
from evokernel_server.documents.refresh import Refreshing
from evokernel_server.documents.renames import Moves
from evokernel_server.documents.stale import stale_calls
from evokernel_server.documents.status_line import Mode, StatusLine
from evokernel_server.documents.watch_registration import ClientWatch
from evokernel_server.documents.workspace import Document, FileProblem, Workspace
from evokernel_server.features.diagnostic import diagnostics_of
from evokernel_server.jobs.claims import Claims
from evokernel_server.jobs.journal import Journal
from evokernel_server.jobs.progress import Operations
from evokernel_server.jobs.queue import JobQueue, Report
from evokernel_server.jobs.requests import Kernels, installed_kernels
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.tasks import Latest, cancel_all, spawn
from evokernel_server.jobs.worker import Worker
from evokernel_server.offers.acceptance import Acceptance
from evokernel_server.offers.outcomes import OutcomeLog
from evokernel_server.offers.pending import Offer, Offers
from evokernel_server.offers.ready import Ready
from evokernel_server.offers.suppressed import Nevers
from evokernel_server.offers.undo import Undo
from evokernel_server.options import Options, ServerOptions
from evokernel_server.review import change_signal
from evokernel_server.review.change_signal import Changes
from evokernel_server.texts.plain import message
from evokernel_server.texts.translations import told
from evokernel_server.transport import stdio
from evokernel_server.transport.protocol import EvoKernelProtocol
from evokernel_server.trust import REASON, Trust, sentence

if TYPE_CHECKING:
    from evokernel_core.domain.kernel_files import KernelFiles
    from evokernel_server.offers.notices import Notices
    from evokernel_server.review.dashboard import Dashboard
    from evokernel_server.review.gather import Reviews

log = logging.getLogger(__name__)

_PARENT_CHECK_S = 2.0
_DECIDED_S = 0.5
"""How long the questions what other windows decided are gathered."""
_WORKER_END_S = 1.0
"""A killed worker is gone in milliseconds; then what it left in the temporary directory is removed."""


@cache
def converter() -> Converter:
    """The protocol's, which keeps what it has made for each type: a process has one."""
    return get_converter()


class EvoKernelServer(LanguageServer):
    """One client's server. Handlers in ``features`` read its documents and call its services."""

    protocol: EvoKernelProtocol

    def __init__(self) -> None:
        super().__init__(
            "evokernel", __version__, protocol_cls=EvoKernelProtocol, converter_factory=converter,
            notebook_document_sync=features.notebook.SYNC,
        )  # fmt: skip
        self.options = Options()
        self.own_client = False
        self.granted = Trust()
        self._told: set[str] = set()
        self.documents = Workspace()
        self.status = StatusLine(self.protocol.notify)
        self.operations = Operations(self)
        self.changes = Changes(self._tell_changed)
        self.store = Store(paths.memory_path(), self.tell_once, self.show_status, self.changes.happened)
        self.worker = Worker(self._settings)
        self._make_services()
        features.register(self)

    def _make_services(self) -> None:
        self.journal = Journal(self.window_log_message)
        self.capture = Capture(
            self.worker,
            lambda: self.server_options.pause_s,
            self.regions_changed,
            enabled=self.trusts,
            programs=lambda: self.options.settings.programs,
            progressed=self.analysis_progressed,
            planned=self.show_status,
            runs_in=lambda interpreter: self.status.learn(interpreter=interpreter),
            root_of=self.trusted_root,
            say=self.journal.say,
        )
        self.refreshing = Refreshing(self)
        self.diagnostics = Diagnostics(
            self._diagnostics_of, self.text_document_publish_diagnostics,
            refresh=self.refreshing.diagnostics,
            pulls=lambda: can_pull(self.client_capabilities),
        )  # fmt: skip
        self.outcomes = OutcomeLog(
            self.store, lambda: self.server_options.revert_grace_s, lambda: self.server_options.survival_s
        )
        self.jobs = JobQueue(
            self.store, self.worker, Claims(paths.data_path() / "claims"),
            eligible=self._may_run, finished=self._job_finished, announce=self.show_status,
            retry_s=lambda: self.server_options.retry_s, say=self.journal.say,
        )  # fmt: skip
        self.offers = Offers(
            self.store, self.outcomes, lambda: self.server_options, self._ask,
            is_open=lambda file: self.documents.at(file) is not None,
            changed=self.offers_changed,
        )  # fmt: skip
        self.nevers = Nevers(
            self.store, self.jobs, self.offers, changed=self.regions_changed, again=self._offer_again
        )
        self.ready = Ready(
            self.store, self.jobs, self.outcomes, self.offers, self.nevers,
            verified_by=lambda verifier: self.status.learn(verifier=verifier),
        )  # fmt: skip
        self.undo = Undo(
            self.documents, self.outcomes, self.worker, self.store, self.read_packages, self._call_back
        )  # fmt: skip
        self.outcomes.gone = self._call_gone
        self.acceptance = Acceptance(
            self.documents, self.worker, Calls(self, self.documents, self.worker), self.jobs, self.outcomes,
            self.offers, self.store, self.undo, lambda: self.options, lambda: self.own_client,
            self.read_packages,
        )  # fmt: skip
        self.kernels = Kernels(
            self, self.documents, self.worker, self.jobs, self.outcomes, self.offers, self.operations,
            self.store, self.ready, self.acceptance, lambda: self.options, self._trusts_path,
            lambda: self.own_client, self.read_packages,
        )  # fmt: skip
        self.pages = Pages(self)
        self.rereading = Latest(self._packages_changed, "reading packages")
        self.deciding = Latest(self._decided, "reading decisions", _DECIDED_S)
        self.observations = ObservationStore()
        self.client_watch = ClientWatch(self, lambda: self.documents.roots, self.observations.folder)
        self.watcher = Watcher(self.path_changed, self.observations.folder, self.client_watch.covers)
        self.moves = Moves(
            self.store,
            self.jobs,
            self.outcomes,
            self.offers,
            self.undo,
            self.observations,
            self.kernels.repackage,
            self._arrived,
        )

    # What shows kernels is made and imported when a person first asks for it: an editor that starts would
    # wait for it, and most sessions begin without it.

    @cached_property
    def dashboard(self) -> Dashboard:
        from evokernel_server.review.dashboard import Dashboard

        return Dashboard(
            self.store, self.documents, self.jobs, self.offers, self.status, lambda: self.options
        )

    @cached_property
    def notices(self) -> Notices:
        from evokernel_server.offers.notices import Notices

        return Notices(self, self.kernels, self.pages, lambda: self.own_client)

    @cached_property
    def reviews(self) -> Reviews:
        from evokernel_server.review.gather import Reviews

        return Reviews(self.kernels, lambda: self.options.settings.chip)

    @property
    def server_options(self) -> ServerOptions:
        return self.options.server

    def _settings(self) -> Settings:
        return self.options.settings

    def other_targets(self) -> tuple[KernelFiles, ...]:
        """The targets beside the chosen one whose devices this machine has, while nobody has chosen any."""
        if self.options.asked.target != AUTO or self.options.asked.chip:
            return ()
        return tuple(files for files in self._present if files.target != self.options.target)

    @cached_property
    def _present(self) -> tuple[KernelFiles, ...]:
        """Asked once: code actions are wanted at every move of the cursor."""
        return present_targets()

    # --- trust

    def trusts(self, document: Document) -> bool:
        """Whether code of a file may be run."""
        return document.is_local and self._trusts_path(document.path)

    def _trusts_path(self, path: Path) -> bool:
        return self.options.trust.covers(path) or self.granted.covers(path)

    def trusted_root(self, document: Document) -> str:
        """Where an interpreter is looked for beside a file's own folders; one in a folder that is not
        trusted is not run for a file that is."""
        root = self.documents.root_of(document.path)
        return str(root) if root is not None and self._trusts_path(root) else ""

    def folder_to_trust(self, document: Document) -> Path:
        """The client's folder that a file is in, else its own."""
        root = self.documents.root_of(document.path)
        return root if root is not None and document.path.is_relative_to(root) else document.path.parent

    def trust_folder(self, folder: Path) -> None:
        """The person trusts a folder until the client ends: what waited in it begins."""
        self.granted = self.granted.with_folder(folder)
        self.jobs.start()
        self.jobs.wake()
        for document in self.documents.torch_documents():
            if self.trusts(document) and document.problem is not None and document.problem.reason == REASON:
                document.problem = None
                self.document_opened(document)

    # --- jobs

    def _may_run(self, job: Job) -> bool:
        """Whether the queue may run a job here: a person's own request always, refinement as configured."""
        wanted = job.kind is JobKind.GENERATE or self.options.settings.refine_in_background
        return wanted and self._trusts_path(Path(job.file)) and self.documents.covers(Path(job.file))

    async def _job_finished(self, job: Job, report: Report) -> None:
        await self.kernels.resumed(job, report)

    def offers_changed(self, count: int) -> None:
        """Shows which kernels wait: as a count, and in the documents for whose code they are."""
        self.status.learn(offers=count)
        self.changes.happened()
        for document in self.documents.torch_documents():
            ready = self.offers.ready(document.path)
            if ready != document.ready:
                document.ready = ready
                self.refresh()
        self.show_status()

    def _offer_again(self, document: Document) -> None:
        self.capture.again(document)
        spawn(self.ready.restore(document), "ready kernels")

    async def _call_gone(self, placement: Placement, undone: bool) -> None:
        """A person's code is back: so are the kernels that waited for it, or for parts of it. A faster one of
        the call is offered no more."""
        offer = self.offers.find(placement.file, placement.region_id)
        if offer is not None and offer.old is not None:
            self.offers.take(offer)
        standing = Standing.UNDONE if undone else Standing.REVERTED
        await self.undo.gone(placement, standing, with_package=undone)
        await self.jobs.drop(str(placement.file), placement.region_id)
        document = self.documents.at(placement.file)
        if document is not None:
            await self.ready.restore(document)

    def _call_back(self, placement: Placement) -> None:
        """An undo was redone: its kernel does not wait any more."""
        offer = self.offers.find(placement.file, placement.region_id)
        if offer is not None and offer.old is None:
            self.offers.take(offer)

    async def _arrived(self, file: Path) -> None:
        """A file has another name, or was deleted. Its document may have been opened before that was told."""
        document = self.documents.at(file)
        if document is not None:
            await self._take_up(document)

    async def _ask(self, group: Sequence[Offer]) -> None:
        await self.notices.ask(group)

    def _tell_changed(self) -> None:
        """Other clients have nothing that would show it."""
        if self.own_client:
            self.protocol.notify(change_signal.METHOD, {})

    def window_show_message(self, params: types.ShowMessageParams) -> None:
        """As the base class, with no link that a file's name or a program's error could have brought."""
        super().window_show_message(evolve(params, message=message(params.message)))

    async def window_show_message_request_async(
        self, params: types.ShowMessageRequestParams
    ) -> types.MessageActionItem | None:
        """As ``window_show_message``."""
        asked = evolve(params, message=message(params.message))
        return await super().window_show_message_request_async(asked)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """An error in a handler is a line in the log, not a message over the person's work."""
        log.error("%s: %s", getattr(source, "__name__", source), error)
        if source is JsonRpcException:  # the loop that reads messages could not read one
            self.protocol.reject_unreadable()
        log.debug("The traceback follows.", exc_info=error)

    # --- documents

    def document_opened(self, document: Document) -> None:
        if not document.has_torch:
            self._refused(document)
            return
        self.show_status()
        self._analyse(document)
        spawn(self._take_up(document), "reopening")

    def _analyse(self, document: Document) -> None:
        """Captures a file at once, or says why that waits."""
        if self.trusts(document):
            self.capture.soon(document, now=True)
        elif document.problem is None:
            document.problem = FileProblem(REASON, Sentence(sentence(self.own_client)))
            self.regions_changed(document)

    async def _take_up(self, document: Document) -> None:
        """What is known of a file from before: its packages, acceptances, jobs and offers."""
        if not self.trusts(document):
            await self.read_packages(document)
            return
        await asyncio.to_thread(heal, document.path, time.time())
        await asyncio.to_thread(self.watcher.cover, document.path)
        await self.read_packages(document)
        await self.nevers.load(document)
        await self.outcomes.restore(document)
        await self.undo.restore(document)
        await self.ready.restore(document)
        self.offers_changed(len(self.offers.pending))
        self.jobs.start()
        self.jobs.wake()
        for name, installed in document.installed.items():
            placement = self.outcomes.find(document.path, name)
            if installed is not None and placement is not None:
                region = await self.kernels.region_of(document.path, name)
                await self.offers.consider(document.uri, document.path, region, installed)

    async def _decided(self, uri: str) -> None:
        """What another window decided about the code of a document holds in this one."""
        document = self.documents.get(uri)
        if document is not None and document.has_torch and self.trusts(document):
            await self.nevers.load(document)
            await self.ready.restore(document, {tracked.region.id for tracked in document.tracked})

    async def read_packages(self, document: Document) -> None:
        """Reads the packages behind a document's calls and shows what they say, and which do not fit."""
        text, names = document.text.content, tuple(document.counts())
        chip = self.options.settings.chip
        stale = await asyncio.to_thread(stale_calls, document.path, text, names, chip)
        # read behind it: a package that changes meanwhile is never said to be stale and offered as whole
        document.installed, document.stale = await installed_kernels(document), stale
        self.diagnostics.changed(document)
        self.show_status()
        self.changes.happened()
        self.refresh()

    def _diagnostics_of(self, document: Document) -> Sequence[types.Diagnostic]:
        if not self.server_options.diagnostics:
            return ()
        return diagnostics_of(document, done=not self.capture.is_analysing(document))

    def _refused(self, document: Document) -> None:
        """A text that is not analysed: one of another machine or program is told why."""
        self.show_status()
        self.diagnostics.changed(document)

    def document_changed(self, document: Document) -> None:
        self.jobs.failures.pop(str(document.path), None)
        if not document.is_local:
            self._refused(document)
        elif self.trusts(document):
            calling = self.documents.at(document.path) or document
            self.outcomes.observe(calling)
            self.undo.observe(calling)
        else:
            self._analyse(document)
        if document.is_local:
            self.capture.soon(document)
        if document.counts().keys() - document.installed.keys():
            spawn(self.read_packages(document), "reading packages")

    def document_saved(self, document: Document) -> None:
        self.capture.soon(document, now=True)
        self.show_status()
        spawn(self.undo.saved(document.path), "saved")

    def document_closed(self, uri: str) -> None:
        self.documents.close(uri)
        self.capture.forget(uri)
        self.diagnostics.withdraw(uri)
        self.show_status()

    def document_activated(self, uri: str) -> None:
        """The client says which document is in front of the person."""
        self.documents.activate(uri)
        self.show_status()
        self.deciding.ask(uri)

    def regions_changed(self, document: Document) -> None:
        if document.uri in self.documents.documents:
            self.analysis_progressed(document)
            self.refresh()
            if document.calls:  # the code beside them may have been edited
                self.rereading.ask(document.uri)
            self.deciding.ask(document.uri)
            if document.problem is not None and mode_of(document.problem) is Mode.ERROR:
                self.tell_once(document.problem.message)

    def analysis_progressed(self, document: Document) -> None:
        self.show_status()
        if document.uri in self.documents.documents:
            self.diagnostics.changed(document)

    def tell_once(self, sentence: str) -> None:
        """Shows a message where a person has to act; the same one never twice."""
        if sentence not in self._told:
            self._told.add(sentence)
            params = types.ShowMessageParams(types.MessageType.Warning, f"EvoKernel: {told(sentence)}")
            self.window_show_message(params)

    def path_changed(self, path: Path) -> None:
        """Something outside the editor changed a watched path."""
        if path.name == "HEAD" and path.parent.name == ".git":
            repository = path.parent.parent
            for file in self.outcomes.void(lambda file: file.is_relative_to(repository)):
                spawn(self._read_changed(file), "reading a changed file")
        elif path.parent == self.observations.folder:
            for document in self.documents.torch_documents():
                if self.observations.path_of(document.path) == path:
                    self.capture.again(document)
        elif FOLDER in path.parts:
            for document in self.documents.torch_documents():
                self.rereading.ask(document.uri)
        elif any(p.file == path for p in self.outcomes.placements) and self.documents.at(path) is None:
            spawn(self._read_changed(path), "reading a changed file")

    async def watch_through_client(self) -> None:
        """Has the client watch what it can; where it does not want to, we do."""
        if not await self.client_watch.register():
            self.cover_again()

    def cover_again(self) -> None:
        """Who watches what has changed."""
        for document in self.documents.torch_documents():
            spawn(asyncio.to_thread(self.watcher.cover, document.path), "watching")

    async def _packages_changed(self, uri: str) -> None:
        document = self.documents.get(uri)
        if document is None:
            return
        await asyncio.to_thread(self.watcher.cover, document.path)
        if document.counts():
            await self.read_packages(document)

    async def _read_changed(self, path: Path) -> None:
        try:
            content = await asyncio.to_thread(_text_of, path)
        except (OSError, ValueError):
            content = ""
        self.outcomes.observe_text(path, content, "git")

    # --- what the client shows

    def refresh(self) -> None:
        """Asks the client for its hints again."""
        self.refreshing.hints(lenses=self.server_options.code_lens or self.server_options.ready_lens)

    def show_status(self) -> None:
        mode, text, uri = self._state()
        document = self.documents.active
        step = ""
        if mode is Mode.ANALYSING and document is not None:
            step = step_of(document, self.capture.progress(document))
        self.status.set(mode, text, uri, step)

    def _state(self) -> tuple[Mode, str, str]:
        document = self.documents.active
        if document is None and not (self.options.trust or self.granted):
            return Mode.OFFLINE, sentence(self.own_client), ""
        return status_of(
            document, self.jobs.running, tuple(self.jobs.waiting.values()),
            analysing=document is not None and self.capture.is_analysing(document),
            progress=self.capture.progress(document) if document is not None else None,
            to_review=self._to_review(document) if document is not None else 0,
            trouble=self.store.trouble or self.jobs.failures.get(str(document.path) if document else "", ""),
        )  # fmt: skip

    def _to_review(self, document: Document) -> int:
        return self.offers.count(document.path, {tracked.region.id for tracked in document.tracked})

    # --- the end

    async def settle(self) -> None:
        """The client says goodbye: offers expire, then everything of ours ends."""
        await self.offers.expire()
        await self.worker.start_no_more()
        self.close()

    def close(self) -> None:
        """Ends our processes and closes the memory; unfinished jobs stay in it."""
        cancel_all()
        self.jobs.stop()
        pid = self.worker.kill()
        temporary.sweep_after(pid, _WORKER_END_S)
        self.watcher.stop()
        self.store.close()

    async def watch_parent(self, pid: int) -> None:
        """Ends the server when its editor is gone, as when it crashed without closing the pipe."""
        while stdio.is_alive(pid):
            await asyncio.sleep(_PARENT_CHECK_S)
        log.warning("The editor (process %s) is gone; the server ends.", pid)
        self.close()
        os._exit(1)


def _text_of(path: Path) -> str:
    """The text of a file of a person's, which may be a link. Raises as ``read_foreign``: what has come in its
    place may be a pipe, which nobody writes to, or a device."""
    return read_foreign(path.resolve())
