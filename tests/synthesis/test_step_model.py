"""The step model: what it is fitted to, that it orders steps of operations that it never saw, what is no
model for a search, and that a search takes its order."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.compiler.features import schedule_features
from evokernel_core.domain.errors import ExtraMissing, UsageError
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.settings import PolicyName, ProposerName, Settings
from evokernel_core.domain.task import TOLERANCES, ById, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.ledger import Effect, Reward
from evokernel_core.memory.store import Memory
from evokernel_core.paths import step_model_path
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.moves import steps
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.session import Session
from evokernel_core.synthesis.step_model import StepModel, keep_model, kept_model, matrix, step_features
from evokernel_core.synthesis.steps import Dropped
from evokernel_core.synthesis.training import Lessons, Unfit, _fitted, lessons, trained
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.base import Cancelled, never

CHIP = load_chip()
AUTHOR = ascendc(CHIP)
JUDGE = "backwards 1"
ENOUGH = 10


def task_of(op: str, rows: int) -> KernelTask:
    spec = TensorSpec((rows, 256), "float32")
    node = Node("y", f"aten.{op}.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    return KernelTask(f"{op}_{rows}", graph, (), TOLERANCES["float32"], "elementwise")


TASKS = tuple(task_of(op, rows) for op in ("relu", "exp", "tanh") for rows in (512, 3000))


class Backwards:
    """A device on which what is estimated to be fast is slow; one schedule in 32 fails."""

    name = f"{JUDGE}@a-host"
    workers = 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        passed = tuple(GateResult(gate, GateStatus.PASSED) for gate in GateName)
        if hashlib.sha256(dumps(source.strategy.settings).encode()).digest()[0] < 8:
            failed = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "numeric", "Other results.")
            return Verdict(task.task_id, source.source_id, self.name, (failed,))
        us = 10_000 / AUTHOR.estimate_us(task, source.strategy)
        latency = Latency(us, LatencySource.MODELLED, CHIP.name, 8, (("V", us),), "V", 1e-3, 2 * us)
        return Verdict(task.task_id, source.source_id, self.name, passed, latency)


def search(memory: Memory, task: KernelTask, order: StepModel | None = None) -> None:
    proposer = ScheduleProposer(AUTHOR)
    settings = Settings(chip=CHIP.name)
    Engine(memory, Backwards(), proposer, open_policy(PolicyName.MODEL), settings, order=order).run(task, 20)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a memory of searches on three operations, which none may change."""
    path = tmp_path_factory.mktemp("searched") / "memory.db"
    with Memory(path) as memory:
        for task in TASKS:
            search(memory, task)
    return path


@pytest.fixture(scope="module")
def known(searched: Path) -> Lessons:
    with Memory(searched) as memory:
        return lessons(memory, AUTHOR)


@pytest.fixture(scope="module")
def model(known: Lessons) -> StepModel:
    return trained(known, ENOUGH)


@pytest.fixture
def own(searched: Path, tmp_path: Path) -> Callable[[], Memory]:
    return lambda: Memory(Path(copy(searched, tmp_path / "own.db")))


def test_it_orders_steps_of_operations_that_it_never_saw(known: Lessons, model: StepModel) -> None:
    held = model.held_out
    assert (model.rows, model.tasks, held.operations) == (len(known.rows), len(TASKS), 3)
    assert held.pairs > 20
    assert held.by_estimate < 0.4
    assert held.concordance > 0.7
    assert held.interval[0] <= held.concordance <= held.interval[1]
    assert {row.gain for row in known.rows if row.gain == -0.5}, "failures are the greatest loss"


def test_kept_trees_say_what_fitted_ones_do(known: Lessons, model: StepModel, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    keep_model(model, path)
    kept = kept_model(path, CHIP.name, JUDGE)
    assert kept == model
    names, forest = _fitted(known.rows)
    rows = [row.features for row in known.rows]
    assert kept.gains(rows) == pytest.approx(forest.predict(matrix(rows, names)).tolist(), abs=1e-9)
    assert kept.gains([]) == []
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("us", [math.nan, 0.0, -3.0, math.inf, 1e15])
def test_an_absurd_time_is_in_no_fit(own: Callable[[], Memory], known: Lessons, us: float) -> None:
    """Nor is any step that begins from a kernel with one."""
    with own() as memory:
        stored = next(one for one in memory.candidates(TASKS[0].task_id) if one.verdict.feasible)
        latency = evolve(stored.verdict.latency, us=us)
        memory.record_verdict(evolve(stored.verdict, latency=latency), CHIP.name)
        found = lessons(memory, AUTHOR)
    assert found.left_out[Dropped.NO_TIME.value] + found.left_out[Dropped.NO_VERDICT.value] >= 1
    assert stored.source.source_id not in {row.start for row in found.rows}
    assert len(found.rows) < len(known.rows)
    assert all(math.isfinite(row.gain) for row in found.rows)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [("chip", "ascend310p", Dropped.DEVICE), ("verifier", "old 0", Dropped.VERIFIER)],
)
def test_what_others_said_is_in_no_fit(
    own: Callable[[], Memory], known: Lessons, column: str, value: str, why: Dropped
) -> None:
    with own() as memory:
        for table in ("attempts", "verdicts"):
            memory.execute(f"UPDATE {table} SET {column} = ? WHERE task_id = ?", (value, TASKS[0].task_id))
        found = lessons(memory, AUTHOR)
    assert found.left_out[why.value] >= 1
    assert not {row.task_id for row in found.rows} & {TASKS[0].task_id}
    assert 0 < len(found.rows) < len(known.rows)


def test_experiences_of_packs_are_counted_and_in_no_fit(own: Callable[[], Memory], known: Lessons) -> None:
    with own() as memory:
        for raw in (0.5, 0.6):
            memory.pay(
                Reward(Stage.REFINE, "softmax", ("theirs",), raw, Effect.MERGE, trials=3, cause="pack 0123")
            )
        found = lessons(memory, AUTHOR)
    assert found.left_out[Unfit.PACK.value] == 1
    assert len(found.rows) == len(known.rows)


def test_too_little_is_told_with_what_is_needed(known: Lessons) -> None:
    with pytest.raises(
        UsageError, match=f"has {len(known.rows)} steps on {CHIP.name} .* and 5000 are needed"
    ):
        trained(known, 5000)
    one = [row for row in known.rows if "relu" in row.operation]
    with pytest.raises(UsageError, match="steps of 2 operations are needed"):
        trained(evolve(known, rows=one), 1)


def test_without_scikit_learn_one_sentence_says_what_to_install(
    known: Lessons, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(ExtraMissing, match=r"^Training a step model needs packages .*\[statistics\]"):
        trained(known, ENOUGH)


@pytest.mark.parametrize(
    "changes",
    [{"schema": "evokernel-step-model/0"}, {"strategies": 0}, {"chip": "ascend310p"}, {"verifier": "old 0"},
     {"names": ()}, {"trees": ()}, {"spread": -1.0}],
)  # fmt: skip
def test_a_model_that_does_not_fit_is_refused(
    model: StepModel, tmp_path: Path, changes: dict[str, Any]
) -> None:
    keep_model(evolve(model, **changes), tmp_path / "model.json")
    with pytest.raises(UsageError, match="is of another device, verifier or version"):
        kept_model(tmp_path / "model.json", CHIP.name, JUDGE)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "null", '{"schema": 1}', "[" * 100_000])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="run `evokernel memory train"):
        kept_model(path, CHIP.name, JUDGE)
    with pytest.raises(UsageError, match="There is no step model for"):
        kept_model(tmp_path / "none.json", CHIP.name, JUDGE)


def test_a_search_takes_its_order(searched: Path, model: StepModel) -> None:
    """Where estimates would go another way, too."""
    task = TASKS[0]
    with Memory(searched) as memory:
        starts = [one for one in memory.candidates(task.task_id) if one.verdict.feasible]
    differ = 0
    for start in starts:
        candidate = Candidate(start.source, start.verdict)
        by_estimate, chosen = (
            ScheduleProposer(AUTHOR).refine(task, Context(start=candidate, order=order)).source.source_id
            for order in (None, model)
        )
        possible = steps(ById(task), start.source.strategy, AUTHOR)
        before = schedule_features(
            task, start.source.strategy, AUTHOR.estimate_us(task, start.source.strategy)
        )
        gains = model.gains(
            [
                step_features(task.op_category, str(one.move.name), before, dict(one.priced.features))
                for one in possible
            ]
        )
        said = {one.source.source_id: gain for one, gain in zip(possible, gains, strict=True)}
        assert said[chosen] == max(said.values())
        differ += said[by_estimate] < said[chosen]
    assert differ > len(starts) / 2


def test_a_step_is_told_by_what_it_changes() -> None:
    told = step_features("norm", "double", {"tile": 0.5, "same": 1.0}, {"tile": 0.6, "same": 1.0, "new": 0.3})
    assert told == pytest.approx(
        {"tile": 0.6, "same": 1.0, "new": 0.3, "change:tile": 0.1, "change:new": 0.3, "move:double": 1.0,
         "category:norm": 1.0}
    )  # fmt: skip


def test_a_session_asks_for_a_model_that_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    settings = Settings(chip=CHIP.name, policy=PolicyName.MODEL)
    with Session(settings, None) as session, pytest.raises(UsageError, match="no step model"):
        session.engine()
    with Session(evolve(settings, proposer=ProposerName.LLM), None) as session:
        monkeypatch.setattr(session, "proposer", lambda: None)
        with pytest.raises(UsageError, match="orders the moves of schedules"):
            session.engine()


def test_a_session_hands_its_model_to_searches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: StepModel
) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))
    with Session(Settings(chip=CHIP.name, policy=PolicyName.MODEL), None) as session:
        monkeypatch.setattr(session, "verifier", Backwards)
        keep_model(model, step_model_path(CHIP.name))
        assert session.engine().order == model
        session.settings = evolve(session.settings, policy=PolicyName.QVALUE)
        assert session.engine().order is None
