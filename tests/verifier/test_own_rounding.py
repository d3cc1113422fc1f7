"""Honest results that only rounding tells from PyTorch's pass, and wrong ones do not.

The tolerance follows what float32 does to the reference's own graph, whatever the kernel gave.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.capture.agent.reference.reference import reference
from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import TOLERANCES, KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.gates.compare import Expected, compare
from evokernel_core.verifier.gates.one_case import tolerance_of

Array = Any


@frozen
class Rounded:
    """Steps (op, operands, shape) over inputs, how inputs are drawn, and a result in another order."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    steps: tuple[tuple[str, tuple[Any, ...], tuple[int, ...]], ...]
    distribution: str
    honest: Callable[..., Array]


def _backwards(x: Array) -> Array:
    """Running sums of sixteen blocks, each of which begins at the sum of those before it."""
    blocks = np.array_split(x, 16, -1)
    carry = np.zeros((x.shape[0], 1), np.float32)
    made = []
    for block in blocks:
        made.append(np.cumsum(block, -1, dtype=np.float32) + carry)
        carry = carry + block.sum(-1, keepdims=True, dtype=np.float32)
    return np.concatenate(made, -1)


def _in_order(a: Array, b: Array) -> Array:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        total += a[:, k : k + 1] * b[k : k + 1]
    return np.triu(total)


def _one_less_cosine(x: Array, y: Array) -> Array:
    size = np.sqrt(np.float32(1.0) * x * x) * np.sqrt(y * y)
    return np.float32(1.0) - (x * y) * (np.float32(1.0) / size) * np.float32(1.0 - 2.0**-24)


TABLE = [
    Rounded("cumsum", ((2, 8895),), (("cumsum.default", ("x0", 1), (2, 8895)),), "sorted", _backwards),
    Rounded("triangle of a product", ((12, 4000), (4000, 12)),
            (("mm.default", ("x0", "x1"), (12, 12)), ("triu.default", ("n0",), (12, 12))),
            "sorted", _in_order),
    Rounded("cosine of one element", ((1, 1), (1, 1)),
            (("mul.Tensor", ("x0", "x1"), (1, 1)), ("mul.Tensor", ("x0", "x0"), (1, 1)),
             ("sqrt.default", ("n1",), (1, 1)), ("mul.Tensor", ("x1", "x1"), (1, 1)),
             ("sqrt.default", ("n3",), (1, 1)), ("mul.Tensor", ("n2", "n4"), (1, 1)),
             ("div.Tensor", ("n0", "n5"), (1, 1)), ("rsub.Scalar", ("n6", 1.0), (1, 1))),
            "uniform", _one_less_cosine),
]  # fmt: skip


def _task(item: Rounded) -> KernelTask:
    inputs = tuple(GraphInput(f"x{i}", TensorSpec(shape, "float32")) for i, shape in enumerate(item.inputs))
    nodes = tuple(
        Node(
            f"n{number}",
            f"aten.{op}",
            tuple(ValueRef(arg) if isinstance(arg, str) else arg for arg in args),
            (),
            (TensorSpec(shape, "float32"),),
        )
        for number, (op, args, shape) in enumerate(item.steps)
    )
    graph = Graph(inputs, nodes, (ValueRef(nodes[-1].name),))
    return KernelTask("t", graph, (), TOLERANCES["float32"], "elementwise")


def _passes(item: Rounded, folder: Path, seed: int, changed: Callable[[Array], Array]) -> bool:
    task = _task(item)
    case = reference(to_data(task.graph), {}, seed, item.distribution, str(folder), rounded=True)
    files = [np.fromfile(path, "f4") for path in case["inputs"]]
    arrays = [values.reshape(shape) for values, shape in zip(files, item.inputs, strict=True)]
    given = changed(item.honest(*arrays)).astype("f4")
    given.tofile(folder / "given")
    right = Expected(*(Path(case[name][0]) for name in ("outputs", "precise", "rounded")))
    tolerance = tolerance_of(task, right, "float32", is_random=True)
    return compare(folder / "given", right, item.steps[-1][2], "float32", tolerance).equal


@pytest.mark.parametrize("item", TABLE, ids=lambda item: item.name)
def test_an_honest_order_passes_and_a_wrong_result_does_not(item: Rounded, tmp_path: Path) -> None:
    for seed in range(3):
        assert _passes(item, tmp_path, seed, lambda values: values)
        assert not _passes(item, tmp_path, seed, lambda values: values * np.float32(1.01) + np.float32(1e-3))
        assert not _passes(item, tmp_path, seed, lambda values: values + max(0.05, 2e-3 * abs(values).max()))
