"""A fresh memory per test, and small nouns to put into it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.targets.ascendc.source import ascendc_source


def _task(rows: int = 8, category: str = "activation") -> KernelTask:
    spec = TensorSpec((rows, 4), "float16")
    node = Node("y", "aten.relu.default", (ValueRef("x"),), (), (spec,))
    graph = Graph((GraphInput("x", spec),), (node,), (ValueRef("y"),))
    return KernelTask("relu", graph, (), TOLERANCES["float16"], category)


def _source(text: str = "kernel") -> KernelSource:
    return ascendc_source("tiling", text, Strategy("pointwise", {"tile": 8}))


def _verdict(
    task: KernelTask,
    source: KernelSource,
    us: float | None = 10.0,
    verifier: str = "twin 1",
    spoke: LatencySource = LatencySource.MODELLED,
) -> Verdict:
    status = GateStatus.PASSED if us else GateStatus.FAILED
    gates = (GateResult(GateName.COMPILE, status, "" if us else "compile"),)
    latency = Latency(us, spoke, "chip", 8, (), "", 1.0, 20.0) if us else None
    return Verdict(task.task_id, source.source_id, verifier, gates, latency)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "folder" / "memory.db")


@pytest.fixture
def make_task() -> Callable[..., KernelTask]:
    return _task


@pytest.fixture
def make_source() -> Callable[..., KernelSource]:
    return _source


@pytest.fixture
def make_verdict() -> Callable[..., Verdict]:
    return _verdict
