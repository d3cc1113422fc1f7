"""What a memory of an earlier version becomes."""

from __future__ import annotations

import ast
import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import evolve
from sqlite_utils import Database, Migrations

from evokernel_core.domain.experience import ExperienceKind, Stage
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.memory import connection
from evokernel_core.memory.migrations import m001_initial, m010_targets
from evokernel_core.memory.migrations.apply import STEPS
from evokernel_core.memory.migrations.identities import identity_of
from evokernel_core.memory.migrations.m002_identity import _identity
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.store import Memory
from evokernel_core.targets.ascendc.source import KERNEL, TILING


@contextmanager
def first_version(path: Path) -> Iterator[Database]:
    """A memory as the first schema has it."""
    connection = sqlite3.connect(path)
    database = Database(connection, execute_plugins=False)
    steps = Migrations("evokernel")
    steps(name="m001_initial")(m001_initial.apply)
    steps.apply(database)
    yield database
    connection.commit()
    connection.close()


def spelled(task: KernelTask, name: str) -> KernelTask:
    """The same with another name for its input and its only node."""
    item, node = task.graph.inputs[0], task.graph.nodes[0]
    made = Node(f"{name}_made", node.op, (ValueRef(name),), (), node.outputs)
    graph = Graph((GraphInput(name, item.spec),), (made,), (ValueRef(made.name),))
    return evolve(task, graph=graph)


def put(database: Database, table: str, **row: object) -> None:
    marks = ", ".join("?" for _ in row)
    database.execute(
        f"INSERT OR IGNORE INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values())
    )


def record(database: Database, task: KernelTask, source: KernelSource, verdict: Verdict, number: int) -> None:
    """What the first version wrote of a verified kernel, under the identity that it had."""
    id, kernel = task.spelled_id, source.source_id
    texts = {"tiling_h": source.files[TILING], "op_kernel_cpp": source.files[KERNEL]}
    put(database, "tasks", task_id=id, name="t", op_category="activation", task=dumps(task), features="{}")
    put(database, "sources", source_id=kernel, **texts, strategy=dumps(source.strategy))
    found = {"verifier": "twin 1", "chip": "chip", "feasible": 1, "created": 1.0}
    latency = {"latency_us": 1.0, "latency_source": "modelled", "verdict": dumps(evolve(verdict, task_id=id))}
    put(database, "verdicts", task_id=id, source_id=kernel, **found, **latency)
    attempt = {"job_id": f"job{number}", "n": 1, "parent": "", "stage": "draft", "proposer": "schedule"}
    spent = {"tokens": 0, "reward": 1.0, "feedback": ""}
    put(database, "attempts", task_id=id, source_id=kernel, **attempt, **found, **spent)
    put(database, "uses", task_id=id, source_id=kernel, stage="draft", item="an item")
    item = {
        "id": f"item {number}",
        "kind": "trace",
        "title": "t",
        "body": "rows",
        "op_category": "activation",
    }
    payload = {"payload": '{"of": "rows"}', "features": '{"rows": 2.0}', "bottleneck": "", "created": 1.0}
    put(database, "experiences", task_id=id, **item, **payload)
    put(database, "q_values", stage="draft", op_category="activation", item="an item", q=0.5, n=2)
    put(database, "outcomes", kind="accepted", region_id="r", task_id=id, source_id=kernel, at=1.0, detail="")


def test_what_was_split_is_one_task(
    tmp_path: Path,
    make_task: Callable[..., KernelTask],
    make_source: Callable[..., KernelSource],
    make_verdict: Callable[..., Verdict],
) -> None:
    task, other = make_task(), make_task(rows=16)
    first, second = make_source("one"), make_source("two")
    path = tmp_path / "memory.db"
    with first_version(path) as database:
        record(database, spelled(task, "x"), first, make_verdict(task, first), 1)
        record(database, spelled(task, "hidden"), first, make_verdict(task, first), 2)
        record(database, spelled(task, "z"), second, make_verdict(task, second), 3)
        record(database, spelled(other, "z"), second, make_verdict(other, second), 4)
        put(database, "tasks", task_id="broken", name="t", op_category="other", task="{", features="{}")
        damaged = {"verifier": "twin 1", "chip": "chip", "feasible": 1, "latency_source": "", "created": 1.0}
        put(database, "verdicts", task_id="broken", source_id="s", verdict=b"\xff", **damaged)
    with Memory(path) as memory:
        known = {item.source.source_id for item in memory.candidates(task.task_id)}
        assert known == {first.source_id, second.source_id}
        assert len(memory.candidates(other.task_id)) == 1
        assert len(memory.attempts(task_id=task.task_id)) == 3
        assert {item.task_id for item in memory.tasks()} == {task.task_id, other.task_id}
        assert {item.task_id for item in memory.outcomes()} == {task.task_id, other.task_id}
        found = memory.verdict(task.task_id, first.source_id, "twin 1", "chip")
        assert found is not None and found.task_id == task.task_id
        assert len(memory.kernel_uses(first.source_id, task.task_id)) == 1
        assert {item.payload for item in memory.experiences()} == {'{"of": "rows"}'}
        assert {item.features for item in memory.experiences()} == {(("rows", 2.0),)}
        assert memory.q(Stage.DRAFT, "activation", "an item") == 0.5
        assert [event.used for event in memory.rewards()] == [("an item",)]
        query = Query("rows", {"rows": 1.0}, Stage.DRAFT, "activation", tuple(ExperienceKind))
        found = memory.retrieve(query, RetrievalChoice(mode=RetrievalName.SIMILARITY), random.Random(0))
        assert len(found.experiences) == 4
        (kept,) = memory.rows("tasks", "task_id = 'broken'")
        assert unpacked(kept["task"]) == "{"
        (kept,) = memory.rows("verdicts", "task_id = 'broken'")
        assert kept["verdict"] == b"\xff"
    with Memory(path) as memory:  # once
        assert memory.counts()["tasks"] == 3


TASK = """{"name": "any", "op_category": "normalization", "tolerance": {"rtol": 0.0001, "atol": 1},
 "symbols": [{"name": "batch", "size": 8, "minimum": 1}, {"name": "width", "size": 64, "minimum": 2}],
 "graph": {
  "inputs": [
   {"name": "x", "spec": {"shape": ["batch", "2*width+batch"], "dtype": "float32"}, "expression": "x + 1"},
   {"name": "mean", "kind": "parameter", "spec": {"shape": [3], "dtype": "float32", "contiguous": false}},
   {"name": "eps", "kind": "scalar", "spec": {"shape": [], "dtype": "float32"}, "value": 0.1}],
  "nodes": [
   {"name": "unread", "op": "aten.neg.default", "args": [{"ref": "x", "index": 0}], "kwargs": [],
    "outputs": [{"shape": ["batch"], "dtype": "float32"}]},
   {"name": "view", "op": "aten.view.default",
    "args": [{"ref": "x", "index": 0}, [{"sym": "width*batch"}, -1, {"float": "inf"}]],
    "kwargs": [["z", null], ["dtype", {"dtype": "float16"}]], "line": 12,
    "outputs": [{"shape": ["width*batch"], "dtype": "float16"}]},
   {"name": "cat", "op": "aten.cat.default",
    "args": [[{"ref": "view", "index": 0}, {"ref": "eps", "index": 0}]], "kwargs": [],
    "outputs": [{"shape": [-1], "dtype": "float16"}]}],
  "outputs": [{"ref": "cat", "index": 0}, {"ref": "mean", "index": 0}],
  "copies": [{"ref": "x", "index": 0}],
  "updates": [
   {"name": "mean", "spec": {"shape": [3], "dtype": "float32"}, "expression": "self.mean", "output": 1},
   {"name": "calls", "spec": {"shape": [], "dtype": "int64"}, "expression": "self.calls", "step": 1}]}}"""
IDENTITY = "584394fcd592d34785200a09388b76ce33b0348d79efbca22830cbf28dbcf22d"


def test_identities_of_the_second_step_stay() -> None:
    """Whatever becomes of tasks in ``domain``."""
    assert identity_of(json.loads(TASK)) == IDENTITY
    other = TASK.replace("width", "w").replace('"view"', '"v"').replace("2*w+batch", "batch+w*2")
    assert identity_of(json.loads(other)) == IDENTITY
    assert identity_of(json.loads(TASK.replace('"step": 1', '"step": 2'))) != IDENTITY


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"graph": []}', TASK.replace('"x"', '"y"', 1), "[" * 9999,
                                  TASK.replace("2*width", "2*("), b"\xff"])  # fmt: skip
def test_what_is_no_task_keeps_its_identity(text: object) -> None:
    assert _identity(text) == ""


BEFORE_TARGETS = [name for name in STEPS if name < "m010"]


def earlier_memory(path: Path, sources: Iterable[KernelSource]) -> None:
    """A memory of before kernels named their target: texts without names, all but one as differences."""
    database = Database(sqlite3.connect(path), execute_plugins=False)
    steps = Migrations("evokernel")
    for name in BEFORE_TARGETS:
        steps(name=name)(STEPS[name])
    steps.apply(database)
    texts = [json.dumps([dumps(source.strategy), *source.files.values()]) for source in sources]
    rows = [(0, packed(text), number) for number, text in enumerate(texts[:1], 1)]
    rows += [(1, packed(text, texts[0]), number) for number, text in enumerate(texts[1:], 2)]
    for (base, kernel, seq), source in zip(rows, sources, strict=True):
        put(database, "sources", seq=seq, source_id=source.source_id, base=base, kernel=kernel)
    database.conn.commit()
    database.close()


def killed_at(path: Path, statement: int) -> bool:
    """Opens a memory in a process that is killed before it runs its SQL statement of that number; False where
    it ran fewer and ended by itself."""
    process = multiprocessing.get_context("fork").Process(target=_open_until, args=(path, statement))
    process.start()
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _open_until(path: Path, statement: int) -> None:
    run = itertools.count(1)
    connect = connection._database

    def traced(raw: sqlite3.Connection) -> Database:
        raw.set_trace_callback(lambda _: next(run) == statement and os.kill(os.getpid(), signal.SIGKILL))
        return connect(raw)

    connection._database = traced
    Memory(path).close()


def test_a_kill_during_the_migration_loses_no_kernel(
    tmp_path: Path, make_source: Callable[..., KernelSource]
) -> None:
    """Before every statement of the opening that migrates."""
    sources = [make_source(f"kernel {number}\n" * 50) for number in range(3)]
    original = tmp_path / "original.db"
    earlier_memory(original, sources)
    for statement in itertools.count(1):
        path = tmp_path / f"killed{statement}.db"
        shutil.copy(original, path)
        is_killed = killed_at(path, statement)
        with Memory(path) as memory:
            assert [memory.source(source.source_id) for source in sources] == sources
            assert set(memory.kernels_from("")) == {source.source_id for source in sources}
        if not is_killed:
            break
    assert statement > len(m010_targets.COLUMNS) + 10, "it was killed within the migration too"


def test_kernels_of_before_and_of_today_stand_side_by_side(
    tmp_path: Path, make_source: Callable[..., KernelSource]
) -> None:
    sources = [make_source(f"kernel {number}\n" * 50) for number in range(3)]
    earlier_memory(tmp_path / "memory.db", sources)
    python = KernelSource("triton", {"kernel.py": "kernel 2\n" * 50, "more.py": ""}, sources[0].strategy)
    with Memory(tmp_path / "memory.db") as memory:
        newer = make_source("kernel 9\n" * 50)
        for source in (python, newer, sources[1]):
            memory.record_candidate(source)
        assert [memory.source(item.source_id) for item in (*sources, newer, python)] == [
            *sources,
            newer,
            python,
        ]
        found = memory.source(python.source_id)
        assert found is not None and list(found.files) == ["kernel.py", "more.py"]
        for names in ('["a"]', '["tiling.h", "../x"]', "{", "3", '["tiling.h", 3]'):
            memory.execute("UPDATE sources SET names = ? WHERE source_id = ?", (names, newer.source_id))
            assert memory.source(newer.source_id) is None, "a damaged row is set aside"
        assert memory.source(sources[0].source_id) == sources[0]


def test_the_step_means_the_same_whatever_becomes_of_the_code() -> None:
    tree = ast.parse(Path(m010_targets.__file__).read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("evokernel") for name in imported)
