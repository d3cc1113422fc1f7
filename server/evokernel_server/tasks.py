"""Background tasks that are kept until they end and whose failures are logged, never lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from evokernel_core.domain.errors import EvoKernelError

log = logging.getLogger(__name__)

_kept: set[asyncio.Task[Any]] = set()


def spawn(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    """Runs ``work`` on the present loop. An error raised on purpose is one line in the log."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    _kept.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _kept.discard(task)
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, EvoKernelError):
        log.error("%s: %s", task.get_name(), error)
    else:
        log.error("%s failed.", task.get_name(), exc_info=error)
