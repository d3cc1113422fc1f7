"""Tells a client, not too often, that what a dashboard or a tree shows has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from attrs import define

METHOD = "evokernel/changed"
PAUSE_S = 1.0
"""Least time between two notifications: a running search changes something every few milliseconds."""


@define(eq=False)
class Changes:
    """``send`` tells the client. The first change of a quiet time is told at once; those that follow
    share one notification at the end of the pause, so that the last one is never lost."""

    send: Callable[[], None]
    pause_s: float = PAUSE_S
    _resting: asyncio.TimerHandle | None = None
    _again: bool = False

    def happened(self) -> None:
        if self._resting is not None:
            self._again = True
            return
        self.send()
        self._resting = asyncio.get_running_loop().call_later(self.pause_s, self._rested)

    def _rested(self) -> None:
        self._resting = None
        if self._again:
            self._again = False
            self.happened()
