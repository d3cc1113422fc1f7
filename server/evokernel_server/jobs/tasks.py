"""Background tasks that are kept until they end and whose failures are logged, never lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, field

from evokernel_core.domain.errors import EvoKernelError

log = logging.getLogger(__name__)

_kept: set[asyncio.Task[Any]] = set()


def spawn(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    """Runs ``work`` on the present loop. An error raised on purpose is one line in the log."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    _kept.add(task)
    task.add_done_callback(_ended)
    return task


def cancel_all() -> None:
    """Ends what runs in the background, as before the services that it uses are closed."""
    for task in list(_kept):
        task.cancel()


@define(eq=False)
class Latest:
    """Work that is asked for far more often than it is worth doing: for each key one at a time, and once more
    afterwards where it was asked for meanwhile. The first is done at once; what is asked within ``rest_s``
    behind it is one more. The rest grows to eight times as long while there is no end of it."""

    work: Callable[[str], Coroutine[Any, Any, None]]
    name: str
    rest_s: float = 0.0
    _again: dict[str, bool] = field(factory=dict)

    def ask(self, key: str) -> None:
        if key in self._again:
            self._again[key] = True
        else:
            self._again[key] = True
            spawn(self._run(key), self.name)

    async def _run(self, key: str) -> None:
        rest = self.rest_s
        try:
            while self._again[key]:
                self._again[key] = False
                await self.work(key)
                if rest:
                    await asyncio.sleep(rest)
                rest = min(2 * rest, 8 * self.rest_s)
        finally:
            del self._again[key]


def _ended(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, EvoKernelError):
        log.error("%s: %s", task.get_name(), error)
    else:
        log.error("%s failed.", task.get_name(), exc_info=error)
