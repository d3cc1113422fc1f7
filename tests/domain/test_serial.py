"""Every noun survives the way to JSON and back; equal tasks have equal names, others do not."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.descriptor import (
    NOT_KNOWN,
    Algorithm,
    Dataflow,
    Descriptor,
    Overlap,
    Split,
    read_descriptor,
)
from evokernel_core.domain.graph import Arg, DTypeArg, Graph, GraphInput, Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import dumps, from_data, loads, to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim
from evokernel_core.domain.verdict import (
    GateName,
    GateResult,
    GateStatus,
    Hazard,
    Latency,
    LatencySource,
    Severity,
    Verdict,
)
from evokernel_core.hardware.ascend import memories

scalars = st.one_of(
    st.integers(-(2**53), 2**53), st.floats(allow_nan=False), st.booleans(), st.none(), st.text()
)
leaves: st.SearchStrategy[Arg] = st.one_of(
    scalars,
    st.builds(ValueRef, st.just("x"), st.integers(0, 2)),
    st.builds(SymbolicInt, st.just("s0*2")),
    st.builds(DTypeArg, st.sampled_from(["float32", "bfloat16"])),
)
arguments = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


CELL = Descriptor(Dataflow.STREAMED, memories.L2, Split.ROWS, Algorithm.ONLINE, Overlap.PIPELINED, kernels=3)


def task_with(args: tuple[Arg, ...]) -> KernelTask:
    spec = TensorSpec(("s0", 4), "float16")
    node = Node("y", "aten.mul.Tensor", args, (("alpha", 1),), (spec,), line=7)
    graph = Graph((GraphInput("x", spec, expression="self.x"),), (node,), (ValueRef("y"),))
    return KernelTask("scale", graph, (Symbol("s0", 8),), TOLERANCES["float16"], "elementwise")


@given(st.lists(arguments, max_size=4).map(tuple))
def test_a_task_survives_json(args: tuple[Arg, ...]) -> None:
    task = task_with(args)
    assert loads(dumps(task), KernelTask) == task
    assert loads(dumps(task), KernelTask).task_id == task.task_id


def test_identity_is_what_is_computed() -> None:
    task = task_with((ValueRef("x"), 2.0))
    assert evolve(task, name="other").task_id == task.task_id
    assert task_with((ValueRef("x"), 3.0)).task_id != task.task_id
    assert evolve(task, symbols=(Symbol("s0", 16),)).task_id != task.task_id


def test_settings_have_one_order() -> None:
    first = Strategy("pointwise", {"tile": 8, "buffers": 2}, descriptor=CELL)
    assert first == Strategy("pointwise", {"buffers": 2, "tile": 8}, descriptor=CELL)
    assert loads(dumps(first), Strategy) == first


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ({"memory": 3, "algorithm": 1, "parallelism": 2}, NOT_KNOWN),
        (None, NOT_KNOWN),
        ([3, 1, 2], NOT_KNOWN),
        ({"dataflow": "streamed", "algorithm": "of a later version"}, Descriptor(Dataflow.STREAMED)),
        ({"kernels": -1, "reuse": ["UB"], "split": "rows"}, Descriptor(split=Split.ROWS)),
        ({"reuse": "UB"}, Descriptor(reuse="UB")),
        ({"reuse": "SMEM"}, Descriptor(reuse="SMEM")),
        ({"reuse": "memory of a later version"}, NOT_KNOWN),
    ],
)
def test_cells_of_other_versions_are_read(stored: object, read: Descriptor) -> None:
    """Their strategies are used as before, in a cell that is not known or known in part."""
    data = to_data(Strategy("pointwise", {"tile": 8})) | {"descriptor": stored}
    assert from_data(data, Strategy) == Strategy("pointwise", {"tile": 8}, descriptor=read)


PLACE = Sentence("line {a}", a="{3}")
READS = Sentence("{a} reads {b}.", a="Add", b=PLACE)
FEEDBACK = Sentence("{where}: {what}", where="overlap", what=READS)
BOUND = Sentence("{pipe}-bound: {busy} % busy.", pipe="V", busy=80)


def spoken_verdict(message: str, feedback: str, bottleneck: str) -> Verdict:
    hazard = Hazard("overlap", Severity.ERROR, message, "op_kernel.cpp", 7)
    gate = GateResult(GateName.CORRECTNESS, GateStatus.FAILED, "overlap", feedback, hazards=(hazard,))
    latency = Latency(1.0, LatencySource.MODELLED, "chip", 8, (("V", 0.8),), bottleneck, 0.5, 4.0)
    return Verdict("task", "source", "twin", (gate,), latency)


def values_of(verdict: Verdict) -> list[object]:
    assert verdict.latency is not None
    said = (verdict.gates[0].hazards[0].message, verdict.gates[0].feedback, verdict.latency.bottleneck)
    return [item.data() for item in said]


def test_readers_from_before_sentences_find_text_where_they_look() -> None:
    """What a newer service sends is text for an older client, and for us all that it is made of."""
    verdict = spoken_verdict(READS, FEEDBACK, BOUND)
    data = to_data(verdict)
    (gate,) = data["gates"]
    texts = (gate["hazards"][0]["message"], gate["feedback"], data["latency"]["bottleneck"])
    assert [type(item) for item in texts] == [str] * 3
    assert texts == ("Add reads line {3}.", "overlap: Add reads line {3}.", "V-bound: 80 % busy.")
    again = loads(dumps(verdict), Verdict)
    assert (again, values_of(again)) == (verdict, values_of(verdict))
    older = spoken_verdict(*texts)
    assert older == verdict and values_of(older) == list(texts)
    assert "said" not in dumps(older)


@pytest.mark.parametrize(
    ("feedback", "said", "read"),
    [
        ("Text.", None, "Text."),
        (FEEDBACK.data(), None, FEEDBACK),
        ("Text.", {"feedback": FEEDBACK.data(), "status": "passed", "other": 1}, FEEDBACK),
        ("Text.", 3, "Text."),
    ],
    ids=["an old text", "a template in its place", "others' keys", "no object"],
)
def test_records_of_all_versions_are_read(feedback: object, said: object, read: str) -> None:
    plain = to_data(GateResult(GateName.AUDIT, GateStatus.FAILED, "audit-type"))
    given = plain | {"feedback": feedback} | ({} if said is None else {"said": said})
    found = from_data(given, GateResult)
    assert (found.status, found.feedback) == (GateStatus.FAILED, read)


def test_a_step_of_refinement_is_text_for_others() -> None:
    move = Sentence("tile longer along axis {axis}", axis=1)
    data = to_data(Strategy("layout_turn", move=move))
    again = from_data(data, Strategy)
    assert (data["move"], again.move.data()) == ("tile longer along axis 1", move.data())
    assert "said" not in to_data(Strategy("layout_turn", move="tile turned"))


keys = st.text() | st.sampled_from(["kernels", "dataflow"])


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=9))
def test_any_cell_is_read(data: object) -> None:
    assert isinstance(read_descriptor(data), Descriptor)


@given(st.integers(1, 99), st.integers(1, 99))
def test_sizes_evaluate(a: int, b: int) -> None:
    assert evaluate_dim("s0*(s1 + 3)//2 - -s0 % 5", {"s0": a, "s1": b}) == a * (b + 3) // 2 - -a % 5
