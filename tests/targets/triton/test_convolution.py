"""Family convolution in Triton against PyTorch, in every geometry, transposed or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from attrs import evolve, frozen

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.kernels.convolution.convolution_family import FAMILY
from tests.tables import few

TOLERANCE = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}


@frozen
class Case:
    """A convolution of images of ``sizes``, behind the batch and ``channels`` of each group."""

    sizes: tuple[int, ...]
    taps: tuple[int, ...]
    channels: int = 3
    outputs: int = 5
    groups: int = 1
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    more: tuple[int, ...] = ()
    transposed: bool = False
    bias: bool = True
    dtype: str = "float32"

    def numbers(self) -> list[tuple[int, ...]]:
        """Stride, padding and dilation along each dimension."""
        rank = len(self.taps)
        return [self.stride or (1,) * rank, self.padding or (0,) * rank, self.dilation or (1,) * rank]

    def results(self) -> tuple[int, ...]:
        """The sizes of a result."""
        return tuple(
            (size - 1) * s - 2 * p + d * (k - 1) + m + 1
            if self.transposed
            else (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d, m in zip(self.sizes, self.taps, *self.numbers(), self._more(), strict=True)
        )

    def _more(self) -> tuple[int, ...]:
        return self.more or (0,) * len(self.taps)

    def weight_shape(self) -> tuple[int, ...]:
        rows, columns = self.groups * self.outputs, self.channels
        if self.transposed:
            rows, columns = self.groups * self.channels, self.outputs
        return (rows, columns, *self.taps)

    def graph(self, builder: Any, batch: Any = "n") -> tuple[Any, Any]:
        """The graph of the convolution, and its value."""
        graph, more = builder(), self._more()
        x = graph.input("x", (batch, self.groups * self.channels, *self.sizes), self.dtype)
        weight = graph.input("weight", self.weight_shape(), self.dtype)
        bias = graph.input("bias", (self.groups * self.outputs,), self.dtype) if self.bias else None
        value = graph.call(
            "convolution.default", x, weight, bias, *self.numbers(), self.transposed, more, self.groups,
            shape=(batch, self.groups * self.outputs, *self.results()), dtype=self.dtype,
        )  # fmt: skip
        return graph, value

    def task(self, builder: Any) -> KernelTask:
        graph, value = self.graph(builder)
        task: KernelTask = graph.task(value, symbols={"n": 2})
        return task

    def expected(self, inputs: dict[str, Any]) -> Any:
        x, weight, *bias = (torch.from_numpy(value).double() for value in inputs.values())
        result = torch.ops.aten.convolution(
            x,
            weight,
            bias[0] if self.bias else None,
            *self.numbers(),
            self.transposed,
            self._more(),
            self.groups,
        )
        return result.numpy()

    def draw(self, batch: int) -> dict[str, Any]:
        rng = np.random.default_rng(batch)
        shapes = {"x": (batch, self.groups * self.channels, *self.sizes), "weight": self.weight_shape()}
        if self.bias:
            shapes["bias"] = (self.groups * self.outputs,)
        return {name: rng.integers(-8, 9, size=shape).astype("f4") / 8 for name, shape in shapes.items()}


CASES = [
    Case((20,), (3,), stride=(2,), padding=(1,)),
    Case((9, 11), (3, 3), padding=(1, 1)),
    Case((9, 11), (3, 2), channels=4, outputs=6, groups=2, stride=(2, 1), dilation=(1, 2), dtype="float16"),
    Case((6, 7), (1, 1), channels=20, outputs=33, bias=False),
    Case((4, 5, 6), (2, 3, 1), stride=(1, 2, 1), padding=(1, 0, 0)),
    Case((7, 9), (3, 3), stride=(2, 3), padding=(1, 0), more=(1, 0), transposed=True),
    Case((9,), (4,), dilation=(2,), padding=(1,), groups=3, channels=2, outputs=2, transposed=True),
    Case((4, 5, 3), (3, 2, 2), stride=(2, 1, 2), transposed=True, bias=False, dtype="float16"),
    Case((9, 11), (5, 5), padding=(2, 2), channels=17, dtype="bfloat16"),
    Case((12, 12), (4, 4), stride=(4, 4), channels=18, outputs=40),
    Case((3, 3), (3, 3), channels=40),
]


def _ways(task: KernelTask, gpu: Any) -> list[Strategy]:
    """The first schedule, with both orders of what is summed."""
    start = FAMILY.initial(task, gpu)
    return [evolve(start, settings={**dict(start.settings), "by_taps": way}) for way in (False, True)]


@few("case", CASES, keep=(0, 2, 5, 6, 8), ids=str)
def test_convolutions_are_pytorchs(case: Case, builder: Any, interpreted: Any, gpu: Any) -> None:
    task = case.task(builder)
    for number, strategy in enumerate(_ways(task, gpu)):
        inputs = case.draw(number + 1)
        (result,) = interpreted(FAMILY, task, inputs, {"n": number + 1}, strategy)
        expected = case.expected(inputs)
        scale = np.sqrt(case.channels * np.prod(case.taps))
        np.testing.assert_allclose(
            result / scale, expected / scale, rtol=TOLERANCE[case.dtype], atol=TOLERANCE[case.dtype]
        )


@pytest.mark.parametrize("number", [1, 6])
def test_what_follows(number: int, builder: Any, interpreted: Any, gpu: Any) -> None:
    case = CASES[number]
    graph, value = case.graph(builder)
    shape = ("n", case.groups * case.outputs, *case.results())
    ones = (1,) * len(case.taps)
    scale = graph.input("scale", (case.groups * case.outputs, *ones))
    other, single = graph.input("other", shape), graph.input("single", ("n", *(1,) * (len(shape) - 1)))
    for op, operand in (("mul.Tensor", scale), ("add.Tensor", other), ("mul.Tensor", single)):
        value = graph.call(op, value, operand, shape=shape)
    task = graph.task(graph.call("relu.default", value, shape=shape), symbols={"n": 2})
    for strategy in _ways(task, gpu):
        inputs = case.draw(2)
        expected = case.expected(inputs)
        rng = np.random.default_rng(0)
        more = {
            one.name: rng.normal(size=one.spec.sizes({"n": 2})).astype("f4") for one in task.graph.inputs[3:]
        }
        (result,) = interpreted(FAMILY, task, {**inputs, **more}, {"n": 2}, strategy)
        wanted = np.maximum((expected * more["scale"] + more["other"]) * more["single"], 0)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


def test_moves_give_the_same_result(builder: Any, interpreted: Any, gpu: Any) -> None:
    case = CASES[9]
    task = case.task(builder)
    start = FAMILY.initial(task, gpu)
    moves = FAMILY.moves(task, start, gpu)
    assert len(moves) > 4
    inputs = case.draw(3)
    for move in moves[::3]:
        (result,) = interpreted(FAMILY, task, inputs, {"n": 3}, move.strategy)
        np.testing.assert_allclose(result, case.expected(inputs), rtol=1e-4, atol=1e-4)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any, gpu: Any) -> None:
    for case in CASES:
        task = case.task(builder)
        for strategy in _ways(task, gpu):
            compiles(FAMILY, task, strategy)
