"""Products in half types of operands whose rows begin anywhere in memory read copies whose rows do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.ops import SPACE_TO_DEPTH
from evokernel_core.compiler.problems.products import read_product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import legalised

SMALL = ((1, 1, 1), (17, 300, 70), (130, 33, 257), (20, 256, 512))


def product(builder: Any, sizes: tuple[int, int, int], turned: tuple[bool, bool], dtype: str) -> KernelTask:
    """x @ y of m x k by k x n, whose operands may be transposed in memory."""
    graph = builder()
    operands = []
    for name, shape, is_turned in zip("xy", (("m", "k"), ("k", "n")), turned, strict=True):
        ref = graph.input(name, shape[::-1] if is_turned else shape, dtype)
        if is_turned:
            ref = graph.call("permute.default", ref, (1, 0), shape=shape, dtype=dtype)
        operands.append(ref)
    made = graph.call("mm.default", *operands, shape=("m", "n"), dtype=dtype)
    task: KernelTask = graph.task(made, symbols=dict(zip("mkn", sizes, strict=True)))
    return task


def copies(task: KernelTask) -> int:
    return sum(node.op == SPACE_TO_DEPTH.name for node in legalised(task, load_chip()).graph.nodes)


@pytest.mark.parametrize("turned", [(False, False), (True, True)])
def test_copies_are_right_for_every_size(turned: tuple[bool, bool], builder: Any, on_twin: Any) -> None:
    task = product(builder, (5001, 4003, 6005), turned, "float16")
    assert copies(task) == 2
    for m, k, n in SMALL:
        rng = np.random.default_rng(k)
        x, y = rng.integers(-3, 4, size=(m, k)), rng.integers(-3, 4, size=(k, n))
        inputs = {
            name: np.ascontiguousarray(value.T if is_turned else value).astype("float16")
            for name, value, is_turned in zip("xy", (x, y), turned, strict=True)
        }
        (result,) = on_twin(task, inputs, sizes={"m": m, "k": k, "n": n})
        np.testing.assert_array_equal(result, (x @ y).astype("float16"))


@pytest.mark.parametrize(
    ("sizes", "dtype", "count"),
    [
        ((5001, 4003, 6005), "bfloat16", 2),
        ((4096, 4096, 4096), "float16", 0),  # begin on requests
        ((4096, 4096, 6005), "float16", 1),  # rows of y alone do not
        ((16, 4003, 6005), "float16", 0),  # memory is slower than requests
        ((5001, 4003, 6005), "float32", 0),  # the products are
        ((4096, 4096, 70001), "float16", 0),  # rows too far apart for one copy
    ],
)
def test_what_pays_is_copied(sizes: tuple[int, int, int], dtype: str, count: int, builder: Any) -> None:
    assert copies(product(builder, sizes, (False, False), dtype)) == count


def sliced(builder: Any, start: int, step: int) -> KernelTask:
    graph = builder()
    x, y = graph.input("x", ("m", "w"), "float16"), graph.input("y", (24, 20), "float16")
    front = graph.call("slice.Tensor", x, 1, start, start + 24 * step, step, shape=("m", 24), dtype="float16")
    made = graph.call("mm.default", front, y, shape=("m", 20), dtype="float16")
    task: KernelTask = graph.task(made, symbols={"m": 9, "w": 60})
    return task


def test_a_front_is_read_where_it_lies(builder: Any, on_twin: Any) -> None:
    task = sliced(builder, 0, 1)
    assert read_product(task).a.pitch.evaluate({"w": 60}) == 60
    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, size=(37, 61)), rng.integers(-3, 4, size=(24, 20))
    (result,) = on_twin(task, {"x": x.astype("float16"), "y": y.astype("float16")}, sizes={"m": 37, "w": 61})
    np.testing.assert_array_equal(result, (x[:, :24] @ y).astype("float16"))


@pytest.mark.parametrize(("start", "step"), [(1, 1), (0, 2)])
def test_other_slices_are_copied(start: int, step: int, builder: Any) -> None:
    with pytest.raises(PlanError, match="front"):
        read_product(sliced(builder, start, step))
