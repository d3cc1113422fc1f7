"""No name of a person's file is in what a model is asked, whatever the file calls things."""

from __future__ import annotations

import json
import string

from attrs import evolve
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evokernel_core.ascendc.author import initial, moves, write
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.graph import Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import dumps
from evokernel_core.domain.settings import ModelEndpoint
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, LatencySource, Verdict
from evokernel_core.synthesis.lessons import Trial, lessons
from evokernel_core.synthesis.proposers.base import Candidate, Context
from evokernel_core.synthesis.proposers.llm import LlmProposer
from evokernel_core.twin.chip import load_chip

CHIP = load_chip()
LETTERS = string.ascii_letters + string.digits + "_"
names = st.text(LETTERS, min_size=9, max_size=14).map(lambda text: f"zq{text}")
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


def judged(task: KernelTask, source: KernelSource, feedback: str) -> Candidate:
    status = GateStatus.FAILED if feedback else GateStatus.PASSED
    gate = GateResult(GateName.COMPILE, status, "compile" if feedback else "", feedback)
    pipes = (("V", 3.0),)
    latency = Latency(9.0, LatencySource.MODELLED, CHIP.name, 8, pipes, "V is busy.", 1.0, 20.0)
    verdict = Verdict(task.task_id, source.source_id, "twin", (gate,), None if feedback else latency)
    return Candidate(source, verdict)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(names, min_size=5, max_size=5, unique_by=str.lower), st.booleans())
def test_no_name_of_the_file_is_sent(given_names: list[str], failed: bool) -> None:
    assume(not any(a != b and a.lower() in b.lower() for a in given_names for b in given_names))
    task = task_of(*given_names)
    strategy = initial(task, CHIP)
    source = write(task, strategy, CHIP)
    line = next(line for line in source.op_kernel_cpp.splitlines() if "Global" in line and "(" in line)
    feedback = (
        f"/home/{given_names[0]}/op_kernel.cpp:7: error in {line.strip()} (with {given_names[3]}=7)"
        if failed
        else ""
    )
    start = judged(task, source, "")
    another = write(task, moves(task, strategy, CHIP)[0].strategy, CHIP)
    child = judged(task, another, feedback)
    trial = Trial(task, {}, Stage.REFINE, another, child.verdict, 10.0, "V", frozenset())
    learned = tuple(lessons(trial))
    assert_free(dumps(learned), given_names)
    context = Context(learned, start, (child,), feedback)
    proposer = LlmProposer(ModelEndpoint("http://127.0.0.1:9/v1", "none"))
    for asked in (context, evolve(context, start=None)):
        sent = proposer.preview(task, asked)
        assert "op_kernel.cpp" in sent and json.loads(sent)
        assert_free(sent, given_names)


def assert_free(text: str, words: list[str]) -> None:
    assert not [word for word in words if word.lower().strip("_") in text.lower()], text
