"""A session: from a file to its regions, from a region to a kernel, from a kernel to an edit.

The command line and the language server's worker use the same session, so that both do the same.
"""

from __future__ import annotations

import codecs
import logging
import shutil
import threading
from collections.abc import Callable, Iterable
from operator import attrgetter
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.ascendc import author
from evokernel_core.ascendc.bounds import least_us
from evokernel_core.ascendc.features import task_features
from evokernel_core.ascendc.kernels.registry import covered_ops, single_ops
from evokernel_core.ascendc.print.backup import back_up_changed
from evokernel_core.ascendc.print.package import (
    ROOT_PACKAGE,
    kernel_name,
    placed,
    write_package,
)
from evokernel_core.ascendc.print.vendor import write_vendor_package
from evokernel_core.capture.bind import bound, settings_of
from evokernel_core.capture.client import Way
from evokernel_core.capture.edit import plan_edit
from evokernel_core.domain.defects import contained
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.errors import (
    EvoKernelError,
    InternalError,
    PlanError,
    ShapesNeeded,
    StoreError,
    UsageError,
)
from evokernel_core.domain.job import JobKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.extras import REMOTE, needed
from evokernel_core.import_root import import_root
from evokernel_core.keys import with_keys
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.paths import cache_dir, memory_path
from evokernel_core.synthesis.agent import SharedAgent
from evokernel_core.synthesis.comparisons import Comparisons, refusal
from evokernel_core.synthesis.engine import AttemptEvent, Engine, Status, SynthesisResult
from evokernel_core.synthesis.offers import Estimate, Offer, side_by_side
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers import open_proposer
from evokernel_core.synthesis.proposers.base import Candidate, Proposer
from evokernel_core.synthesis.search import Search
from evokernel_core.twin.chip import Chip, load_chip
from evokernel_core.twin.gaps import Timeline
from evokernel_core.twin.roofline import eager_us, reachable_us
from evokernel_core.vendor.rival import Rival, rival_of
from evokernel_core.verifier.base import Verifier, never
from evokernel_core.verifier.factory import open_verifier

_WORTH_A_CONSTANT = 1.01
"""How many times as long a kernel may take with a setting as an operand as with it as a constant."""
log = logging.getLogger(__name__)


@frozen
class Package:
    """A kernel package in the user's tree; ``backup`` is that of the one that a person had changed there."""

    name: str
    folder: Path
    backup: Path | None = None


def _ignore(event: AttemptEvent) -> None:
    return


class Session:
    """Owns the agent, the verifier, the memory and the proposer; close it after use.

    ``workspace``, a folder whose code may be run, is where an interpreter is looked for that is not found
    from a file's folder upwards; None: nowhere.
    Errors are those of the parts, all EvoKernelError.
    """

    def __init__(self, settings: Settings, workspace: Path | None, memory: Memory | None = None) -> None:
        self.settings = with_keys(settings)
        self.chip: Chip = load_chip(settings.chip)
        self.agent = SharedAgent(settings.interpreter, workspace, evaluation=settings.evaluation)
        self.comparisons = Comparisons(self.agent)
        self._given_memory = memory
        self._own_memory: Memory | None = None
        self._opening, self._opening_memory = threading.Lock(), threading.Lock()
        self._verifier: Verifier | None = None
        self._proposer: Proposer | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

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
        """Opened when it is first needed: regions are found where nothing can be kept, too. Raises
        StoreError."""
        with self._opening_memory:
            if self._given_memory is None and self._own_memory is None:
                self._own_memory = Memory(memory_path())
            memory = self._given_memory or self._own_memory
        assert memory is not None
        return memory

    def verifier(self) -> Verifier:
        """The verifier, asked once who it is. Raises VerifierUnavailable while a remote one is away."""
        with self._opening:
            if self._verifier is None:
                verifier = open_verifier(self.settings, self.agent)
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

        A region is what one fused kernel computes. With ``programs`` it is as large as several kernels in
        a row can compute; where the planner refuses one, it is taken with all sizes but those of batches
        fixed, or else the smaller ones inside it take its place, and it says why.
        """
        self.comparisons.seen(path, text)
        if not programs:
            captured = self.agent.capture(path, text, single_ops(), symbol, group=group)
            return tuple(map(self._planned, captured))
        return self._program_regions(path, text, symbol, self.agent, group)

    def _program_regions(
        self, path: Path, text: str | None, symbol: str | None, agent: SharedAgent, group: int = 0
    ) -> tuple[Region, ...]:
        captured = agent.capture(path, text, covered_ops(), symbol, whole=True, group=group)
        planned = [self._planned(region) for region in captured]
        refused = [
            after for before, after in zip(captured, planned, strict=True) if before.task and not after.task
        ]
        if not refused:
            return tuple(planned)
        found = [region for region in planned if region.task is not None]
        fixed = agent.capture(
            path, text, covered_ops(), symbol, whole=True, ways=_all_in(refused, "fixed"), group=group
        )
        _add(found, (region for region in map(self._planned, fixed) if region.task is not None))
        refused = [region for region in refused if all(region.span != other.span for other in found)]
        if not refused:
            return tuple(sorted(found, key=_position))
        parts = agent.capture(
            path, text, covered_ops(), symbol, whole=True, ways=_all_in(refused, "parts"), group=group
        )
        _add(found, (region for region in map(self._planned, parts) if region.task is not None))
        _add(found, self.regions(path, text, symbol, group=group))
        reasons = [*refused, *(region for region in captured if region.status is RegionStatus.UNSUPPORTED)]
        found += [region for region in reasons if all(region.span != other.span for other in found)]
        return tuple(sorted(found, key=_position))

    def interpreter(self, path: Path) -> Sentence:
        """The Python that runs a file's code and how it was found, in words."""
        found = self.agent.interpreter(path)
        return Sentence("{path} ({how})", path=found.path, how=found.how)

    def offers(
        self,
        path: Path,
        text: str | None = None,
        symbol: str | None = None,
        *,
        programs: bool | None = None,
        apart: bool = False,
    ) -> tuple[Offer, ...]:
        """All that can be had for a file's code, and why there is no more: the one list that command line,
        editor and coding agents show.

        These are single kernels and with ``programs``, as in the settings unless given, the programs around
        them; those take a trace of whole functions, which may be long for a large network. ``apart``: by an
        agent of its own, so that others use this session's meanwhile. Raises CaptureError.
        """
        single = self._offers(self.regions(path, text, symbol))
        settings = self.settings
        if not (settings.programs if programs is None else programs):
            return single
        if not apart:
            return self._with_programs(path, text, symbol, self.agent, single)
        with SharedAgent(settings.interpreter, self.agent.workspace, evaluation=settings.evaluation) as agent:
            return self._with_programs(path, text, symbol, agent, single)

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
                programs = self._offers(self._program_regions(path, text, symbol, agent))
        except ShapesNeeded:
            raise
        except EvoKernelError as error:
            log.warning("Programs of several kernels are left out for %s: %s", path, error)
            return (*single, Offer(_left_out(path, error), None))
        return side_by_side(single, programs)

    def _offers(self, regions: Iterable[Region]) -> tuple[Offer, ...]:
        return tuple(map(self._offer, regions))

    def _offer(self, region: Region) -> Offer:
        """An offer with its estimate; a region that cannot be priced is unsupported, with the reason."""
        try:
            with contained(Sentence("pricing its kernels"), region.span.line):
                return _priced(region, self.estimate(region))
        except (PlanError, InternalError) as error:
            return Offer(_unsupported(region, error.sentence), None)

    def _planned(self, region: Region) -> Region:
        if region.status is not RegionStatus.CANDIDATE or region.task is None:
            return region
        try:
            with contained(Sentence("planning its kernels"), region.span.line):
                region = self._with_settings(region)
                author.check(_task(region), self.chip)
        except (PlanError, InternalError) as error:
            return _unsupported(region, error.sentence)
        return region

    def _with_settings(self, region: Region) -> Region:
        """The region with settings such as an eps as operands, but for those that are constants of a faster
        kernel."""
        settings = settings_of(region)
        if not settings:
            return region
        constant = bound(region, settings)
        if self._is_as_fast(region, constant):
            return region
        found = settings
        for name in sorted(settings):
            if self._is_as_fast(bound(region, found - {name}), constant):
                found -= {name}
        return bound(region, found)

    def _is_as_fast(self, region: Region, constant: Region) -> bool:
        try:
            return self._planned_us(_task(region)) <= _WORTH_A_CONSTANT * self._planned_us(_task(constant))
        except PlanError:
            return False

    def estimate(self, region: Region) -> Estimate | None:
        """Modelled latencies of a candidate region, None for any other."""
        task = region.task
        if task is None:
            return None
        best = self._best_known(task)
        known = best.verdict.latency if best is not None else None
        try:
            planned = self._planned_us(task)
        except PlanError:  # of a kernel that a model wrote there is nothing but the verdict
            if known is None:
                raise
            planned = known.us
        return Estimate(
            now_us=eager_us(task, self.chip),
            after_us=known.us if known else planned,
            bound_us=least_us(task, self.chip),
            chip=self.settings.chip,
            rival=self.rival(region),
            planned_us=planned if known else 0.0,
        )

    def _best_known(self, task: KernelTask) -> Stored | None:
        """The memory's best kernel; None too where the memory cannot be read, as on a full disk."""
        try:
            return self.memory.best(task.task_id, self.settings.chip, LatencySource.MODELLED)
        except StoreError as error:
            log.info("A gain is shown as planned: %s", error)
            return None

    def rival(self, region: Region) -> Rival | None:
        """The vendor's operator that the region is, None where it is none."""
        return rival_of(region.task, self.chip) if region.task is not None else None

    def _planned_us(self, task: KernelTask) -> float:
        return author.estimate_us(task, author.initial(task, self.chip), self.chip)

    def _reachable_us(self, task: KernelTask) -> float:
        return reachable_us(task, self.chip)

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
            task_features,
            self._reachable_us,
            eager,
        )

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
        task = _task(region)
        return model.preview(task, self.engine().next_context(task))

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

        Raises UsageError for a region without a task, VerifierUnavailable while the verifier is away.
        A defect of ours ends the run as infeasible, with a sentence that names it; so does a graph that does
        not mean what the region's code does.
        """
        task = _task(region)
        eager = self.comparisons.of(region)
        if eager.difference:
            return SynthesisResult(Status.INFEASIBLE, refusal(region, eager), None, 0, None, 0)
        try:
            with contained(Sentence("writing its kernels"), region.span.line):
                engine = self.engine(eager)
                self._rank(background)
                return engine.run(
                    task,
                    budget,
                    job_id=job_id,
                    satisfied=_satisfied if kind is JobKind.GENERATE else _never_satisfied,
                    on_attempt=on_attempt,
                    cancelled=cancelled,
                )
        except InternalError as error:
            return SynthesisResult(Status.INFEASIBLE, error.sentence, None, 0, None, 0)

    def judge(
        self, region: Region, source: KernelSource, author: str, *, cancelled: Callable[[], bool] = never
    ) -> Candidate:
        """Verifies a kernel that ``author`` wrote for a region; the memory keeps it as any other. Raises
        UsageError for a region without a task, UnsupportedRegion where its graph does not mean what its code
        does, VerifierError."""
        task, eager = _task(region), self.comparisons.same(region)
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
        return self._write(region, self.verified(region, source_id))

    def verified(self, region: Region, source_id: str) -> Candidate:
        """A verified kernel of a region. Raises StoreError where the memory holds no feasible verdict."""
        task = _task(region)
        verified = self._verified(task, source_id, self.settings.chip)
        spoken = self._verifier.name if self._verifier else ""
        best = next((item for item in verified if item.verdict.verifier == spoken), verified[-1])
        return Candidate(best.source, best.verdict, best.parent)

    def _verified(self, task: KernelTask, source_id: str, chip: str = "") -> list[Stored]:
        """The verdicts of a kernel that passed, on a chip or any, oldest first. Raises StoreError where there
        is none."""
        stored = self.memory.candidates(task.task_id, chip=chip)
        verified = [item for item in stored if item.source.source_id == source_id and item.verdict.feasible]
        if not verified:
            raise StoreError("The kernel is not in the memory as verified; generate it again.")
        return verified

    def timeline(self, region: Region, source_id: str) -> Timeline:
        """The timeline of a verified kernel, on the chip that it was verified for. Raises StoreError where
        the memory holds no feasible verdict for it, and as ``timeline_of``."""
        from evokernel_core.synthesis.timeline import timeline_of  # the page's template engine with it

        task = _task(region)
        found = self._verified(task, source_id)[-1]
        assert found.verdict.latency is not None  # of what is feasible
        return timeline_of(task, found.source, load_chip(found.verdict.latency.chip))

    def borrow(self, region: Region) -> Package:
        """Writes the package that calls the vendor's operator for a region beside the user's file. Raises
        UsageError where the region is no such operator, UnsupportedRegion as ``package``."""
        self.comparisons.same(region)
        folder = write_vendor_package(import_root(Path(region.file).resolve()), region, self.settings.chip)
        return Package(folder.name, folder)

    def _write(self, region: Region, candidate: Candidate) -> Package:
        candidate = self._compared(region, candidate)
        root = import_root(Path(region.file).resolve())
        backup = back_up_changed(root / ROOT_PACKAGE / kernel_name(_task(region), placed(region).site))
        return evolve(_write_below(root, region, candidate), backup=backup)

    def _compared(self, region: Region, candidate: Candidate) -> Candidate:
        """The kernel, whose verdict says what came of this region's own code: it may have been given for
        other code of the same mathematics, or before any was run. Raises UnsupportedRegion."""
        return evolve(candidate, verdict=evolve(candidate.verdict, eager=self.comparisons.same(region)))

    def stage(self, region: Region, candidate: Candidate) -> Package:
        """Writes the package into the cache, to be read or verified; nothing of the user's changes. Raises
        UnsupportedRegion as ``package``."""
        return _write_below(cache_dir() / "packages", region, self._compared(region, candidate))

    def apply(self, path: Path, region: Region, candidate: Candidate) -> Package:
        """Writes the package, then puts the call into the file. Raises EditConflict, or UnsupportedRegion as
        ``package``; then the file is as it was."""
        if not candidate.verdict.feasible:
            raise UsageError("Only a verified kernel can be applied; this one failed.")
        data = path.read_bytes()  # bytes: the file keeps its line ends, and a mark of UTF-8
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        name = kernel_name(_task(region), placed(region).site)
        edited = plan_edit(data.decode("utf-8-sig"), region, name)
        package = self._write(region, candidate)
        _replace(path, mark + edited.encode())
        return package


def _unsupported(region: Region, reason: Sentence) -> Region:
    return evolve(region, status=RegionStatus.UNSUPPORTED, reason=reason, task=None)


def _priced(region: Region, estimate: Estimate | None) -> Offer:
    """An offer, unless its figures are none that a time can have: every client divides by them."""
    if estimate is None or estimate.is_sound:
        return Offer(region, estimate)
    reason = Sentence(
        "Line {line} takes {now} us as PyTorch runs it and {after} us as a kernel, as estimated: these are "
        "no times to compare.",
        line=region.span.line,
        now=f"{estimate.now_us:.1f}",
        after=f"{estimate.after_us:.1f}",
    )
    return Offer(_unsupported(region, reason), None)


def _left_out(path: Path, error: EvoKernelError) -> Region:
    """A region at the start of a file that says why there are no programs of kernels."""
    reason = Sentence("Programs of several kernels are left out: {error}", error=error)
    whole = Span(1, 0, 1, 0)
    status = RegionStatus.UNSUPPORTED
    return Region("programs", str(path), path.stem, whole, "", "", "program", status, reason)


def _all_in(regions: Iterable[Region], way: Way) -> dict[str, Way]:
    """The functions of regions, to be taken in one way."""
    return {region.symbol: way for region in sorted(regions, key=attrgetter("symbol"))}


def _position(region: Region) -> tuple[int, int]:
    return region.span.line, region.span.column


def _add(found: list[Region], more: Iterable[Region]) -> None:
    """Adds the regions that lie apart from those that were there before."""
    before = [region.span for region in found]
    found += [region for region in more if not any(region.span.overlaps(span) for span in before)]


def _write_below(root: Path, region: Region, candidate: Candidate) -> Package:
    folder = write_package(root, _task(region), placed(region), candidate.source, candidate.verdict)
    return Package(folder.name, folder)


def _replace(path: Path, data: bytes) -> None:
    """Puts a new text in place of a file's at once, so that no crash leaves half of it."""
    staged = path.with_name(f".{path.name}.evokernel")
    staged.write_bytes(data)
    shutil.copymode(path, staged)
    staged.replace(path)


def _never_satisfied(search: Search) -> bool:
    return False


def _satisfied(search: Search) -> bool:
    return True


def _task(region: Region) -> KernelTask:
    if region.task is None:
        raise UsageError(
            "No kernel can be written for {symbol}: {reason}", symbol=region.symbol, reason=region.reason
        )
    return region.task
