"""Products in float64 and in float32 whose operands come from shorter types, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import DTypeArg
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.author import check, initial, legalised
from tests.tables import few

M, K, N = 48, 96, 80
PAIRS = [
    # of both operands, of the product, in which the cube multiplies
    ("int8", "int8", "float64", "float16"),
    ("float16", "float16", "float32", "float16"),
    ("bfloat16", "int8", "float32", "bfloat16"),
    ("uint8", "float16", "float64", "float16"),
    ("float16", "bfloat16", "float32", "float32"),
    ("int8", "int16", "float32", "float32"),
    ("float32", "float16", "float64", "float32"),
]


def _operand(b: Any, name: str, shape: tuple[int, int], dtype: str, wide: str) -> Any:
    x = b.input(name, shape, dtype)
    return x if dtype == wide else b.call("_to_copy.default", x, shape=shape, dtype=wide)


def _values(shape: tuple[int, int], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if "int" in dtype:
        ends = np.iinfo(dtype)
        return rng.integers(max(ends.min, -300), min(ends.max, 300) + 1, shape).astype(dtype)
    return rng.integers(-64, 65, shape).astype("f2" if dtype == "float16" else "f4") / 32


@few("left, right, wide, multiplied", PAIRS, keep=(0, 2, 4))
def test_products_of_converted_operands(
    left: str, right: str, wide: str, multiplied: str, builder: Any, on_twin: Any, chip: Any
) -> None:
    b = builder()
    x = _operand(b, "x", (M, K), left, wide)
    y = _operand(b, "y", (N, K), right, wide)
    turned = b.call("t.default", y, shape=(K, N), dtype=wide)
    product = b.call("mm.default", x, turned, shape=(M, N), dtype=wide)
    scaled = b.call("mul.Tensor", product, 0.125, shape=(M, N), dtype=wide)
    result = b.call("_to_copy.default", scaled, shape=(M, N), dtype="float16")
    task = b.task(result)
    graph = legalised(task, chip).graph
    assert not any(spec.dtype == "float64" for node in graph.nodes for spec in node.outputs)
    (node,) = (node for node in graph.nodes if node.op == "aten.mm.default")
    assert {graph.spec(ref).dtype for ref in node.operands()} == {multiplied}
    given = {"x": _values((M, K), left, 1), "y": _values((N, K), right, 2)}
    wanted = given["x"].astype("f8") @ given["y"].astype("f8").T / 8
    (found,) = on_twin(task, given, initial(task, chip))
    reached = np.isfinite(wanted.astype("f2"))
    np.testing.assert_allclose(found[reached], wanted[reached], rtol=1e-3, atol=1e-2)


def _result(b: Any, x: Any) -> Any:
    return x


def _compared(b: Any, x: Any) -> Any:
    return b.call("gt.Scalar", x, 0.5, shape=(8,), dtype="bool")


def _counted(b: Any, x: Any) -> Any:
    return b.call("_to_copy.default", x, shape=(8,), dtype="int32")


@pytest.mark.parametrize("made", (_result, _compared, _counted))
def test_float64_stays_where_its_last_bit_shows(made: Any, builder: Any, chip: Any) -> None:
    b = builder()
    x = b.call("_to_copy.default", b.input("x", (8,)), shape=(8,), dtype="float64")
    with pytest.raises(PlanError, match="float64"):
        check(b.task(made(b, b.call("sqrt.default", x, shape=(8,), dtype="float64"))), chip)


def test_a_type_among_the_arguments_is_narrowed_too(builder: Any, chip: Any) -> None:
    b, double = builder(), [TensorSpec((8,), "float64")]
    x = b.input("x", (8, 40))
    total = b.calls("sum.dim_IntList", x, (1,), False, outputs=double, dtype=DTypeArg("float64"))
    nodes = legalised(b.task(b.call("_to_copy.default", total, shape=(8,))), chip).graph.nodes
    assert {spec.dtype for node in nodes for spec in node.outputs} == {"float32"}
    assert DTypeArg("float64") not in [arg for node in nodes for _, arg in node.kwargs]
