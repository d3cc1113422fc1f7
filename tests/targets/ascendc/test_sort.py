"""Sorted rows and their first elements against NumPy: ties, NaN, infinities, any layout and length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, legalised, moves, write
from tests.tables import few

RANDOM = np.random.default_rng(43)


@frozen
class Case:
    """``sort`` or ``topk`` along ``dim``; ``keep`` None keeps all."""

    shape: tuple[Any, ...]
    dim: int = -1
    descending: bool = True
    keep: int | None = None
    dtype: str = "float32"
    values: bool = True

    def task(self, builder: Any, **sizes: int) -> KernelTask:
        b = builder()
        x = b.input("x", self.shape, self.dtype)
        shape = list(self.shape)
        shape[self.dim] = self.keep or shape[self.dim]
        specs = [TensorSpec(shape, self.dtype), TensorSpec(shape, "int64")]
        if self.keep is None:
            found = b.calls(
                "sort.stable", x, stable=True, dim=self.dim, descending=self.descending, outputs=specs
            )
        else:
            found = b.calls("topk.default", x, self.keep, self.dim, self.descending, outputs=specs)
        indices = ValueRef(found.name, 1)
        return b.task(*([found] if self.values else []), indices, symbols=sizes)  # type: ignore[no-any-return]


def expected(case: Case, x: Any) -> tuple[Any, Any]:
    """Stable, and NaN is the greatest."""
    keys = np.where(np.isnan(x), np.inf, x)
    order = np.lexsort((np.isnan(x), keys), axis=case.dim)
    if case.descending:
        flipped = np.flip(x, case.dim)
        keys = np.where(np.isnan(flipped), np.inf, flipped)
        order = x.shape[case.dim] - 1 - np.lexsort((np.isnan(flipped), keys), axis=case.dim)
        order = np.flip(order, case.dim)
    if case.keep is not None:
        order = np.take(order, np.arange(case.keep), case.dim)
    return np.take_along_axis(x, order, case.dim), order


def samples(shape: tuple[int, ...], seed: int) -> Any:
    """Few different values, so that most are not alone; infinities, and now and then NaN."""
    random = np.random.default_rng(seed)
    x = random.integers(-40, 40, shape).astype(np.float32) / 4
    special = random.random(shape)
    x[special > 0.97] = -np.inf
    if seed % 2:
        x[special < 0.03] = np.nan
    else:
        x[special < 0.03] = np.inf
    return x


SYMBOLIC = [
    (Case(("a", "b")), [(1, 1), (3, 32), (5, 33), (70, 100), (9, 513), (2, 1100)]),
    (Case(("a", "b"), descending=False), [(1, 1), (4, 31), (3, 64), (50, 129), (3, 1025)]),
    (Case(("a", "b", "c"), 1, descending=False, dtype="float16"), [(1, 2, 3), (3, 50, 20)]),
    (Case(("a", "b"), keep=5, values=False), [(1, 5), (60, 64), (3, 900)]),
    (Case(("a", "b"), descending=False, keep=40, dtype="bfloat16"), [(2, 40), (20, 128), (3, 700)]),
]


@few(
    ("case", "sizes"),
    SYMBOLIC,
    keep=(
        0,
        2,
        3,
    ),
)
def test_rows_in_a_tile(builder: Any, chip: Any, on_twin: Any, case: Case, sizes: Any) -> None:
    task = case.task(builder, **dict.fromkeys(case.shape, 64))
    strategy = initial(task, chip)
    for seed, bound in enumerate(sizes):
        x = samples(bound, seed)
        found = on_twin(task, {"x": x}, strategy, dict(zip(case.shape, bound, strict=True)))
        wanted = expected(case, x)
        for got, want in zip(found, wanted if case.values else wanted[1:], strict=True):
            np.testing.assert_array_equal(got, want)


FIXED = [
    (Case((2, 9000), keep=7), 3),
    (Case((2, 10000), keep=300, descending=False), 2),
    (Case((50, 6007), keep=1, dtype="float16"), 1),
    (Case((3, 4096), descending=False), 1),
    (Case((1, 20001), keep=33), 2),
    (Case((2, 21000), descending=False), 1),
    (Case((1, 9000), keep=3000), 2),
]


@few(
    ("case", "seed"),
    FIXED,
    keep=(
        0,
        2,
        5,
    ),
)
def test_long_rows(builder: Any, on_twin: Any, case: Case, seed: int) -> None:
    x = samples(case.shape, seed)
    found = on_twin(case.task(builder), {"x": x})
    for got, want in zip(found, expected(case, x), strict=True):
        np.testing.assert_array_equal(got, want)


@few("case", [item for item, _ in (*SYMBOLIC[:2], *FIXED)], keep=(0, 2, 4, 7))
def test_every_form_passes_the_audit(builder: Any, chip: Any, case: Case) -> None:
    sizes = {name: 64 for name in case.shape if isinstance(name, str)}
    task = case.task(builder, **sizes)
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


def test_every_move_sorts(builder: Any, chip: Any, on_twin: Any) -> None:
    case = Case((5, 700), keep=20, descending=False)
    task = case.task(builder)
    x = samples(case.shape, 1)
    for move in moves(task, initial(task, chip), chip):
        for got, want in zip(on_twin(task, {"x": x}, move.strategy), expected(case, x), strict=True):
            np.testing.assert_array_equal(got, want)


def test_the_kth_value_and_the_median(builder: Any, on_twin: Any) -> None:
    b = builder()
    x = b.input("x", (6, 50))
    specs = [TensorSpec((6,), "float32"), TensorSpec((6,), "int64")]
    kth = b.calls("kthvalue.default", x, 4, 1, outputs=specs)
    task = b.task(kth, ValueRef(kth.name, 1), b.call("median.default", x, shape=()))
    values = np.random.default_rng(0).permutation(300).reshape(6, 50).astype(np.float32)
    found, place, median = on_twin(task, {"x": values})
    np.testing.assert_array_equal(found, np.sort(values, 1)[:, 3])
    np.testing.assert_array_equal(place, np.argsort(values, 1)[:, 3])
    assert median == 149


def test_what_cannot_be_sorted_says_why(builder: Any, chip: Any) -> None:
    with pytest.raises(PlanError, match="bool is not covered"):
        initial(Case((2, 100), dtype="bool").task(builder), chip)


def test_few_long_rows_are_cut_into_parts(builder: Any) -> None:
    ops = [node.op for node in legalised(Case((2, 65536), keep=8).task(builder), load_chip()).graph.nodes]
    assert ops.count("evokernel.sort.default") == 2


@few(
    "case",
    [
        Case((3, 70), dtype="int32"),
        Case((2, 5, 33), dim=1, descending=False, dtype="int64"),
        Case((4, 90), keep=7, dtype="int64"),
        Case((6, 50), descending=False, dtype="int16"),
        Case((2, 300), dtype="uint8"),
        Case((1, 5000), descending=False, dtype="int32"),
    ],
    keep=(0, 1, 4),
)
def test_integers_are_sorted_by_their_digits(case: Case, builder: Any, on_twin: Any) -> None:
    """Numbers that differ in their last bit only, the ends of each type, and many equals."""
    ends = np.iinfo(case.dtype)
    some = np.array([0, 1, ends.min, ends.max, ends.max - 1, ends.min + 1, ends.max // 2], case.dtype)
    x = RANDOM.integers(ends.min, ends.max, case.shape, dtype=case.dtype, endpoint=True)
    x = np.where(RANDOM.random(case.shape) < 0.6, RANDOM.choice(some, case.shape), x).astype(case.dtype)
    values, indices = on_twin(case.task(builder), {"x": x})
    key = ~x if case.descending else x  # of a stable order the opposite of each number
    order = np.argsort(key, case.dim, kind="stable")
    order = np.take(order, np.arange(case.keep or order.shape[case.dim]), case.dim)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, case.dim))
    np.testing.assert_array_equal(indices, order)
