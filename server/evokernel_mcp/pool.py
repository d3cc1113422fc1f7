"""Worker processes for calls: each has one to itself, so that its end ends what it started and no more.

One idle worker is kept, since it holds a torch that took seconds to load. All end with this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from attrs import define, field
from evokernel_server.jobs.worker import Event, Worker, WorkerDied, WorkerError

from evokernel_core.domain.settings import Settings

MOST_AT_ONCE = 2
"""Calls that work at a time; others wait, since compilers and kernels take a core each."""

IDLE_S = 600.0
"""Seconds after which a worker that nobody needs is ended: its torch holds 300 MiB."""


@define(eq=False)
class Pool:
    """Lends workers with these settings."""

    settings: Settings
    _idle: Worker | None = None
    _expiry: asyncio.TimerHandle | None = None
    _busy: set[Worker] = field(factory=set)
    _places: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(MOST_AT_ONCE))

    async def request(
        self, method: str, params: Mapping[str, Any], on_event: Event | None = None
    ) -> dict[str, Any]:
        """The worker's answer; its process and all that it started are killed where nobody waits any more.
        Raises WorkerError with the worker's sentence."""
        async with self._places:
            worker = self._lent()
            sound = False
            try:
                answer = await worker.request(method, params, on_event=on_event)
                sound = True
            except WorkerDied:
                raise
            except WorkerError:
                sound = True
                raise
            finally:
                self._busy.discard(worker)
                self._take_back(worker, sound)
            return answer

    def _lent(self) -> Worker:
        if self._expiry is not None:
            self._expiry.cancel()
        worker, self._idle = self._idle or Worker(lambda: self.settings), None
        self._busy.add(worker)
        return worker

    def _take_back(self, worker: Worker, sound: bool) -> None:
        if not sound or self._idle is not None:
            worker.kill()
            return
        self._idle = worker
        self._expiry = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        if self._idle is not None:
            self._idle.kill()
        self._idle = None

    def close(self) -> None:
        """Kills all workers."""
        for worker in self._busy:
            worker.kill()
        self._end_idle()
