"""The backend cuda over a driver that is none: what verdicts are made of what a judge says."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from benchmarks.measuring.kernels import affine_kernel, affine_record, affine_task
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import VerifierError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.targets.triton.backends.child.driver import Driver
from evokernel_core.targets.triton.backends.child.judge import Judge, failed
from evokernel_core.targets.triton.backends.compiler import BuiltTriton, TritonCompiler
from evokernel_core.targets.triton.backends.cuda import CudaBackend, open_cuda
from evokernel_core.targets.triton.backends.gpu_process import JudgeLost
from evokernel_core.targets.triton.backends.intervals import RESOLUTION
from evokernel_core.targets.triton.source import LAUNCH
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Case, Execution, RunStatus, TimingRequest
from tests.targets.triton.fake_driver import Arguments, FakeDriver, Kernel
from tests.targets.triton.test_judge import Cpu, FakeClock

ELEMENTS = 3000
Grid = tuple[int, int, int]


def affine(grid: Grid, given: Arguments) -> None:
    count = given.number(2)
    given.floats(1, count)[:] = 2 * given.floats(0, count) + 1


def beyond(grid: Grid, given: Arguments) -> None:
    given.floats(1, given.number(2) + 8)[:] = 1.0
    affine(grid, given)


def half(grid: Grid, given: Arguments) -> None:
    count = given.number(2) // 2
    given.floats(1, count)[:] = 2 * given.floats(0, count) + 1


def by_chance(grid: Grid, given: Arguments) -> None:
    affine(grid, given)
    given.floats(1, 1)[:] = np.random.default_rng().standard_normal(1)


def into_input(grid: Grid, given: Arguments) -> None:
    affine(grid, given)
    given.floats(0, 1)[:] = 7.0


KERNELS: dict[str, Kernel] = {one.__name__: one for one in (affine, beyond, half, by_chance, into_input)}


class FakeCompiler(TritonCompiler):
    """Writes the name of a kernel of this machine instead of a cubin."""

    def __init__(self, kernel: str = "affine") -> None:
        super().__init__(load_gpu())
        self.kernel, self.runs = kernel, 0

    def _run(self, built: BuiltTriton, launches: Sequence[Mapping[str, Any]]) -> Iterable[Any]:
        if self.kernel == "refused":
            raise CandidateError("compile", "Triton does not compile this.")
        self.runs += 1
        (built.path / "k.cubin").write_text(self.kernel)
        yield "3.6.0"
        for _ in launches:
            yield {
                "cubin": "k.cubin", "function": self.kernel, "shared_bytes": 0, "registers": 20,
                "local_bytes": 0, "warps": 8, "clusters": 1, "cooperative": False, "scratch_bytes": 0,
                "scratch_align": 1, "profile_bytes": 0, "types": ["*fp32", "*fp32", "i32", "i32"],
                "kept": [0, 1, 2, 3],
            }  # fmt: skip


class FakePool:
    """One judge in this process. ``answer``: what it says, whatever it is asked; an error is raised."""

    def __init__(self, answer: Any = None) -> None:
        self.driver = FakeDriver(KERNELS)
        self._judge, self._answer = Judge(Cpu(), Driver(self.driver), FakeClock), answer
        self.closed = False

    def conditions(self) -> dict[str, Any]:
        return {"device": "made up"}

    def ask(self, request: Mapping[str, Any], wall_s: float) -> dict[str, Any]:
        if isinstance(self._answer, Exception):
            raise self._answer
        if self._answer is not None:
            return dict(self._answer)
        try:
            return self._judge.answer(request)
        except Exception as error:
            return failed(error)

    def close(self) -> None:
        self.closed = True


def backend(kernel: str = "affine", answer: Any = None) -> CudaBackend:
    author = KernelAuthor(None, load_gpu())  # type: ignore[arg-type]  # writes nothing
    return CudaBackend(author, FakeCompiler(kernel), FakePool(answer))  # type: ignore[arg-type]


def executed(one: CudaBackend, folder: Path, source: KernelSource | None = None) -> Execution:
    built = one.build(affine_task(ELEMENTS), source or affine_kernel())
    return one.execute(built, case(folder))


def case(folder: Path, elements: int = ELEMENTS) -> Case:
    files = folder / f"{elements}.bin", folder / f"out{elements}" / "0.bin"
    files[1].parent.mkdir(exist_ok=True)
    np.arange(elements, dtype=np.float32).tofile(files[0])
    return Case((elements,), (), (files[0],), (files[1],), (4 * elements,), repeat=2)


REQUEST = TimingRequest((ELEMENTS,), (), (4 * ELEMENTS,), (4 * ELEMENTS,))


def test_a_kernel_that_is_right(tmp_path: Path) -> None:
    one = backend()
    execution = executed(one, tmp_path)
    assert execution.status is RunStatus.OK and not execution.hazards
    given = np.fromfile(tmp_path / f"out{ELEMENTS}" / "0.bin", np.float32)
    assert np.array_equal(given, 2 * np.arange(ELEMENTS, dtype=np.float32) + 1)
    assert one.latency_source is LatencySource.MEASURED and "made up" in one.name


@pytest.mark.parametrize(
    ("kernel", "code", "words"),
    [
        ("beyond", "out-of-bounds", "wrote outside"),
        ("half", "output-not-written", "elements of output 0 unwritten"),
        ("by_chance", "nondeterministic", "differs between two runs"),
        ("into_input", "input-modified", "changed input 0"),
    ],
)
def test_what_breaks_a_rule_is_a_hazard(tmp_path: Path, kernel: str, code: str, words: str) -> None:
    (hazard, *_) = executed(backend(kernel), tmp_path).hazards
    assert hazard.code == code and words in str(hazard.message)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (JudgeLost("", hung=True), RunStatus.TIMEOUT, "did not finish within"),
        (JudgeLost("it fell", hung=False), RunStatus.CRASH, "failed: it fell"),
        ({"error": "an illegal memory access", "broken": True}, RunStatus.ERROR, "illegal memory access"),
    ],
)
def test_what_ends_a_judge_is_said_of_the_kernel(
    tmp_path: Path, answer: Any, status: RunStatus, words: str
) -> None:
    execution = executed(backend(answer=answer), tmp_path)
    assert execution.status is status and words in str(execution.message)


def test_a_launch_that_the_driver_refuses_is_an_error(tmp_path: Path) -> None:
    one = backend()
    one._pool.driver.failing = 701  # type: ignore[attr-defined]
    execution = executed(one, tmp_path)
    assert execution.status is RunStatus.ERROR and "made to fail" in str(execution.message)


def test_sizes_that_the_record_does_not_take_are_declined(tmp_path: Path) -> None:
    record, source, one = evolve(affine_record(), requires=("s0 % 8 == 0",)), affine_kernel(), backend()
    files = {**source.files, LAUNCH: record.text()}
    built = one.build(affine_task(ELEMENTS), KernelSource(source.target, files, source.strategy))
    assert one.execute(built, case(tmp_path, 3001)).status is RunStatus.DECLINED
    assert one.execute(built, case(tmp_path)).status is RunStatus.OK


def test_cases_are_compiled_at_once_and_end_with_the_first_that_fails(tmp_path: Path) -> None:
    one = backend()
    built = one.build(affine_task(ELEMENTS), affine_kernel())
    cases = [case(tmp_path, elements) for elements in (5, 6, 7)]
    assert [done.status for done in one.execute_in_turn(built, cases)] == 3 * [RunStatus.OK]
    assert one._compiler.runs == 2  # type: ignore[attr-defined]
    broken = backend("half")
    built = broken.build(affine_task(ELEMENTS), affine_kernel())
    assert len(broken.execute_in_turn(built, cases)) == 1


def test_what_triton_refuses_later_is_an_error_of_that_case(tmp_path: Path) -> None:
    one = backend()
    built = one.build(affine_task(ELEMENTS), affine_kernel())
    one._compiler.kernel = "refused"  # type: ignore[attr-defined]
    execution = one.execute(built, case(tmp_path, 64))
    assert execution.status is RunStatus.ERROR and "does not compile" in str(execution.message)


def test_a_record_that_is_none_fails_the_build() -> None:
    source = affine_kernel()
    broken = KernelSource(source.target, {**source.files, LAUNCH: "{"}, source.strategy)
    with pytest.raises(CandidateError) as error:
        backend().build(affine_task(ELEMENTS), broken)
    assert error.value.code == "launch-record"


def test_a_time_says_where_it_comes_from() -> None:
    one = backend()
    timing = one.measure(one.build(affine_task(ELEMENTS), affine_kernel()), REQUEST)
    assert timing.us == 1.0 and timing.block_dim == 2
    assert "device time by cupti, cold L2" in str(timing.bottleneck)


def test_a_kernel_beside_itself_is_told_as_sure_as_the_resolution_allows() -> None:
    one = backend()
    built = [one.build(affine_task(ELEMENTS), affine_kernel()) for _ in range(2)]
    ratio, first, second = one.compared(built[0], built[1], REQUEST, 40)
    assert ratio.holds(1.0) and ratio.half_width == pytest.approx(1.96 * RESOLUTION, rel=0.01)
    assert len(first.span_us) == len(second.span_us) == 40


@pytest.mark.parametrize(
    ("kernel", "answer", "code"),
    [
        ("by_chance", None, "nondeterministic"),
        ("beyond", None, "out-of-bounds"),
        ("affine", JudgeLost("", hung=True), "timeout"),
        ("affine", {"error": "an illegal memory access", "broken": True}, "error"),
    ],
)
def test_a_kernel_that_fails_when_it_is_timed(kernel: str, answer: Any, code: str) -> None:
    one = backend(kernel, answer)
    with pytest.raises(CandidateError) as error:
        one.measure(one.build(affine_task(ELEMENTS), affine_kernel()), REQUEST)
    assert error.value.code == code


def test_too_little_memory_is_no_fault_of_the_kernel() -> None:
    one = backend(answer={"error": "out of memory", "memory": True})
    with pytest.raises(VerifierError, match="too little memory"):
        one.measure(one.build(affine_task(ELEMENTS), affine_kernel()), REQUEST)


def test_it_ends_its_processes() -> None:
    one = backend()
    one.close()
    assert one._pool.closed  # type: ignore[attr-defined]


def test_an_interpreter_without_triton_is_named() -> None:
    author = KernelAuthor(None, load_gpu())  # type: ignore[arg-type]
    with pytest.raises(VerifierUnavailable, match="/nowhere/python has no Triton"):
        open_cuda(author, "/nowhere/python")


def test_the_confinement_is_that_of_who_reads_the_text() -> None:
    one = backend()
    assert one.confinement == TritonCompiler(load_gpu(), sys.executable).confinement
