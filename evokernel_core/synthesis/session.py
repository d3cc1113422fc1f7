"""A session: from a file to its regions, from a region to a kernel, from a kernel to an edit.

The command line and the language server's worker use the same session, so that both do the same.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from attrs import evolve

from evokernel_core import __version__
from evokernel_core.closing import Closing
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.features import task_features
from evokernel_core.domain.defects import contained
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.errors import (
    EvoKernelError,
    InternalError,
    ShapesNeeded,
    StoreError,
    UsageError,
    VerifierError,
)
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.settings import PolicyName, ProposerName, Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.extras import REMOTE, needed
from evokernel_core.keys import with_keys
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.paths import cache_dir, memory_path, step_model_path
from evokernel_core.private import private_folder
from evokernel_core.synthesis.agent import SharedAgent
from evokernel_core.synthesis.comparisons import Comparisons, refusal
from evokernel_core.synthesis.engine import AttemptEvent, Engine, Status, SynthesisResult
from evokernel_core.synthesis.estimates import Estimator
from evokernel_core.synthesis.installing import Package, install, install_vendors, put_into, write_below
from evokernel_core.synthesis.offers import Estimate, Offer, side_by_side
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers import open_proposer
from evokernel_core.synthesis.proposers.base import Candidate, Proposer
from evokernel_core.synthesis.regions import RegionFinder, task_of
from evokernel_core.synthesis.sample import judge_of
from evokernel_core.synthesis.search import Search
from evokernel_core.synthesis.step_model import StepModel, kept_model
from evokernel_core.targets import author_for, load_toolchain
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.gaps import Summary, Timeline
from evokernel_core.twin.page_words import page_version
from evokernel_core.vendor.rival import Rival
from evokernel_core.verifier.base import Verifier, never
from evokernel_core.verifier.factory import open_verifier
from evokernel_core.verifier.gates.latency import captured_request

log = logging.getLogger(__name__)


Progress = Callable[[int, int, Offer | None], None]
"""Hears how many single kernels of a file are planned, of how many, and the last one."""


def _ignore(event: AttemptEvent) -> None:
    return


def _unheard(done: int, total: int, offer: Offer | None) -> None:
    return


class Session(Closing):
    """Owns the agent, the verifier, the memory and the proposer; close it after use.

    ``workspace``, a folder whose code may be run, is where an interpreter is looked for that is not found
    from a file's folder upwards; None: nowhere. ``agent`` is one that was started before, the session's own
    from then on.
    Errors are those of the parts, all EvoKernelError.
    """

    def __init__(
        self,
        settings: Settings,
        workspace: Path | None,
        memory: Memory | None = None,
        agent: SharedAgent | None = None,
    ) -> None:
        self.settings = with_keys(settings)
        self.author: KernelAuthor = author_for(settings.chip, settings.target, half=settings.half)
        self.agent = agent or SharedAgent(settings.interpreter, workspace, evaluation=settings.evaluation)
        self.comparisons = Comparisons(self.agent, self.author)
        self._estimator = Estimator(self.author, lambda: self.memory)
        self._given_memory = memory
        self._own_memory: Memory | None = None
        self._opening, self._opening_memory = threading.Lock(), threading.Lock()
        self._verifier: Verifier | None = None
        self._proposer: Proposer | None = None

    def close(self) -> None:
        """Ends the agent and closes the memory if it is this session's own."""
        self.agent.close()
        close = getattr(self._verifier, "close", None)
        if close is not None:
            close()
        if self._own_memory is not None:
            self._own_memory.close()

    @property
    def memory(self) -> Memory:
        """Opened when it is first needed: regions are found where nothing can be kept, too; anew where its
        file was deleted or replaced. Raises StoreError."""
        with self._opening_memory:
            if self._own_memory is not None and not self._own_memory.is_there:
                self._own_memory.close()
                self._own_memory = None
            if self._given_memory is None and self._own_memory is None:
                self._own_memory = Memory(memory_path())
            memory = self._given_memory or self._own_memory
        assert memory is not None
        return memory

    def verifier(self) -> Verifier:
        """The verifier, asked once who it is. Raises VerifierUnavailable while a remote one is away."""
        with self._opening:
            if self._verifier is None:
                python = self.agent.last_used or self.settings.interpreter
                verifier = open_verifier(evolve(self.settings, interpreter=python), self.agent)
                status = getattr(verifier, "status", None)
                if status is not None:
                    status()  # until it has answered once, a remote verifier's name is unknown
                self._verifier = verifier
            return self._verifier

    def regions(
        self,
        path: Path,
        text: str | None = None,
        symbol: str | None = None,
        *,
        programs: bool = False,
        group: int = 0,
    ) -> tuple[Region, ...]:
        """The regions of a file; those that no family covers are unsupported, with the reason.

        A region is what one fused kernel computes, with ``programs`` what several in a row can compute.
        """
        self.comparisons.seen(path, text)
        finder = RegionFinder(self.agent, self.author)
        return (finder.programs if programs else finder.single)(path, text, symbol, group)

    def interpreter(self, path: Path) -> Sentence:
        """The Python that runs a file's code and how it was found, in words."""
        result = self.agent.interpreter(path)
        return Sentence("{path} ({how})", path=result.path, how=result.how)

    def offers(
        self,
        path: Path,
        text: str | None = None,
        symbol: str | None = None,
        *,
        programs: bool | None = None,
        apart: bool = False,
        progress: Progress = _unheard,
    ) -> tuple[Offer, ...]:
        """All that can be had for a file's code, and why there is no more: the one list that command line,
        editor and coding agents show.

        These are single kernels and with ``programs``, as in the settings unless given, the programs around
        them; those take a trace of whole functions, which may be long for a large network. ``apart``: by an
        agent of its own, so that others use this session's meanwhile. ``progress`` hears of the
        single kernels as they come. Raises CaptureError.
        """
        single = tuple(self._single(path, text, symbol, progress))
        settings = self.settings
        if not (settings.programs if programs is None else programs):
            return single
        if not apart:
            return self._with_programs(path, text, symbol, self.agent, single)
        with SharedAgent(settings.interpreter, self.agent.workspace, evaluation=settings.evaluation) as agent:
            return self._with_programs(path, text, symbol, agent, single)

    def _single(
        self, path: Path, text: str | None, symbol: str | None, progress: Progress
    ) -> Iterator[Offer]:
        self.comparisons.seen(path, text)
        finder = RegionFinder(self.agent, self.author)
        captured = finder.captured(path, text, symbol)
        progress(0, len(captured), None)
        for done, region in enumerate(captured, 1):
            offer = self._estimator.offer(finder.planned(region))
            progress(done, len(captured), offer)
            yield offer

    def _with_programs(
        self,
        path: Path,
        text: str | None,
        symbol: str | None,
        agent: SharedAgent,
        single: tuple[Offer, ...],
    ) -> tuple[Offer, ...]:
        """Single kernels and the programs around them. A trace that fails costs these alone, and that is
        said."""
        try:
            with contained(Sentence("tracing whole functions of {name}", name=path.name)):
                programs = self._offers(RegionFinder(agent, self.author).programs(path, text, symbol))
        except ShapesNeeded:
            raise
        except EvoKernelError as error:
            log.warning("Programs of several kernels are left out for %s: %s", path, error)
            return (*single, Offer(_left_out(path, error), None))
        return side_by_side(single, programs)

    def _offers(self, regions: Iterable[Region]) -> tuple[Offer, ...]:
        return tuple(map(self._estimator.offer, regions))

    def estimate(self, region: Region) -> Estimate | None:
        """Modelled latencies of a candidate region, None for any other."""
        return self._estimator.estimate(region)

    def rival(self, region: Region) -> Rival | None:
        """The vendor's operator that the region is, None where it is none."""
        return self._estimator.rival(region)

    def proposer(self) -> Proposer:
        """The proposer that the settings name. Raises UsageError for a model without an endpoint."""
        with self._opening:
            if self._proposer is None:
                self._proposer = open_proposer(self.settings, lambda: self.memory)
            return self._proposer

    def engine(self, eager: EagerComparison | None = None) -> Engine:
        """An engine over this session's parts. Verdicts say what came of the user's own code, ``eager``."""
        policy = open_policy(self.settings.policy)
        return Engine(
            self.memory,
            self.verifier(),
            self.proposer(),
            policy,
            self.settings,
            partial(task_features, target=self.author.target),
            self.author.reachable_us,
            eager,
            self._order(),
        )

    def _order(self) -> StepModel | None:
        """The step model that orders moves, where the settings ask for one. Raises UsageError where none
        fits, or the proposer knows no moves."""
        settings = self.settings
        if settings.policy is not PolicyName.MODEL:
            return None
        if settings.proposer is ProposerName.LLM:
            raise UsageError(
                "A step model orders the moves of schedules, which a language model alone does not make: "
                "choose --proposer schedule or hybrid."
            )
        chip = self.author.device.name
        return kept_model(step_model_path(chip), chip, judge_of(self.verifier().name))

    def preview(self, region: Region) -> str:
        """The exact body of the request that a model would be asked first for a region, as JSON text; nothing
        is sent. Raises UsageError where no model is asked."""
        from evokernel_core.synthesis.proposers.hybrid import HybridProposer
        from evokernel_core.synthesis.proposers.llm import LlmProposer

        proposer = self.proposer()
        model = proposer.model if isinstance(proposer, HybridProposer) else proposer
        if not isinstance(model, LlmProposer):
            raise UsageError(
                "The schedule proposer asks no model, so nothing leaves; --proposer llm or hybrid does."
            )
        task = task_of(region)
        return model.preview(task, self.engine().next_context(task))

    def readable_preview(self, region: Region) -> str:
        """The same question as text with its tokens, also where no endpoint is named yet."""
        from evokernel_core.synthesis.proposers.llm_question import asked, readable

        task, endpoint = task_of(region), self.settings.endpoint
        context = self.engine().next_context(task)
        return readable(asked(task, context, self.author, endpoint).question, endpoint)

    def synthesise(
        self,
        region: Region,
        budget: int,
        *,
        job_id: str = "",
        kind: JobKind = JobKind.REFINE,
        background: bool = False,
        on_attempt: Callable[[AttemptEvent], None] = _ignore,
        cancelled: Callable[[], bool] = never,
    ) -> SynthesisResult:
        """Spends the budget on a region's task; ``generate`` stops at the first verified kernel,
        because a person waits for it. Jobs of a ``background`` run leave others' first on a shared verifier.
        A run without a job of its own is kept as one that is done: it says where the task's kernels belong.

        Raises UsageError for a region without a task, VerifierUnavailable while the verifier is away.
        A defect of ours ends the run as infeasible, with a sentence that names it; so does a graph that does
        not mean what the region's code does.
        """
        task = task_of(region)
        eager = self.comparisons.of(region)
        if eager.difference:
            return SynthesisResult(Status.INFEASIBLE, refusal(region, eager), None, 0, None, 0)
        try:
            with contained(Sentence("writing its kernels"), region.span.line):
                engine = self.engine(eager)
                self._rank(background)
                result = engine.run(
                    task,
                    budget,
                    job_id=job_id,
                    satisfied=_satisfied if kind is JobKind.GENERATE else _never_satisfied,
                    on_attempt=on_attempt,
                    cancelled=cancelled,
                )
                if not job_id:
                    self.memory.put_job(_done(region, kind, budget, result))
                return result
        except InternalError as error:
            return SynthesisResult(Status.INFEASIBLE, error.sentence, None, 0, None, 0)

    def judge(
        self, region: Region, source: KernelSource, author: str, *, cancelled: Callable[[], bool] = never
    ) -> Candidate:
        """Verifies a kernel that ``author`` wrote for a region; the memory keeps it as any other. Raises
        UsageError for a region without a task, UnsupportedRegion where its graph does not mean what its code
        does, VerifierError."""
        task, eager = task_of(region), self.comparisons.same(region)
        return self.engine(eager).judge(task, source, author, cancelled=cancelled)

    def _rank(self, background: bool) -> None:
        """Tells a verifier that others share whether somebody waits for the next jobs."""
        if self.settings.verifier_url:
            with needed(REMOTE):
                from evokernel_core.verifier.client import RemoteVerifier

            if isinstance(self._verifier, RemoteVerifier):
                self._verifier.background = background

    def package(self, region: Region, source_id: str) -> Package:
        """Writes the package of a verified kernel beside the user's file; it is complete or absent.

        Raises StoreError where the memory holds no feasible verdict for the kernel, UnsupportedRegion where
        the region's graph does not mean what its code does.
        """
        return install(region, self._compared(region, self.verified(region, source_id)))

    def verified(self, region: Region, source_id: str) -> Candidate:
        """A verified kernel of a region. Raises StoreError where the memory holds no feasible verdict."""
        task = task_of(region)
        verified = self._verified(task, source_id, self.settings.chip)
        spoken = self._verifier.name if self._verifier else ""
        best = next((entry for entry in verified if entry.verdict.verifier == spoken), verified[-1])
        return Candidate(best.source, best.verdict, best.parent)

    def _verified(self, task: KernelTask, source_id: str, chip: str = "") -> list[Stored]:
        """The verdicts of a kernel that passed, on a chip or any, oldest first. Raises StoreError where there
        is none."""
        stored = self.memory.candidates(task.task_id, chip=chip)
        verified = [
            entry for entry in stored if entry.source.source_id == source_id and entry.verdict.feasible
        ]
        if not verified:
            raise StoreError("The kernel is not in the memory as verified; generate it again.")
        return verified

    def timeline(self, region: Region, source_id: str) -> Timeline:
        """The timeline of a verified kernel, on the chip that it was verified for. Raises StoreError where
        the memory holds no feasible verdict for it, and as ``timeline_of``."""

        task = task_of(region)
        result = self._verified(task, source_id)[-1]
        assert result.verdict.latency is not None  # of what is feasible
        return timeline_of(task, result.source, author_for(result.verdict.latency.chip, result.source.target))

    def borrow(self, region: Region) -> Package:
        """Writes the package that calls the vendor's operator for a region beside the user's file. Raises
        UsageError where the region is no such operator, UnsupportedRegion as ``package``."""
        self.comparisons.same(region)
        return install_vendors(region, self.settings.chip)

    def _compared(self, region: Region, candidate: Candidate) -> Candidate:
        """The kernel, whose verdict says what came of this region's own code: it may have been given for
        other code of the same mathematics, or before any was run. Raises UnsupportedRegion."""
        return evolve(candidate, verdict=evolve(candidate.verdict, eager=self.comparisons.same(region)))

    def stage(self, region: Region, candidate: Candidate) -> Package:
        """Writes the package into the cache, to be read or verified; nothing of the user's changes. Raises
        UnsupportedRegion as ``package``."""
        return write_below(cache_dir() / "packages", region, self._compared(region, candidate))

    def apply(self, path: Path, region: Region, candidate: Candidate) -> Package:
        """Writes the package, then puts the call into the file. Raises EditConflict, or UnsupportedRegion as
        ``package``; then the file is as it was."""
        if not candidate.verdict.feasible:
            raise UsageError("Only a verified kernel can be accepted; this one failed.")
        return put_into(path, region, lambda: install(region, self._compared(region, candidate)))


def _left_out(path: Path, error: EvoKernelError) -> Region:
    """A region at the start of a file that says why there are no programs of kernels."""
    reason = Sentence("Programs of several kernels are left out: {error}", error=error)
    whole = Span(1, 0, 1, 0)
    status = RegionStatus.UNSUPPORTED
    return Region("programs", str(path), path.stem, whole, "", "", "program", status, reason)


def _done(region: Region, kind: JobKind, budget: int, result: SynthesisResult) -> Job:
    """What was asked for and what came of it, as a job that nobody takes up."""
    states = {Status.CANCELLED: JobState.CANCELLED, Status.INFEASIBLE: JobState.FAILED}
    now = time.time()
    return Job(
        id=uuid.uuid4().hex, kind=kind, state=states.get(result.status, JobState.DONE), file=region.file,
        region_id=region.id, task_id=task_of(region).task_id, region=dumps(region), budget=budget,
        spent=result.attempts, created=now, updated=now, reason=result.reason,
    )  # fmt: skip


def _never_satisfied(search: Search) -> bool:
    return False


def _satisfied(search: Search) -> bool:
    return True


def timeline_of(task: KernelTask, source: KernelSource, author: KernelAuthor) -> Timeline:
    """The timeline of a kernel, from the cache where it was made before. Its times are modelled, also those
    of a kernel that was measured. Raises VerifierError where the kernel cannot be timed, BuildError,
    OSError."""
    folder = private_folder(cache_dir() / "timelines")
    kernel = f"{source.source_id[:32]}-{task.task_id[:16]}"
    page = folder / f"{kernel}-{author.device.name}-{__version__}-{page_version()}.html"
    kept = page.with_suffix(".json")
    if page.is_file() and kept.is_file():
        return Timeline(page, loads(kept.read_text("utf-8"), Summary))
    staged = page.with_suffix(".part")
    toolchain = load_toolchain(source.target)
    try:
        summary: Summary = toolchain.write_timeline(author, task, source, captured_request(task), staged)
    except CandidateError as error:
        raise VerifierError(
            "The kernel could not be timed again: {feedback}", feedback=error.feedback
        ) from error
    staged.replace(page)
    staged.write_text(dumps(summary), "utf-8")
    staged.replace(kept)
    return Timeline(page, summary)
