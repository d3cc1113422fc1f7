"""Products of the elements of a dimension, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, write
from tests.tables import few

SHAPE = ("b", "r", "d")
SIZES = [(3, 21, 130), (1, 1, 1), (2, 50, 7), (1, 9, 3000)]


def _values(seed: int, shape: tuple[int, ...]) -> Any:
    """Numbers of either sign whose products neither vanish nor grow without bound."""
    rng = np.random.default_rng(seed)
    return (rng.choice([-1.0, 1.0], shape) * rng.uniform(0.8, 1.25, shape)).astype("f4")


WAYS = [(dim, keep) for dim in (0, 1, -1) for keep in (False, True)]
"""Along which dimension, and whether that stays."""


def _along(builder: Any, dim: int, keep: bool) -> KernelTask:
    graph = builder()
    x = graph.input("x", SHAPE)
    place = dim % 3
    kept = tuple(1 if i == place else n for i, n in enumerate(SHAPE) if keep or i != place)
    result = graph.call("prod.dim_int", x, dim, keep, shape=kept)
    task: KernelTask = graph.task(result, symbols={"b": 3, "r": 21, "d": 130})
    return task


@few(("dim", "keep"), WAYS, keep=(1, 4))
def test_kernels_pass_the_audit(dim: int, keep: bool, builder: Any, chip: Any) -> None:
    task = _along(builder, dim, keep)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


@few(("dim", "keep"), WAYS, keep=(0, 3, 4, 5))
def test_products_along_a_dimension_at_many_sizes(dim: int, keep: bool, builder: Any, on_twin: Any) -> None:
    task, place = _along(builder, dim, keep), dim % 3
    for seed, sizes in enumerate(SIZES):
        values = _values(seed, sizes)
        if place == 2:
            values = values[..., :64] if sizes[2] > 64 else values
        b, r, d = values.shape
        (found,) = on_twin(task, {"x": values}, sizes={"b": b, "r": r, "d": d})
        np.testing.assert_allclose(found, values.astype("f8").prod(dim, keepdims=keep), rtol=1e-4)


def test_the_product_of_everything(builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 3))
    task = graph.task(graph.call("prod.default", x, shape=()), symbols={"n": 30})
    for n in (30, 1, 77):
        values = _values(n, (n, 3))
        (found,) = on_twin(task, {"x": values}, sizes={"n": n})
        np.testing.assert_allclose(found, values.astype("f8").prod(), rtol=1e-4)


@pytest.mark.parametrize("given", ["float16", "float32"])
def test_a_product_in_another_type_between_other_work(given: str, builder: Any, on_twin: Any) -> None:
    graph = builder()
    x = graph.input("x", (6, 40), given)
    shifted = graph.call("abs.default", x, shape=(6, 40), dtype=given)
    product = graph.call("prod.dim_int", shifted, 0, shape=(40,), dtype="float32")
    task = graph.task(graph.call("mul.Tensor", product, 2.0, shape=(40,)))
    values = _values(1, (6, 40)).astype(given)
    (found,) = on_twin(task, {"x": values})
    np.testing.assert_allclose(found, np.abs(values.astype("f8")).prod(0) * 2, rtol=1e-3)
