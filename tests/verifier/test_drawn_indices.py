"""Indices of a timed launch are drawn for integers only: a float that becomes an index has no such dtype."""

from __future__ import annotations

from evokernel_core.domain.graph import DTypeArg, Graph, GraphInput, InputKind, Node, ValueRef
from evokernel_core.domain.task import KernelTask, Tolerance
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.indices import drawn_indices


def test_a_float_that_becomes_an_index_is_left_out() -> None:
    table, places, index = (
        TensorSpec((9, 4), "float32"),
        TensorSpec((5,), "float32"),
        TensorSpec((5,), "int64"),
    )
    inputs = tuple(
        GraphInput(name, spec, InputKind.TENSOR, name)
        for name, spec in (("table", table), ("places", places), ("index", index))
    )
    cast = Node(
        "cast", "aten._to_copy.default", (ValueRef("places"),), (("dtype", DTypeArg("int64")),), (index,)
    )
    rows = [
        Node(
            name,
            "aten.index_select.default",
            (ValueRef("table"), 0, ValueRef(of)),
            (),
            (TensorSpec((5, 4), "float32"),),
        )
        for name, of in (("first", "cast"), ("second", "index"))
    ]
    graph = Graph(inputs, (cast, *rows), (ValueRef("first"), ValueRef("second")))
    task = KernelTask("take", graph, (), Tolerance(0.0, 0.0), "index")
    assert [position for position, _ in drawn_indices(task, {})] == [2]


def test_indices_of_a_narrow_type_stay_within_it() -> None:
    table, index, wide = TensorSpec((900, 4), "float32"), TensorSpec((5,), "int8"), TensorSpec((5,), "int64")
    inputs = tuple(
        GraphInput(name, spec, InputKind.TENSOR, name) for name, spec in (("table", table), ("index", index))
    )
    cast = Node(
        "cast", "aten._to_copy.default", (ValueRef("index"),), (("dtype", DTypeArg("int64")),), (wide,)
    )
    rows = Node(
        "rows",
        "aten.index_select.default",
        (ValueRef("table"), 0, ValueRef("cast")),
        (),
        (TensorSpec((5, 4), "float32"),),
    )
    graph = Graph(inputs, (cast, rows), (ValueRef("rows"),))
    task = KernelTask("take", graph, (), Tolerance(0.0, 0.0), "index")
    ((position, raw),) = drawn_indices(task, {})
    assert position == 1
    assert len(raw) == 5


def test_indices_of_a_judged_launch_are_secret_and_can_be_replayed() -> None:
    """Wants to know the timed launch by its indices and to read less there; each draw must have others."""
    table, index = TensorSpec((900, 4), "float32"), TensorSpec((50,), "int64")
    inputs = tuple(
        GraphInput(name, spec, InputKind.TENSOR, name) for name, spec in (("table", table), ("index", index))
    )
    node = Node(
        "rows",
        "aten.embedding.default",
        (ValueRef("table"), ValueRef("index")),
        (),
        (TensorSpec((50, 4), "float32"),),
    )
    task = KernelTask("take", Graph(inputs, (node,), (ValueRef("rows"),)), (), Tolerance(0.0, 0.0), "index")
    drawn = [drawn_indices(task, {}, Draw(f"{number:032x}")) for number in range(20)]
    assert len(set(drawn)) == len(drawn)
    assert drawn_indices(task, {}, Draw(f"{3:032x}")) == drawn[3]
