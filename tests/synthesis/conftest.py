"""A synthetic world for the engine: strategies are sets of switches, latency is a product of effects.

The optimum is known, verification costs nothing, and the same switches help on every task, so what
was learned on one task should shorten the search on the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attrs import define, field

from evokernel_core.domain.descriptor import Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import ProposalsExhausted, VerifierError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import (
    SLOWER,
    GateName,
    GateResult,
    GateStatus,
    Hazard,
    Latency,
    LatencySource,
    Severity,
    Verdict,
)
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies.base import Policy
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.proposers.base import Context, Proposal
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source
from evokernel_core.verifier.base import Cancelled, never

EFFECTS: Mapping[str, float] = {
    "a1": 1.1,
    "a2": 1.02,
    "a3": 1.3,
    "b1": 1.15,
    "b2": 1.01,
    "c1": 1.2,
    "c2": 1.05,
    "d1": 1.08,
    "double": 0.6,
    "wide": 0.5,
    "split": 0.75,
    "x_overflow": math.inf,
    "y_overflow": math.inf,
}
"""Factor of each switch; infinite: does not fit."""
FORMS: Mapping[str, Dataflow] = {"rows": Dataflow.RESIDENT_ROWS, "stream": Dataflow.STREAMED}
"""What a draft is; no move turns one into the other."""
BASE_US = 1000.0
OPTIMUM_US = BASE_US * 0.6 * 0.5 * 0.75


def make_task(number: int, category: str = "activation") -> KernelTask:
    spec = TensorSpec((16 + number, 64), "float16")
    node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    return KernelTask(f"relu_{number}", graph, (), TOLERANCES["float16"], category)


def source_of(switches: frozenset[str], move: str = "") -> KernelSource:
    settings = {name: name in switches for name in EFFECTS}
    return ascendc_source(
        "", " ".join(sorted(switches)), Strategy("toy", settings, (), cell_of(switches), move)
    )


def cell_of(switches: frozenset[str]) -> Descriptor:
    return Descriptor(
        dataflow=FORMS[form] if (form := next(iter(switches & FORMS.keys()), "")) else Dataflow.UNKNOWN,
        split=Split.REDUCTION if "split" in switches else Split.ROWS,
        overlap=Overlap.PIPELINED if "double" in switches else Overlap.NONE,
    )


def switches_of(source: KernelSource) -> frozenset[str]:
    return frozenset(source.files[KERNEL].split())


@define
class ToyVerifier:
    """Judges in no time. ``seen`` lists what was verified, in order."""

    name: str = "toy 1"
    source: LatencySource = LatencySource.MODELLED
    roofline_us: float = 1.0
    seen: list[tuple[str, str]] = field(factory=list)
    fail_after: int = 10**9
    pair: frozenset[str] = frozenset()
    """Switches that pay together only."""
    workers: int = 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        if cancelled():
            raise VerifierError("Cancelled.")
        if len(self.seen) >= self.fail_after:
            raise VerifierError("The toy verifier broke; mend it.")
        self.seen.append((task.task_id, source.source_id))
        us = BASE_US * math.prod(EFFECTS.get(name, 1.0) for name in switches_of(source))
        if self.pair and self.pair <= switches_of(source):
            us /= 100
        passed = [GateResult(gate, GateStatus.PASSED) for gate in GateName]
        if math.isinf(us):
            hazard = Hazard("ub-capacity", Severity.ERROR, "Too large.")
            failed = GateResult(
                GateName.CORRECTNESS, GateStatus.FAILED, "ub-capacity", "It does not fit.", hazards=(hazard,)
            )
            return Verdict(task.task_id, source.source_id, self.name, (*passed[:2], failed))
        latency = Latency(
            us,
            self.source,
            "toychip",
            8,
            (("MTE2", us), ("V", us / 3)),
            "MTE2",
            self.roofline_us,
            2 * BASE_US,
        )
        if us >= below_us:
            failed = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER, "It gains nothing.")
            return Verdict(task.task_id, source.source_id, self.name, (*passed[:2], failed), latency)
        return Verdict(task.task_id, source.source_id, self.name, tuple(passed), latency)


@define
class ToyProposer:
    """Turns one switch on at a time; every switch is a practice. ``others`` are drafts behind the first."""

    name: str = "toy"
    start: frozenset[str] = frozenset()
    timed_first: bool = False
    others: tuple[frozenset[str], ...] = ()

    def draft(self, task: KernelTask, context: Context) -> Proposal:
        drafts = [source_of(switches) for switches in (self.start, *self.others)]
        drafts.sort(key=lambda source: source.strategy.descriptor in context.away_from)
        source = next((item for item in drafts if item.source_id not in context.tried), None)
        if source is None:
            raise ProposalsExhausted("There are no other drafts.")
        item = make_experience(ExperienceKind.PRACTICE, "plain draft", "start plainly")
        return Proposal(source, (item.id,), 7, (item,))

    def _open(self, context: Context) -> list[tuple[Experience, KernelSource]]:
        assert context.start
        on = switches_of(context.start.source)
        moves = [(name, source_of(on | {name}, name)) for name in EFFECTS if name not in on]
        return [
            (make_experience(ExperienceKind.PRACTICE, name, f"turn {name} on", bottleneck="MTE2"), source)
            for name, source in moves
            if source.source_id not in context.tried
        ]

    def practices(self, task: KernelTask, context: Context) -> tuple[Experience, ...]:
        return tuple(item for item, _ in self._open(context))

    def refine(self, task: KernelTask, context: Context) -> Proposal:
        order = {item.id: place for place, item in enumerate(context.experiences)}
        moves = self._open(context)
        if not moves:
            raise ProposalsExhausted("Every switch was tried.")
        item, source = min(moves, key=lambda move: order.get(move[0].id, len(order)))
        return Proposal(source, (item.id,), timed_first=self.timed_first)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "memory.db")


@pytest.fixture
def settings() -> Settings:
    return Settings(chip="toychip")


@pytest.fixture
def verifier() -> ToyVerifier:
    return ToyVerifier()


@pytest.fixture
def engine(memory: Memory, verifier: ToyVerifier, settings: Settings) -> Engine:
    return Engine(memory, verifier, ToyProposer(), QValuePolicy(), settings)


@pytest.fixture
def toy_task() -> Callable[..., KernelTask]:
    return make_task


@pytest.fixture
def toy_engine(memory: Memory, settings: Settings) -> Callable[..., Engine]:
    """Engines over the same memory by default; keywords replace its parts."""

    def make(
        store: Memory = memory,
        verifier: ToyVerifier | None = None,
        start: frozenset[str] = frozenset(),
        policy: Policy | None = None,
        given: Settings = settings,
        timed_first: bool = False,
        others: tuple[frozenset[str], ...] = (),
    ) -> Engine:
        proposer = ToyProposer("toy", start, timed_first, others)
        return Engine(store, verifier or ToyVerifier(), proposer, policy or QValuePolicy(), given)

    return make


@pytest.fixture
def optimum_us() -> float:
    return OPTIMUM_US


@pytest.fixture
def toy_verifier() -> type[ToyVerifier]:
    return ToyVerifier
