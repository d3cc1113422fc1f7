"""Kernels that are wrong where values are small: in rows, blocks or columns beside much larger ones, within
the tolerance of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from evokernel_core.capture.reference import ReferenceCase, base_of
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Tolerance
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import correctness
from evokernel_core.verifier.gates.compare import Expected, compare
from evokernel_core.verifier.gates.parts import WorstPart, smallest_parts, words
from evokernel_core.verifier.local import LocalVerifier
from tests.attacks.correctness.test_learned import DRAWS, home
from tests.tables import few
from tests.verifier.conftest import FUNCTIONS, NumpyReference, make_task, read_source

__all__ = ["home"]

Array = npt.NDArray[np.float64]
NAMES = {"f4": "float32", "f2": "float16"}
SHARE = {"f4": 1.5e-5, "f2": 1e-4}


def product(dtype: str, *, columns: bool = False) -> Array:
    """A product of matrices of long rows, with some rows (or columns) of tiny factors."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((64, 512)), rng.standard_normal((512, 128))
    if columns:
        right[:, 7] *= SHARE[dtype]
    else:
        left[5:8] *= SHARE[dtype]
    return np.asarray(left @ right)


def found(
    tmp_path: Path, left: Array, right: Array, dtype: str, rounded: Array | None = None
) -> WorstPart | None:
    """The part, where the whole is within the tolerance behind a long sum."""
    eager = right.astype(dtype)
    files = {"left": left.astype(dtype), "eager": eager, "precise": right.astype(dtype)}
    if rounded is not None:
        files["rounded"] = rounded.astype(dtype)
    for name, values in files.items():
        values.tofile(tmp_path / name)
    expected = Expected(
        tmp_path / "eager", tmp_path / "precise", tmp_path / "rounded" if rounded is not None else None
    )
    scale = float(np.sqrt(np.square(right).mean()))
    relative = {"f4": 1e-4, "f2": 1e-2}[dtype]
    tolerance = Tolerance(relative, relative * scale)
    assert compare(tmp_path / "left", expected, right.shape, NAMES[dtype], tolerance).equal
    return smallest_parts(tmp_path / "left", expected, right.shape, NAMES[dtype], tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize("wrong", [0.0, -1.0, 2.0])
def test_a_row_of_small_values(wrong: float, dtype: str, tmp_path: Path) -> None:
    """Wants zeros, the other sign or twice as much to pass below the tolerance of the other rows."""
    right = product(dtype)
    left = right.copy()
    left[6] *= wrong
    part = found(tmp_path, left, right, dtype)
    assert part is not None and (part.kind, part.place[0]) == ("row", 6)
    assert "row at [6, 0]" in words(part, 0, right.shape)


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_a_column_of_small_values(dtype: str, tmp_path: Path) -> None:
    right = product(dtype, columns=True)
    left = right.copy()
    left[:, 7] = 0.0
    part = found(tmp_path, left, right, dtype)
    assert part is not None and (part.kind, part.place) == ("column", (7,))


def test_a_block_of_a_long_row(tmp_path: Path) -> None:
    right = np.random.default_rng(0).standard_normal((4, 5000))
    right[2, 2048:3072] *= 2e-5
    left = right.copy()
    left[2, 2048:3072] = 0.0
    part = found(tmp_path, left, right, "f4")
    assert part is not None and part.place == (2, 2048)


def test_a_block_of_short_rows(tmp_path: Path) -> None:
    right = np.random.default_rng(0).standard_normal((500, 3))
    right[100:200] *= 2e-5
    left = right.copy()
    left[100:200] = 0.0
    part = found(tmp_path, left, right, "f4")
    assert part is not None and part.kind == "row"


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_rounding_passes(dtype: str, tmp_path: Path) -> None:
    """The other side: small rows with the rounding of the sums that made them, and of cancelled ones."""
    right = product(dtype)
    noise = np.random.default_rng(1).standard_normal(right.shape)
    relative = {"f4": 1e-5, "f2": 1e-3}[dtype]
    assert found(tmp_path, right * (1 + relative * noise), right, dtype) is None
    # what is left of cancelled sums is noise: as large as that of the sums rounded otherwise
    lost = SHARE[dtype] * 3 * noise
    assert found(tmp_path, right + lost, right, dtype, rounded=right - lost) is None


def test_denormals_may_be_zeros(tmp_path: Path) -> None:
    right = np.random.default_rng(0).standard_normal((64, 128))
    right[3] = 1e-40
    left = right.copy()
    left[3] = 0.0
    assert found(tmp_path, left, right, "f4") is None


def test_what_cancels_may_leave_its_rounding(tmp_path: Path) -> None:
    """1 + erf(x) of very negative x: PyTorch's is exactly 0 in a whole column, another formula's is not."""
    rng = np.random.default_rng(0)
    right = rng.standard_normal((64, 128))
    right[:, 4] = 0.0
    left = right.copy()
    left[:, 4] = 2e-6 * rng.standard_normal(64)
    assert found(tmp_path, left, right, "f4") is None
    left[:, 4] *= 10
    part = found(tmp_path, left, right, "f4")
    assert part is not None and "is not 0" in words(part, 0, right.shape)


def test_without_a_result_in_wider_types_nothing_is_said(tmp_path: Path) -> None:
    right = product("f4").astype("f4")
    right.tofile(tmp_path / "right")
    assert smallest_parts(tmp_path / "right", Expected(tmp_path / "right"), right.shape, "float32",
                          Tolerance(1e-4, 1.0)) is None  # fmt: skip


ADD = "Add(z, x, y, length);"
DETOUR = (
    "PipeBarrier<PIPE_V>(); Adds(z, z, static_cast<half>(2.0f), length); "
    "PipeBarrier<PIPE_V>(); Adds(z, z, static_cast<half>(-2.0f), length);"
)


class WideReference(NumpyReference):
    """With the same in wider types beside each result, as the agent has for half types."""

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        found = super().reference(task, sizes, seed, distribution, folder, rounded=rounded)
        return evolve(found, precise=found.outputs)


def judged(source: KernelSource, draw: Draw) -> Verdict:
    verifier = LocalVerifier(WideReference(FUNCTIONS), TwinBackend(ascendc(load_chip())), draw=lambda: draw)
    return verifier.verify(make_task("add"), source)


@few("enough", (3, 8), keep=(0,))
def test_rows_of_faint_values_are_drawn_and_judged(enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wants every value below a thousandth to be zero, by a detour through 2: all draws have such rows, and
    in several no others are so large that these are nothing beside them. Cases that are wholly tiny, which
    every draw has as well, are left out here."""
    planned = correctness.plan_cases
    monkeypatch.setattr(
        correctness,
        "plan_cases",
        lambda *args, **options: tuple(
            plan for plan in planned(*args, **options) if base_of(plan.distribution) == plan.distribution
        ),
    )
    source = read_source("add")
    assert ADD in source.files[KERNEL]
    text = source.files[KERNEL].replace(ADD, f"{ADD} {DETOUR}")
    draws = (Draw(f"{number:032x}") for number in range(1, 9))
    failed = (judged(source.with_files({KERNEL: text}), draw).failed_gate for draw in draws)
    seen = list(islice((gate for gate in failed if gate is not None), enough))
    assert len(seen) >= 3 and all("much smaller values" in gate.feedback for gate in seen), seen
    assert judged(source, DRAWS[0]).feasible
