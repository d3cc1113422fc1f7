"""Family layout in Triton: moving elements, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.triton.kernels.layout.layout_family import FAMILY
from tests.tables import drawn
from tests.targets.ascendc import test_layout as layouts

DTYPES = ["float32", "float16", "bfloat16", "int64", "int8", "bool"]


def _permuted(builder: Any, dtype: str, order: tuple[int, ...]) -> Any:
    graph = builder()
    x = graph.input("x", ("a", "b", "c"), dtype)
    shape = tuple("abc"[place] for place in order)
    result = graph.call("permute.default", x, order, shape=shape, dtype=dtype)
    return graph.task(result, symbols={"a": 3, "b": 50, "c": 70})


@pytest.mark.parametrize("dtype", DTYPES)
def test_permutations_at_many_sizes(dtype: str, builder: Any, interpreted: Any, gpu: Any) -> None:
    orders = [(2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
    order = orders[DTYPES.index(dtype) % 4]
    task = _permuted(builder, dtype, order)
    start = FAMILY.initial(task, gpu)
    moves = [move.strategy for move in FAMILY.moves(task, start, gpu)]
    assert moves
    for a, b, c in [(3, 50, 70), (1, 1, 1), (2, 1, 33)]:
        values = layouts._values((a, b, c), dtype)
        for strategy in (start, *(moves[:2] if a == 3 else ())):
            (result,) = interpreted(FAMILY, task, {"x": values}, {"a": a, "b": b, "c": c}, strategy)
            np.testing.assert_array_equal(result, values.transpose(order))


def test_the_last_step_of_any_number(builder: Any, interpreted: Any) -> None:
    graph = builder()
    x = graph.input("x", ("a", "b", 6))
    result = graph.call("select.int", x, 1, -1, shape=("a", 6))
    task = graph.task(result, symbols={"a": 3, "b": 50})
    for sizes in ({"a": 3, "b": 50}, {"a": 2, "b": 1}):
        values = layouts._values((sizes["a"], sizes["b"], 6), "float32")
        (found,) = interpreted(FAMILY, task, {"x": values}, sizes)
        np.testing.assert_array_equal(found, values[:, -1])


@pytest.mark.parametrize("dim", range(3))
def test_tensors_joined_along_any_dimension(dim: int, builder: Any, interpreted: Any) -> None:
    dtype = DTYPES[dim]
    graph = builder()
    shapes: list[list[Any]] = [["a", "b", "c"] for _ in range(3)]
    for number, length in enumerate((4, 1, 7)):
        shapes[number][dim] = length
    refs = tuple(graph.input(f"x{i}", shape, dtype) for i, shape in enumerate(shapes))
    shape = ["a", "b", "c"]
    shape[dim] = 12  # type: ignore[call-overload]
    known = {name: size for name, size in {"a": 3, "b": 40, "c": 37}.items() if name in shape}
    task = graph.task(graph.call("cat.default", refs, dim, shape=shape, dtype=dtype), symbols=known)
    for sizes in (known, dict.fromkeys(known, 1)):
        parts = [layouts._values([sizes.get(n, n) for n in each], dtype, i) for i, each in enumerate(shapes)]
        (result,) = interpreted(FAMILY, task, {f"x{i}": part for i, part in enumerate(parts)}, sizes)
        np.testing.assert_array_equal(result, np.concatenate(parts, dim))


@pytest.mark.parametrize(
    ("pads", "dtype", "fill"),
    [
        ((1, 2, 0, 3), "float32", -np.inf),
        ((1, 1, 1, 1), "bfloat16", 3),
        ((0, 0, 2, 1, 1, 1), "int8", -5),
        ((-1, 2), "int64", 3),
        ((3, -2, -1, -1), "float16", 0.5),
    ],
)
def test_padding_and_cropping(pads: Any, dtype: str, fill: Any, builder: Any, interpreted: Any) -> None:
    names: list[Any] = ["a", "b", "c"]
    width = [(0, 0)] * (3 - len(pads) // 2) + [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    shape = [n if sum(w) == 0 else f"{n} + {sum(w)}" for n, w in zip(names, width, strict=True)]
    graph = builder()
    x = graph.input("x", names, dtype)
    task = graph.task(
        graph.call("constant_pad_nd.default", x, pads, fill, shape=shape, dtype=dtype),
        symbols={"a": 5, "b": 30, "c": 50},
    )
    for sizes in ((5, 30, 50), (4, 4, 4)):
        values = layouts._values(sizes, dtype)
        kept = values[
            tuple(slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(width, sizes, strict=True))
        ]
        expected = np.pad(kept, [(max(lo, 0), max(hi, 0)) for lo, hi in width], constant_values=fill)
        (result,) = interpreted(FAMILY, task, {"x": values}, dict(zip("abc", sizes, strict=True)))
        np.testing.assert_array_equal(result, expected)


def _check_chain(builder: Any, interpreted: Any, gpu: Any, data: Any) -> None:
    """Chains that one kernel computes."""

    def run(task: Any, inputs: Any) -> Any:
        try:
            FAMILY.check(task, gpu)
        except PlanError:
            assume(False)
        return interpreted(FAMILY, task, inputs)

    layouts._check_chain(builder, run, data)


test_chains_of_views, test_many_chains_of_views = drawn(
    _check_chain, 12, 60, derandomize=True, data=st.data()
)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for dtype in DTYPES:
        compiles(FAMILY, _permuted(builder, dtype, (2, 0, 1)))
