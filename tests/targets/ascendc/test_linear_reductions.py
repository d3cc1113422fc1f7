"""Sums, means and average pools of products and convolutions, computed in front of these."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from evokernel_core.compiler.rewrites.linear_reductions import linear_reductions
from evokernel_core.domain.graph import Arg, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import evaluate_dim
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.package.reference import statements

torch = pytest.importorskip("torch")
SYMBOLS = {"n": 2**16, "d": 100, "h": 120, "w": 128}
"""Large enough for any of the rewrites to be less work."""


LARGE = {"n": 64, "h": 512, "w": 512}


class Case:
    """A convolution with random settings, and what is done to its result."""

    def __init__(
        self, builder: Any, seed: int, transposed: bool, rank: int, dilations: tuple[int, ...] = (1, 1, 2)
    ) -> None:
        draw = random.Random(seed)
        self.graph, self.rank = builder(), rank
        self.sides = ("d", "h", "w")[-rank:]
        self.symbols = {name: SYMBOLS[name] for name in ("n", *self.sides)}
        taps, steps, gaps = (
            [draw.choice(items) for _ in range(rank)] for items in ((1, 2, 3, 4), (1, 1, 2), dilations)
        )
        pads = [draw.randrange(0, (tap + 1) // 2 + 1) for tap in taps]
        more = [draw.randrange(step) if transposed else 0 for step in steps]
        channels, results = 4, 5
        kernel = (channels, results) if transposed else (results, channels)
        x = self.graph.input("x", ("n", channels, *self.sides))
        weight = self.graph.input("weight", (*kernel, *taps), parameter=True)
        bias = self.graph.input("bias", (results,), parameter=True) if draw.random() < 0.7 else None
        made = [
            f"({size} - 1) * {step} - {2 * pad} + {gap * (tap - 1) + 1 + extra}"
            if transposed
            else f"({size} + {2 * pad} - {gap * (tap - 1) + 1}) // {step} + 1"
            for size, step, pad, gap, tap, extra in zip(
                self.sides, steps, pads, gaps, taps, more, strict=True
            )
        ]
        self.shape = ("n", results, *made)
        settings = map(tuple, (steps, pads, gaps))
        args = (x, weight, bias, *settings, transposed, tuple(more), 1)
        self.value = self.graph.call("convolution.default", *args, shape=self.shape)

    def normalised(self) -> None:
        """Shifted and scaled by what is the same at every place, as a batch norm in eval mode does."""
        ones = (1,) * self.rank
        names = [self.graph.input(name, (5, *ones), parameter=True) for name in ("mean", "scale", "shift")]
        for op, operand in zip(("sub", "mul", "add", "div", "add"), (*names, 2.0, 0.5), strict=True):
            self.value = self.graph.call(f"{op}.Tensor", self.value, operand, shape=self.shape)

    def reduced(self, op: str, dims: Sequence[int], keep: bool) -> KernelTask:
        rank = len(self.shape)
        gone = {dim % rank for dim in dims}
        shape = [1 if dim in gone else size for dim, size in enumerate(self.shape) if keep or dim not in gone]
        task: KernelTask = self.graph.task(
            self.graph.call(op, self.value, tuple(dims), keep, shape=tuple(shape)), symbols=self.symbols
        )
        return task

    def pooled(self, window: Sequence[int], step: Sequence[int]) -> KernelTask:
        sizes = zip(self.shape[2:], window, step, strict=True)
        shape = (*self.shape[:2], *(f"(({size}) - {taps}) // {apart} + 1" for size, taps, apart in sizes))
        op = f"avg_pool{self.rank}d.default"
        task: KernelTask = self.graph.task(
            self.graph.call(op, self.value, tuple(window), tuple(step), shape=shape), symbols=self.symbols
        )
        return task


def computed(task: KernelTask, inputs: Mapping[str, Any], dtype: Any) -> Any:
    """A task's result, by PyTorch's operations."""
    lines = "\n    ".join(statements(task)).replace("torch.ops.evokernel.size.default", "as_number")
    names = ", ".join(item.name for item in task.graph.inputs)
    scope: dict[str, Any] = {
        "torch": torch,
        "as_number": lambda value: torch.tensor(float(value), dtype=dtype),
    }
    exec(f"def reference({names}):\n    {lines}", scope)
    tensors = {name: torch.from_numpy(value).to(dtype) for name, value in inputs.items()}
    return scope["reference"](**tensors).double().numpy()


def inputs_of(task: KernelTask, seed: int, sizes: Mapping[str, int]) -> dict[str, Any]:
    draw = np.random.default_rng(seed)
    shapes = {item.name: [evaluate_dim(dim, sizes) for dim in item.spec.shape] for item in task.graph.inputs}
    return {name: draw.uniform(-1, 2, shape).astype(np.float32) for name, shape in shapes.items()}


def check(task: KernelTask, seed: int, sizes: Mapping[str, int]) -> bool:
    """Whether the task was rewritten: then the result is the same in real arithmetic, and in float32 no
    further from it than a few times what PyTorch's is."""
    found = linear_reductions(task, load_chip())
    assert found.graph.inputs == task.graph.inputs
    assert found.graph.output_specs() == task.graph.output_specs()
    if found.graph.nodes == task.graph.nodes:
        assert found.graph.outputs == task.graph.outputs
        return False
    inputs = inputs_of(task, seed, sizes)
    right = computed(task, inputs, torch.float64)
    exact = computed(found, inputs, torch.float64)
    assert exact.shape == right.shape
    assert np.allclose(exact, right, rtol=1e-10, atol=1e-10 * np.abs(right).max())
    ours, theirs = (np.abs(computed(item, inputs, torch.float32) - right).max() for item in (found, task))
    assert ours <= 4 * theirs + 1e-6 * np.abs(right).max()
    return True


SIZES = ({"n": 2, "d": 14, "h": 12, "w": 15}, {"n": 1, "d": 13, "h": 12, "w": 12})
SEEDS = range(16)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_sums_of_convolutions(transposed: bool, rank: int, builder: Any) -> None:
    changed = 0
    for seed in SEEDS:
        draw = random.Random(seed)
        case = Case(builder, seed, transposed, rank)
        if draw.random() < 0.5:
            case.normalised()
        dims = draw.sample(range(2, 2 + rank), draw.randrange(1, rank + 1))
        dims = [*dims, *draw.sample((0, 1), draw.randrange(2))]
        task = case.reduced(draw.choice(("mean.dim", "sum.dim_IntList")), dims, draw.random() < 0.5)
        changed += check(task, seed, SIZES[seed % 2])
    assert changed > (len(SEEDS) // 4 if transposed else 0)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_average_pools_of_convolutions(transposed: bool, rank: int, builder: Any) -> None:
    changed = 0
    for seed in SEEDS:
        draw = random.Random(100 + seed)
        case = Case(builder, seed, transposed, rank, (1,))
        if draw.random() < 0.5:
            case.normalised()
        window = [draw.choice((1, 2, 2, 3)) for _ in range(rank)]
        step = [draw.choice((size, size, 2)) for size in window]
        changed += check(case.pooled(window, step), seed, SIZES[seed % 2])
    assert changed > len(SEEDS) // 6


def product(graph: Any, turned: bool) -> ValueRef:
    """[m, n] of x [m, k] and a weight that lies as [n, k] or [k, n], with a bias and scaled."""
    x = graph.input("x", ("m", "k"))
    weight = graph.input("weight", ("n", "k") if turned else ("k", "n"), parameter=True)
    if turned:
        weight = graph.call("t.default", weight, shape=("k", "n"))
    value = graph.call("mm.default", x, weight, shape=("m", "n"))
    value = graph.call("add.Tensor", value, graph.input("bias", ("n",), parameter=True), shape=("m", "n"))
    return graph.call("mul.Tensor", value, 0.25, shape=("m", "n"))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dims", [(1,), (0,), (0, 1)])
@pytest.mark.parametrize("op", ["mean.dim", "sum.dim_IntList"])
def test_sums_of_products(op: str, dims: tuple[int, ...], turned: bool, builder: Any) -> None:
    graph = builder()
    shape = tuple(1 if dim in dims else size for dim, size in enumerate(("m", "n")))
    value = graph.call(op, product(graph, turned), dims, True, shape=shape)
    task = graph.task(value, symbols={"m": 4096, "n": 4096, "k": 1024})
    assert check(task, 0, {"m": 5, "n": 7, "k": 9})
    assert all(node.op != "aten.mm.default" for node in linear_reductions(task, load_chip()).graph.nodes)


@pytest.mark.parametrize("turned", [False, True])
def test_average_pools_of_products(turned: bool, builder: Any) -> None:
    graph = builder()
    image = graph.call("unsqueeze.default", product(graph, turned), 1, shape=("m", 1, "n"))
    image = graph.call("unsqueeze.default", image, -2, shape=("m", 1, 1, "n"))
    value = graph.call("avg_pool2d.default", image, (1, 3), (1, 3), shape=("m", 1, 1, "n // 3"))
    task = graph.task(value, symbols={"m": 4096, "n": 4096, "k": 1024})
    assert check(task, 0, {"m": 5, "n": 11, "k": 9})
    (made,) = (
        node for node in linear_reductions(task, load_chip()).graph.nodes if node.op == "aten.mm.default"
    )
    assert made.outputs[0].shape == ("m", "n // 3")


def kept(task: KernelTask, device: Device | None = None) -> bool:
    ops = [node.op for node in task.graph.nodes]
    return ops == [node.op for node in linear_reductions(task, device or load_chip()).graph.nodes]


def image(graph: Any, dtype: str = "float32", groups: int = 1) -> tuple[ValueRef, tuple[Any, ...]]:
    x = graph.input("x", ("n", 8, "h", "w"), dtype)
    weight = graph.input("weight", (8, 8 // groups, 3, 3), dtype, parameter=True)
    shape = ("n", 8, "h", "w")
    settings: tuple[Arg, ...] = ((1, 1), (1, 1), (1, 1), False, (0, 0), groups)
    return graph.call("convolution.default", x, weight, None, *settings, shape=shape, dtype=dtype), shape


@pytest.mark.parametrize(
    "why", ["half", "groups", "activation", "read twice", "scaled along", "ceil", "padded"]
)
def test_what_is_left_as_it_is(why: str, builder: Any) -> None:
    """Weights of 16 bits would be rounded once more, an activation is not linear, a small result that
    something else reads is there anyway, and windows that lie partly outside average no results alone."""
    graph = builder()
    dtype = "float16" if why == "half" else "float32"
    value, shape = image(graph, dtype, 2 if why == "groups" else 1)
    if why == "activation":
        value = graph.call("relu.default", value, shape=shape)
    if why == "scaled along":
        value = graph.call("mul.Tensor", value, graph.input("row", ("w",)), shape=shape)
    results = [value] if why == "read twice" else []
    if why in ("ceil", "padded"):
        extra = ((0, 0), True) if why == "ceil" else ((1, 1), False)
        small = ("n", 8, "(h + 1) // 2", "(w + 1) // 2")
        results.append(graph.call("avg_pool2d.default", value, (3, 3), (2, 2), *extra, shape=small))
    else:
        results.append(graph.call("mean.dim", value, (2, 3), shape=("n", 8), dtype=dtype))
    task = graph.task(*results, symbols={"n": 4, "h": 64, "w": 64} if why == "read twice" else LARGE)
    assert kept(task)


def test_a_large_result_that_a_norm_reads_is_not_read_again(builder: Any) -> None:
    """A batch norm in training mode takes the variance of a convolution; a pool behind it reads the input,
    but not where libraries may round the convolution's operands: both must be of one rounding."""
    graph = builder()
    value, shape = image(graph)
    variance = graph.call("var.correction", value, (0, 2, 3), shape=(1, 8, 1, 1), correction=0, keepdim=True)
    value = graph.call("mul.Tensor", value, variance, shape=shape)
    small = ("n", 8, "h // 4", "w // 4")
    value = graph.call("avg_pool2d.default", value, (4, 4), (4, 4), shape=small)
    task = graph.task(value, symbols={"n": 64, "h": 256, "w": 256})
    assert check(task, 0, {"n": 2, "h": 12, "w": 8})
    assert kept(task, load_gpu())


def test_small_results_are_left(builder: Any) -> None:
    """Launches take longer than they spare."""
    graph = builder()
    value, _ = image(graph)
    task = graph.task(
        graph.call("mean.dim", value, (2, 3), shape=("n", 8)), symbols={"n": 1, "h": 16, "w": 16}
    )
    assert kept(task)


def test_a_dimension_that_may_be_too_short_is_left(builder: Any) -> None:
    """A tap that misses an element in front and one behind needs two, which a size of one has not."""
    graph = builder()
    x = graph.input("x", ("n", 4, "h", 64))
    weight = graph.input("weight", (8, 4, 1, 1), parameter=True)
    shape = ("n", 8, "h - 2", 64)
    value = graph.call(
        "convolution.default", x, weight, None, (1, 1), (1, 0), (1, 1), True, (0, 0), 1, shape=shape
    )
    task = graph.task(graph.call("mean.dim", value, (2,), shape=("n", 8, 64)), symbols={"n": 64, "h": 4096})
    assert kept(task)


def test_on_the_twin(builder: Any, on_twin: Any) -> None:
    """The mean of a transposed convolution and the pool of another, kernels and all."""
    graph = builder()
    x = graph.input("x", ("n", 4, "h", "w"))
    weight = graph.input("weight", (4, 6, 3, 3), parameter=True)
    bias = graph.input("bias", (6,), parameter=True)
    shape = ("n", 6, "h * 2", "w * 2")
    settings = ((2, 2), (1, 1), (1, 1), True, (1, 1), 1)
    value = graph.call("convolution.default", x, weight, bias, *settings, shape=shape)
    value = graph.call("mul.Tensor", value, 0.5, shape=shape)
    mean = graph.call("mean.dim", value, (2, 3), True, shape=("n", 6, 1, 1))
    task = graph.task(mean, symbols={"n": 64, "h": 256, "w": 256})
    assert not kept(task)
    sizes = {"n": 3, "h": 9, "w": 6}
    inputs = inputs_of(task, 1, sizes)
    (found,) = on_twin(task, inputs, sizes=sizes)
    assert np.allclose(found, computed(task, inputs, torch.float64), rtol=1e-4, atol=1e-5)
