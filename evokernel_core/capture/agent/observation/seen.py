"""The distinct calls of one class or function: the first few are noted, all are counted.

To look at a call closely takes tens of microseconds, so that after the first calls only those are looked at
whose tensors have other shapes than before, and after the last that is kept none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_CALLS = 8
"""Distinct calls of one definition that are noted."""
_LOOKED_AT = 64


class Seen:
    """What one definition was called with. ``write`` takes a record when it is new, and its count later."""

    def __init__(self, key: str, write: Callable[[dict[str, Any]], None]) -> None:
        self.key = key
        self._write = write
        self.calls = 0
        """How many there were."""
        self._counts: dict[str, int] = {}
        self._rough: dict[Any, int] = {}

    def looks(self, training: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Counts a call; whether it is to be looked at closely."""
        self.calls += 1
        if self.is_complete:
            return False
        rough = (training, *[getattr(argument, "shape", None) for argument in args], *kwargs)
        known = self._rough.get(rough, 0)
        self._rough[rough] = known + 1
        return not known or self.calls <= _LOOKED_AT

    @property
    def is_complete(self) -> bool:
        """Whether no more calls are kept."""
        return len(self._counts) >= MOST_CALLS or len(self._rough) > 8 * MOST_CALLS

    def note(self, record: dict[str, Any]) -> None:
        """Keeps a call that was looked at."""
        identity = json.dumps(record, sort_keys=True)
        if identity in self._counts:
            self._counts[identity] += 1
        elif len(self._counts) < MOST_CALLS:
            self._counts[identity] = 1
            self._write({"seen": self.key, "number": len(self._counts) - 1, "record": record})

    def finish(self) -> None:
        """Writes how often each call was made: what was not looked at is shared out as what was."""
        looked_at = sum(self._counts.values())
        for number, count in enumerate(self._counts.values()):
            self._write({"seen": self.key, "number": number, "count": count * self.calls // looked_at})
