"""What PyTorch computed for a task, kept while candidates of that task are judged one after another."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from evokernel_core.domain.task import KernelTask
from evokernel_core.verifier.base import ReferenceRunner

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase

MOST_TASKS = 2
"""Tasks whose references are kept: a job's own, and one that interrupted it."""
MOST_BYTES = 256 * 1024**2
"""Bytes of one task's references on disk; what goes beyond is computed each time."""

_Key = tuple[tuple[tuple[str, int], ...], int, str]


class KeptReferences:
    """A ReferenceRunner over another one. The same sizes, seed and distribution of a task give the same
    files, which are linked into the folder that is asked for; safe to share between threads."""

    def __init__(self, runner: ReferenceRunner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._tasks: OrderedDict[str, _Kept] = OrderedDict()

    def reference(
        self, task: KernelTask, sizes: Mapping[str, int], seed: int, distribution: str, folder: Path
    ) -> ReferenceCase:
        """As the runner's own. Raises CaptureError."""
        key = (tuple(sizes.items()), seed, distribution)
        with self._lock:
            kept = self._of_task(task.task_id)
            found = kept.cases.get(key)
            if found is not None:
                return moved_to(found, folder)
        case = self._runner.reference(task, sizes, seed, distribution, folder)
        with self._lock:
            if task.task_id in self._tasks:
                self._tasks[task.task_id].keep(key, case)
        return case

    def _of_task(self, task_id: str) -> _Kept:
        if task_id not in self._tasks:
            self._tasks[task_id] = _Kept()
        self._tasks.move_to_end(task_id)
        while len(self._tasks) > MOST_TASKS:
            self._tasks.popitem(last=False)[1].folder.cleanup()
        return self._tasks[task_id]


class _Kept:
    """The cases of one task."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="evokernel-references-")
        self.cases: dict[_Key, ReferenceCase] = {}
        self._bytes = 0

    def keep(self, key: _Key, case: ReferenceCase) -> None:
        files = (*case.inputs, *case.outputs, *case.precise, *case.rounded)
        size = sum(path.stat().st_size for path in files)
        if self._bytes + size > MOST_BYTES:
            return
        self._bytes += size
        folder = Path(self.folder.name) / str(len(self.cases))
        folder.mkdir()
        self.cases[key] = moved_to(case, folder)


def moved_to(case: ReferenceCase, folder: Path) -> ReferenceCase:
    """The same files under their names in another folder."""

    def moved(paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(link(path, folder / path.name) for path in paths)

    return evolve(
        case,
        inputs=moved(case.inputs),
        outputs=moved(case.outputs),
        precise=moved(case.precise),
        rounded=moved(case.rounded),
    )


def link(source: Path, target: Path) -> Path:
    """A second name for the file, or a copy where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    return target
