"""The service's workers: child processes, one kernel each at a time, replaced when they die."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psutil

from evokernel_core.logs import get_logger
from evokernel_core.verifier.queue import Claim, JobQueue

log = get_logger(__name__)

LONGEST_ANSWER = 2**26
"""Bytes of the longest line that a worker may answer with."""

JOBS_PER_CHILD = 200
"""A child is replaced after so many kernels, so that what leaks in it stays bounded."""

SECRETS = ("EVOKERNEL_VERIFIER_TOKEN", "EVOKERNEL_API_KEY")
"""Environment variables that no worker, and so no candidate, gets to see."""


class _Died(Exception):
    """The child ended, or spoke nonsense, in the middle of a kernel."""


class Workers:
    """``count`` slots that claim jobs, each with a child of its own.

    ``factory`` and ``arguments`` are those of ``service_worker``. ``on_done`` is told the id of
    each job that has ended.
    """

    def __init__(
        self,
        queue: JobQueue,
        *,
        factory: str,
        arguments: Mapping[str, Any],
        count: int,
        job_timeout_s: float,
        on_done: Callable[[str], None],
    ) -> None:
        self._queue = queue
        self._command = ("-m", "evokernel_core.verifier.service_worker", factory, json.dumps(dict(arguments)))
        self._count = count
        self._timeout = job_timeout_s
        self._on_done = on_done
        self._more = asyncio.Event()
        self._running: dict[str, _Child] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The slots work inside; at the end what still runs goes back into the queue."""
        slots = [asyncio.create_task(self._slot()) for _ in range(self._count)]
        try:
            yield
        finally:
            for slot in slots:
                slot.cancel()
            await asyncio.gather(*slots, return_exceptions=True)

    def wake(self) -> None:
        """There may be something to claim."""
        self._more.set()

    def stop(self, job: str) -> None:
        """Ends the work on a job that is no longer wanted."""
        child = self._running.get(job)
        if child:
            child.kill()

    async def _slot(self) -> None:
        child = _Child(self._command)
        try:
            while True:
                claim = await self._claim()
                if child.worn:
                    child.kill()
                    child = _Child(self._command)
                await self._work(child, claim)
        finally:
            child.kill()

    async def _claim(self) -> Claim:
        while True:
            self._more.clear()
            claim = await asyncio.to_thread(self._queue.claim)
            if claim:
                self._more.set()  # there may be more, for the other slots
                return claim
            await self._more.wait()

    async def _work(self, child: _Child, claim: Claim) -> None:
        """One job to its end, whatever the end is."""
        self._running[claim.id] = child
        try:
            if not await asyncio.to_thread(self._queue.holds, claim):
                return  # withdrawn between the claim and now
            answer = await asyncio.wait_for(child.ask(claim), self._timeout)
            verdict = json.dumps(answer["verdict"]) if "verdict" in answer else ""
            self._finish(claim, verdict=verdict, error=answer.get("error", ""))
        except TimeoutError:
            child.kill()
            sentence = f"Judging this kernel took longer than {self._timeout:.0f} s; the service gave it up."
            self._finish(claim, error=sentence)
        except _Died:
            child.kill()
            self._try_again(claim)
        except asyncio.CancelledError:
            self._queue.give_back(claim, died=False)
            raise
        finally:
            self._running.pop(claim.id, None)

    def _finish(self, claim: Claim, *, verdict: str = "", error: str = "") -> None:
        self._queue.finish(claim, verdict=verdict, error=error)
        self._on_done(claim.id)

    def _try_again(self, claim: Claim) -> None:
        """After a death: back into the queue, unless the job was withdrawn or is given up."""
        if self._queue.give_back(claim, died=True):
            log.warning("a worker died; the job waits again", job=claim.id)
            self.wake()
        else:
            self._on_done(claim.id)


class _Child:
    """One worker process, started when it is first needed and again after it was killed."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._process: Process | None = None
        self._asked = 0

    @property
    def worn(self) -> bool:
        """It is dead or has judged so many kernels that a new one should take its place."""
        return self._asked >= JOBS_PER_CHILD or (
            self._process is not None and self._process.returncode is not None
        )

    async def ask(self, claim: Claim) -> dict[str, Any]:
        """The child's answer: ``{"verdict":...}`` or ``{"error":...}``. Raises _Died."""
        process = self._process or await self._start()
        self._asked += 1
        assert process.stdin and process.stdout
        try:
            process.stdin.write(f'{{"task": {claim.task}, "source": {claim.source}}}\n'.encode())
            await process.stdin.drain()
            line = await process.stdout.readline()
            answer = json.loads(line)
        except (OSError, ValueError) as error:
            raise _Died from error
        if not isinstance(answer, dict) or not ("verdict" in answer or answer.get("error")):
            raise _Died
        return answer

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
        try:
            family = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            family = []
        process.kill()
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
