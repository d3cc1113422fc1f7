"""Memory of a device that processes share: each takes what it needs before it needs it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


class Room:
    """So many bytes; whoever wants more than all of them gets all."""

    def __init__(self, context: Any, nbytes: int) -> None:
        """``context``: of ``multiprocessing``."""
        self._most = nbytes
        self._free = context.Value("q", nbytes, lock=False)
        self._changed = context.Condition()

    @contextlib.contextmanager
    def taken(self, nbytes: int) -> Iterator[None]:
        """Waits for so many bytes, and gives them back."""
        wanted = min(nbytes, self._most)
        with self._changed:
            self._changed.wait_for(lambda: self._free.value >= wanted)
            self._free.value -= wanted
        try:
            yield
        finally:
            with self._changed:
                self._free.value += wanted
                self._changed.notify_all()
