"""Products with few results and a long k are cut along k."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.ops import SPLIT_K_MM
from evokernel_core.compiler.rewrites.views import rewrite_permutation
from evokernel_core.compiler.rewrites.writer import rewritten
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.author import initial, legalised
from evokernel_core.targets.ascendc.rewrites.matmul import split_count


def long_product(builder: Any, dtype: str) -> KernelTask:
    """Sizes in the user's file for which k is cut; kernels are right for every size."""
    graph = builder()
    x, y = graph.input("x", ("m", "k"), dtype), graph.input("y", ("n", "k"), dtype)
    turned = graph.call("permute.default", y, (1, 0), shape=("k", "n"), dtype=dtype)
    product = graph.call("mm.default", x, turned, shape=("m", "n"), dtype=dtype)
    task: KernelTask = graph.task(product, symbols={"m": 64, "n": 32, "k": 400_000})
    return task


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_sums_of_parts(dtype: str, builder: Any, on_twin: Any, chip: Any) -> None:
    task = long_product(builder, dtype)
    (split,) = (node for node in legalised(task, load_chip()).graph.nodes if node.op == SPLIT_K_MM.name)
    assert split.outputs[0].shape == (24, "m", "n")
    assert split.outputs[0].dtype == "float32"
    assert initial(task, chip).notes[0].startswith("2 runs of 2 kernels")
    for m, n, k in ((1, 1, 1), (17, 300, 70), (130, 33, 5000)):  # parts without depth, whole and short ones
        rng = np.random.default_rng(k)
        x, y = rng.integers(-3, 4, size=(m, k)), rng.integers(-3, 4, size=(n, k))
        inputs = {"x": x.astype(dtype), "y": y.astype(dtype)}
        (result,) = on_twin(task, inputs, sizes={"m": m, "n": n, "k": k})
        np.testing.assert_allclose(result, x @ y.T, rtol=1e-3)


@pytest.mark.parametrize(
    ("m", "n", "k", "parts"),
    [
        (4096, 4096, 4096, 1),  # tiles enough
        (256, 256, 524_288, 12),
        (2048, 1, 1_048_576, 3),  # sixteen tiles of one column: two whole waves of 24
        (1024, 1, 1_048_576, 3),
        (64, 64, 256, 1),  # nothing to cut
        (128, 256, 4096, 1),  # smaller tiles keep all cores busy
        (2048, 8192, 8192, 1),  # a last wave with few tiles, but a large result to add
    ],
)
def test_as_many_parts_as_pay(m: int, n: int, k: int, parts: int) -> None:
    assert split_count(m, n, k, 4, load_chip()) == parts


def test_permutations_of_single_places_are_views(builder: Any) -> None:
    graph = builder()
    x = graph.input("x", ("n", 1, 4, 1))
    moved = graph.call("permute.default", x, (1, 0, 3, 2), shape=(1, "n", 1, 4))
    turned = graph.call("permute.default", moved, (0, 3, 2, 1), shape=(1, 4, 1, "n"))
    task = graph.task(turned, symbols={"n": 3})
    found = rewritten(task, {"aten.permute.default": rewrite_permutation}, load_chip()).graph
    assert [node.op for node in found.nodes] == ["aten.view.default", "aten.permute.default"]
    assert found.nodes[0].outputs[0].shape == (1, "n", 1, 4)
