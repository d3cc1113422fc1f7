"""No kernel of a graph counts that does not mean what the user's code means; what was not compared is
said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from attrs import define, evolve, field

from evokernel_core.capture.client import CaptureWay
from evokernel_core.domain.eager import EagerComparison, Uncompared
from evokernel_core.domain.errors import AgentFailed, UnsupportedRegion
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.region import Region
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.synthesis.comparisons import Comparisons
from evokernel_core.synthesis.engine import Status
from evokernel_core.synthesis.proposers.base import Candidate
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.targets.ascendc.target import ascendc
from tests import warm

MODEL = """\
import torch


# evokernel: x=f32[64,128]
def same(x):
    return torch.softmax(torch.relu(x) * 2.0, -1)


# evokernel: x=f32[64,1]
def parted(x):
    a = x.expand(64, 16)
    a[:, -1] = 3.0
    return a * 2
"""
LATENCY = Latency(1.0, LatencySource.MODELLED, "ascend910b1", 1, (), "", 1.0, 2.0)
GATES = tuple(GateResult(gate, GateStatus.PASSED) for gate in GateName)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compared") / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(scope="module")
def session(model: Path) -> Iterator[Session]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOKERNEL_HOME", str(model.parent / "home"))
        with Session(Settings(interpreter=warm.interpreter()), model.parent) as made:
            yield made


@pytest.fixture(scope="module")
def regions(session: Session, model: Path) -> dict[str, Region]:
    return {item.symbol: item for item in session.regions(model, programs=True)}


def candidate(region: Region) -> Candidate:
    assert region.task is not None
    source = ascendc_source("// tiling", "// kernel", Strategy("model"))
    verdict = Verdict(region.task.task_id, source.source_id, "toy", GATES, LATENCY)
    return Candidate(source, verdict)


def test_a_graph_that_parts_from_its_code_is_refused_by_name(
    session: Session, regions: dict[str, Region]
) -> None:
    region = regions["parted"]
    found = session.synthesise(region, 1)
    assert (found.status, found.best, found.attempts) == (Status.INFEASIBLE, None, 0)
    assert found.reason.startswith("Line 11 (parted) is skipped, because its captured graph does not mean")
    assert found.reason.endswith(" where the graph has nan (inputs: nan).")
    for ask in (session.stage, lambda *given: session.judge(*given, "someone")):
        with pytest.raises(UnsupportedRegion, match=r"^Line 11 \(parted\)"):
            ask(region, candidate(region) if ask == session.stage else candidate(region).source)


def test_a_package_says_what_was_compared(session: Session, regions: dict[str, Region]) -> None:
    region = regions["same"]
    package = session.stage(region, candidate(region))
    eager = json.loads((package.folder / "kernel.json").read_text())["verdict"]["eager"]
    assert set(eager["compared"]) == {"normal", "nan", "infinity", "zero", "extreme", "equal", "file_sizes"}
    assert (eager["uncompared"], eager["difference"]) == ([], "")
    assert eager["source_hash"] == region.source_hash


@define
class Agent:
    """Notes what it is asked for."""

    answer: EagerComparison | AgentFailed = field(factory=EagerComparison)
    texts: list[str] = field(factory=list)

    def compare(self, region: Region, text: str, captures: Sequence[CaptureWay]) -> EagerComparison:
        self.texts.append(text)
        if isinstance(self.answer, AgentFailed):
            raise self.answer
        return self.answer


def test_code_runs_once_for_a_text_of_its_file(regions: dict[str, Region], model: Path) -> None:
    agent, region = Agent(EagerComparison(("normal",))), regions["same"]
    comparisons = Comparisons(agent, ascendc(load_chip()))
    comparisons.seen(model, MODEL + "\n# unsaved\n")
    for _ in range(2):
        assert comparisons.same(region).compared == ("normal",)
    assert agent.texts == [MODEL + "\n# unsaved\n"]
    comparisons.seen(model, None)
    comparisons.of(region)
    assert agent.texts[1:] == [MODEL]


@pytest.mark.parametrize("way", ["failed", "changed"])
def test_what_cannot_be_compared_is_no_refusal(way: str, regions: dict[str, Region]) -> None:
    agent, region = Agent(AgentFailed("It hung.")), regions["same"]
    region = evolve(region, source="another text") if way == "changed" else region
    found = Comparisons(agent, ascendc(load_chip())).same(region)
    assert [item.draw for item in found.uncompared] == [""]
    told = {"failed": "It hung.", "changed": "its file has changed since it was captured"}
    assert str(found.uncompared[0].reason) == told[way]


def test_verdicts_of_before_are_read_and_written_as_they_were() -> None:
    before = Verdict("task", "source", "toy", GATES, LATENCY)
    assert "eager" not in dumps(before)
    assert loads(dumps(before), Verdict) == before
    after = evolve(before, eager=EagerComparison(("normal",), (Uncompared("nan", "it hung"),)))
    assert loads(dumps(after), Verdict) == after
