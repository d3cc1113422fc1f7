"""A run of ``evokernel synth`` that is ended by a signal: what was done until then is its result."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, field

from evokernel_core.cli.synth import Ending, Tried, _CommandRun
from evokernel_core.domain.graph import Graph
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.synthesis.engine import Status, SynthesisResult
from evokernel_core.synthesis.offers import Offer
from evokernel_core.synthesis.proposers.base import Candidate
from evokernel_core.synthesis.session import Session
from evokernel_core.targets.ascendc.source import ascendc_source

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_is_what_it_was(number: signal.Signals) -> None:
    heard: list[int] = []
    before = signal.signal(number, lambda number, frame: heard.append(number))
    try:
        with Ending() as ending:
            assert not ending.asked
            signal.raise_signal(number)
            assert ending.asked and not heard
            signal.raise_signal(number)
            assert heard == [number]
        signal.raise_signal(number)
        assert len(heard) == 2
    finally:
        signal.signal(number, before)


def best() -> Candidate:
    source = ascendc_source("", "", Strategy("model"))
    latency = Latency(12.5, LatencySource.MODELLED, "ascend910b1", 24, (), "", 8.0, 40.0)
    gate = GateResult(GateName.COMPILE, GateStatus.PASSED, "", "")
    return Candidate(source, Verdict("t", source.source_id, "twin", (gate,), latency))


@define
class Interrupted:
    """A session whose first run is ended by a signal behind its first kernel, if it has one."""

    result: Candidate | None
    placed: list[str] = field(factory=list)
    runs: int = 0
    settings: Any = field(factory=lambda: SimpleNamespace(budget=8, chip="ascend910b1"))
    author: Any = field(factory=lambda: SimpleNamespace(target=SimpleNamespace(name="ascendc")))

    def synthesise(
        self, region: Region, budget: int, *, on_attempt: Any, cancelled: Callable[[], bool]
    ) -> SynthesisResult:
        self.runs += 1
        assert not cancelled()
        os.kill(os.getpid(), signal.SIGINT)
        assert cancelled()
        return SynthesisResult(Status.CANCELLED, "Cancelled.", self.result, 1, 12.5, 6210)

    def rival(self, region: Region) -> None:
        return None

    def stage(self, region: Region, candidate: Candidate) -> Any:
        self.placed.append("staged")
        return SimpleNamespace(backup=None, folder=Path("staged"), name="staged")


def offers() -> list[Offer]:
    task = KernelTask("t", Graph((), (), ()), (), TOLERANCES["float16"], "elementwise")
    regions = (
        Region(
            name,
            "m.py",
            name,
            Span(line, 0, line, 9),
            "",
            "",
            "elementwise",
            RegionStatus.CANDIDATE,
            "",
            task,
        )
        for line, name in enumerate("ab", 1)
    )
    return [Offer(region, None) for region in regions]


@pytest.mark.parametrize("kernel", [best(), None])
def test_a_run_that_is_ended_has_what_it_did(kernel: Candidate | None) -> None:
    session, ending = Interrupted(kernel), Ending()
    run = _CommandRun(cast(Session, session), Path("m.py"), True, Tried.PLACE, quiet=True, ending=ending)
    with ending:
        (row,) = run.rows(offers())
    assert session.runs == 1, "nothing more begins"
    assert (row.attempts, row.tokens, row.reason) == (1, 6210, "Cancelled.")
    assert row.best_latency_us == (kernel and kernel.latency_us)
    assert session.placed == (["staged"] if kernel else []), "the file stays as it is"
