"""The queue of syntheses: durable, one at a time, a person's request before background work.

Every change of a job is in the memory before anyone hears of it. A server that starts finds the jobs of
one that was killed (their claims are gone with it) and goes on where they stopped. While the verifier is
away a job waits, and is tried again after a growing pause.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.region import Region
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import dumps, from_data, loads, to_data
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_server.jobs.claims import Claims
from evokernel_server.jobs.store import Store
from evokernel_server.jobs.worker import Cancelled, Worker, WorkerDied, WorkerError
from evokernel_server.texts.translations import _, marked

log = logging.getLogger(__name__)

UNFINISHED = (JobState.QUEUED, JobState.RUNNING, JobState.WAITING)
CANNOT_JUDGE_YET = frozenset({"verifier_unavailable", "compiler_missing"})
"""Errors of the worker that time or a person mends: the job waits, and goes on by itself."""
_DEATHS_ALLOWED = 3


@frozen
class Best:
    source_id: str
    latency: Latency
    verifier: str


@frozen
class Report:
    """How a synthesis ended: ``status`` is verified or infeasible, ``reason`` says why not."""

    status: str
    reason: Sentence
    attempts: int
    first_latency_us: float | None
    best: Best | None


@frozen
class AttemptEvent:
    """One attempt of a running synthesis."""

    n: int
    budget: int
    stage: str
    feasible: bool
    latency_us: float | None
    best_us: float | None
    best_source: str = ""
    """How ``best_us`` is known."""
    verdict: str = ""
    """The verdict in a sentence."""


Listener = Callable[[AttemptEvent], None]


@define(eq=False)
class JobQueue:
    """``finished`` hears of each background job that ended with a report.

    ``eligible`` says whether a job may run here; ``announce`` is called when the queue changes.
    """

    store: Store
    worker: Worker
    claims: Claims
    eligible: Callable[[Job], bool]
    finished: Callable[[Job, Report], Awaitable[None]]
    announce: Callable[[], None]
    retry_s: Callable[[], tuple[float, float]]
    clock: Callable[[], float] = time.time
    say: Callable[[str], None] = lambda _: None
    """Hears what was done."""
    running: Job | None = None
    waiting: dict[str, Job] = field(factory=dict)
    """Jobs that nobody can judge now, by id: the verifier is away, or has no compiler."""
    failures: dict[str, Sentence] = field(factory=dict)
    """Why the last job of a file came to nothing for a reason that lies not in the file, by path."""
    _turn: asyncio.Lock = field(factory=asyncio.Lock)
    _wake: asyncio.Event = field(factory=asyncio.Event)
    _preempt: asyncio.Event | None = None
    _not_before: dict[str, tuple[float, float]] = field(factory=dict)
    """When a waiting job is tried again (monotonic), and the pause after that."""
    _deaths: dict[str, int] = field(factory=dict)
    _cancels: dict[str, asyncio.Event] = field(factory=dict)
    """What ends a person's request that runs or waits for its turn, by job."""
    _ended: set[str] = field(factory=set)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to work through the queue, with what earlier servers left in it."""
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="jobs")

    def stop(self) -> None:
        """Lets go of the queue; a running job stays in it for the next server."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.claims.release_all()

    def wake(self) -> None:
        """Looks at the queue again: a file was opened, or the verifier may be back."""
        self._wake.set()

    async def add(self, kind: JobKind, file: Path, region: Region, budget: int) -> Job:
        """Queues a synthesis; an unfinished one of the same kind, file and task is given instead."""
        assert region.task is not None
        now = self.clock()
        job = Job(
            id=uuid.uuid4().hex, kind=kind, state=JobState.QUEUED, file=str(file), region_id=region.id,
            task_id=region.task.task_id, region=dumps(region), budget=budget, spent=0,
            created=now, updated=now,
        )  # fmt: skip
        kept = await self.store(lambda memory: _put_once(memory, job))
        self.announce()
        if kind is JobKind.REFINE:
            self.wake()
        return kept

    async def run_now(self, job: Job, listener: Listener, cancel: asyncio.Event) -> Report:
        """Runs a person's request before anything else.

        Raises Cancelled, or WorkerError for a stated reason; the job's state is saved first.
        """
        if not self.claims.take(job.id):
            raise EvoKernelError(_("Another window is already generating this kernel; wait for it there."))
        if self._preempt is not None:
            self._preempt.set()
        kept = False
        self._cancels[job.id] = cancel
        try:
            async with self._turn:
                report = await self._run_until_answered(job, listener, cancel)
            kept = report.best is not None
            return report
        except Cancelled:
            await self._save(job, JobState.CANCELLED, _CANCELLED)
            raise
        finally:
            self._cancels.pop(job.id, None)
            if not kept:
                self.claims.release(job.id)

    async def _run_until_answered(self, job: Job, listener: Listener, cancel: asyncio.Event) -> Report:
        while True:
            try:
                return await self._run(job, listener, cancel)
            except WorkerDied as error:
                await self._retry(job, error)
                if self._deaths[job.id] >= _DEATHS_ALLOWED:
                    raise

    async def finish(self, job: Job, state: JobState, reason: str = "") -> None:
        await self.store(lambda memory: memory.update_job(job.id, state=state, reason=reason))
        self.ended(job)

    def ended(self, job: Job) -> None:
        """The end of a job is saved: nobody takes it again."""
        self.claims.release(job.id, finished=True)
        self.announce()

    async def drop(self, file: str, region_id: str) -> None:
        """Ends the work for a place where no kernel is wanted any more."""
        running = self.running
        if running is not None and (running.file, running.region_id) == (file, region_id):
            self.cancel_background()
        for job in await self.store(lambda memory: memory.jobs(UNFINISHED, file=file)):
            if job.region_id == region_id and (running is None or job.id != running.id):
                self._forget_waiting(job)
                await self._save(job, JobState.CANCELLED, _NOT_WANTED)
        self.announce()

    async def move(self, old: Path, new: Path) -> None:
        """Jobs of a file are for another, which it has become; one that runs gives way and goes on there."""
        if self.running is not None and self.running.file == str(old) and self._preempt is not None:
            self._preempt.set()
        await self.store(lambda memory: _move(memory, old, new))
        for job in [job for job in self.waiting.values() if job.file == str(old)]:
            self.waiting[job.id] = evolve(job, file=str(new))
        self.wake()

    async def end(self, file: Path) -> None:
        """Jobs of a file that was deleted are no use any more."""
        if self.running is not None and self.running.file == str(file):
            self.cancel_background()
        for job in await self.store(lambda memory: memory.jobs(UNFINISHED, file=str(file))):
            self._forget_waiting(job)
            if cancel := self._cancels.get(job.id):
                cancel.set()
            await self.finish(job, JobState.CANCELLED, _DELETED)

    def cancel_background(self) -> bool:
        """Ends the background job that runs now. Returns whether there was one."""
        if self._preempt is None or self.running is None:
            return False
        self._ended.add(self.running.id)
        self._preempt.set()
        return True

    async def cancel(self, job_id: str) -> bool:
        """Ends one job, whether it runs or waits. Returns whether it was there and not another window's."""
        if job_id in self._cancels:
            self._cancels[job_id].set()
            return True
        if self.running is not None and self.running.id == job_id:
            return self.cancel_background()
        job = await self.store(lambda memory: memory.job(job_id))
        if job is None or job.state not in UNFINISHED or not self.claims.take(job_id):
            return False
        self._ended.add(job_id)  # the queue may have taken it already and wait for its turn
        self._forget_waiting(job)
        await self.finish(job, JobState.CANCELLED, _CANCELLED)
        return True

    async def alone(self, work: Callable[[], Awaitable[None]]) -> None:
        """Ends what runs in the background, and does ``work`` while no job runs."""
        self.cancel_background()
        async with self._turn:
            await work()
            self.waiting.clear()
            self._not_before.clear()

    async def _work(self) -> None:
        pause, told = 0.0, ""
        while True:
            self._wake.clear()
            try:
                job = await self._next()
                if job is None:
                    await self._rest()
                else:
                    async with self._turn:
                        await self._background(job)
                pause = 0.0
            except EvoKernelError as error:
                if str(error) != told:
                    log.error("The job queue met an error: %s", error)
                told = str(error)
                pause = min(max(2 * pause, self.retry_s()[0]), self.retry_s()[1])
                await asyncio.sleep(pause)

    async def _rest(self) -> None:
        """Sleeps until something changes or a waiting job is due."""
        due = min((when for when, _ in self._not_before.values()), default=None)
        pause = None if due is None else max(0.05, due - time.monotonic())
        try:
            await asyncio.wait_for(self._wake.wait(), pause)
        except TimeoutError:
            return

    async def _next(self) -> Job | None:
        """The oldest job that may run here now, claimed."""
        for job in await self.store(lambda memory: memory.jobs(UNFINISHED)):
            due, _ = self._not_before.get(job.id, (0.0, 0.0))
            if not self.eligible(job) or due > time.monotonic():
                continue
            if job.id in self.claims.held or not self.claims.take(job.id):
                continue
            fresh = await self.store(lambda memory, id=job.id: memory.job(id))  # type: ignore[misc]
            if fresh is not None and fresh.state in UNFINISHED:
                return fresh  # type: ignore[no-any-return]
            self.claims.release(job.id, finished=True)
        return None

    async def _background(self, job: Job) -> None:
        if job.id in self._ended:
            self._ended.discard(job.id)
            self.claims.release(job.id)
            return
        self._preempt = asyncio.Event()
        try:
            report = await self._run(job, lambda _: None, self._preempt)
        except Cancelled:
            await self._give_way(job)
        except WorkerDied as error:
            await self._retry(job, error)
        except WorkerError as error:
            log.info("The job %s ended: %s", job.id, error)
        else:
            await self.finished(job, report)
        finally:
            self._preempt = None
            self.claims.release(job.id)

    async def _give_way(self, job: Job) -> None:
        """A background job that gave way to a request keeps its place; one that a person ended does not."""
        if job.id in self._ended:
            self._ended.discard(job.id)
            await self._save(job, JobState.CANCELLED, _CANCELLED)
        else:
            await self._save(job, JobState.QUEUED, _GAVE_WAY)

    async def _retry(self, job: Job, error: WorkerDied) -> None:
        self._deaths[job.id] = self._deaths.get(job.id, 0) + 1
        given_up = self._deaths[job.id] >= _DEATHS_ALLOWED
        state = JobState.FAILED if given_up else JobState.QUEUED
        await self.store(lambda memory: memory.update_job(job.id, state=state, reason=error.sentence))

    async def _run(self, job: Job, listener: Listener, cancel: asyncio.Event) -> Report:
        self.failures.pop(job.file, None)
        self.running = await self.store(
            lambda memory: memory.update_job(job.id, state=JobState.RUNNING, reason="")
        )
        self.announce()
        try:
            report = await self._synthesise(job, listener, cancel)
            self._forget_waiting(job)
            if report.best is None and not report.attempts and report.reason:
                self.failures[job.file] = report.reason
        except WorkerDied:
            raise
        except WorkerError as error:
            await self._fail(job, error)
            raise
        finally:
            self.running = None
            self.announce()
        if job.kind is JobKind.REFINE or report.best is None:
            state = JobState.DONE if report.best else JobState.FAILED
            await self._save(job, state, report.reason)
        return report

    async def _synthesise(self, job: Job, listener: Listener, cancel: asyncio.Event) -> Report:
        region = region_of(job)
        saves: set[asyncio.Task[Any]] = set()

        def heard(event: Mapping[str, Any]) -> None:
            attempt = read_attempt(event)
            if attempt is None:
                return
            done = f"attempt {attempt.n}/{attempt.budget} ({attempt.stage})"
            self.say(f"{_subject(job, region)}: {done}: {attempt.verdict}")
            save = self.store(lambda memory: memory.update_job(job.id, spent=attempt.n))
            task = asyncio.ensure_future(_then(save, listener, attempt))
            saves.add(task)
            task.add_done_callback(saves.discard)

        params = {
            "region": to_data(region),
            "budget": job.budget,
            "job_id": job.id,
            "mode": job.kind.value,
        }
        result = await self.worker.request("synthesise", params, on_event=heard, cancel=cancel)
        await asyncio.gather(*saves)
        report = from_data({**_EMPTY, **result}, Report)
        self.say(f"{_subject(job, region)}: {_ending(report)}")
        return report

    async def _fail(self, job: Job, error: WorkerError) -> None:
        self.say(f"{Path(job.file).name}: the {job.kind.value} job stopped ({error.reason}): {error}")
        if error.reason not in CANNOT_JUDGE_YET:
            self.failures[job.file] = error.sentence
            self._forget_waiting(job)
            await self._save(job, JobState.FAILED, error.sentence)
            return
        _, pause = self._not_before.get(job.id, (0.0, self.retry_s()[0]))
        self._not_before[job.id] = (time.monotonic() + pause, min(pause * 2, self.retry_s()[1]))
        self.waiting[job.id] = evolve(job, state=JobState.WAITING, reason=error.sentence)
        await self._save(job, JobState.WAITING, error.sentence)
        self.wake()

    async def _save(self, job: Job, state: JobState, reason: Sentence) -> None:
        await self.store(lambda memory: memory.update_job(job.id, state=state, reason=reason))

    def _forget_waiting(self, job: Job) -> None:
        self._not_before.pop(job.id, None)
        self.waiting.pop(job.id, None)
        self._deaths.pop(job.id, None)


_CANCELLED = Sentence(marked("Cancelled by you."))
_NOT_WANTED = Sentence(marked("Dismissed by you."))
_DELETED = Sentence(marked("The file was deleted."))
_GAVE_WAY = Sentence(marked("Gave way to a request; it goes on after that."))
_EMPTY: Mapping[str, Any] = {
    "status": "infeasible",
    "reason": "",
    "attempts": 0,
    "first_latency_us": None,
    "best": None,
}


def _subject(job: Job, region: Region) -> str:
    return f"{Path(job.file).name}, {region.op_category} in {region.symbol}"


def _ending(report: Report) -> str:
    attempts = f"{report.attempts} attempt{'s' * (report.attempts != 1)}"
    if report.best is None:
        return f"no kernel in {attempts}: {report.reason or 'no reason was given'}"
    latency = report.best.latency
    word = "measured" if latency.source is LatencySource.MEASURED else "estimated"
    figure = f"{latency.us:,.1f} µs {word} on {latency.chip}"
    return f"verified by {report.best.verifier} after {attempts}, {figure}."


async def _then(save: Awaitable[object], listener: Listener, attempt: AttemptEvent) -> None:
    """Durable first, announced second."""
    await save
    listener(attempt)


def region_of(job: Job) -> Region:
    """The region of a job. Raises WorkerError where what the memory holds of it is damaged."""
    try:
        return loads(job.region, Region)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, BaseValidationError) as error:
        raise WorkerError(
            "damaged", marked("What the memory holds of this request is damaged; ask for the kernel again.")
        ) from error


def _move(memory: Any, old: Path, new: Path) -> None:
    with memory.transaction():
        for job in memory.jobs(file=str(old)):
            with contextlib.suppress(WorkerError):  # what is damaged stays as it is
                region = dumps(evolve(region_of(job), file=str(new)))
                memory.update_job(job.id, file=str(new), region=region)


def _put_once(memory: Any, job: Job) -> Job:
    with memory.transaction():
        for other in memory.jobs(UNFINISHED):
            if (other.kind, other.file, other.task_id) == (job.kind, job.file, job.task_id):
                return other  # type: ignore[no-any-return]
        memory.put_job(job)
    return job


def read_attempt(event: Mapping[str, Any]) -> AttemptEvent | None:
    """The worker's event as an object; None for kinds that are not attempts."""
    if event.get("kind") != "attempt":
        return None
    return AttemptEvent(
        n=int(event.get("n", 0)),
        budget=int(event.get("budget", 0)),
        stage=str(event.get("stage", "")),
        feasible=bool(event.get("feasible")),
        latency_us=event.get("latency_us"),
        best_us=event.get("best_us"),
        best_source=str(event.get("best_source", "")),
        verdict=str(event.get("verdict_summary", "")),
    )
