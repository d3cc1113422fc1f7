"""Products of which a triangle is kept: tiles without kept elements are not computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import estimate_us, initial, moves, write
from tests.tables import few

SIZES = [(1, 1, 1), (40, 40, 9), (300, 300, 65), (33, 700, 20), (700, 33, 20)]


def triangle(builder: Any, op: str, diagonal: int, size: int = 4096, dtype: str = "float32") -> KernelTask:
    graph = builder()
    x, y = graph.input("x", ("m", "k"), dtype), graph.input("y", ("k", "n"), dtype)
    product = graph.call("mm.default", x, y, shape=("m", "n"), dtype=dtype)
    kept = graph.call(f"{op}.default", product, diagonal, shape=("m", "n"), dtype=dtype)
    task: KernelTask = graph.task(kept, symbols={"m": size, "n": size, "k": size})
    return task


KEPT = [("triu", 0), ("triu", -130), ("tril", 5), ("tril", -130)]


@few(("op", "diagonal"), KEPT, keep=(1,))
def test_kernels_pass_the_audit(op: str, diagonal: int, builder: Any, chip: Any) -> None:
    task = triangle(builder, op, diagonal)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


@pytest.mark.parametrize(("op", "diagonal"), KEPT)
def test_what_is_dropped_is_zero(op: str, diagonal: int, builder: Any, on_twin: Any) -> None:
    task = triangle(builder, op, diagonal)
    for m, n, k in SIZES:
        rng = np.random.default_rng(m)
        x, y = (rng.integers(-8, 9, size=shape).astype("f4") / 4 for shape in ((m, k), (k, n)))
        (result,) = on_twin(task, {"x": x, "y": y}, sizes={"m": m, "n": n, "k": k})
        np.testing.assert_allclose(result, getattr(np, op)(x @ y, diagonal), rtol=1e-4, atol=1e-4)


def test_a_triangle_costs_about_half_in_every_schedule(builder: Any, on_twin: Any, chip: Any) -> None:
    task = triangle(builder, "tril", 0, dtype="float16")
    strategy = initial(task, chip)
    whole = triangle(builder, "tril", 5000, dtype="float16")
    assert estimate_us(task, strategy, chip) < 0.6 * estimate_us(whole, strategy, chip)
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-4, 5, size=shape).astype("f2") / 4 for shape in ((150, 70), (70, 280)))
    for move in moves(task, strategy, chip)[::3]:
        (result,) = on_twin(
            task, {"x": x, "y": y}, strategy=move.strategy, sizes={"m": 150, "n": 280, "k": 70}
        )
        np.testing.assert_allclose(result, np.tril(x.astype("f4") @ y.astype("f4")), rtol=1e-2, atol=1e-2)
