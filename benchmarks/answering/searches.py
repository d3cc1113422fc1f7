"""Searches of drawn tasks side by side: by the author alone, and with a model that is waited for."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from attrs import evolve, frozen

from benchmarks.answering.drawn import FORMS, Drawn, drawn
from evokernel_core.domain.errors import EvoKernelError, UnsupportedRegion
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.region import Region
from evokernel_core.domain.settings import ModelEndpoint, ProposerName, RetrievalName, Settings
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.problems import whole_forward
from evokernel_core.synthesis.session import Session
from evokernel_core.verifier.base import Verifier

TASK, LEFT_OUT = "task.py", "left_out.txt"
MOST_DRAWN = 2
"""For each task that is wanted."""
LONGEST_S = 86_400.0
"""Seconds that an answer may take."""
_TOKENS = 10**9


@frozen
class Run:
    """What is asked for. ``memory``: ``on``, ``off``, or ``half`` for every other task; ``known``: the memory
    with which those begin, empty for none."""

    tasks: int
    seed: int
    budget: int
    memory: str
    proposer: str
    known: str

    def has_memory(self, number: int) -> bool:
        """Of ``half`` the other half of the kinds in each round."""
        return self.memory == "on" or (self.memory == "half" and (number + number // len(FORMS)) % 2 == 0)


@frozen
class Place:
    """A task's folder, with a memory for each proposer."""

    folder: Path
    kind: str
    has_memory: bool

    def end(self, proposer: ProposerName) -> Path:
        """There once the search is over; holds the error that ended it."""
        return self.folder / f"{proposer.value}.end"

    def memory(self, proposer: ProposerName) -> Path:
        return self.folder / f"{proposer.value}.db"

    def begun(self, proposer: ProposerName, known: str) -> Path:
        """The same, begun with a copy of what is known where it may know that."""
        path = self.memory(proposer)
        if self.has_memory and known and not path.exists():
            with closing(sqlite3.connect(known)) as source, closing(sqlite3.connect(path)) as copy:
                source.backup(copy)
        return path


@frozen
class TakingTurns:
    """A verifier that takes turns with those of other tasks, however many of them wait for answers."""

    verifier: Verifier
    turns: threading.Semaphore

    @property
    def name(self) -> str:
        return self.verifier.name

    @property
    def workers(self) -> int:
        return 1

    def verify(self, task: KernelTask, source: KernelSource, **options: object) -> Verdict:
        with self.turns:
            return self.verifier.verify(task, source, **options)  # type: ignore[arg-type]


def places(folder: Path, run: Run) -> Iterator[tuple[Place, str]]:
    """The tasks in their order, written where they are not there yet, each with the reason where it is left
    out because the author has no kernel for it."""
    taken = 0
    with Session(Settings(), folder) as session:
        for task in islice(drawn(run.seed), MOST_DRAWN * run.tasks):
            why = _written(session, folder / task.name, task)
            yield Place(folder / task.name, task.kind, run.has_memory(taken)), why
            taken += not why
            if taken == run.tasks:
                return


def _written(session: Session, folder: Path, task: Drawn) -> str:
    """Why the task is left out, empty where it is not."""
    file, left_out = folder / TASK, folder / LEFT_OUT
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            draft = folder / "drawn.py"
            draft.write_text(task.text)
            session.author.initial(_task_of(_region(session, draft)))
        except EvoKernelError as error:
            left_out.write_text(f"{error}")
        draft.rename(file)
    return left_out.read_text() if left_out.exists() else ""


def _region(session: Session, file: Path) -> Region:
    """All of the file's function. Raises CaptureError."""
    (function,) = re.findall(r"^def (\w+)", file.read_text(), re.MULTILINE)
    region, why = whole_forward(session, file, function, 0)
    if region is None:
        raise UnsupportedRegion(why)
    return region


def _task_of(region: Region) -> KernelTask:
    assert region.task is not None
    return region.task


def search(place: Place, run: Run, url: str, turns: threading.Semaphore, proposer: ProposerName) -> None:
    """Spends the budget, but for attempts that were made before."""
    end = place.end(proposer)
    if end.exists():
        return
    settings = _settings(place, run, url, proposer)
    with (
        Memory(place.begun(proposer, run.known)) as memory,
        Session(settings, place.folder, memory) as session,
    ):
        try:
            with turns:
                region = _region(session, place.folder / TASK)
                engine = session.engine(session.comparisons.of(region))
            engine = evolve(engine, verifier=TakingTurns(engine.verifier, turns))
            engine.run(_task_of(region), settings.budget, job_id=proposer.value)
        except EvoKernelError as error:
            end.write_text(str(error))
    end.touch()


def _settings(place: Place, run: Run, url: str, proposer: ProposerName) -> Settings:
    endpoint = ModelEndpoint(
        f"{url}/{place.folder.name}/v1",
        "hand",
        idle_timeout_s=LONGEST_S,
        total_timeout_s=LONGEST_S,
        token_budget=_TOKENS,
        day_token_budget=0,
    )
    retrieval = RetrievalName.Q if place.has_memory else RetrievalName.NONE
    return Settings(budget=run.budget, proposer=proposer, retrieval=retrieval, endpoint=endpoint)
