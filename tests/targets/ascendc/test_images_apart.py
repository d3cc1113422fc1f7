"""Instance norms, which PyTorch computes as norms of one image with the channels of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.fusion.program import plan_program
from evokernel_core.compiler.rewrites.images_apart import images_apart
from evokernel_core.domain.graph import SymbolicInt, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.author import legalised
from evokernel_core.targets.ascendc.fusion.micro_batches import batch_of
from evokernel_core.targets.ascendc.target import ASCENDC

EPSILON = 1e-5


def instance_norm(builder: Any, dims: tuple[int, ...] = (0, 2, 3), *, convolved: bool = False) -> KernelTask:
    """Of images [n, 6, h, w], as PyTorch says it; of a convolution's where ``convolved``."""
    graph = builder()
    sizes, one = ("n", 6, "h", "w"), (1, "6 * n", "h", "w")
    x = graph.input("x", sizes)
    if convolved:
        weight = graph.input("weight", (6, 6, 3, 3), parameter=True)
        settings = ((1, 1), (1, 1), (1, 1), False, (0, 0), 1)
        x = graph.call("convolution.default", x, weight, None, *settings, shape=sizes)
    joined = (1, SymbolicInt("6 * n"), SymbolicInt("h"), SymbolicInt("w"))
    image = graph.call("view.default", x, joined, shape=one)
    kept = tuple(1 if dim in dims else size for dim, size in enumerate(one))
    specs = [TensorSpec(kept, "float32")] * 2
    moments = graph.calls("var_mean.correction", image, dims, outputs=specs, correction=0, keepdim=True)
    scale = graph.call("add.Tensor", moments, EPSILON, shape=kept)
    scale = graph.call("rsqrt.default", scale, shape=kept)
    value = graph.call("sub.Tensor", image, ValueRef(moments.name, 1), shape=one)
    value = graph.call("mul.Tensor", value, scale, shape=one)
    apart = (SymbolicInt("n"), 6, SymbolicInt("h"), SymbolicInt("w"))
    value = graph.call("view.default", value, apart, shape=sizes)
    task: KernelTask = graph.task(value, symbols={"n": 64, "h": 256, "w": 256})
    return task


def test_the_norm_is_of_the_images(builder: Any, on_twin: Any) -> None:
    task = instance_norm(builder)
    found = images_apart(task, load_chip())
    assert [node.op for node in found.graph.nodes if "view" in node.op] == []
    assert found.graph.output_specs() == task.graph.output_specs()
    x = np.random.default_rng(0).normal(3, 2, (3, 6, 5, 9)).astype(np.float32)
    (made,) = on_twin(task, {"x": x}, sizes={"n": 3, "h": 5, "w": 9})
    apart = x.astype(np.float64) - x.mean((2, 3), keepdims=True, dtype=np.float64)
    right = apart / np.sqrt((apart**2).mean((2, 3), keepdims=True) + EPSILON)
    assert np.allclose(made, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dims", [(0, 1, 2, 3), (1, 2, 3)])
def test_a_norm_over_all_channels_is_left(dims: tuple[int, ...], builder: Any) -> None:
    """It is of all images together."""
    ops = [node.op for node in instance_norm(builder, dims).graph.nodes]
    assert [node.op for node in images_apart(instance_norm(builder, dims), load_chip()).graph.nodes] == ops


def test_images_can_come_in_chunks(builder: Any, chip: Chip) -> None:
    task = legalised(instance_norm(builder, convolved=True), chip)
    assert batch_of(task, plan_program(task, chip, ASCENDC), 2) is not None
