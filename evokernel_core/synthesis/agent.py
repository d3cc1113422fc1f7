"""One torch agent shared by threads: found and started when first needed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from evokernel_core.capture.calls import FileCalls
from evokernel_core.capture.client import AgentClient, CaptureWay, Way
from evokernel_core.capture.environments import Interpreter
from evokernel_core.capture.interpreter import find_interpreter
from evokernel_core.capture.reference import ReferenceCase
from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.region import Region
from evokernel_core.domain.task import KernelTask

_MOST_RUNNING = 2
"""Agents kept at a time: files of different projects may have different interpreters."""


class SharedAgent:
    """Captures and references, one call at a time. ``interpreter`` empty: look for one from each file's
    folder upwards, then from ``workspace`` upwards, a folder whose code may be run, where there is one."""

    def __init__(self, interpreter: str, workspace: Path | None, *, evaluation: bool = False) -> None:
        self._interpreter, self.workspace = interpreter, workspace
        self._evaluation = evaluation
        self._lock = threading.Lock()
        self._clients: OrderedDict[str, AgentClient] = OrderedDict()

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
            return self._near(path).capture(path, text, fusible, symbol, whole=whole, ways=ways, group=group)

    def calls(self, path: Path) -> FileCalls:
        """As AgentClient.calls."""
        with self._lock:
            return self._near(path).calls(path)

    def compare(self, region: Region, text: str, captures: Sequence[CaptureWay]) -> EagerComparison:
        """As AgentClient.compare."""
        with self._lock:
            return self._near(Path(region.file)).compare(region, text, captures)

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        """As AgentClient.reference."""
        with self._lock:
            return self._any().reference(task, sizes, seed, distribution, folder, rounded=rounded)

    def interpreter(self, path: Path) -> Interpreter:
        """The interpreter that a file's code runs in. Raises InterpreterUnavailable."""
        return find_interpreter(self._interpreter, path.parent, *self._around)

    @property
    def last_used(self) -> str:
        """The interpreter of the last call, "" before there is one."""
        with self._lock:
            return next(reversed(self._clients), "")

    @property
    def _around(self) -> tuple[Path, ...]:
        return (self.workspace,) if self.workspace else ()

    def close(self) -> None:
        with self._lock:
            while self._clients:
                self._clients.popitem()[1].close()

    def _near(self, path: Path) -> AgentClient:
        """The agent in the interpreter of a file."""
        return self._open(self.interpreter(path).path)

    def _any(self) -> AgentClient:
        """The agent last used: a reference is a fixed graph, which any torch computes."""
        last = next(reversed(self._clients), None)
        return self._open(last or find_interpreter(self._interpreter, *self._around).path)

    def _open(self, interpreter: str) -> AgentClient:
        client = self._clients.pop(interpreter, None)
        self._clients[interpreter] = client or AgentClient(interpreter, evaluation=self._evaluation)
        while len(self._clients) > _MOST_RUNNING:
            self._clients.popitem(last=False)[1].close()
        return self._clients[interpreter]
