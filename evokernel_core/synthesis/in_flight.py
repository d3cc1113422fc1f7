"""Attempts in flight: begun side by side where the verifier judges several kernels at a time, and finished
one after another, in the order of their beginning, so that they are recorded in that order, whichever verdict
is there first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.verifier.base import Cancelled

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
