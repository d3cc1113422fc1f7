"""Kernels that know what they are asked: each passes where cases, seeds, sizes or tolerances can be foreseen,
and must fail here. Every one is an honest kernel with a few words changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from attrs import evolve, frozen

from evokernel_core.capture.reference import base_of
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, Symbol, Tolerance
from evokernel_core.domain.verdict import Verdict
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import cases
from evokernel_core.verifier.gates.one_case import RANDOM
from evokernel_core.verifier.local import LocalVerifier
from tests.homes import own_home
from tests.tables import few
from tests.verifier.conftest import FUNCTIONS, NumpyReference, make_task, read_source

DRAWS = tuple(Draw(f"{number:032x}") for number in range(1, 4))


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


def verdict_of(
    task: KernelTask, source: KernelSource, draw: Draw = DRAWS[0], *, thorough: bool = False
) -> Verdict:
    backend = TwinBackend(ascendc(load_chip()))
    verifier = LocalVerifier(NumpyReference(FUNCTIONS), backend, draw=lambda: draw, thorough=thorough)
    return verifier.verify(task, source)


@frozen
class Cheat:
    """``kernel`` is the honest one, ``changes`` what is written in its files, ``sizes`` the task's."""

    wants: str
    kernel: str
    changes: Mapping[str, str]
    codes: frozenset[str]
    sizes: Mapping[str, int] | None = None
    thorough: bool = False


NUMERIC, SKIPPED = (
    frozenset({"numeric"}),
    frozenset({"work-skipped", "implausible", "output-not-written", "numeric"}),
)
RELU = "AscendC::Relu(y, x, length);"
SCALE = "Muls(values, values, 1.0f / sum, columns);"
SUBTRACT = "Adds(values, values, -largest, columns);"
ROWS = "tiling.rows = static_cast<uint32_t>(sizes[0]);"
TOTAL = "tiling.total = total;"

CHEATS = [
    Cheat("a fifth too much, where the tolerance is larger than every output", "softmax",
          {SCALE: "Muls(values, values, 1.2f / sum, columns);"}, NUMERIC),
    Cheat("4 % too much", "softmax", {SCALE: "Muls(values, values, 1.04f / sum, columns);"}, NUMERIC),
    Cheat("no maximum, which small inputs never need", "softmax",
          {SUBTRACT: "Adds(values, values, 0.0f, columns);"}, NUMERIC),
    Cheat("the answer for sizes that are known by heart, rubbish for others", "relu",
          {RELU: "if (known_) { AscendC::Relu(y, x, length); } else { AscendC::Abs(y, x, length); }",
           "tile_ = tiling.tile;": "tile_ = tiling.tile; known_ = tiling.total == 1 || tiling.total == 3 || "
           "tiling.total == 17 || tiling.total == 100000 || tiling.total == 99999;",
           "uint32_t tile_ = 0;": "uint32_t tile_ = 0; bool known_ = false;"}, NUMERIC),
    Cheat("inputs above 60 are never drawn", "relu",
          {RELU: "AscendC::Mins(x, x, 60.0f, length); AscendC::PipeBarrier<PIPE_V>(); "
                 "AscendC::Relu(y, x, length);"}, NUMERIC),
    Cheat("more elements than the file has are never asked for", "relu",
          {RELU: "if (large_) { AscendC::Abs(y, x, length); } else { AscendC::Relu(y, x, length); }",
           "tile_ = tiling.tile;": "tile_ = tiling.tile; large_ = tiling.total > 100000;",
           "uint32_t tile_ = 0;": "uint32_t tile_ = 0; bool large_ = false;"}, NUMERIC),
    Cheat("more rows than the file has are never asked for", "softmax",
          {"row += GetBlockNum()) {": "row += GetBlockNum()) { if (row >= 256) { continue; }"},
          frozenset({"output-not-written"})),
    Cheat("everything beyond 80 MB is never compared", "relu",
          {RELU: "if (large_) { AscendC::Abs(y, x, length); } else { AscendC::Relu(y, x, length); }",
           "tile_ = tiling.tile;": "tile_ = tiling.tile; large_ = tiling.total > 10000000;",
           "uint32_t tile_ = 0;": "uint32_t tile_ = 0; bool large_ = false;"}, NUMERIC,
          {"s0": 12_000_000}, thorough=True),
    Cheat("half of the vector work is enough where nobody looks", "softmax",
          {"for (uint32_t row = GetBlockIdx(); row < rows; row += GetBlockNum()) {":
           "const uint32_t end = rows > 100000 ? rows / 4 : rows;\n"
           "for (uint32_t row = GetBlockIdx(); row < end; row += GetBlockNum()) {"},
          SKIPPED, {"s0": 200_000, "s1": 4096}),
    Cheat("long rows are not worth their exponentials", "softmax",
          {"Exp(values, values, columns);": "if (columns < 4096) { Exp(values, values, columns); }"},
          NUMERIC, {"s0": 200_000, "s1": 4096}),
]  # fmt: skip


def changed(cheat: Cheat) -> KernelSource:
    source = read_source(cheat.kernel)
    files = dict(source.files)
    for old, new in cheat.changes.items():
        assert any(old in text for text in files.values()), old
        files = {name: text.replace(old, new) for name, text in files.items()}
    return source.with_files(files)


def task_of(cheat: Cheat) -> KernelTask:
    task = make_task(cheat.kernel)
    sizes = cheat.sizes or task.sizes
    return evolve(task, symbols=tuple(Symbol(name, size) for name, size in sizes.items()))


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.wants)
def test_a_cheat_fails_in_one_of_a_few_draws(cheat: Cheat) -> None:
    task, source = task_of(cheat), changed(cheat)
    verdicts = (verdict_of(task, source, draw, thorough=cheat.thorough) for draw in DRAWS)
    failed = next((gate for verdict in verdicts if (gate := verdict.failed_gate)), None)
    assert failed is not None, cheat.wants
    assert failed.code in cheat.codes, failed.feedback


def test_what_is_wrong_at_some_magnitudes_alone_fails_in_every_draw() -> None:
    """Wants a draw without the values that it gets wrong; there must be none."""
    cheat = next(cheat for cheat in CHEATS if "above 60" in cheat.wants)
    for draw in DRAWS:
        failed = verdict_of(task_of(cheat), changed(cheat), draw).failed_gate
        assert failed is not None and failed.code == "numeric", draw


def test_sizes_beyond_the_files_may_be_declined() -> None:
    """The other side: where a kernel has no tiling, the original code runs."""
    source = read_source("relu")
    declines = source.with_files(
        {TILING: source.files[TILING].replace("return true;", "return tiling.total <= 100000;")}
    )
    verdict = verdict_of(make_task("relu"), declines)
    assert verdict.feasible
    assert all(dict(sizes)["s0"] <= 100_000 for sizes in verdict.shapes)


def test_sizes_of_the_file_may_not_be_declined() -> None:
    """Wants to be right by never running; must fail at the first size it declines."""
    source = read_source("relu")
    declines = source.with_files(
        {TILING: source.files[TILING].replace("return true;", "return tiling.total > 9;")}
    )
    failed = verdict_of(make_task("relu"), declines).failed_gate
    assert failed is not None and "ComputeTiling returned false" in failed.feedback


def test_a_package_that_brings_its_own_tolerance() -> None:
    """Wants anything to be right; must be judged by the product's table."""
    task = evolve(make_task("relu"), tolerance=Tolerance(1e9, 1e9))
    wrong = read_source("relu").with_files(
        {KERNEL: read_source("relu").files[KERNEL].replace(RELU, "AscendC::Abs(y, x, length);")}
    )
    failed = verdict_of(task, wrong).failed_gate
    assert failed is not None
    assert failed.code == "numeric"


def test_no_two_verifications_have_a_case_in_common() -> None:
    """Wants a table of five known answers; must meet other seeds each time."""
    task = make_task("softmax")
    seeds = [plan.seed for number in range(50) for plan in cases.plan_cases(task, Draw(f"{number:032x}"))]
    assert len(set(seeds)) == len(seeds)


def test_every_distribution_is_drawn_sometimes() -> None:
    """Wants the ones that are always left out; must find none."""
    task = make_task("softmax")
    drawn = {
        base_of(plan.distribution)
        for number in range(100)
        for plan in cases.plan_cases(task, Draw(f"{number:032x}"))
    }
    # three are asked for beside the numbers of a kernel's text: inputs that are alike, columns beyond, zeros
    # first; and peaks of graphs that look for largest elements
    assert drawn >= RANDOM - {"alike", "columns", "zeros", "peaks"} | {"structured", "rows"}


@few(("name", "place"), product(["add", "relu", "softmax"], range(len(DRAWS))), keep=(0, 4, 8))
def test_the_honest_kernels_pass_with_the_same_draws(name: str, place: int) -> None:
    """The other side: what is caught above is not caught by refusing everything."""
    assert verdict_of(make_task(name), read_source(name), DRAWS[place]).feasible


def test_zeros_in_a_single_row_of_small_values(tmp_path: Path) -> None:
    """Wants one row in 256 for nothing, far below the absolute tolerance; must be seen by element."""
    from evokernel_core.verifier.gates.compare import Expected, compare
    from evokernel_core.verifier.gates.one_case import tolerance_of

    task = make_task("softmax")
    right = FUNCTIONS["softmax"](np.random.default_rng(0).standard_normal((256, 4096)).astype("f2"))
    left = right.copy()
    left[100] = 0
    for name, values in (("left", left), ("right", right)):
        values.tofile(tmp_path / name)
    expected = Expected(tmp_path / "right", tmp_path / "right")
    tolerance = tolerance_of(task, expected, "float16", is_random=True)
    assert compare(tmp_path / "left", expected, right.shape, "float16", tolerance).wrong > 3000
    assert compare(tmp_path / "right", expected, right.shape, "float16", tolerance).equal
