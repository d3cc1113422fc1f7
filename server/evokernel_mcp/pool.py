"""Worker processes for calls: each has one to itself, so that its end ends what it started and no more.

One idle worker is kept, since it holds a torch that took seconds to load, until it has been idle for minutes.
All end with this process.
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


@define(eq=False)
class Pool:
    """Lends workers with these settings."""

    settings: Settings
    _idle: Worker | None = None
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
        worker, self._idle = self._idle or Worker(lambda: self.settings), None
        self._busy.add(worker)
        return worker

    def _take_back(self, worker: Worker, sound: bool) -> None:
        if not sound or self._idle is not None:
            worker.kill()
            return
        self._idle = worker

    def close(self) -> None:
        """Kills all workers."""
        for worker in self._busy:
            worker.kill()
        if self._idle is not None:
            self._idle.kill()
