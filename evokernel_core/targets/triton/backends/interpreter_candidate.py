"""The process of the candidate that is judged at present: it starts while references are computed, serves all
cases, and ends with the next candidate, or when nobody asks for long."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.targets.triton.backends.interpreter_child import Answer, Gone, InterpretingProcess, Late
from evokernel_core.targets.triton.source import KERNEL

IDLE_S = 20.0
"""How long a process waits for the next case of its candidate."""
LOAD_S = 60.0
"""How long it may take to define a text's functions."""


class CandidateProcess:
    """One process at a time, in ``python``. Threads take turns."""

    def __init__(self, python: str) -> None:
        self._python = python
        self._child: InterpretingProcess | None = None
        self._source = ""
        self._address_space = 0
        self._has_text = False
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def begin(self, source: KernelSource, address_space: int) -> None:
        """Starts the candidate's process and does not wait for it."""
        with self._lock:
            self._rest()
            self._open(source, address_space)
            self._wait_for_more()

    def ask(
        self,
        source: KernelSource,
        head: dict[str, Any],
        blobs: Sequence[bytes],
        wall_s: float,
        address_space: int,
    ) -> Answer:
        """The answer of the candidate's process to a frame; one with more addresses is started where it has
        too few. Raises Late, Gone, and VerifierError where it does not start."""
        with self._lock:
            self._rest()
            self._open(source, address_space)
            if not self._has_text:
                loaded = self._asked({"kernel": source.files[KERNEL]}, (), LOAD_S)
                if loaded.head.get("status") != "ok":
                    self._end()
                    return loaded
                self._has_text = True
            answer = self._asked(head, blobs, wall_s)
            self._wait_for_more()
            return answer

    def close(self) -> None:
        """Ends the process, if there is one."""
        with self._lock:
            self._rest()
            self._end()

    def _open(self, source: KernelSource, address_space: int) -> None:
        is_same = self._child is not None and self._source == source.source_id
        if is_same and self._address_space >= address_space:
            return
        self._end()
        self._child = InterpretingProcess(self._python, address_space)
        self._source, self._address_space, self._has_text = source.source_id, address_space, False

    def _asked(self, head: dict[str, Any], blobs: Sequence[bytes], wall_s: float) -> Answer:
        assert self._child is not None
        try:
            return self._child.ask(head, blobs, wall_s)
        except (Late, Gone):
            self._end()
            raise

    def _wait_for_more(self) -> None:
        self._timer = threading.Timer(IDLE_S, self.close)
        self._timer.daemon = True
        self._timer.start()

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        if self._child is not None:
            self._child.close()
        self._child = None
