"""Kept verdicts are shown beside what PyTorch takes by this version."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis import kept_verdicts
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.kept_verdicts import as_of_today
from evokernel_core.targets import author_for


def _kept(engine: Engine, task: KernelTask) -> Any:
    best = engine.run(task, 4).best
    assert best is not None and best.verdict.latency is not None
    return best


def test_a_recalled_kernel_is_beside_todays_baseline(
    engine: Engine, toy_task: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, author = toy_task(1), author_for("ascend910b1", "ascendc")
    kept = _kept(engine, task)
    latency, today = kept.verdict.latency, author.baseline(task)
    monkeypatch.setattr(kept_verdicts, "author_for", lambda device, target: author)
    assert latency.baseline_us != today.us, "the toy verifier has a figure of its own"
    again = engine.run(task, 1).best
    assert again is not None and again.verdict.latency is not None
    assert (again.verdict.latency.baseline_us, again.verdict.latency.baseline) == (today.us, today)
    assert again.verdict.latency.us == latency.us


@pytest.mark.parametrize(
    "change", [{"source": LatencySource.MEASURED}, {"chip": "a chip whose file is gone"}], ids=str
)
def test_what_was_measured_and_what_nobody_can_tell_stay(
    engine: Engine, memory: Memory, toy_task: Any, change: Any
) -> None:
    task = toy_task(1)
    kept = _kept(engine, task)
    verdict = evolve(kept.verdict, latency=evolve(kept.verdict.latency, **change))
    assert as_of_today(task, kept.source, verdict) == verdict
    assert as_of_today(task, kept.source, evolve(verdict, latency=None)).latency is None
