"""The loop: draft until feasible, refine from valued start points, learn from every attempt.

Formulas and their sources are in rewards.py, memory/ledger.py and memory/statistics.py.
Every attempt is one transaction (kernel, verdict, experiences, values) that is committed before the
attempt is announced. A job that was interrupted goes on after the attempts that it recorded. Where the
verifier judges several kernels at a time, as many attempts are in flight; they are recorded in the order of
proposing.
"""

from __future__ import annotations

import math
import random
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from functools import partial
from typing import TypeVar

from attrs import evolve, field, frozen

from evokernel_core.compiler.strategies import in_half
from evokernel_core.domain.defects import contained
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.errors import (
    BudgetExhausted,
    EndpointError,
    InternalError,
    NothingToGain,
    ProposerError,
    VerifierError,
)
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency, LatencySource, Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import start_item
from evokernel_core.synthesis.contexts import Librarian
from evokernel_core.synthesis.kept_verdicts import as_of_today
from evokernel_core.synthesis.lessons import failure
from evokernel_core.synthesis.policies.base import Policy, Refinement, SearchState
from evokernel_core.synthesis.proposers.base import Begun, Candidate, Context, Proposal, Proposer
from evokernel_core.synthesis.recorder import Recorder
from evokernel_core.synthesis.search import Search
from evokernel_core.synthesis.step_model import StepModel
from evokernel_core.synthesis.wishes import wishes
from evokernel_core.verifier.base import Cancelled, Verifier, never

MAX_EMPTY = 3
"""Consecutive attempts without a kernel after which the run ends."""
FATAL = (BudgetExhausted, EndpointError, NothingToGain)
"""What a proposer raises after which asking again is no use on this run."""


class Status(StrEnum):
    VERIFIED = "verified"
    INFEASIBLE = "infeasible"
    CANCELLED = "cancelled"


@frozen
class AttemptEvent:
    """Attempt ``n`` of ``budget`` is recorded. ``candidate`` is None where no kernel was proposed;
    ``best`` is the best latency so far, None before the first feasible kernel."""

    n: int
    budget: int
    stage: Stage
    candidate: Candidate | None
    best: Latency | None
    tokens: int


@frozen
class SynthesisResult:
    """What a run gave. ``reason`` says in one sentence why it ended; ``history`` is the best latency
    after each attempt; ``failed_gate`` is the last failure's where no kernel was verified."""

    status: Status
    reason: Sentence = field(converter=Sentence)
    best: Candidate | None
    attempts: int
    first_latency_us: float | None
    tokens: int
    history: tuple[float | None, ...] = ()
    failed_gate: str = ""


_CANCELLED = Sentence("Cancelled.")
_SAME_AS_START = Sentence(
    "To the compiler it is the kernel that it should improve: change what it does, not how it is written."
)
_SAME_AS_BEFORE = Sentence(
    "To the compiler it is one that was verified before: change what it does, not how it is written."
)


def _no_features(task: KernelTask) -> Mapping[str, float]:
    return {}


def _unknown(task: KernelTask) -> float:
    return 0.0


def _unsatisfied(search: Search) -> bool:
    return False


def _ignore(event: AttemptEvent) -> None:
    return


def _stage(start: Candidate | None) -> Stage:
    return Stage.REFINE if start else Stage.DRAFT


@frozen
class Engine:
    """Runs the two stages for one task at a time. ``features`` gives a task's structural vector,
    ``reachable`` the microseconds that the time model can reach for it (0: not known). ``eager`` is what came
    of the user's own code, which feasible verdicts say; ``order`` orders moves, where one is asked."""

    memory: Memory
    verifier: Verifier
    proposer: Proposer
    policy: Policy
    settings: Settings
    features: Callable[[KernelTask], Mapping[str, float]] = field(default=_no_features)
    reachable: Callable[[KernelTask], float] = field(default=_unknown)
    eager: EagerComparison | None = None
    order: StepModel | None = None

    def run(
        self,
        task: KernelTask,
        budget: int,
        *,
        job_id: str = "",
        satisfied: Callable[[Search], bool] = _unsatisfied,
        on_attempt: Callable[[AttemptEvent], None] = _ignore,
        cancelled: Callable[[], bool] = never,
    ) -> SynthesisResult:
        """Spends up to ``budget`` attempts; fewer at the bound, when nothing new is left, when
        cancelled, or when ``satisfied`` says after an attempt that a verified kernel will do.

        A ``job_id`` that the memory knows goes on after its recorded attempts. Raises VerifierError
        when the verifier cannot judge; the attempts so far stay recorded. Attempts in flight at the end of
        a run, but for that of its budget, are given up unrecorded.
        """
        run = _Run(
            self,
            Search(task, budget, self.reachable(task)),
            job_id or uuid.uuid4().hex,
            on_attempt,
            cancelled,
        )
        return run.to_end(satisfied)

    def judge(
        self, task: KernelTask, source: KernelSource, author: str, *, cancelled: Callable[[], bool] = never
    ) -> Candidate:
        """Verifies a kernel that ``author`` wrote without being asked by us, and records it as a draft, so
        that it counts as any other. Raises VerifierError."""
        run = _Run(self, Search(task, 1, self.reachable(task)), uuid.uuid4().hex, _ignore, cancelled)
        return run.judge(source, author)

    def next_context(self, task: KernelTask) -> Context:
        """What a run would hand to the proposer first: the best known kernel to refine, or none to draft."""
        run = _Run(self, Search(task, 1, self.reachable(task)), uuid.uuid4().hex, _ignore, never)
        run.take_in_known()
        return run.librarian.context(run.search, run.search.best)


class _Run:
    """One call of ``Engine.run``."""

    def __init__(
        self,
        engine: Engine,
        search: Search,
        job_id: str,
        on_attempt: Callable[[AttemptEvent], None],
        cancelled: Callable[[], bool],
    ) -> None:
        task, settings = search.task, engine.settings
        self.engine, self.search, self.job_id = engine, search, job_id
        self.on_attempt, self.cancelled = on_attempt, cancelled
        self.features = engine.features(task)
        self.rng = random.Random(f"{settings.seed}:{task.task_id}")
        self.librarian = Librarian(
            memory=engine.memory,
            proposer=engine.proposer,
            task=task,
            features=self.features,
            mode=settings.retrieval,
            rng=self.rng,
            chip=settings.chip,
            verifier=engine.verifier.name,
            job=job_id,
            order=engine.order,
        )
        self.empty = 0
        self.waiting: list[tuple[Candidate | None, Proposal]] = []
        """Further kernels for a question that was answered with several, each with its start."""
        self.flight = InFlight(max(1, settings.candidates_at_once or engine.verifier.workers), cancelled)
        self.asks = True
        """Whether the proposer is asked for more."""

    def to_end(self, satisfied: Callable[[Search], bool]) -> SynthesisResult:
        self.take_in_known()
        reason = self._stop_reason(satisfied)
        try:
            with self.flight:
                if not reason and not self.search.spent and self._start_from_what_is_known():
                    reason = self._stop_reason(satisfied)
                while not reason:
                    reason = self._step() or self._stop_reason(satisfied)
        except VerifierError:
            if not self.cancelled():
                raise
        self.search.tokens += self.flight.tokens
        return self._result(reason)

    def judge(self, source: KernelSource, author: str) -> Candidate:
        """As ``Engine.judge``."""
        self.take_in_known()
        with self.flight:
            candidate = Candidate(source, self._verify(source))
        recorder = evolve(self._recorder(), proposer=author)
        recorder.attempt(1, candidate, Proposal(source), None, self.search)
        return candidate

    def _step(self) -> Sentence:
        """Begins an attempt, and finishes the oldest where there is no more to begin. Returns why the run
        ends, empty where it goes on."""
        if self._may_begin():
            self._begin()
        return Sentence() if self._may_begin() else self.flight.finish()

    def _may_begin(self) -> bool:
        """Whether there are room and budget for an attempt, and something to make it from. A kernel that was
        timed only waits for all that may come before it."""
        search, flight = self.search, self.flight
        if not self.asks or flight.has_empty or len(flight) >= min(flight.room, search.budget - search.spent):
            return False
        return bool(self.waiting or search.starts or search.can_draft or (search.timed and not flight))

    def _stop_reason(self, satisfied: Callable[[Search], bool]) -> Sentence:
        search = self.search
        if self.cancelled():
            return _CANCELLED
        if search.spent and (ended := search.spent_reason(self.engine.settings.patience)):
            return ended
        if search.first_at and satisfied(search):
            return Sentence("A verified kernel is there, and no more was asked for.")
        if not (self.waiting or search.starts or search.can_draft or search.timed or self.flight):
            return Sentence("The proposer has nothing new left to try.")
        return Sentence()

    def _result(self, reason: Sentence) -> SynthesisResult:
        search = self.search
        status = Status.VERIFIED if search.best else Status.INFEASIBLE
        if self.cancelled():
            status, reason = Status.CANCELLED, _CANCELLED
        elif status is Status.INFEASIBLE and search.feedback and search.feedback not in reason:
            reason = Sentence("{reason} Last failure: {failure}", reason=reason, failure=search.feedback)
        return SynthesisResult(
            status=status,
            reason=reason,
            best=search.best,
            attempts=search.spent,
            first_latency_us=search.first_us,
            tokens=search.tokens,
            history=tuple(search.history),
            failed_gate="" if search.best else search.failed_gate,
        )

    def take_in_known(self) -> None:
        """Takes in every kernel that this verifier has judged and that the settings allow, and this job's own
        attempts."""
        engine, search = self.engine, self.search
        engine.memory.record_task(search.task, self.features)
        stored = engine.memory.candidates(search.task.task_id, engine.verifier.name, engine.settings.chip)
        search.wishes = wishes(stored, engine.memory.rejections(search.task.task_id))
        for entry in stored:
            if in_half(entry.source.strategy) and not engine.settings.half:
                continue
            verdict = as_of_today(search.task, entry.source, entry.verdict)
            search.add(Candidate(entry.source, verdict, entry.parent))
        for attempt in engine.memory.attempts(job_id=self.job_id):
            known = search.known(attempt.source_id)
            search.spend(known, attempt.tokens)
            search.feedback = failure(known.verdict) if known else Sentence(attempt.feedback)

    def _start_from_what_is_known(self) -> bool:
        """Makes the best kernel of earlier runs attempt 1: trusted where this verifier judged it."""
        best = self.search.best
        if best is None:
            source = self._known_elsewhere()
            if source is None:
                return False
            best = Candidate(source, self._verify(source))
        self._recorder().known(self.search.spent + 1, best)
        self.search.add(best)
        self._announce(best, Stage.DRAFT, 0)
        return True

    def _known_elsewhere(self) -> KernelSource | None:
        """The best kernel by the word of another verifier or another version of this one."""
        memory, chip = self.engine.memory, self.engine.settings.chip
        result = (memory.best(self.search.task.task_id, chip, source) for source in LatencySource)
        return next((element.source for element in result if element), None)

    def _begin(self) -> None:
        """Proposes, and lets the verifier begin."""
        if self.waiting:
            self._let_begin(*self.waiting.pop(0))
            return
        timed = self.search.timed
        if timed is not None and not self.search.starts and not self.search.can_draft:
            self.flight.add(Attempt(partial(self._compare, timed)))
            return
        step = self._choose()
        try:
            proposal = self._propose(step)
        except ProposerError as error:
            self._no_kernel(error, step.start)
            return
        self.waiting = [(step.start, other) for other in proposal.others]
        self._let_begin(step.start, proposal)

    def _let_begin(self, start: Candidate | None, proposal: Proposal) -> None:
        search = self.search
        begun = Begun(proposal.source, start.source.source_id if start else "")
        below_us = search.best_us if start and proposal.timed_first else math.inf
        verify = partial(self._verify, proposal.source, below_us)
        verdict = self.flight.start(verify) if search.is_new(proposal.source) else verify
        search.begun.append(begun)
        finish = partial(self._judge, begun, proposal, start, below_us, verdict)
        self.flight.add(
            Attempt(finish, proposal.tokens, is_empty=search.repeats(proposal.source) is not None)
        )

    def _judge(
        self,
        begun: Begun,
        proposal: Proposal,
        start: Candidate | None,
        below_us: float,
        verdict: Callable[[], Verdict],
    ) -> Sentence:
        """Waits for the verdict where none is known, and records."""
        search = self.search
        search.begun.remove(begun)
        if (judged := search.repeats(proposal.source)) is not None:
            return self._no_change(judged, proposal, start)
        known = search.known(proposal.source.source_id)
        is_judged = known is not None and not known.verdict.is_open(below_us)
        outcome = known.verdict if known and is_judged else verdict()
        candidate = Candidate(proposal.source, outcome, begun.parent)
        self._recorder().attempt(search.spent + 1, candidate, proposal, start, search)
        search.add(candidate)
        self.empty = 0
        self._announce(candidate, _stage(start), proposal.tokens)
        return Sentence()

    def _compare(self, timed: Candidate) -> Sentence:
        """Where nothing else is left to start from, a kernel that was timed only is verified as a whole."""
        candidate = evolve(timed, verdict=self._verify(timed.source))
        self._recorder().known(self.search.spent + 1, candidate)
        self.search.add(candidate)
        self._announce(candidate, Stage.REFINE, 0)
        return Sentence()

    def _choose(self) -> Refinement:
        search, engine = self.search, self.engine
        ids = [start.source.source_id for start in search.starts]
        q = engine.memory.q_of(Stage.REFINE, search.task.op_category, map(start_item, ids))
        values = {id: q[start_item(id)] for id in ids}
        begun = tuple(search.begun)
        state = SearchState(search.candidates, search.starts, values, search.can_draft, begun)
        return engine.policy.choose(state, self.rng)

    def _propose(self, step: Refinement) -> Proposal:
        """Raises ProposerError, also for a defect of the proposer: it costs this attempt alone."""
        proposer = self.engine.proposer
        try:
            with contained(Sentence("writing a kernel")):
                context = evolve(
                    self.librarian.context(self.search, step.start),
                    away_from=step.away_from,
                    attempts_left=self.search.budget - self.search.spent - len(self.flight),
                    budget=self.search.budget,
                    history=tuple(self.search.history),
                    cancelled=self.cancelled,
                )
                ask = proposer.refine if context.start else proposer.draft
                proposal = ask(self.search.task, context)
                shown = tuple(experience.id for experience in context.experiences)
                others = tuple(evolve(other, shown=shown) for other in proposal.others)
                return evolve(proposal, shown=shown, others=others)
        except InternalError as error:
            raise ProposerError(error.sentence) from error

    def _verify(self, source: KernelSource, below_us: float = math.inf) -> Verdict:
        verifier = self.engine.verifier
        verdict = verifier.verify(
            self.search.task, source, cancelled=self.flight.cancelled, below_us=below_us
        )
        eager = self.engine.eager if verdict.feasible else None
        # kept under the name by which this verifier is asked for again
        return evolve(verdict, verifier=verifier.name, eager=eager)

    def _no_kernel(self, error: ProposerError, start: Candidate | None) -> None:
        """An exhausted start point costs nothing; an answer without a kernel costs an attempt, one that
        nobody waits for any more none."""
        if self.cancelled() or error.exhausted or isinstance(error, FATAL):
            self.search.tokens += error.tokens
        if self.cancelled():
            return
        if isinstance(error, FATAL):
            self.asks = False
            self.flight.add(Attempt(lambda: error.sentence))
        elif error.exhausted:
            self.search.exhaust(start)
            if start is None and not self.search.spent:  # then this is all there is to say
                self.search.feedback = self.search.feedback or error.sentence
        else:
            finish = partial(self._record_nothing, error, start)
            self.flight.add(Attempt(finish, error.tokens, is_empty=True))

    def _record_nothing(self, error: ProposerError, start: Candidate | None) -> Sentence:
        why, parent = error.sentence, start.source.source_id if start else ""
        self._recorder().nothing(self.search.spent + 1, _stage(start), parent, why, error.tokens)
        return self._empty(why, start, error.tokens)

    def _no_change(self, known: Candidate, proposal: Proposal, start: Candidate | None) -> Sentence:
        """A text that differs from a judged kernel in nothing that the compiler sees costs an attempt, and is
        worth nothing."""
        is_start = start is not None and known.source.source_id == start.source.source_id
        feedback = _SAME_AS_START if is_start else _SAME_AS_BEFORE
        self._recorder().no_change(self.search.spent + 1, _stage(start), proposal, start, feedback)
        return self._empty(feedback, start, proposal.tokens)

    def _empty(self, why: Sentence, start: Candidate | None, tokens: int) -> Sentence:
        """After an attempt that gave nothing to judge: why the run ends, empty where it goes on."""
        self.search.feedback = why
        self.empty += 1
        self._announce(None, _stage(start), tokens)
        if self.empty < MAX_EMPTY:
            return Sentence()
        return Sentence(
            "{count} answers in a row gave no new kernel; the last: {why}", count=self.empty, why=why
        )

    def _recorder(self) -> Recorder:
        engine = self.engine
        return Recorder(
            memory=engine.memory,
            task=self.search.task,
            features=self.features,
            job_id=self.job_id,
            proposer=engine.proposer.name,
            verifier=engine.verifier.name,
            chip=engine.settings.chip,
        )

    def _announce(self, candidate: Candidate | None, stage: Stage, tokens: int) -> None:
        search = self.search
        search.spend(candidate, tokens)
        best = search.best.verdict.latency if search.best else None
        self.on_attempt(AttemptEvent(search.spent, search.budget, stage, candidate, best, search.tokens))


T = TypeVar("T")


@frozen
class Attempt:
    """An attempt that is not recorded yet. ``finish`` waits for its verdict and records it; it returns why
    the run ends, empty where it goes on. ``tokens`` were spent on it. ``is_empty``: there is nothing to
    verify, and what is wrong with the answer is to be told before another is asked for."""

    finish: Callable[[], Sentence]
    tokens: int = 0
    is_empty: bool = False


class InFlight:
    """Up to ``room`` attempts; with room for one, everything happens in the caller's thread, when it is asked
    for. As a context manager it ends with all of them: those that are not finished are given up."""

    def __init__(self, room: int, cancelled: Cancelled) -> None:
        self.room = room
        self._asked = cancelled
        self._ended = threading.Event()
        self._threads = ThreadPoolExecutor(room, "verify") if room > 1 else None
        self._attempts: deque[Attempt] = deque()

    def __enter__(self) -> InFlight:
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def __len__(self) -> int:
        return len(self._attempts)

    @property
    def has_empty(self) -> bool:
        """Whether an attempt waits that will tell the proposer of an answer without a kernel."""
        return any(attempt.is_empty for attempt in self._attempts)

    def cancelled(self) -> bool:
        """Whether verifications should stop: the run was cancelled, or ended without them."""
        return self._ended.is_set() or self._asked()

    def start(self, work: Callable[[], T]) -> Callable[[], T]:
        """Begins ``work`` where there is room for several; what is returned waits for its result, and raises
        what it raised."""
        return self._threads.submit(work).result if self._threads is not None else work

    def add(self, attempt: Attempt) -> None:
        self._attempts.append(attempt)

    def finish(self) -> Sentence:
        """Finishes the oldest attempt; as its ``finish``, empty where there is none."""
        return self._attempts.popleft().finish() if self._attempts else Sentence()

    @property
    def tokens(self) -> int:
        """Those of all attempts that are not finished."""
        return sum(attempt.tokens for attempt in self._attempts)
