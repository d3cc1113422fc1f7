"""What ends started programs with the process that wanted them, also when that one is killed.

A pipe whose write end only this process holds: the system closes it however the process ends, and a
watcher on the other side (``evokernel-launcher --until-eof``, or ``capture/agent/watcher.py``) kills its
process group. It is bound to the process: the thread that started a program may end earlier.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lifeline() -> Iterator[int]:
    """The read end, for a program's standard input. At the end of the block the program's time is over."""
    line = Lifeline()
    try:
        yield line.end
    finally:
        line.close()


class Lifeline:
    """The pipe for a program that goes on after the call that starts it; ``end`` is for the program."""

    def __init__(self) -> None:
        self.end, self._held = os.pipe()

    def started(self) -> None:
        """The program has its copy of the end."""
        os.close(self.end)
        self.end = -1

    def close(self) -> None:
        """Ends the program. Closing twice is fine."""
        for descriptor in (self._held, self.end):
            if descriptor >= 0:
                os.close(descriptor)
        self._held = self.end = -1
