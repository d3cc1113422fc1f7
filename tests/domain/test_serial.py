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
    Reuse,
    Split,
    read_descriptor,
)
from evokernel_core.domain.graph import Arg, DTypeArg, Graph, GraphInput, Node, SymbolicInt, ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.serial import dumps, from_data, loads, to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim

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


CELL = Descriptor(Dataflow.STREAMED, Reuse.L2, Split.ROWS, Algorithm.ONLINE, Overlap.PIPELINED, kernels=3)


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
    ],
)
def test_cells_of_other_versions_are_read(stored: object, read: Descriptor) -> None:
    """Their strategies are used as before, in a cell that is not known or known in part."""
    data = to_data(Strategy("pointwise", {"tile": 8})) | {"descriptor": stored}
    assert from_data(data, Strategy) == Strategy("pointwise", {"tile": 8}, descriptor=read)


keys = st.text() | st.sampled_from(["kernels", "dataflow"])


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(keys, inner), max_leaves=9))
def test_any_cell_is_read(data: object) -> None:
    assert isinstance(read_descriptor(data), Descriptor)


@given(st.integers(1, 99), st.integers(1, 99))
def test_sizes_evaluate(a: int, b: int) -> None:
    assert evaluate_dim("s0*(s1 + 3)//2 - -s0 % 5", {"s0": a, "s1": b}) == a * (b + 3) // 2 - -a % 5
