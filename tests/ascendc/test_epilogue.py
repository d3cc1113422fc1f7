"""What follows a matrix product on vector cores, tile by tile: operands, types, shapes and overlap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from evokernel_core.ascendc.author import initial, write
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.verifier.gates.audit import audit

SIZES = [(1, 1, 5), (16, 16, 16), (40, 50, 70), (129, 257, 65), (1, 300, 20), (300, 9, 33), (70, 1030, 17)]


def matrix_graph(builder: Any, dtype: str) -> tuple[Any, Any]:
    """A graph with x @ y of m x k and k x n."""
    graph = builder()
    x, y = graph.input("x", ("m", "k"), dtype), graph.input("y", ("k", "n"), dtype)
    return graph, graph.call("mm.default", x, y, shape=("m", "n"), dtype=dtype)


def numbers(rng: Any, *shape: int) -> Any:
    """Quarters, which every type holds and whose products are exact."""
    return rng.integers(-8, 9, size=shape).astype("f4") / 4


def check(
    task: KernelTask, expected: Callable[..., Any], on_twin: Any, chip: Any, tolerance: float = 1e-4
) -> None:
    """One kernel, clean on the twin, right at many sizes."""
    strategy = initial(task, chip)
    assert strategy.family == "matmul"
    assert audit(task, write(task, strategy, chip)).status is GateStatus.PASSED
    for m, n, k in SIZES:
        sizes = {"m": m, "n": n, "k": k}
        rng = np.random.default_rng(m)
        inputs: Mapping[str, Any] = {
            item.name: numbers(rng, *item.spec.sizes(sizes)) for item in task.graph.inputs
        }
        results = on_twin(task, inputs, sizes=sizes)
        wanted = expected(**{name: value.astype("f8") for name, value in inputs.items()})
        for result, number in zip(results, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(result, "f8"), number, rtol=tolerance, atol=tolerance * k)


SHAPES: Mapping[str, tuple[Any, ...]] = {
    "columns": ("n",), "rows": ("m", 1), "full": ("m", "n"), "single": (1,), "one row": (1, "n"),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "operand"), [
    ("float32", "columns"), ("float32", "rows"), ("float32", "full"), ("float32", "single"),
    ("float16", "columns"), ("float16", "full"), ("bfloat16", "rows"), ("bfloat16", "one row"),
])  # fmt: skip
def test_operands_of_every_shape(dtype: str, operand: str, builder: Any, on_twin: Any, chip: Any) -> None:
    graph, product = matrix_graph(builder, dtype)
    z = graph.input("z", SHAPES[operand], dtype)
    total = graph.call("add.Tensor", product, z, shape=("m", "n"), dtype=dtype)
    result = graph.call("relu.default", total, shape=("m", "n"), dtype=dtype)
    task = graph.task(result, symbols={"m": 40, "n": 50, "k": 70})
    tolerance = 1e-4 if dtype == "float32" else 1e-2
    check(task, lambda x, y, z: (np.maximum(x @ y + z, 0),), on_twin, chip, tolerance)
