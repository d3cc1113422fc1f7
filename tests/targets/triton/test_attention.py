"""Family attention in Triton: scaled dot products with an online softmax against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.aten import ATTENTION
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.hardware.gpu.gpu_files import gpu_names
from evokernel_core.targets import author_for
from evokernel_core.targets.triton.kernels.attention.attention_family import FAMILY
from evokernel_core.targets.triton.kernels.attention.attention_schedule import widest
from tests.targets.ascendc.test_attention import MASKS, SIZES, _draw, _matches, attention, task_of

FEW_SIZES = [(1, 1), (33, 70)]
DTYPES = ("float32", "float16", "bfloat16")


def _compare(dtype: str, causal: bool, sizes: Any, builder: Any, interpreted: Any) -> None:
    task = task_of(builder, dtype, is_causal=causal)
    for queries, keys in sizes:
        inputs = _draw(task, queries, keys, queries)
        (result,) = interpreted(FAMILY, task, inputs, {"q": queries, "k": keys})
        _matches(result, attention(*inputs.values(), causal=causal), "float16" if dtype[0] == "b" else dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_few_sizes(dtype: str, causal: bool, builder: Any, interpreted: Any) -> None:
    _compare(dtype, causal, FEW_SIZES, builder, interpreted)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_many_sizes(dtype: str, causal: bool, builder: Any, interpreted: Any) -> None:
    _compare(dtype, causal, SIZES, builder, interpreted)


@pytest.mark.parametrize("shape", MASKS)
def test_masks_that_broadcast(shape: Any, builder: Any, interpreted: Any) -> None:
    task = task_of(builder, mask=shape, is_causal=len(shape) == 2)
    inputs = _draw(task, 20, 40, 1)
    inputs["mask"][..., 5:9] = -np.inf
    (result,) = interpreted(FAMILY, task, inputs, {"q": 20, "k": 40})
    expected = attention(
        inputs["query"], inputs["key"], inputs["value"], inputs["mask"], causal=len(shape) == 2
    )
    _matches(result, expected, "float32")


def test_grouped_heads_and_a_scale(builder: Any, interpreted: Any) -> None:
    task = task_of(builder, heads=6, shared=2, scale=0.3, depth=32, width=16)
    inputs = _draw(task, 20, 40, 2)
    (result,) = interpreted(FAMILY, task, inputs, {"q": 20, "k": 40})
    _matches(result, attention(*inputs.values(), scale=0.3), "float32")


def test_a_row_that_sees_nothing_is_zero(builder: Any, interpreted: Any) -> None:
    task = task_of(builder, mask=("q", "k"))
    inputs = _draw(task, 4, 20, 3)
    inputs["mask"][2] = -np.inf
    (result,) = interpreted(FAMILY, task, inputs, {"q": 4, "k": 20})
    assert (result[:, :, 2] == 0).all()


def test_moves_give_the_same_result(builder: Any, interpreted: Any, gpu: Any) -> None:
    task = task_of(builder, "float16", is_causal=True)
    start = FAMILY.initial(task, gpu)
    moves = FAMILY.moves(task, start, gpu)
    assert len(moves) > 4
    inputs = _draw(task, 70, 140, 0)
    for move in moves[::2]:
        (result,) = interpreted(FAMILY, task, inputs, {"q": 70, "k": 140}, move.strategy)
        _matches(result, attention(*inputs.values(), causal=True), "float16")


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for dtype in DTYPES:
        task = task_of(builder, dtype, is_causal=True, mask=("q", "k"), depth=64, width=128)
        start = FAMILY.initial(task, gpu)
        for strategy in (start, *(move.strategy for move in FAMILY.moves(task, start, gpu)[::3])):
            compiles(FAMILY, task, strategy)


@pytest.mark.parametrize("device", [*gpu_names(), "ascend910b1"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_no_tile_holds_are_products(device: str, dtype: str, builder: Any) -> None:
    author = author_for(device, "triton")
    for width in (256, 2048):
        for depth in (64, width):
            program = author.plan(task_of(builder, dtype, depth=depth, width=width, is_causal=True)).program
            ops = [node.op for part, _ in program.kinds for node in part.graph.nodes]
            fits = max(depth, width) <= widest(dtype, gpu_of(author.device))
            assert (ATTENTION in ops) == fits
            assert ops.count("aten.bmm.default") == (0 if fits else 2)
