"""What searches are compared on: tasks of a suite, and every latency that any of them asked for, kept in a
file, so that the next search that asks has the same answer at once. All latencies are modelled, and kernels
are timed, not compared with PyTorch."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from attrs import define, evolve, field, fields, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.synthesis.problems import whole_forward
from evokernel_core.synthesis.proposers import moves, schedule
from evokernel_core.synthesis.session import Session
from evokernel_core.verifier.base import Verifier, never

FLAT_RATE = 64.0
"""Bytes or elements a cycle, of every unit of a chip that nothing is known of."""


@frozen
class Problem:
    """A task with its name in the suite."""

    name: str
    task: KernelTask


def kept_problems(path: Path) -> list[Problem]:
    """Those that ``keep_problems`` wrote."""
    return [from_data(json.loads(line), Problem) for line in path.read_text().splitlines()]


def keep_problems(path: Path, found: Iterable[Problem]) -> None:
    path.write_text("".join(json.dumps(to_data(item)) + "\n" for item in found))


def problems(session: Session, files: Iterable[Path]) -> Iterator[Problem]:
    """Those of which one region is all of the forward; others are named and left out."""
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        try:
            region, reason = whole_forward(session, file, session.agent.calls(file).symbol, 0)
        except EvoKernelError as error:
            region, reason = None, str(error)
        if region is None or region.task is None:
            print(f"{name} is left out: {reason}")
        else:
            yield Problem(name, region.task)


def flat(chip: Chip) -> Chip:
    """The chip as one knows a new one: its memories and cores, and of what they cost nothing. All rates are
    the same, and whatever costs cycles costs one."""
    sections = ("vector", "mte", "cube", "scalar", "sync")
    return evolve(chip, **{name: _flat(getattr(chip, name)) for name in sections})


def _flat(section: object) -> object:
    changes = {}
    for item in fields(type(section)):
        value = getattr(section, item.name)
        if hasattr(value, "__attrs_attrs__"):
            changes[item.name] = _flat(value)
        elif item.name.endswith("_cycles"):
            changes[item.name] = 1.0
        elif isinstance(value, float):
            changes[item.name] = FLAT_RATE
    return evolve(section, **changes)


@define
class Latencies:
    """Verdicts in a file that several processes append to."""

    path: Path
    known: dict[tuple[str, str], Verdict] = field(factory=dict)
    _read: int = 0
    """Bytes of the file that are in ``known``."""

    def of(self, task_id: str, source_id: str) -> Verdict | None:
        key = task_id, source_id
        if key not in self.known:
            self.read()
        return self.known.get(key)

    def read(self) -> None:
        """Takes in what the file has gained, up to the last whole line."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            lines, end, _ = file.read().rpartition(b"\n")
        self._read += len(lines) + len(end)
        for line in lines.splitlines():
            verdict = from_data(json.loads(line), Verdict)
            self.known[verdict.task_id, verdict.source_id] = verdict

    def add(self, verdict: Verdict) -> None:
        with self.path.open("a", buffering=2**24) as file:  # one write a line: others write here too
            file.write(json.dumps(to_data(verdict)) + "\n")

    def best_us(self, task_id: str) -> float:
        """The least latency of a task that any search has found."""
        found = (verdict for (id, _), verdict in self.known.items() if id == task_id)
        return min((v.latency.us for v in found if v.latency and v.feasible), default=math.inf)


@define
class Oracle:
    """A verifier that asks another one once for each kernel, and else says what is kept. Kernels that were
    timed count as verified here."""

    inner: Verifier
    kept: Latencies
    name: str = ""
    workers: int = 1

    def __attrs_post_init__(self) -> None:
        self.name = self.inner.name

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Callable[[], bool] = never,
        below_us: float = math.inf,
    ) -> Verdict:
        known = self.kept.of(task.task_id, source.source_id)
        if known is not None:
            return known
        verdict = self.inner.verify(task, source, below_us=0.0)
        if verdict.is_slower:
            passed = tuple(gate for gate in verdict.gates if gate is not verdict.failed_gate)
            verdict = evolve(verdict, gates=passed)
        self.kept.add(verdict)
        return verdict


def remember_schedules() -> None:
    """Lets the schedule proposer keep what it computed of every task: many searches ask the same."""
    moves.steps = schedule.steps = lru_cache(maxsize=None)(moves.steps.__wrapped__)  # type: ignore[assignment]
    for name in ("initial", "require_legal", "estimate_us", "moves", "write", "adapt"):
        setattr(KernelAuthor, name, _by_id(getattr(KernelAuthor, name)))


def _by_id(call: Callable[..., object]) -> Callable[..., object]:
    kept: dict[object, object] = {}

    def remembered(author: KernelAuthor, task: KernelTask, *given: object) -> object:
        key = (author, task.spelled_id, *given)
        if key not in kept:
            kept[key] = call(author, task, *given)
        return kept[key]

    return remembered
