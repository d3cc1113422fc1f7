"""One row of the memory that a disk, a program or a stranger has damaged wants the queue to stop, or the
memory to be of no use. It is set aside, and the log says so; everything else goes on."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from evokernel_server.jobs.claims import Claims
from evokernel_server.jobs.queue import JobQueue
from evokernel_server.jobs.store import Store

from evokernel_core.domain.errors import EvoKernelError, StoreError
from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.job import Job, JobKind, JobState
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.placement import Placement, Standing
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import ALPHA, Reward
from evokernel_core.memory.packs import export_pack
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.spending import Cost
from evokernel_core.memory.store import TABLES, Memory
from evokernel_core.synthesis.residual import learned
from tests.attacks import Attack, each
from tests.memory.conftest import _source, _task, _verdict

HOSTILE: Mapping[str, str] = {
    "bytes": "x'fffe00'",
    "no-utf8": "CAST(x'ff' AS TEXT)",
    "empty": "''",
    "words": "'\u202eevil\n'",
    "nul": "'a' || char(0) || 'b'",
    "path": "'../../../../tmp/evil'",
    "huge": "9223372036854775807",
    "infinite": "9e999",
    "negative": "-1",
    "half-json": "'{\"a\": ['",
    "nested": f"'{'[' * 50_000}'",
    "list": "'[1, 2]'",
    "nan-json": "'{\"rows\": NaN}'",
}
REGION = dumps(
    Region("r", "/w/second.py", "f", Span(1, 0, 2, 0), "x", "h", "activation", RegionStatus.CANDIDATE)
)
FIRST = {
    "jobs": "id = 'first'",
    "statistics": "name = 'first'",
    "outcomes": "region_id = 'first'",
    "experiences": "title = 'first'",
    "attempts": "job_id = 'first'",
    "q_values": "item = 'item of first'",
    "uses": "item = 'item of first'",
    "rewards": "seq = 1",
    "tuning": "name = 'alpha'",
    "estimates": "seq = 1",
    "spending": "job_id = 'first'",
    "placements": "region_id = 'first'",
    "sources": f"source_id = '{_source('first').source_id}'",
    **dict.fromkeys(("tasks", "verdicts", "evidence"), f"task_id = '{_task(8).task_id}'"),
}
"""Which row of each table is damaged."""


def job(name: str, created: float) -> Job:
    return Job(name, JobKind.REFINE, JobState.QUEUED, f"/w/{name}.py", "r", "t", "{}", 3, 0, created, created)


def estimated(name: str, task_id: str) -> TuningRecord:
    source_id, features = _source(name).source_id, (("rows", 0.1),)
    made = TuningRecord(task_id, source_id, "chip", "twin 1", "rowwise", 9.0, 10.0, features)
    return evolve(made, source=LatencySource.MODELLED)


def called(name: str) -> Placement:
    return Placement(
        Path("/w/model.py"), "relu_1", name, "t", "s", 1.0, created=True, region=loads(REGION, Region)
    )


def fill(memory: Memory) -> None:
    """Two of everything, of which one will be damaged."""
    for number, name in enumerate(("first", "second")):
        task, source = _task(8 + number), _source(name)
        memory.put_job(job(name, float(number + 1)))
        memory.record_task(task, {"rows": 8.0})
        memory.record_candidate(source)
        memory.record_verdict(_verdict(task, source), "chip")
        attempt = Attempt(
            name, 1, task.task_id, source.source_id, "", Stage.DRAFT, "p", "twin 1", "chip", feasible=True
        )
        memory.record_attempt(attempt, [f"item of {name}"])
        memory.record_outcome(Outcome(OutcomeKind.SHOWN, name, task.task_id, source.source_id, 1.0))
        memory.pay(Reward(Stage.DRAFT, "activation", (f"item of {name}",), 1.0))
        memory.pay(Reward(Stage.REFINE, "", (), 0.5, name))
        item = make_experience(ExperienceKind.PRACTICE, name, "relu rows", features={"rows": 1.0})
        memory.add_experience(item)
        memory.add_evidence(item, task.task_id)
        memory.spend("2026-01-31", name, "model", Cost(10, 1, 0.5))
        memory.record_tuning(estimated(name, task.task_id))
        memory.put_placement(called(name))
    memory.rebuild(ALPHA)


def use(memory: Memory) -> None:
    """Everything that the server, the engine and the command line ask of a memory, and write to it."""
    task, source = _task(8), _source("first")
    memory.jobs()
    memory.job("first")
    memory.tasks()
    memory.outcomes()
    memory.attempts()
    memory.values()
    memory.counts()
    memory.experiences()
    for known in memory.tasks():
        memory.candidates(known.task_id)
    memory.record_task(task, {"rows": 8.0})
    memory.record_candidate(source)
    memory.record_verdict(_verdict(task, source), "chip")
    assert memory.task(task.task_id) == task
    assert memory.source(source.source_id) == source
    memory.verdict(task.task_id, source.source_id, "twin 1", "chip")
    memory.best(task.task_id, "chip", LatencySource.MODELLED)
    memory.record_outcome(Outcome(OutcomeKind.ACCEPTED, "r", task.task_id, source.source_id, 2.0))
    memory.pay(Reward(Stage.DRAFT, "activation", ("item of first",), 0.5))
    memory.pay(Reward(Stage.REFINE, "", (), 0.5, "first"))
    query = Query("relu rows", {"rows": 1.0}, Stage.DRAFT, "activation", tuple(ExperienceKind))
    for mode in (RetrievalName.Q, RetrievalName.SIMILARITY, RetrievalName.RANDOM):
        memory.retrieve(query, RetrievalChoice(mode=mode), random.Random(0))
    memory.spent_by("first")
    memory.spent_on("2026-01-31")
    memory.spend("2026-01-31", "first", "model", Cost(10, 1, 0.5))
    learned(memory.tuning_records("chip", "twin 1")).of([{"rows": 0.1}])
    memory.judges("chip")
    memory.record_tuning(estimated("first", task.task_id))
    memory.end_placement(called("first"), Standing.UNDONE)
    memory.move_placements(Path("/w/model.py"), Path("/w/moved.py"))
    list(export_pack(memory))
    memory.rewards()
    memory.rebuild()


def others(memory: Memory) -> tuple[Any, ...]:
    """What must still be there: all that is of the second."""
    task, source = _task(9), _source("second")
    best = memory.best(task.task_id, "chip", LatencySource.MODELLED)
    return (
        memory.job("second") in memory.jobs(),
        memory.task(task.task_id),
        best and best.source,
        [item.region_id for item in memory.outcomes("second")],
        memory.q_of(Stage.DRAFT, "activation", ["item of second"]),
        [item.title for item in memory.experiences() if item.title == "second"],
        memory.statistics("second").count,
        source.source_id,
        memory.spent_by("second"),
        estimated("second", task.task_id) in memory.tuning_records("chip", "twin 1"),
        "second" in [item.region_id for file in ("model", "moved") for item in placed(memory, file)],
    )


def placed(memory: Memory, name: str) -> tuple[Placement, ...]:
    return memory.placements(Path(f"/w/{name}.py"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a memory with two of everything."""
    path = tmp_path_factory.mktemp("filled") / "memory.db"
    with Memory(path) as memory:
        fill(memory)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, filled: bytes) -> Path:
    (tmp_path / "memory.db").write_bytes(filled)
    return tmp_path / "memory.db"


def columns(path: Path, table: str) -> list[str]:
    with sqlite3.connect(path) as database:
        return [row[1] for row in database.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]


def damage(path: Path, table: str, column: str, value: str) -> bool:
    """Puts a value into the first row; whether the table takes it there."""
    database = sqlite3.connect(path)
    try:
        changed = database.execute(f"UPDATE {table} SET {column} = {value} WHERE {FIRST[table]}").rowcount
    except sqlite3.IntegrityError:
        return False
    finally:
        database.commit()
        database.close()
    assert changed
    return True


ATTACKS = [
    Attack(table, "the rest of the memory, by a value in any column", "the row alone is set aside", table)
    for table in TABLES
]


@each(ATTACKS)
def test_a_value_that_is_none(attack: Attack, path: Path, tmp_path: Path) -> None:
    """Three values in each column, others in the next."""
    names = list(HOSTILE)
    chosen = [
        (column, names[(3 * place + step) % len(names)])
        for place, column in enumerate(columns(path, attack.given))
        for step in range(3)
    ]
    check(attack.given, chosen, path, tmp_path)


@pytest.mark.thorough
@each(ATTACKS)
def test_every_value_in_every_column(attack: Attack, path: Path, tmp_path: Path) -> None:
    check(attack.given, list(product(columns(path, attack.given), HOSTILE)), path, tmp_path)


def check(table: str, chosen: list[tuple[str, str]], path: Path, folder: Path) -> None:
    with Memory(path) as memory:
        before = others(memory)
    sound = path.read_bytes()
    for column, name in chosen:
        copy = folder / f"{column}-{name}.db"
        copy.write_bytes(sound)
        if not damage(copy, table, column, HOSTILE[name]):
            continue
        with Memory(copy) as memory:
            try:
                use(memory)
                assert others(memory) == before
            except (EvoKernelError, AssertionError) as error:
                pytest.fail(f"{table}.{column} = {name}: {error!r}")


@pytest.mark.parametrize("column", ["id", "kind", "file", "region", "budget", "created"])
@pytest.mark.parametrize("value", ["bytes", "no-utf8", "nul", "path", "half-json"])
def test_the_queue_goes_on_behind_a_job_that_is_none(
    column: str, value: str, path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Wants the oldest job to be one that nobody can read, so that none behind it ever runs."""
    with sqlite3.connect(path) as database:
        database.execute(f"UPDATE jobs SET {column} = {HOSTILE[value]} WHERE id = 'first'")
    database.close()
    ran = asyncio.run(_run_queue(path, tmp_path))
    assert "second" in ran
    if column in ("kind", "created"):
        assert "was set aside" in caplog.text
    assert not list(Path("/tmp").glob("evil*"))


async def _run_queue(path: Path, folder: Path) -> list[str]:
    """The jobs that the queue asks its worker for, up to the second one."""
    ran: list[str] = []
    second = asyncio.Event()

    class Asked:
        async def request(self, method: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
            ran.append(str(params["job_id"]))
            if ran[-1] == "second":
                second.set()
            return {"reason": "no kernel"}

    async def finished(*_: Any) -> None:
        return None

    with Memory(path) as memory:
        memory.update_job("second", region=REGION)
    store = Store(path)
    queue = JobQueue(
        store, Asked(), Claims(folder / "claims"),  # type: ignore[arg-type]
        eligible=lambda job: bool(Path(job.file).resolve()),
        finished=finished, announce=lambda: None, retry_s=lambda: (0.01, 0.02),
    )  # fmt: skip
    queue.start()
    try:
        await asyncio.wait_for(second.wait(), 20)
    finally:
        queue.stop()
        store.close()
    return ran


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE experiences_fts_docsize SET sz = x'ff'",
        "UPDATE experiences_fts_data SET block = x''",
        "UPDATE experiences_fts_docsize SET id = id + 1000",
    ],
)
def test_an_index_of_words_that_is_none(change: str, path: Path) -> None:
    """Wants no experience to be found or learnt any more; the index is made again from the rows."""
    database = sqlite3.connect(path)
    database.execute(change)
    database.commit()
    database.close()
    with Memory(path) as memory:
        before = others(memory)
        use(memory)
        assert memory.add_experience(make_experience(ExperienceKind.PRACTICE, "new", "relu rows"))
        query = Query("relu rows", {}, Stage.DRAFT, "", tuple(ExperienceKind))
        found = memory.retrieve(query, RetrievalChoice(mode=RetrievalName.SIMILARITY), random.Random(0))
        assert {item.title for item in found.experiences} == {"first", "second", "new"}
        assert others(memory) == before


def test_a_step_of_the_schema_that_nobody_knows(path: Path) -> None:
    """Wants its name, of any length and characters, in a sentence to a person."""
    database = sqlite3.connect(path)
    database.execute(f"UPDATE _sqlite_migrations SET name = {HOSTILE['nested']} WHERE rowid = 1")
    database.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('e', x'ff', '')"
    )
    database.commit()
    database.close()
    with pytest.raises(StoreError) as refused:
        Memory(path)
    assert len(str(refused.value)) < 400 and str(refused.value).isprintable()
