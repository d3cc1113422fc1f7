"""Begins to observe a process: waits for torch, then for the workspace's modules.

It runs before the program, so that it must cost nothing where torch is not used, and is read from the
environment that ``evokernel observe`` sets.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
import types
from typing import Any

from .journal import ObservationJournal
from .workspace import Workspace

FOLDER, ROOTS = "EVOKERNEL_OBSERVE", "EVOKERNEL_OBSERVE_ROOTS"


class _Start:
    """Wraps ``SourceFileLoader.exec_module``, which every module of Python source comes through."""

    def __init__(self, journal: ObservationJournal, workspace: Workspace) -> None:
        self._journal, self._workspace = journal, workspace
        self._observer: Any = None
        self._waiting: list[types.ModuleType] = []

    def install(self) -> None:
        loader = importlib.machinery.SourceFileLoader
        original, start = loader.exec_module, self

        def exec_module(self: Any, module: types.ModuleType) -> None:
            original(self, module)
            start.executed(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]

    def executed(self, module: types.ModuleType) -> None:
        """A module was imported."""
        if module.__name__ == "torch":
            self._observe()
        elif self._observer is not None:
            self._observer.imported(module)
        elif self._workspace.file(getattr(module, "__file__", None)):
            self._waiting.append(module)

    def _observe(self) -> None:
        try:
            from .hooks import Observer

            self._observer = Observer(self._journal, self._workspace)
            self._observer.install()
            self._journal.write({"torch": sys.modules["torch"].__version__, "python": sys.executable})
        except Exception as error:  # the program must run as if nobody looked
            self._complain(error)
        for module in self._waiting if self._observer is not None else ():
            self._observer.imported(module)

    def _complain(self, error: Exception) -> None:
        try:
            self._journal.write({"failed": f"{type(error).__name__}: {error}"})
        except (OSError, ValueError):
            return


def start() -> None:
    """Observes this process if the environment asks for it."""
    folder, roots = os.environ.get(FOLDER), os.environ.get(ROOTS, "")
    if not folder or not os.path.isdir(folder):  # noqa: PTH112 - pathlib is not needed before the program
        return
    journal = ObservationJournal(folder)
    journal.write({"started": sys.executable})
    _Start(journal, Workspace(roots.split(os.pathsep))).install()
