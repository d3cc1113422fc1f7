"""Operands of matrix products that lie in memory in other ways than one dense matrix after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.problems.products import read_product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from tests.tables import few

Case = tuple[KernelTask, dict[str, tuple[int, ...]], Callable[..., Any]]


def shared_left(graph: Any) -> Case:
    """A weight in front of a batch, as in a pointwise convolution."""
    w, x = graph.input("w", (20, 24)), graph.input("x", (3, 24, "p"))
    wide = graph.call("expand.default", w, (3, 20, 24), shape=(3, 20, 24))
    product = graph.call("bmm.default", wide, x, shape=(3, 20, "p"))
    return graph.task(product, symbols={"p": 35}), {"w": (20, 24), "x": (3, 24, 35)}, np.matmul


def _stacks(graph: Any, left: tuple[int, ...], right: tuple[int, ...]) -> Case:
    """[2, 3] products whose operands are broadcast in some of those dimensions."""
    x, y = graph.input("x", (*left, "m", 24)), graph.input("y", (*right, 24, 20))
    flat: list[ValueRef] = []
    for ref, shape in ((x, ("m", 24)), (y, (24, 20))):
        wide = graph.call("expand.default", ref, (2, 3, -1, -1), shape=(2, 3, *shape))
        copied = graph.call("clone.default", wide, shape=(2, 3, *shape))
        flat.append(graph.call("view.default", copied, (6, -1, shape[1]), shape=(6, *shape)))
    product = graph.call("bmm.default", *flat, shape=(6, "m", 20))
    back = graph.call("view.default", product, (2, 3, -1, 20), shape=(2, 3, "m", 20))
    task = graph.task(back, symbols={"m": 9})
    shapes = {"x": (*left, 9, 24), "y": (*right, 24, 20)}
    return task, shapes, lambda x, y: np.broadcast_to(x @ y, (2, 3, 9, 20))


def heads(graph: Any) -> Case:
    """Heads of attention that lie beside each other in a row."""
    q, k = graph.input("q", (2, "s", 3, 16)), graph.input("k", (2, "s", 3, 16))
    left = graph.call("permute.default", q, (0, 2, 1, 3), shape=(2, 3, "s", 16))
    right = graph.call("permute.default", k, (0, 2, 3, 1), shape=(2, 3, 16, "s"))
    left = graph.call("view.default", left, (6, -1, 16), shape=(6, "s", 16))
    right = graph.call("view.default", right, (6, 16, -1), shape=(6, 16, "s"))
    product = graph.call("bmm.default", left, right, shape=(6, "s", "s"))

    def expected(q: Any, k: Any) -> Any:
        return np.einsum("bshd,bthd->bhst", q, k).reshape(6, 21, 21)

    return graph.task(product, symbols={"s": 21}), {"q": (2, 21, 3, 16), "k": (2, 21, 3, 16)}, expected


def vector_left(graph: Any) -> Case:
    x, y = graph.input("x", (1, "k")), graph.input("y", ("k", "n"))
    task = graph.task(graph.call("mm.default", x, y, shape=(1, "n")), symbols={"k": 70, "n": 33})
    return task, {"x": (1, 70), "y": (70, 33)}, np.matmul


def column_of_a_matrix(graph: Any) -> Case:
    """A left operand of one row whose elements lie a row of memory apart."""
    x, y = graph.input("x", ("k", 3)), graph.input("y", (3, "k", 20))
    turned = graph.call("permute.default", x, (1, 0), shape=(3, "k"))
    rows = graph.call("view.default", turned, (3, 1, -1), shape=(3, 1, "k"))
    task = graph.task(graph.call("bmm.default", rows, y, shape=(3, 1, 20)), symbols={"k": 70})
    return task, {"x": (70, 3), "y": (3, 70, 20)}, lambda x, y: x.T[:, None] @ y


CASES: dict[str, Callable[[Any], Case]] = {
    "shared left": shared_left,
    "both own": lambda graph: _stacks(graph, (2, 3), (2, 3)),
    "right broadcast outside": lambda graph: _stacks(graph, (2, 3), (3,)),
    "right broadcast inside": lambda graph: _stacks(graph, (2, 3), (2, 1)),
    "left broadcast, right shared": lambda graph: _stacks(graph, (2, 1), (1, 1)),
    "heads beside each other": heads,
    "vector left": vector_left,
    "column of a matrix": column_of_a_matrix,
}


@few(
    "name",
    CASES,
    keep=(
        1,
        4,
        5,
        6,
    ),
)
def test_operands_are_read_where_they_lie(name: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task, shapes, expected = CASES[name](builder())
    read_product(task)  # one kernel, no copy in front of it
    rng = np.random.default_rng(0)
    inputs = {key: rng.integers(-8, 9, size=shape).astype("f4") / 4 for key, shape in shapes.items()}
    (result,) = on_twin(task, inputs)
    np.testing.assert_allclose(result, expected(*inputs.values()), rtol=1e-4, atol=1e-4)


def test_rows_in_pieces_are_refused(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (4, 6, 8))
    turned = graph.call("permute.default", x, (1, 0, 2), shape=(6, 4, 8))
    rows = graph.call("view.default", turned, (24, 8), shape=(24, 8))
    task = graph.task(graph.call("mm.default", rows, graph.input("y", (8, 5)), shape=(24, 5)))
    with pytest.raises(PlanError, match="strided segments"):
        read_product(task)


def test_an_operand_that_repeats_in_itself_is_refused(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", (1, 8))
    wide = graph.call("expand.default", x, (24, 8), shape=(24, 8))
    task = graph.task(graph.call("mm.default", wide, graph.input("y", (8, 5)), shape=(24, 5)))
    with pytest.raises(PlanError, match="broadcast"):
        read_product(task)
