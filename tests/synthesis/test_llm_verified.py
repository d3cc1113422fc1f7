"""The whole way with a model: recorded answers, the engine, the twin, and PyTorch as the judge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evokernel_core.capture.client import AgentClient
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.settings import ModelEndpoint, Settings
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.engine import AttemptEvent, Engine, Status
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import TARGET
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.local import LocalVerifier
from tests import warm
from tests.synthesis.endpoint import RecordedEndpoint, recording


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalVerifier]:
    with pytest.MonkeyPatch.context() as patch, AgentClient(warm.interpreter()) as agent:
        patch.setenv("EVOKERNEL_HOME", str(tmp_path_factory.mktemp("home")))
        yield LocalVerifier(agent, TwinBackend(ascendc(load_chip())))


def scale_add() -> KernelTask:
    """y = a + 2*b over n halves."""
    spec = TensorSpec(("s0",), "float16")
    nodes = (
        Node("m", "aten.mul.Tensor", (ValueRef("b"), 2.0), (), (spec,)),
        Node("y", "aten.add.Tensor", (ValueRef("a"), ValueRef("m")), (), (spec,)),
    )
    graph = Graph((GraphInput("a", spec), GraphInput("b", spec)), nodes, (ValueRef("y"),))
    return KernelTask("scale_add", graph, (Symbol("s0", 4_000_037),), TOLERANCES["float16"], "elementwise")


def test_drafted_repaired_twice_and_refined(verifier: LocalVerifier, tmp_path: Path) -> None:
    names = ("does_not_compile", "not_json", "wrong_result", "good", "faster")
    events: list[AttemptEvent] = []
    with RecordedEndpoint(*map(recording, names)) as endpoint:
        settings = Settings(endpoint=ModelEndpoint(endpoint.url, "recorded"))
        memory = Memory(tmp_path / "memory.db")
        engine = Engine(
            memory, verifier, LlmProposer(settings.endpoint, ascendc(load_chip())), QValuePolicy(), settings
        )
        result = engine.run(scale_add(), len(names) - 1, on_attempt=events.append)  # one is asked again
        memory.close()
    failed = [event.candidate and event.candidate.verdict.failed_gate for event in events]
    assert [gate and gate.gate.value for gate in failed] == ["compile", "correctness", None, None]
    assert [event.stage for event in events] == [*[Stage.DRAFT] * 3, Stage.REFINE]
    assert result.status is Status.VERIFIED and result.best and result.best.verdict.feasible
    questions = [request["messages"][1]["content"] for request in endpoint.requests]
    assert "FastScale" in questions[1], "the compiler's words reach the model"
    assert "not JSON" in questions[2]
    assert "differs from PyTorch" in questions[3]
    assert "The kernel to make faster" in questions[4]
    assert events[-1].tokens == result.tokens == 6150 + 900 + 6100 + 6210 + 6842


def test_hostile_code_ends_at_the_audit(verifier: LocalVerifier) -> None:
    source = KernelSource(TARGET, recording("hostile_code")["kernel"]["files"], Strategy("model"))
    failed = verifier.verify(scale_add(), source).failed_gate
    assert failed and failed.gate.value == "audit"
