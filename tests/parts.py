"""Where the time of the suite goes: each test's seconds and processor seconds, by what they were spent on.

The tests' own processes are measured exactly, and each program that they start and wait for when it ends.
What is forked from the prepared parents of ``warm.py`` is noted by these. Processes that nobody waited for
are in no row: ``benchmarks/suite.py`` sees them as what is left of the whole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

COMPILERS = ("g++", "gcc", "clang", "c++", "zig", "cc1plus")
_programs: dict[int, str] = {}
"""What each child that was started and not yet waited for is: a kind of ``program_kind``."""
_spent: Counter[str] = Counter()
"""Processor seconds by kind, of children that have ended and of imports of torch, since the start."""
_rows: dict[str, dict[str, float]] = {}


def program_kind(argv: Sequence[object]) -> str:
    """What a program's processor time is spent on: compile, twin, python or other."""
    words = [Path(os.fsdecode(word)).name for word in argv if isinstance(word, (str, bytes, os.PathLike))]
    if any(word.startswith(COMPILERS) for word in words):
        return "compile"
    if any(
        word.startswith(("evokernel-twin-runner", "evokernel-launcher", "evokernel-candidate"))
        for word in words
    ):
        return "twin"
    return "python" if words and words[0].startswith(("python", "evokernel")) else "other"


def _measure_children() -> None:
    """Everything that waits for a child also notes what it took."""
    start, wait = subprocess.Popen.__init__, os.wait4

    def started(self: Any, args: Any, *rest: Any, **named: Any) -> None:
        start(self, args, *rest, **named)
        _programs[self.pid] = program_kind([args] if isinstance(args, (str, bytes, os.PathLike)) else args)

    def waited(pid: int, options: int, /) -> tuple[int, int]:
        ended, status, usage = wait(pid, options)
        if ended:
            _spent[_programs.pop(ended, "forked")] += usage.ru_utime + usage.ru_stime
        return ended, status

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]
    poll: Any = subprocess.Popen._internal_poll  # type: ignore[attr-defined]
    if hasattr(subprocess, "_del_safe"):  # from Python 3.12 on
        subprocess._del_safe.waitpid = waited
    poll.__defaults__ = tuple(waited if it is os.waitpid else it for it in poll.__defaults__)
    os.waitpid = waited


class _TorchFinder(MetaPathFinder, Loader):
    """Notes what the first import of torch takes in this process."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        began = time.process_time()
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        try:
            self._loader.exec_module(module)
        finally:
            _spent["torch import"] += time.process_time() - began


_measure_children()
sys.meta_path.insert(0, _TorchFinder())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    wall, own, before = time.monotonic(), time.process_time(), _spent.copy()
    result = yield
    took = _spent - before
    row = {"wall": time.monotonic() - wall, "test": time.process_time() - own - took.pop("torch import", 0.0)}
    _rows[item.nodeid] = {name: round(value, 4) for name, value in {**row, **took}.items()}
    return result


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_COLLECTED] = time.process_time()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["parts"] = json.dumps(_own(session.config))


def _own(config: pytest.Config) -> dict[str, Any]:
    """Processor seconds until all tests were collected, of the import of torch, and each test's row."""
    return {
        "collection": config.stash.get(_COLLECTED, 0.0),
        "torch import": _spent["torch import"],
        "process": time.process_time(),
        "rows": _rows,
    }


_BEGAN = pytest.StashKey[float]()
_COLLECTED = pytest.StashKey[float]()
_WORKERS = pytest.StashKey[list[dict[str, Any]]]()


class Controller:
    """Gathers what the workers measured."""

    def pytest_testnodedown(self, node: Any) -> None:
        if "parts" in getattr(node, "workeroutput", {}):
            node.config.stash.setdefault(_WORKERS, []).append(json.loads(node.workeroutput["parts"]))


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_BEGAN] = time.time()
    if config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Controller())


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Writes everything to the file that EVOKERNEL_PARTS names, and prints processor seconds by folder."""
    workers = config.stash.get(_WORKERS, []) or [_own(config)]
    add_forked(workers, Path(os.environ.get("EVOKERNEL_PARTS", "") + ".forked"))
    if path := os.environ.get("EVOKERNEL_PARTS"):
        Path(path).write_text(json.dumps({"workers": workers}), "utf-8")
    for line in (*table(workers), kept_kernels(config.stash.get(_BEGAN, 0.0))):
        terminalreporter.write_line(line)


def add_forked(workers: Sequence[dict[str, Any]], path: Path) -> None:
    """Adds what prepared parents have noted to the rows of its tests."""
    rows = {name: row for worker in workers for name, row in worker["rows"].items()}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        name, seconds = json.loads(line)
        if name in rows:
            rows[name]["forked"] = rows[name].get("forked", 0.0) + seconds


def kept_kernels(since: float) -> str:
    """How many of the compiled kernels that were used since a time had been compiled before it."""
    used = built = 0
    for folder in Path(os.environ.get("EVOKERNEL_KERNELS_DIR", "")).glob("*/*/"):
        if folder.stat().st_mtime >= since:
            used += 1
            built += max((file.stat().st_mtime for file in folder.iterdir()), default=0.0) >= since
    return f"compiled kernels: {used} used, {used - built} of them kept from earlier runs"


def table(workers: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Processor seconds of all workers by part, the largest first."""
    parts: Counter[str] = Counter({"collection": sum(worker["collection"] for worker in workers)})
    for worker in workers:
        for name, row in worker["rows"].items():
            folder = "/".join(name.partition("::")[0].split("/")[:2])
            parts[folder] += sum(seconds for kind, seconds in row.items() if kind != "wall")
    yield "processor seconds by part (all workers):"
    for name, seconds in parts.most_common():
        yield f"  {seconds:8.1f}  {name}"
