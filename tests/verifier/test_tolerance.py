"""The tolerance behind a long sum is in units of the output's magnitude; elsewhere it is the task's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.domain.graph import Graph, GraphInput, Node, ValueRef
from evokernel_core.domain.task import TOLERANCES, KernelTask, Tolerance
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.gates.compare import AGREEMENT, Expected, mean_magnitude
from evokernel_core.verifier.gates.one_case import agreement_of, tolerance_of


def task_of(op: str, dtype: str = "float32") -> KernelTask:
    spec = TensorSpec((8, 8), dtype)
    inputs = (GraphInput("x", spec), GraphInput("y", spec))
    node = Node("z", op, (ValueRef("x"), ValueRef("y")), (), (spec,))
    return KernelTask("z", Graph(inputs, (node,), (ValueRef("z"),)), (), TOLERANCES["float32"], "other")


@pytest.mark.parametrize(("op", "scale", "atol"), [
    ("aten.mm.default", 300.0, 3e-2), ("aten.mm.default", 0.01, 1e-4), ("aten.add.Tensor", 300.0, 1e-4),
    ("aten.var_mean.correction", 300.0, 3e-2), ("aten.mean.dim", 300.0, 3e-2),
])  # fmt: skip
def test_only_long_sums_of_large_values_get_more_room(
    op: str, scale: float, atol: float, tmp_path: Path
) -> None:
    expected = tmp_path / "out.bin"
    np.full(64, scale, "f4").tofile(expected)
    found = tolerance_of(task_of(op), Expected(expected), "float32")
    assert found.rtol == 1e-4
    assert found.atol == pytest.approx(atol)


def test_infinite_elements_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "out.bin"
    np.array([3, np.inf, -4, np.nan], "f4").tofile(path)
    assert mean_magnitude(path, "float32") == pytest.approx(np.sqrt(12.5))


def test_a_clamped_sum_may_round_as_its_terms_do(tmp_path: Path) -> None:
    """Large terms behind a clamp: small outputs with the terms' rounding."""
    eager, precise, rounded = (tmp_path / f"{name}.bin" for name in ("eager", "precise", "rounded"))
    for path in (eager, precise):
        np.array([1.0, -1.5, 2.0], "f4").tofile(path)
    np.array([1.0, -1.501, 2.0], "f4").tofile(rounded)
    expected = Expected(eager, precise, rounded)
    found = tolerance_of(task_of("aten.mm.default"), expected, "float32")
    assert found.atol == pytest.approx(1e-3 - 1e-4 * 1.5, rel=1e-2)
    assert tolerance_of(task_of("aten.add.Tensor"), expected, "float32").atol == 1e-4


def test_half_types_may_round_as_pytorchs_own_result_does(tmp_path: Path) -> None:
    """A block of layers: PyTorch rounds every value on the way, and a kernel rounds others."""
    eager, precise = tmp_path / "eager.bin", tmp_path / "precise.bin"
    np.array([1.0, -1.5, 0.05], "f2").tofile(eager)
    np.array([1.0, -1.5, 0.02], "f2").tofile(precise)
    expected = Expected(eager, precise)
    found = tolerance_of(task_of("aten.mm.default", "float16"), expected, "float16")
    assert found.atol == pytest.approx(2 * 0.03 - 1e-2 * 0.02, rel=1e-2)
    alone = task_of("aten.add.Tensor", "float16")
    assert tolerance_of(alone, expected, "float16").atol == 1e-2


def test_float32_may_round_a_few_times_as_far_in_few_elements(tmp_path: Path) -> None:
    """A column of almost equal values behind a norm: its rounding is a matter of luck."""
    eager, precise = tmp_path / "eager.bin", tmp_path / "precise.bin"
    np.array([1.0, -1.5, 0.05], "f4").tofile(eager)
    np.array([1.0, -1.5, 0.02], "f4").tofile(precise)
    found = tolerance_of(task_of("aten.mm.default"), Expected(eager, precise), "float32")
    assert found.atol == pytest.approx(4 * 0.03, rel=1e-2)


def test_few_elements_of_a_resized_image_may_round_farther_than_most(tmp_path: Path) -> None:
    """Where large neighbours cancel, rounded weights leave more than elsewhere. Without a result in wider
    types nothing is known of that, and other operations are held to the mean."""
    eager, precise = tmp_path / "eager.bin", tmp_path / "precise.bin"
    values = np.zeros(4096, "f4")
    values.tofile(precise)
    values[7] = 0.03
    values.tofile(eager)
    expected, resized = Expected(eager, precise), task_of("aten.upsample_bicubic2d.default")
    assert tolerance_of(resized, expected, "float32", is_random=True).atol == pytest.approx(4 * 0.03)
    assert tolerance_of(resized, Expected(eager), "float32", is_random=True).atol == 1e-4
    mean = 8 * 0.03 / 64
    other = tolerance_of(task_of("aten.add.Tensor"), expected, "float32", is_random=True)
    assert other.atol == pytest.approx(mean, rel=1e-3)


def test_what_the_task_brings_is_not_asked(tmp_path: Path) -> None:
    expected = tmp_path / "out.bin"
    np.ones(64, "f4").tofile(expected)
    loose = evolve(task_of("aten.add.Tensor"), tolerance=Tolerance(1e9, 1e9))
    assert tolerance_of(loose, Expected(expected), "float32") == TOLERANCES["float32"]


def test_small_outputs_are_held_to_their_own_size(tmp_path: Path) -> None:
    """A softmax over long rows: each output is far below the absolute tolerance."""
    expected, task = tmp_path / "out.bin", task_of("aten._softmax.default", "float16")
    np.full(64, 1 / 4096, "f2").tofile(expected)
    found = tolerance_of(task, Expected(expected, expected), "float16", is_random=True)
    assert found.atol == pytest.approx(1e-2 / 4096)
    assert tolerance_of(task, Expected(expected), "float16", is_random=True).atol == 1e-2
    assert tolerance_of(task, Expected(expected, expected), "float16").atol == 1e-2


def test_agreement_is_a_few_percent_or_pytorchs_own(tmp_path: Path) -> None:
    exact, rough = tmp_path / "exact.bin", tmp_path / "rough.bin"
    np.ones(64, "f4").tofile(exact)
    np.full(64, 1.1, "f4").tofile(rough)
    assert agreement_of(Expected(exact), "float32") == 0.01
    assert agreement_of(Expected(exact, exact), "float32") == 0.01
    assert agreement_of(Expected(rough, exact), "float32") == pytest.approx(0.4, rel=1e-3)
    assert agreement_of(Expected(exact, exact, rough), "float32") == pytest.approx(0.4, rel=1e-3)
    assert max(AGREEMENT.values()) < 0.05
