"""Who works off the queue: seats, one kernel each at a time, and the child processes behind those here."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from attrs import frozen

from evokernel_core.logs import get_logger
from evokernel_core.process_tree import descendants, kill_all
from evokernel_core.verifier.queue import Claim, JobQueue
from evokernel_core.verifier.unjudged import answered, told_by, too_long

log = get_logger(__name__)

_ONE_LINE = str.maketrans("\r\n", "  ")
"""A request is one line: JSON has no line's end within a text, and what is none must not be two requests."""

LONGEST_ANSWER = 2**26
"""Bytes of the longest line that a worker may answer with."""

JOBS_PER_CHILD = 200
"""A child is replaced after so many kernels, so that what leaks in it stays bounded."""

LOOK_AGAIN_S = 60.0
"""An idle seat asks the queue at least so often."""

TRY_AGAIN_S = 2.0
"""Between two tries to write to a queue that cannot be written, such as on a full disk."""

SECRETS = ("EVOKERNEL_VERIFIER_TOKEN", "EVOKERNEL_API_KEY", "RAY_AUTH_TOKEN")
"""Environment variables that no worker, and so no candidate, gets to see."""


Result = TypeVar("Result")


class Died(Exception):
    """Whoever judged ended, or spoke nonsense, in the middle of a kernel."""


class HostLost(Exception):
    """The machine on which a kernel was judged is gone; the kernel is not to blame."""


class Seat(Protocol):
    """A place where one kernel at a time is judged: a child process here, or a device of another host."""

    @property
    def place(self) -> str:
        """Where it is, for the log."""
        ...

    async def ask(self, claim: Claim) -> dict[str, Any]:
        """``{"verdict":...}`` or ``{"error":...}``, with ``cpu_s``. Raises Died, HostLost."""
        ...

    def kill(self) -> None:
        """Ends the work at hand; the next ``ask`` starts afresh."""
        ...


Serve = Callable[[Seat], Coroutine[Any, Any, None]]
"""Gives a seat work until it is cancelled or the seat is lost."""


class Pool(Protocol):
    """Where the seats come from."""

    async def run(self, serve: Serve) -> None:
        """Serves every seat that there is or comes, until cancelled."""
        ...


@frozen
class JobEnd:
    """The end of one job, for the log: who paid, what came of it and what it took."""

    job: str
    user: str
    place: str
    answer: Mapping[str, Any]
    seconds: float
    cpu_s: float


class LocalPool:
    """``count`` seats on this machine, each with a child of its own.

    ``factory`` and ``arguments`` are those of ``service_worker``.
    """

    def __init__(self, factory: str, arguments: Mapping[str, Any], count: int) -> None:
        self._command = worker_command(factory, arguments)
        self._count = count

    async def run(self, serve: Serve) -> None:
        seats = [Child(self._command) for _ in range(self._count)]
        try:
            async with asyncio.TaskGroup() as group:
                for seat in seats:
                    group.create_task(serve(seat))
        finally:
            for seat in seats:
                seat.kill()


class Workers:
    """Gives the queue's jobs to the seats of a pool, and what comes of them back to the queue.

    ``on_done`` is told the id of each job that has ended, and ``on_outcome`` how.
    """

    def __init__(
        self,
        queue: JobQueue,
        pool: Pool,
        *,
        job_timeout_s: float,
        on_done: Callable[[str], None],
        on_outcome: Callable[[JobEnd], None],
    ) -> None:
        self._queue = queue
        self._pool = pool
        self._timeout = job_timeout_s
        self._on_done = on_done
        self._on_outcome = on_outcome
        self._more = asyncio.Event()
        self._running: dict[str, Seat] = {}
        self.seats = 0
        """Kernels that can be judged at a time, now."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The seats work inside; at the end what still runs goes back into the queue."""
        pool = asyncio.create_task(self._pool.run(self._serve))
        pool.add_done_callback(_say_why)
        try:
            yield
        finally:
            pool.cancel()
            await asyncio.gather(pool, return_exceptions=True)

    def wake(self) -> None:
        """There may be something to claim."""
        self._more.set()

    def stop(self, job: str) -> None:
        """Ends the work on a job that is no longer wanted."""
        seat = self._running.get(job)
        if seat:
            seat.kill()

    async def _serve(self, seat: Seat) -> None:
        self.seats += 1
        try:
            while True:
                await self._work(seat, await self._claim())
        except HostLost:
            log.warning("a host was lost", place=seat.place)
        finally:
            self.seats -= 1

    async def _claim(self) -> Claim:
        while True:
            self._more.clear()
            claim = await self._take()
            if claim:
                self._more.set()  # there may be more, for the other seats
                return claim
            with suppress(TimeoutError):  # at midnight quotas are new, of which nobody tells
                await asyncio.wait_for(self._more.wait(), LOOK_AGAIN_S)

    async def _take(self) -> Claim | None:
        """A claim; one that comes after the seat was lost goes back, as nobody would know its lease."""
        taking = asyncio.create_task(_stored(self._queue.claim))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            claim = await taking
            if claim:
                self._return(claim)
            raise

    def _return(self, claim: Claim) -> None:
        """Back into the queue; where that cannot be written, the next start of the service does it."""
        with suppress(sqlite3.Error):
            self._queue.give_back(claim, died=False)
            self._more.set()

    async def _work(self, seat: Seat, claim: Claim) -> None:
        """One job to its end, whatever the end is. Raises HostLost."""
        self._running[claim.id] = seat
        started = time.monotonic()
        try:
            if not await _stored(partial(self._queue.holds, claim)):
                return  # withdrawn between the claim and now
            answer = await asyncio.wait_for(seat.ask(claim), self._timeout)
            await self._finish(claim, seat, answer, started)
        except TimeoutError:
            seat.kill()
            await self._finish(claim, seat, answered(too_long(self._timeout)), started)
        except Died:
            seat.kill()
            await self._try_again(claim, started, died=True)
        except HostLost:
            await self._try_again(claim, started, died=False)
            raise
        except asyncio.CancelledError:
            self._return(claim)
            raise
        finally:
            self._running.pop(claim.id, None)

    async def _finish(self, claim: Claim, seat: Seat, answer: Mapping[str, Any], started: float) -> None:
        """Stores the result; work that was cut off costs its user the time on the wall."""
        seconds = time.monotonic() - started
        told = answer.get("cpu_s")
        cpu_s = max(0.0, float(told)) if isinstance(told, int | float) else seconds
        verdict = json.dumps(answer["verdict"]) if "verdict" in answer else ""
        finish = partial(self._queue.finish, claim, verdict=verdict, error=told_by(answer), cpu_s=cpu_s)
        if await _stored(finish):
            self._on_outcome(JobEnd(claim.id, claim.user, seat.place, answer, seconds, cpu_s))
        self._on_done(claim.id)

    async def _try_again(self, claim: Claim, started: float, *, died: bool) -> None:
        """After a death: back into the queue, unless the job was withdrawn or is given up."""
        seconds = time.monotonic() - started
        cpu_s = seconds if died else 0.0
        give_back = partial(self._queue.give_back, claim, died=died, host_lost=not died, cpu_s=cpu_s)
        if await _stored(give_back):
            log.warning("the work on a job was cut off; it waits again", job=claim.id)
            self.wake()
        else:
            self._on_done(claim.id)


def _say_why(pool: asyncio.Task[None]) -> None:
    """A pool that ends before the service is a defect, and must not be a silent one."""
    error = None if pool.cancelled() else pool.exception()
    if error:
        log.critical("nothing is judged any more; restart the service", exc_info=error)


async def _stored(step: Callable[[], Result]) -> Result:
    """What a step on the queue gives, tried until the disk takes it: an answer in hand is not thrown away."""
    while True:
        try:
            return await asyncio.to_thread(step)
        except sqlite3.OperationalError as error:
            log.error("the queue cannot be written; trying again", error=str(error), pause_s=TRY_AGAIN_S)
            await asyncio.sleep(TRY_AGAIN_S)


def worker_command(factory: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What Python is to run for a worker."""
    return ("-P", "-m", "evokernel_core.verifier.service_worker", factory, json.dumps(dict(arguments)))


class Child:
    """One worker process, started when it is first needed and again after it was killed or is worn."""

    place = "here"

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: Process | None = None
        self._asked = 0

    async def ask(self, claim: Claim) -> dict[str, Any]:
        """The child's answer: ``{"verdict":...}`` or ``{"error":...}``. Raises Died."""
        return await self.judge(claim.task, claim.source)

    async def judge(self, task: str, source: str) -> dict[str, Any]:
        """The child's answer about a task and a source in JSON. Raises Died."""
        if self._worn:
            self.kill()
        process = self._process or await self._start()
        self._asked += 1
        assert process.stdin and process.stdout
        try:
            request = f'{{"task": {task}, "source": {source}}}'.translate(_ONE_LINE)
            process.stdin.write(f"{request}\n".encode())
            await process.stdin.drain()
            line = await process.stdout.readline()
            answer = json.loads(line)
        except (OSError, ValueError) as error:
            raise Died from error
        if not isinstance(answer, dict) or not ("verdict" in answer or answer.get("error")):
            raise Died
        return answer

    @property
    def _worn(self) -> bool:
        """It is dead or has judged so many kernels that a new one should take its place."""
        return self._asked >= JOBS_PER_CHILD or (
            self._process is not None and self._process.returncode is not None
        )

    async def _start(self) -> Process:
        environment = {key: value for key, value in os.environ.items() if key not in SECRETS}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            limit=LONGEST_ANSWER,
            env=environment,
            start_new_session=True,
        )
        return self._process

    def kill(self) -> None:
        """Ends the process and all that it started."""
        process, self._process, self._asked = self._process, None, 0
        if process is None or process.returncode is not None:
            return
        family = descendants(process.pid)
        process.kill()
        kill_all(family)
