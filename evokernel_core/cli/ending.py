"""A run that is asked to end finishes nothing more and prints what it has; asked twice, it ends at once."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

from attrs import define, field

from evokernel_core.cli.terminal import say

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


@define
class Ending:
    """As a context manager it takes the signals by which runs are ended; ``asked`` after the first. The
    second is what it was before."""

    asked: bool = False
    _before: dict[int, Any] = field(factory=dict)

    def __enter__(self) -> Ending:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._give_back()
        say("evokernel: ending; once more ends at once.", err=True)

    def _give_back(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)
