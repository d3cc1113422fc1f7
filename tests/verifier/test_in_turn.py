"""Cases one after the other in the same processes: each has its own result, the first failure is the last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import Symbol
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.backends.twin import TwinBackend
from evokernel_core.targets.ascendc.source import KERNEL, TILING
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.base import Case, Execution, RunStatus
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import LIGHT, plan_cases, total_bytes
from evokernel_core.verifier.gates.in_turn import grouped
from evokernel_core.verifier.gates.one_case import CaseFolders, Judges
from evokernel_core.verifier.sandbox import FILES
from tests.homes import own_home
from tests.verifier.conftest import make_task, read_source

SIZES = (5, 700, 64, 3)
COUNT = "count_ = tiling.total - start < tiling.perBlock ? tiling.total - start : tiling.perBlock;"


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_home(tmp_path_factory.mktemp("home")):
        yield


def _cases(folder: Path, sizes: tuple[int, ...] = SIZES) -> list[Case]:
    cases = []
    shared = CaseFolders.made_in(folder)
    for number, size in enumerate(sizes):
        own = shared.of(number)
        x, y = (place / f"{own.number}0.bin" for place in (own.inputs, own.outputs))
        np.random.default_rng(number).standard_normal(size).astype("f4").tofile(x)
        cases.append(Case((size,), (), (x,), (y,), (4 * size,)))
    return cases


def _executed(
    source: KernelSource, folder: Path, sizes: tuple[int, ...] = SIZES
) -> tuple[list[Case], tuple[Execution, ...]]:
    backend, cases = TwinBackend(ascendc(load_chip())), _cases(folder, sizes)
    return cases, backend.execute_in_turn(backend.build(make_task("relu"), source), cases)


def test_each_case_has_its_own_result_and_tells_its_tiling(tmp_path: Path) -> None:
    cases, executions = _executed(read_source("relu"), tmp_path)
    assert [execution.status for execution in executions] == [RunStatus.OK] * len(SIZES)
    for case, execution, size in zip(cases, executions, SIZES, strict=True):
        given, made = (np.fromfile(path, np.float32) for path in (case.inputs[0], case.outputs[0]))
        assert np.array_equal(made, np.maximum(given, 0.0))
        assert size in execution.tiling and not execution.hazards


def test_as_many_files_are_written_as_all_cases_have(tmp_path: Path) -> None:
    _, executions = _executed(read_source("relu"), tmp_path, (9,) * FILES)
    assert [execution.status for execution in executions] == [RunStatus.OK] * FILES


def test_sizes_that_are_declined_do_not_end_the_turn(tmp_path: Path) -> None:
    source = read_source("relu")
    tiling = source.files[TILING].replace("return true;", "return tiling.total != 700;")
    _, executions = _executed(source.with_files({TILING: tiling}), tmp_path)
    ok, declined = RunStatus.OK, RunStatus.DECLINED
    assert [execution.status for execution in executions] == [ok, declined, ok, ok]


@pytest.mark.parametrize(
    ("instead", "code"),
    [
        ("if (tiling.total == 700) { count_ -= 1; }", "output-not-written"),
        ("if (tiling.total == 700) { count_ = Deep(count_, 0); }", "stack-capacity"),
    ],
)
def test_a_broken_rule_ends_it_at_its_own_case(instead: str, code: str, tmp_path: Path) -> None:
    source = read_source("relu")
    deep = "__aicore__ inline uint32_t Deep(uint32_t n, uint32_t at) { uint32_t a[512]; a[at] = n; " \
           "return n == 0 ? at : Deep(n - 1, at + 1) + a[at] - n; }\n\nclass KernelRelu {"  # fmt: skip
    text = source.files[KERNEL].replace("class KernelRelu {", deep, 1).replace(COUNT, COUNT + " " + instead)
    _, executions = _executed(source.with_files({KERNEL: text}), tmp_path)
    assert len(executions) == 2 and not executions[0].hazards
    assert (
        code in {hazard.code for hazard in executions[1].hazards} or executions[1].status is not RunStatus.OK
    )


def test_a_tiling_field_that_nothing_sets_has_no_value(tmp_path: Path) -> None:
    source = read_source("relu")
    files = {
        TILING: source.files[TILING].replace("uint32_t tile;", "uint32_t tile;\n    uint32_t more;"),
        KERNEL: source.files[KERNEL].replace(
            "tile_ = tiling.tile;", "tile_ = tiling.tile; count_ += tiling.more;"
        ),
    }
    _, executions = _executed(source.with_files(files), tmp_path)
    assert executions[0].status is not RunStatus.OK or executions[0].hazards


@pytest.mark.parametrize("size", [700, 100_000, 4_000_000])
def test_light_cases_have_one_start_whatever_their_sizes(size: int, numpy_reference: Any) -> None:
    task = evolve(make_task("relu"), symbols=(Symbol("s0", size),))
    judges = Judges(None, TwinBackend(ascendc(load_chip())), numpy_reference, Draw("light"))
    plans = plan_cases(task, judges.draw, thorough=False)
    groups = list(grouped(task, plans, judges))
    assert sorted(map(str, (plan for group in groups for plan in group))) == sorted(map(str, plans))
    assert groups[0] == (plans[0],) and groups[-1] == (plans[-1],)
    heavy = [plan for plan in plans[1:-1] if total_bytes(task, dict(plan.sizes)) > LIGHT + 8]
    assert len(groups) == 3 + len(heavy)
