"""CUDA as a backend: cubins on a GPU, judged and timed in a process that has no candidate's Python.

Triton compiles the jit functions in a process without a GPU; what reaches the device are cubins and a table
of arguments, so nothing that a candidate could run is where clocks, events and results are.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from evokernel_core import __version__, temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import UsageError, VerifierError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Hazard, LatencySource, Severity
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.hardware.roofline import moved_us
from evokernel_core.targets.triton.backends.compiled import Operands, call_of, operands_of
from evokernel_core.targets.triton.backends.compiler import BuiltTriton, TritonCompiler, triton_version
from evokernel_core.targets.triton.backends.gpu_process import (
    JudgeLost,
    JudgePool,
    JudgeProcess,
    judge_command,
)
from evokernel_core.targets.triton.backends.intervals import Ratio, ratio_of
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.run import TensorPart
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest

WALL_SECONDS = 20.0
"""For a case of no size to speak of; what takes longer hangs."""
BYTES_A_SECOND = 1e8
"""Of a case's tensors: read, copied to the device, compared and written."""
RUNS = 60
"""Of a kernel that is timed alone."""
MOST_CHANGED = 0
"""Timed runs whose results may differ from those of the first."""


@frozen
class Measured:
    """Times of runs of one kernel, in microseconds: ``busy_us`` while at least one of its launches ran, by
    ``how`` ("cupti" or "events"), ``span_us`` from the first's begin to the last's end."""

    how: str
    busy_us: tuple[float, ...]
    span_us: tuple[float, ...]
    event_us: tuple[float, ...]
    readings: tuple[Mapping[str, Any], ...]
    kernels: Mapping[str, int]
    """What ran, of all that was timed at once, by name, with how often."""

    @property
    def us(self) -> float:
        """The median of its span: what a call takes on the device, the gaps between its launches with it."""
        return statistics.median(self.span_us)


class CudaBackend:
    """Compiles, runs and measures candidates on an NVIDIA GPU."""

    latency_source = LatencySource.MEASURED
    samples = True

    def __init__(self, author: KernelAuthor, compiler: TritonCompiler, pool: JudgePool) -> None:
        """Raises VerifierUnavailable where there is no device, or another than the author's."""
        self.gpu, self.author = gpu_of(author.device), author
        self._compiler, self._pool = compiler, pool
        self.conditions = pool.conditions()
        self.name = f"cuda {__version__} ({self.conditions['device']})"

    @property
    def confinement(self) -> str:
        """How far the process that reads a candidate's Python is confined; no other reads it."""
        return self._compiler.confinement

    def build(self, task: KernelTask, source: KernelSource) -> BuiltTriton:
        """The kernel compiled at the task's own sizes. Raises CandidateError, VerifierUnavailable."""
        try:
            return self._compiler.build(task, source)
        except UsageError as error:
            raise CandidateError("launch-record", "{problem}", problem=error) from error

    def compile_ahead(
        self, built: BuiltTriton, calls: Sequence[tuple[Sequence[int], Sequence[float]]]
    ) -> None:
        """Compiles for sizes and scalars of calls to come, in one process. Sizes at which it fails are left
        out: who runs them is told why."""
        with contextlib.suppress(CandidateError, UsageError):
            taken = [call for call in calls if _takes(built, call[0])]
            self._compiler.compiled(built, [operands_of(built.task, built.record, *call) for call in taken])

    def execute_in_turn(
        self, built: BuiltTriton, cases: Sequence[Case], probes: Sequence[tuple[int, ...]] = ()
    ) -> tuple[Execution, ...]:
        """Runs cases that are compiled at once, up to the first that fails."""
        self.compile_ahead(built, [(case.sizes, case.scalars) for case in cases])
        done: list[Execution] = []
        for case in cases:
            done.append(self.execute(built, case))
            if done[-1].status not in (RunStatus.OK, RunStatus.DECLINED) or done[-1].hazards:
                break
        return tuple(done)

    def execute(self, built: BuiltTriton, case: Case) -> Execution:
        """Runs a case twice or more, each time at other addresses and on other bytes."""
        if not _takes(built, case.sizes):
            return Execution(RunStatus.DECLINED, Sentence("launch.json requires other sizes than these."))
        try:
            operands = operands_of(built.task, built.record, case.sizes, case.scalars)
            compiled = self._compiler.compiled(built, [operands])[0]
            call = call_of(built.record, compiled, operands)
        except CandidateError as error:
            return Execution(RunStatus.ERROR, error.feedback)
        except UsageError as error:
            return Execution(RunStatus.ERROR, error.sentence)
        request = {
            "op": "execute",
            "call": call,
            "inputs": _files(built.record.inputs, case.input_bytes, case.inputs, case.input_parts),
            "outputs": _files(built.record.outputs, case.output_bytes, case.outputs, case.output_parts),
            "scratch": _scratch(built, operands),
            "repeat": case.repeat,
            "seed": secrets.randbits(60),
        }
        wall_s = WALL_SECONDS + (case.total_bytes / BYTES_A_SECOND) * (1 + case.repeat)
        return self._executed(built, request, wall_s)

    def _executed(self, built: BuiltTriton, request: Mapping[str, Any], wall_s: float) -> Execution:
        try:
            answer = self._pool.ask(request, wall_s)
        except JudgeLost as error:
            return _lost(error, wall_s)
        if "error" in answer:
            return Execution(RunStatus.ERROR, _device_words(answer))
        names = {name: place for place, name in enumerate(built.record.inputs)}
        names |= {name: place for place, name in enumerate(built.record.outputs)}
        return Execution(
            RunStatus.OK, hazards=tuple(_hazard(code, name, names) for code, name in answer["hazards"])
        )

    def measure(self, built: BuiltTriton, request: TimingRequest) -> Timing:
        """The median device time of runs at full size with a cold L2. Raises CandidateError where a run
        fails or has other results than the first, VerifierError."""
        measured = self.measured(built, request)
        operands = operands_of(built.task, built.record, request.sizes, request.scalars)
        grids = [one.programs(operands.sizes) for one in built.record.kernels]
        programs = max(map(math.prod, grids), default=1)  # a library's calls have no grid of ours
        share = 100 * moved_us(built.task, self.gpu) / max(measured.us, 1e-9)
        words = Sentence(
            "Its bytes alone take {share} % of the time (device time by {how}, cold L2).",
            share=f"{share:.0f}",
            how=measured.how,
        )
        return Timing(us=measured.us, block_dim=programs, pipes=(), bottleneck=words)

    def measured(self, built: BuiltTriton, request: TimingRequest, runs: int = RUNS) -> Measured:
        """Times of a kernel alone. Raises as ``measure`` does."""
        return self._measured([built], request, runs)[0]

    def compared(
        self, first: BuiltTriton, second: BuiltTriton, request: TimingRequest, pairs: int
    ) -> tuple[Ratio, Measured, Measured]:
        """How many times as long as the first the second takes, by pairs of runs. Raises as ``measure``."""
        one, other = self._measured([first, second], request, pairs)
        return ratio_of(one.span_us, other.span_us, secrets.randbits(32)), one, other

    def _measured(self, kernels: Sequence[BuiltTriton], request: TimingRequest, runs: int) -> list[Measured]:
        with temporary.folder("time") as folder:
            answer = self._timed(kernels, request, runs, Path(folder))
        for stray in answer["strays"]:
            if stray:
                raise CandidateError(
                    "out-of-bounds", "The kernel wrote where it must not: {what}.", what=stray
                )
        if max(answer["changed"]) > MOST_CHANGED:
            raise CandidateError(
                "nondeterministic",
                "{count} runs had other results than the first on the same inputs when the kernel was timed.",
                count=max(answer["changed"]),
            )
        readings = tuple(answer["readings"])
        return [
            Measured(
                how=answer["how"],
                busy_us=tuple(one["busy_us"]),
                span_us=tuple(one["span_us"]),
                event_us=tuple(one["event_us"]),
                readings=readings,
                kernels=answer["kernels"],
            )
            for one in answer["times"]
        ]

    def _timed(
        self, kernels: Sequence[BuiltTriton], request: TimingRequest, runs: int, folder: Path
    ) -> Mapping[str, Any]:
        record, task = kernels[0].record, kernels[0].task
        systems, nbytes = [], 0
        for built in kernels:
            operands = operands_of(task, built.record, request.sizes, request.scalars)
            compiled = self._compiler.compiled(built, [operands])[0]
            systems.append(
                {"call": call_of(built.record, compiled, operands), "scratch": _scratch(built, operands)}
            )
            nbytes += sum(operands.nbytes.values())
        known, bytes_of = _known(request, folder), operands.nbytes
        inputs = [
            {
                "name": name,
                "bytes": bytes_of[name],
                "dtype": operands.dtypes[name],
                "file": known.get(i),
            }
            for i, name in enumerate(record.inputs)
        ]
        outputs = [{"name": name, "bytes": operands.nbytes[name]} for name in record.outputs]
        asked = {"op": "measure", "systems": systems, "inputs": inputs, "outputs": outputs}
        wall_s = WALL_SECONDS + runs * (0.01 + nbytes / (10 * BYTES_A_SECOND))
        try:
            answer = self._pool.ask({**asked, "runs": runs, "seed": secrets.randbits(60)}, wall_s)
        except JudgeLost as error:
            lost = _lost(error, wall_s)
            raise CandidateError(str(lost.status), "{words}", words=lost.message) from error
        if answer.get("memory"):
            raise VerifierError("The GPU has too little memory left to time this kernel; free some of it.")
        if "error" in answer:
            raise CandidateError("error", "{words}", words=_device_words(answer))
        return answer

    def close(self) -> None:
        """Ends the processes that judge."""
        self._pool.close()


def _files(
    names: Sequence[str], sizes: Sequence[int], files: Sequence[Path], parts: Sequence[TensorPart]
) -> list[dict[str, Any]]:
    known: list[dict[str, Any] | None] = [asdict(part) for part in parts]
    known = known or [None] * len(names)
    rows = zip(names, sizes, files, known, strict=True)
    return [{"name": name, "bytes": size, "file": str(file), "part": part} for name, size, file, part in rows]


def _takes(built: BuiltTriton, sizes: Sequence[int]) -> bool:
    return built.record.takes(dict(zip(built.record.symbols, sizes, strict=True)))


def _scratch(built: BuiltTriton, operands: Operands) -> dict[str, int]:
    return {one.name: operands.nbytes[one.name] for one in built.record.scratch}


def _known(request: TimingRequest, folder: Path) -> dict[int, str]:
    """Files of the inputs that say where others are read, by their place."""
    known = {}
    for place, elements in request.indices:
        known[place] = str(folder / f"indices_{place}.bin")
        Path(known[place]).write_bytes(elements)
    return known


def _lost(error: JudgeLost, wall_s: float) -> Execution:
    if error.hung:
        words = Sentence("The kernel did not finish within {seconds} s.", seconds=f"{wall_s:.0f}")
        return Execution(RunStatus.TIMEOUT, words, seconds=wall_s)
    return Execution(RunStatus.CRASH, Sentence("The run on the GPU failed: {said}", said=error.said))


def _device_words(answer: Mapping[str, Any]) -> Sentence:
    return Sentence("The run on the GPU failed: {said}", said=answer["error"])


def _hazard(code: str, name: str, places: Mapping[str, int]) -> Hazard:
    number = places.get(name, 0)
    if code == "input-modified":
        words = Sentence("The kernel changed input {number}.", number=number)
    elif code == "out-of-bounds":
        words = Sentence("The kernel wrote outside {name}.", name=name)
    elif code == "output-not-written":
        words = Sentence("The kernel left elements of output {number} unwritten.", number=number)
    else:
        words = Sentence("Output {number} differs between two runs on the same inputs.", number=number)
    return Hazard(code, Severity.ERROR, words)


def open_cuda(author: KernelAuthor, python: str) -> CudaBackend:
    """The backend with an interpreter that has torch and triton, "" for the one that runs this. Raises
    VerifierUnavailable where one of them, the driver or the device is missing."""
    if not triton_version(python or sys.executable):
        raise VerifierUnavailable(
            "{python} has no Triton; run `pip install triton`, or name an interpreter that has it.",
            python=python or sys.executable,
        )
    pool = JudgePool(lambda: JudgeProcess(judge_command(python)))
    return CudaBackend(author, TritonCompiler(gpu_of(author.device), python), pool)
