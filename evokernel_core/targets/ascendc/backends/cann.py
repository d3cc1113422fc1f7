"""CANN as a backend: bisheng compiles, torch_npu runs and profiles. Not yet run on hardware.

The commands and parsers follow the public documentation of CANN and torch_npu; no machine with an
NPU has run them, so ``name`` says so. Each candidate is built in a folder of its own and runs in a
process of its own, without the sandbox of the twin: the driver needs its devices.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from evokernel_core import __version__, temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Hazard, LatencySource, Severity
from evokernel_core.hardware.ascend.chip import chip_of
from evokernel_core.targets.ascendc.backends.bisheng import said_against
from evokernel_core.targets.ascendc.backends.cann_profile import read_timing
from evokernel_core.targets.ascendc.backends.cann_tools import CannTools, compile_command, watched
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.conditions import BUILT_IN, active_tokens
from evokernel_core.twin.kernels import find_kernels
from evokernel_core.twin.run import clean_environment, run_process
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest
from evokernel_core.verifier.sandbox import Level

RUN_SCRIPT = Path(__file__).with_name("cann_run.py")
WALL_SECONDS = 120.0
PROFILE = "profile"
PASSED_ON = ("ASCEND", "LD_LIBRARY_PATH", "PYTHONPATH", "HOME", "PATH")
"""Beginnings of the environment variables that CANN and torch_npu need."""

GLUE = """\
#include <cstddef>
#include <new>
#include <type_traits>
#include "tiling.h"
static_assert(std::is_trivially_copyable<OpTiling>::value, "OpTiling must be trivially copyable");
static_assert(sizeof(OpTiling) <= 65536, "OpTiling must not take more than 65536 bytes");
extern "C" void LaunchOp(void *stream, uint8_t *const *tensors, uint8_t *workspace, const OpTiling &tiling);
extern "C" int EvokernelComputeTiling(const int64_t *sizes, const float *scalars, uint32_t coreNum,
                                      uint64_t ubBytes, void *buffer, uint64_t *workspaceBytes)
{
    OpTiling *tiling = new (buffer) OpTiling();
    bool accepted = ComputeTiling(sizes, scalars, coreNum, ubBytes, *tiling);
    *workspaceBytes = tiling->workspaceBytes;
    return accepted ? 1 : 0;
}
extern "C" void EvokernelLaunch(void *stream, uint8_t *const *tensors, uint8_t *workspace, const void *tiling)
{
    LaunchOp(stream, tensors, workspace, *static_cast<const OpTiling *>(tiling));
}
"""


@frozen
class CannKernel:
    """A compiled candidate; ``folder`` is removed with it. ``kernels``: the names of its device functions."""

    library: Path
    kernels: tuple[str, ...]
    folder: tempfile.TemporaryDirectory[str]


def kernel_names(kernel: str) -> tuple[str, ...]:
    """The ``__global__`` functions in the order of the text. Raises CandidateError where there is none."""
    kernels = find_kernels([tuple(active_tokens(kernel, dict(BUILT_IN)))])
    if not kernels:
        raise CandidateError("compile", "op_kernel.cpp has no __global__ function; write one.")
    return tuple(kernels)


class CannBackend:
    """Compiles, runs and measures candidates on an Ascend host."""

    latency_source = LatencySource.MEASURED
    samples = False
    confinement = str(Level.LIMITS)

    def __init__(self, author: KernelAuthor, tools: CannTools) -> None:
        self.chip, self.author = chip_of(author.device), author
        self.name = f"cann {__version__} (not yet run on hardware)"
        self._tools = tools

    def build(self, task: KernelTask, source: KernelSource) -> CannKernel:
        """Compiles the two files and the host glue. Raises CandidateError."""
        folder = temporary.folder("cann")
        work = Path(folder.name)
        (work / "glue.cpp").write_text(GLUE)
        toolkit = self._tools.toolkit
        command = compile_command(toolkit, (KERNEL, "glue.cpp"), "kernel.so")
        if problem := said_against(toolkit, source.files, command, work):
            raise CandidateError("compile", problem)
        return CannKernel(work / "kernel.so", kernel_names(source.files[KERNEL]), folder)

    def execute(self, built: CannKernel, case: Case) -> Execution:
        """Runs a case on the NPU; outputs land in the case's files."""
        folder = case.outputs[0].parent
        inputs = [(str(path), path.stat().st_size) for path in case.inputs]
        outputs = list(zip(map(str, case.outputs), case.output_bytes, strict=True))
        numbers = (case.sizes, case.scalars, case.repeat)
        return self._run(built, folder, numbers, (inputs, outputs))

    def measure(self, built: CannKernel, request: TimingRequest) -> Timing:
        """The mean device time of a launch after warm-up. Raises CandidateError, VerifierError."""
        with temporary.folder("msprof") as name:
            self.profile(built, request, Path(name))
            return read_timing(Path(name) / PROFILE, built.kernels)

    def profile(self, built: CannKernel, request: TimingRequest, folder: Path) -> None:
        """Leaves the profiler's files of some launches in ``profile`` below the folder. Raises
        CandidateError where a launch failed."""
        known = dict(request.indices)
        inputs: list[tuple[str | None, int]] = []
        for position, nbytes in enumerate(request.input_bytes):
            file = folder / f"indices_{position}.bin"
            if position in known:
                file.write_bytes(known[position])
            inputs.append((str(file) if position in known else None, nbytes))
        outputs = [(None, nbytes) for nbytes in request.output_bytes]
        numbers = (request.sizes, request.scalars, 1)
        options = ("--profile", str(folder / PROFILE))
        execution = self._run(built, folder, numbers, (inputs, outputs), options)
        if execution.status is not RunStatus.OK:
            raise CandidateError(execution.status, execution.message)

    def _run(
        self,
        built: CannKernel,
        folder: Path,
        numbers: tuple[tuple[int, ...], tuple[float, ...], int],
        tensors: tuple[Sequence[tuple[str | None, int]], Sequence[tuple[str | None, int]]],
        options: tuple[str, ...] = (),
    ) -> Execution:
        request = {
            "library": str(built.library),
            "result": str(folder / "result.json"),
            "sizes": numbers[0],
            "scalars": numbers[1],
            "repeat": numbers[2],
            "cores": self.chip.aiv,
            "ub_bytes": self.chip.ub_bytes,
            "inputs": tensors[0],
            "outputs": tensors[1],
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [self._tools.python, str(RUN_SCRIPT), str(folder / "request.json"), *options]
        around = self._tools.toolkit.environment(os.environ)
        passed_on = {name: value for name, value in around.items() if name.startswith(PASSED_ON)}
        finished = run_process(watched(command), folder, WALL_SECONDS, clean_environment() | passed_on)
        if finished.timed_out:
            message = Sentence("The kernel did not finish within {seconds} s.", seconds=f"{WALL_SECONDS:.0f}")
            return Execution(RunStatus.TIMEOUT, message, seconds=finished.seconds)
        if finished.exit_code:
            last = (finished.stderr.strip().splitlines() or ["it said nothing"])[-1][:300]
            message = Sentence("The run on the NPU failed: {said}", said=last)
            return Execution(RunStatus.CRASH, message, seconds=finished.seconds)
        return read_execution(folder / "result.json", finished.seconds)


def read_execution(path: Path, seconds: float) -> Execution:
    """What the run script found."""
    data = json.loads(path.read_text())
    hazards = tuple(Hazard(code, Severity.ERROR, _seen(code, number)) for code, number in data["hazards"])
    failed = RunStatus.DECLINED if data.get("declined") else RunStatus.ERROR
    status = failed if data["error"] else RunStatus.OK
    return Execution(status, Sentence(data["error"]), hazards, seconds)


def _seen(code: str, number: int) -> Sentence:
    """What the run script saw of an input or output."""
    if code == "input-modified":
        return Sentence("The kernel changed input {number}.", number=number)
    if code == "out-of-bounds":
        return Sentence("The kernel wrote behind output {number}.", number=number)
    return Sentence("Output {number} differs between two runs on the same inputs.", number=number)
