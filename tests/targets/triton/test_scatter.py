"""Family scatter in Triton against NumPy: the last of several values stays, sums and extremes take all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.triton.kernels.scatter.scatter_family import FAMILY

COMBINED = {"add": np.add, "max": np.maximum, "min": np.minimum, LAST: lambda before, value: value}


@frozen
class Case:
    """Values of ``dtype``, in runs of ``run`` elements, at places of two indices or one."""

    kind: str
    dtype: str
    run: int = 1
    shared: bool = False
    several: bool = False
    wraps: bool = False
    parts: int = 0

    def task(self, builder: Any) -> KernelTask:
        b = builder()
        sizes = ("s", "t") if self.several else ("s",)
        source = None if self.parts else b.input("x", ("a", *sizes, self.run), self.dtype)
        rows = 1 if self.shared else "a"
        indices = tuple(b.input(f"index_{size}", (rows, "n"), "int64") for size in sizes)
        values = b.input("v", ("a", "n", self.run), self.dtype)
        shape = ("a", *sizes, self.run)
        node = Node("put", SCATTER.name, (source, indices, values, self.kind, self.wraps), (),
                    (TensorSpec(shape, self.dtype),))  # fmt: skip
        if self.parts:
            args = (tuple(sizes), indices, values, self.kind, self.wraps, self.parts)
            node = Node("put", SCATTER_PARTS.name, args, (), (TensorSpec((self.parts, *shape), self.dtype),))
        b.nodes.append(node)
        task: KernelTask = b.task(ValueRef("put"), symbols={"a": 3, "s": 50, "t": 4, "n": 40})
        return task

    def draw(self, sizes: dict[str, int], seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        cast = "f4" if "float" in self.dtype else self.dtype
        names = ("s", "t") if self.several else ("s",)
        a, n = sizes["a"], sizes["n"]
        shape = (a, *(sizes[name] for name in names), self.run)
        inputs = {} if self.parts else {"x": rng.integers(-9, 9, shape).astype(cast)}
        rows = 1 if self.shared else a
        for name in names:
            inputs[f"index_{name}"] = rng.integers(-sizes[name] if self.wraps else 0, sizes[name], (rows, n))
        return inputs | {"v": rng.integers(-9, 9, (a, n, self.run)).astype(cast)}

    def expected(self, sizes: dict[str, int], inputs: dict[str, Any]) -> Any:
        names = ("s", "t") if self.several else ("s",)
        shape = (sizes["a"], *(sizes[name] for name in names), self.run)
        start = {"add": 0, "max": -np.inf, "min": np.inf}
        out = inputs["x"].astype("f8") if not self.parts else np.full(shape, start[self.kind], "f8")
        for row in range(sizes["a"]):
            for number in range(sizes["n"]):
                place = tuple(inputs[f"index_{name}"][0 if self.shared else row, number] for name in names)
                at = (row, *place)
                out[at] = COMBINED[self.kind](out[at], inputs["v"][row, number])
        return out


CASES = [
    Case(LAST, "float32"), Case(LAST, "bfloat16", 5, shared=True),
    Case(LAST, "int64", 40, several=True, wraps=True),
    Case("add", "float32"), Case("add", "float32", 70, shared=True), Case("add", "int32", several=True),
    Case("add", "int64", wraps=True), Case("max", "float32", 3), Case("min", "float32", several=True),
    Case("max", "int32"), Case("add", "float32", 3, parts=3), Case("max", "float32", parts=2),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_put(case: Case, builder: Any, interpreted: Any) -> None:
    task = case.task(builder)
    for seed, (a, s, t, n) in enumerate([(1, 1, 1, 1), (3, 20, 4, 50)]):
        sizes = {"a": a, "s": s, "t": t, "n": n}
        inputs = case.draw(sizes, seed)
        (result,) = interpreted(FAMILY, task, inputs, sizes)
        if case.parts:
            reduce = {"add": np.add, "max": np.maximum, "min": np.minimum}[case.kind]
            result = reduce.reduce(result, 0)
        np.testing.assert_array_equal(result, case.expected(sizes, inputs))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes_of_what_is_not_finite(kind: str, builder: Any, interpreted: Any) -> None:
    case = Case(kind, "float32")
    sizes = {"a": 1, "s": 6, "n": 8, "t": 1}
    inputs = case.draw(sizes, 1)
    inputs["index_s"][0] = [0, 0, 1, 1, 2, 2, 3, 4]
    inputs["v"][0, :, 0] = [np.nan, 5, np.inf, -np.inf, -3, -7, -np.nan, -0.5]
    (result,) = interpreted(FAMILY, case.task(builder), inputs, sizes)
    np.testing.assert_array_equal(result, case.expected(sizes, inputs))


def test_products_are_refused(builder: Any, gpu: Any) -> None:
    with pytest.raises(PlanError, match="multiplies"):
        FAMILY.check(Case("mul", "float32").task(builder), gpu)


@pytest.mark.thorough
def test_texts_compile(builder: Any, compiles: Any) -> None:
    for case in CASES:
        compiles(FAMILY, case.task(builder))
