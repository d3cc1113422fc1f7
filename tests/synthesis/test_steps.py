"""Training samples: what is kept for which training, that a file reads back, and that none names a file."""

from __future__ import annotations

import hashlib
import math
import random
import re
import string
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import pairwise
from pathlib import Path
from shutil import copy

import pytest
from attrs import define, evolve, fields
from hypothesis import assume
from hypothesis import strategies as st

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.step import (
    Action,
    Author,
    Parent,
    Purpose,
    Result,
    ShownItem,
    State,
    Step,
    StepOutcome,
)
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    SLOWER,
    DrawnCase,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.data_card import as_markdown, data_card, field_paths
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.proposers.schedule import ScheduleProposer
from evokernel_core.synthesis.steps import Dropped, SampleChoice, Tally, read_steps, steps
from evokernel_core.targets.ascendc.source import KERNEL, TILING, ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.base import Cancelled, never
from tests.tables import drawn

CHIP = load_chip()
SUPERVISED = SampleChoice(per_task=0)
REINFORCEMENT = SampleChoice(Purpose.REINFORCEMENT, per_task=0)
LEAVES = tuple(item for kind in (Step, State, Action, StepOutcome, Parent, ShownItem) for item in fields(kind)
               if item.name not in ("state", "outcome"))  # fmt: skip
"""Every field of a sample that is not a table row by itself."""
names = st.text(string.ascii_letters + string.digits + "_", min_size=9, max_size=14).map("zq{}".format)
"""Names that occur in no text of ours by chance."""


def task_of(first: str, weight: str, scale: str, size: str, name: str) -> KernelTask:
    """relu(x * weight) * scale over rows of a size that the call knows."""
    spec = TensorSpec((size, 64), "float32")
    inputs = (
        GraphInput(first, spec, expression=f"self.{first}"),
        GraphInput(weight, TensorSpec((64,), "float32"), InputKind.PARAMETER, f"self.{weight}"),
        GraphInput(scale, TensorSpec((), "float32"), InputKind.SCALAR, f"self.{scale}"),
    )
    nodes = (
        Node("mul", "aten.mul.Tensor", (ValueRef(first), ValueRef(weight)), (), (spec,), 3),
        Node("relu", "aten.relu.default", (ValueRef("mul"),), (), (spec,), 4),
        Node("mul_1", "aten.mul.Tensor", (ValueRef("relu"), ValueRef(scale)), (), (spec,), 5),
    )
    graph = Graph(inputs, nodes, (ValueRef("mul_1"),))
    return KernelTask(name, graph, (Symbol(size, 512),), TOLERANCES["float32"], "elementwise")


@define
class DrawnVerifier:
    """Judges without running: what a kernel is worth is drawn from its schedule. A failure is told with the
    names of the file, as a compiler and the comparison tell it."""

    name: str = "drawn 1@a-host"
    workers: int = 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        drawn = random.Random(hashlib.sha256(dumps(source.strategy.settings).encode()).hexdigest())
        passed = [GateResult(gate, GateStatus.PASSED) for gate in GateName]
        if drawn.random() < 0.2:
            return Verdict(task.task_id, source.source_id, self.name, (_failure(task, source),))
        us = drawn.uniform(5, 50)
        latency = Latency(us, LatencySource.MODELLED, CHIP.name, 8, (("V", us),), "V is busy.", 1.0, 60.0)
        if us >= below_us:
            failed = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER, "It gains nothing.")
            return Verdict(task.task_id, source.source_id, self.name, (*passed[:2], failed), latency)
        return Verdict(task.task_id, source.source_id, self.name, tuple(passed), latency)


def _failure(task: KernelTask, source: KernelSource) -> GateResult:
    line = next(line for line in source.files[KERNEL].splitlines() if "Global" in line and "(" in line)
    case = DrawnCase(tuple((name, 7) for name in task.sizes), "normal", 3)
    words = f"/home/{task.name}/op_kernel.cpp:7: {line.strip()}"
    return GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "numeric", words, case=case)


def searched(memory: Memory, task: KernelTask, budget: int = 12, job: str = "") -> None:
    settings = Settings(chip=CHIP.name)
    proposer = ScheduleProposer(ascendc(CHIP))
    engine = Engine(memory, DrawnVerifier(), proposer, QValuePolicy(), settings)
    engine.run(task, budget, job_id=job)


PLAIN = task_of("x", "weight", "scale", "rows", "block")


@pytest.fixture(scope="module")
def searches(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The file of a memory in which the plain task was searched with a budget, which none may change."""
    folder = tmp_path_factory.mktemp("searches")

    @cache
    def of(budget: int) -> Path:
        path = folder / f"{budget}.db"
        with Memory(path) as memory:
            searched(memory, PLAIN, budget)
        return path

    return of


@pytest.fixture
def searched_memory(searches: Callable[[int], Path], tmp_path: Path) -> Iterator[Callable[[int], Memory]]:
    """A copy of such a memory."""
    with ExitStack() as opened:
        yield lambda budget: opened.enter_context(Memory(copy(searches(budget), tmp_path / "searched.db")))


def exported(memory: Memory, choice: SampleChoice) -> tuple[list[Step], Tally]:
    tally = Tally()
    return list(steps(memory, choice, tally)), tally


def everything_of(memory: Memory, choice: SampleChoice) -> list[Step]:
    return exported(memory, choice)[0]


@pytest.mark.parametrize("choice", [SUPERVISED, REINFORCEMENT, SampleChoice()])
def test_a_file_reads_back(searched_memory: Callable[[int], Memory], choice: SampleChoice) -> None:
    memory = searched_memory(12)
    found = everything_of(memory, choice)
    assert found
    assert list(read_steps(map(dumps, found))) == found
    assert len({step.id for step in found}) == len(found)


@pytest.mark.parametrize("line", ["{", "{}", "[]", '"x"', "null", '{"schema": "evokernel-steps/2"}'])
def test_what_is_no_sample_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(UsageError, match="Line 1 is no training sample"):
        list(read_steps([line]))


def test_another_schema_is_refused(memory: Memory) -> None:
    searched(memory, PLAIN, 1)
    step = evolve(everything_of(memory, REINFORCEMENT)[0], schema="evokernel-steps/1")
    with pytest.raises(UsageError, match="schema evokernel-steps/1"):
        list(read_steps([dumps(step)]))


def test_for_supervised_training_only_verified_improvements_are_kept(
    searched_memory: Callable[[int], Memory],
) -> None:
    memory = searched_memory(30)
    found, tally = exported(memory, SUPERVISED)
    drafts = [step for step in found if step.state.parent is None]
    later = [step for step in found if step.state.parent]
    assert drafts and later
    assert all(step.outcome.result is Result.VERIFIED for step in found)
    assert all(step.outcome.speedup and step.outcome.speedup > 1 for step in later)
    assert all("Verified" in step.state.parent.verdict for step in later if step.state.parent)
    assert tally.attempts == 30 == tally.kept + tally.dropped.total()
    assert {Dropped.NO_GAIN, Dropped.NOT_VERIFIED} & set(tally.dropped)


def test_for_reinforcement_every_rewarded_step_is_kept(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(30)
    found, tally = exported(memory, REINFORCEMENT)
    raw = Counter(round(event.raw, 6) for event in memory.rewards() if event.effect.value == "pay")
    assert Counter(round(step.outcome.raw_reward, 6) for step in found) == raw
    assert {step.outcome.result for step in found} == set(Result)
    again = tally.dropped[Dropped.NO_REWARD]  # a kernel that the search came to once more is none
    assert (tally.kept, tally.kept + again) == (sum(raw.values()), 30) == (len(found), tally.attempts)
    assert set(tally.dropped) <= {Dropped.NO_REWARD}
    failed = [step.outcome for step in found if step.outcome.result is Result.FAILED]
    assert all((item.latency_us, item.speedup, item.gate) == (None, None, "correctness") for item in failed)


def test_rewards_are_what_the_log_paid(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(30)
    logged = memory.rows("rewards", "effect = 'pay'", select="raw, reward")
    found = {(step.outcome.raw_reward, step.outcome.reward) for step in everything_of(memory, REINFORCEMENT)}
    assert found == {(row["raw"], row["reward"]) for row in logged}
    assert any(raw != reward for raw, reward in found), "gains are in units of their spread"


def test_a_step_has_what_its_author_was_shown(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(30)
    shown = {event.shown for event in memory.rewards() if event.shown}
    sizes = {len(items) for items in shown}
    found = everything_of(memory, REINFORCEMENT)
    assert {len(step.state.context) for step in found if step.state.context} == sizes
    failures = {item.feedback for item in memory.attempts() if item.feedback}
    told = [step for step in found if step.state.feedback]
    assert failures and told
    assert all(step.state.feedback.startswith("Failed at correctness (numeric)") for step in told)
    assert not any("seed" in words for words in failures | {step.state.feedback for step in told})


def test_the_best_of_a_task_come_first_and_only_so_many(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(30)
    everything = everything_of(memory, REINFORCEMENT)
    gains = [step.outcome.speedup or 1.0 for step in everything if step.outcome.result is Result.VERIFIED]
    assert all(left >= right for left, right in pairwise(gains))
    few, tally = exported(memory, evolve(REINFORCEMENT, per_task=3))
    assert [step.id for step in few] == [step.id for step in everything[:3]]
    assert tally.dropped[Dropped.CROWDED] == len(everything) - 3


def test_the_diff_leads_from_the_parent_to_the_kernel(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(12)
    for step in everything_of(memory, SUPERVISED):
        parent, action = step.state.parent, step.action
        before = f"{parent.files[TILING]}{parent.files[KERNEL]}" if parent else ""
        added = re.findall(r"^\+(?!\+\+)(.*)$", action.diff, re.MULTILINE)
        removed = re.findall(r"^-(?!--)(.*)$", action.diff, re.MULTILINE)
        after = Counter(f"{action.files[TILING]}{action.files[KERNEL]}".splitlines())
        assert Counter(before.splitlines()) + Counter(added) - Counter(removed) == after


def test_groups_are_samples_of_one_question(searched_memory: Callable[[int], Memory]) -> None:
    memory = searched_memory(30)
    states: dict[str, str] = {}
    for step in everything_of(memory, REINFORCEMENT):
        assert states.setdefault(step.group, dumps(step.state)) == dumps(step.state)


def test_a_kernel_that_an_earlier_run_judged_is_one_sample(memory: Memory) -> None:
    searched(memory, PLAIN, 6, "one")
    first = everything_of(memory, REINFORCEMENT)
    searched(memory, PLAIN, 1, "two")
    again, tally = exported(memory, REINFORCEMENT)
    assert [step.id for step in again] == [step.id for step in first]
    assert tally.dropped == {Dropped.NO_REWARD: 1}


def add(memory: Memory, source: KernelSource, n: int, parent: str = "", verifier: str = "drawn 1") -> None:
    """Writes an attempt and its reward down as the engine does, verified at 100 / n microseconds."""
    gates = tuple(GateResult(gate, GateStatus.PASSED) for gate in GateName)
    latency = Latency(100 / n, LatencySource.MODELLED, CHIP.name, 8, (), "", 1.0, 200.0)
    stage = Stage.REFINE if parent else Stage.DRAFT
    with memory.transaction():
        memory.record_candidate(source)
        memory.record_verdict(Verdict(PLAIN.task_id, source.source_id, verifier, gates, latency), CHIP.name)
        where = (PLAIN.task_id, source.source_id, parent, stage, "llm", verifier, CHIP.name, True)
        memory.record_attempt(Attempt(f"job {verifier}", n, *where), ())
        memory.pay(
            Reward(
                stage,
                "elementwise",
                ("item",),
                1.0,
                cause=stage.value,
                task_id=PLAIN.task_id,
                source_id=source.source_id,
            )
        )


def model(text: str) -> KernelSource:
    return ascendc_source("struct T { int x; };\n", text, Strategy("model"))


def test_what_differs_in_comments_alone_is_no_other_step(memory: Memory) -> None:
    memory.record_task(PLAIN, {})
    add(memory, model("int one;\n"), 1)
    add(memory, model("int   one; // faster\n"), 2)
    found, tally = exported(memory, REINFORCEMENT)
    assert [step.action.files[KERNEL] for step in found] == ["int one;\n"]
    assert tally.dropped == {Dropped.REPEATED: 1}


def test_models_may_be_left_out(memory: Memory) -> None:
    searched(memory, PLAIN, 2)
    add(memory, model("int one;\n"), 1)
    both = everything_of(memory, REINFORCEMENT)
    assert {step.action.author for step in both} == set(Author)
    found, tally = exported(memory, evolve(REINFORCEMENT, models=False))
    assert {step.action.author for step in found} == {Author.SCHEDULE}
    assert tally.dropped == {Dropped.MODEL: 1}


def test_a_start_that_another_verifier_judged_is_not_compared(memory: Memory) -> None:
    memory.record_task(PLAIN, {})
    start = model("int one;\n")
    add(memory, start, 1)
    add(memory, model("int two;\n"), 2, start.source_id, verifier="drawn 2")
    (step,), tally = exported(memory, SUPERVISED)
    assert step.state.parent is None
    assert tally.dropped == {Dropped.NOT_COMPARABLE: 1}
    rewarded = [step for step in everything_of(memory, REINFORCEMENT) if step.state.parent]
    assert [step.outcome.speedup for step in rewarded] == [None]


def test_a_schedule_of_another_version_is_dropped(memory: Memory) -> None:
    """A verdict is about the text that was judged, which cannot be told: it has the names of the file."""
    memory.record_task(PLAIN, {})
    searched(memory, PLAIN, 1)
    (stored,) = memory.candidates(PLAIN.task_id)
    other = stored.source.with_files({KERNEL: f"{stored.source.files[KERNEL]}int after;\n"})
    add(memory, other, 2)
    found, tally = exported(memory, REINFORCEMENT)
    assert len(found) == 1
    assert tally.dropped == {Dropped.NAMED: 1}


def test_sizes_that_another_file_names_are_not_told(memory: Memory) -> None:
    """The same task, captured from a second file: the memory has its names from the first."""
    searched(memory, PLAIN, 1)
    other = task_of("x", "weight", "scale", "customers", "block")
    assert other.task_id == PLAIN.task_id
    source = model("int Global(int);\n")
    add(memory, source, 1)
    verdict = Verdict(PLAIN.task_id, source.source_id, "drawn 1", (_failure(other, source),))
    memory.record_verdict(verdict, CHIP.name)
    found, tally = exported(memory, REINFORCEMENT)
    assert len(found) == 1
    assert tally.dropped == {Dropped.NAMED: 1}


def test_a_person_s_last_word_is_told_and_none_of_their_words(memory: Memory) -> None:
    searched(memory, PLAIN, 1)
    (stored,) = memory.candidates(PLAIN.task_id)
    for at, (kind, detail) in enumerate(
        [(OutcomeKind.ACCEPTED, ""), (OutcomeKind.REJECTED, "for Customer X"), (OutcomeKind.SHOWN, "")]
    ):
        memory.record_outcome(
            Outcome(kind, "region", PLAIN.task_id, stored.source.source_id, float(at), detail)
        )
    (step,) = everything_of(memory, REINFORCEMENT)
    assert step.outcome.person is OutcomeKind.REJECTED
    assert "Customer" not in dumps(step)


def test_the_card_counts_what_the_file_holds(memory: Memory) -> None:
    searched(memory, PLAIN, 20)
    found, tally = exported(memory, SampleChoice(Purpose.REINFORCEMENT, 5))
    card = data_card(SampleChoice(Purpose.REINFORCEMENT, 5), tally)
    assert (card.samples, card.tasks, card.attempts) == (len(found), 1, 20)
    assert sum(card.dropped.values()) == 20 - len(found)
    results = Counter(step.outcome.result.value for step in found)
    assert card.counts["result"] == results
    assert set(card.counts["latency"]) <= {f"modelled on {CHIP.name}", "none"}
    assert card.counts["verifier"] == {"drawn 1": len(found)}, "without the name of the host"
    page = as_markdown(card)
    for words in (f"{len(found)} samples of 1 tasks", f"modelled on {CHIP.name}", "terms of its provider"):
        assert words in page
    assert all(f"| {number} | {why} |" in page for why, number in card.dropped.items())


def test_the_card_of_nothing(memory: Memory) -> None:
    _, tally = exported(memory, SUPERVISED)
    card = data_card(SUPERVISED, tally)
    assert (card.samples, card.tasks, card.attempts, card.dropped) == (0, 0, 0, {})
    assert "nothing" in as_markdown(card)


def test_fields_are_those_of_a_line(memory: Memory) -> None:
    paths = set(field_paths())
    assert {"group", "state.task", "state.parent.verdict", "state.context[].body", "outcome.reward"} <= paths
    assert {path.split(".")[0] for path in paths} == {item.name for item in fields(Step)}


def test_the_page_names_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
    assert all(f"`{item.name}`" in page or f".{item.name}`" in page for item in LEAVES)


def check_that_no_name_is_exported(given_names: list[str]) -> None:
    assume(not any(a != b and a.lower() in b.lower() for a in given_names for b in given_names))
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        searched(memory, task_of(*given_names), 8)
        found, tally = exported(memory, REINFORCEMENT)
        card = data_card(REINFORCEMENT, tally)
        assert found and not tally.dropped
        sent = "\n".join([*map(dumps, found), as_markdown(card), dumps(card)])
    assert not [word for word in given_names if word.lower().strip("_") in sent.lower()], sent


test_no_name_of_the_file_is_exported, test_no_name_of_many_files_is_exported = drawn(
    check_that_no_name_is_exported,
    few=4,
    many=12,
    given_names=st.lists(names, min_size=5, max_size=5, unique_by=str.lower),
)


def test_the_exported_tasks_are_the_same_mathematics(memory: Memory) -> None:
    searched(memory, PLAIN, 1)
    (step,) = everything_of(memory, REINFORCEMENT)
    assert step.state.task.task_id == PLAIN.task_id
    assert step.state.task.name == "kernel"
