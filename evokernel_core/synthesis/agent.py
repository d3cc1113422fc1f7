"""One torch agent shared by threads: found and started when first needed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from evokernel_core.capture.calls import Calls
from evokernel_core.capture.client import AgentClient, Way
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.capture.reference import ReferenceCase
from evokernel_core.domain.region import Region
from evokernel_core.domain.task import KernelTask


class SharedAgent:
    """Captures and references, one call at a time. ``interpreter`` empty: look for one near ``workspace``."""

    def __init__(self, interpreter: str, workspace: Path, *, evaluation: bool = False) -> None:
        self._interpreter, self._workspace = interpreter, workspace
        self._evaluation = evaluation
        self._lock = threading.Lock()
        self._client: AgentClient | None = None

    def __enter__(self) -> SharedAgent:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def capture(
        self,
        path: Path,
        text: str | None,
        fusible: Mapping[str, str],
        symbol: str | None = None,
        *,
        whole: bool = False,
        ways: Mapping[str, Way] = MappingProxyType({}),
        group: int = 0,
    ) -> tuple[Region, ...]:
        """As AgentClient.capture."""
        with self._lock:
            return self._open().capture(path, text, fusible, symbol, whole=whole, ways=ways, group=group)

    def calls(self, path: Path) -> Calls:
        """As AgentClient.calls."""
        with self._lock:
            return self._open().calls(path)

    def reference(
        self, task: KernelTask, sizes: Mapping[str, int], seed: int, distribution: str, folder: Path
    ) -> ReferenceCase:
        """As AgentClient.reference."""
        with self._lock:
            return self._open().reference(task, sizes, seed, distribution, folder)

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _open(self) -> AgentClient:
        if self._client is None:
            found = find_interpreter(self._interpreter, self._workspace)
            self._client = AgentClient(str(found.path), evaluation=self._evaluation)
        return self._client
