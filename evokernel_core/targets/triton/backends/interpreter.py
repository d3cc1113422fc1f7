"""Triton's interpreter as a backend: kernels run on any machine, are checked, and are timed by an estimate.

A candidate's text runs in a process of its own, which knows no reference and writes no file; its outputs come
back through a pipe. What is checked of memory stands in ``interpreted/memory.py``.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import PlanError, UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.gpu.gpu import gpu_of
from evokernel_core.hardware.roofline import moved_us
from evokernel_core.targets.triton.backends.ascend_front import AscendFront, front_python
from evokernel_core.targets.triton.backends.interpreter_candidate import CandidateProcess
from evokernel_core.targets.triton.backends.interpreter_case import (
    Call,
    call_of,
    decisions,
    dtypes_of,
    unknown_dtypes,
)
from evokernel_core.targets.triton.backends.interpreter_child import (
    Answer,
    Gone,
    Late,
    confinement,
    triton_version,
)
from evokernel_core.targets.triton.backends.interpreter_estimate import Estimate, counted, estimated
from evokernel_core.targets.triton.backends.interpreter_rules import hazard_of
from evokernel_core.targets.triton.launch import LaunchRecord, read_launches
from evokernel_core.targets.triton.source import KERNEL, LAUNCH
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest
from evokernel_core.verifier.gates.cases import total_products

GIB = 1024**3
ADDRESS_SPACE = 6 * GIB
"""Bytes of addresses of the process beside those of tensors."""
COPIES = 10
"""Bytes of addresses for each byte of a tensor: its data, who stored and loaded them, values on the way."""
ROOM = 64 * 1024**2
"""Bytes of tensors that a process has addresses for at least, so that it serves most cases of a candidate."""
WALL_S = 60.0
PROGRAMS_PER_S = 1_000
BYTES_PER_S = 1e6
PRODUCTS_PER_S = 2e7
STEPPED_PER_S = 5_000
"""What any sensible kernel gets through here in a second: programs, bytes of values, multiply-adds, elements
of the longest dimension where one program steps through it in blocks of 16."""
SAMPLE = 24
"""Programs of a launch that are counted for an estimate."""


@frozen
class Interpreted:
    """A kernel whose text and record were read. ``is_own``: the text is what the author writes for the
    strategy. ``counted``: what cases that ran came to, by their sizes."""

    task: KernelTask
    source: KernelSource
    record: LaunchRecord
    is_own: bool
    counted: dict[tuple[int, ...], Estimate] = field(factory=dict, eq=False)


class InterpreterBackend:
    """Runs candidates with Triton's interpreter in ``python``, the present one where that is empty. Raises
    VerifierUnavailable where it has no Triton."""

    latency_source = LatencySource.MODELLED
    samples = False

    def __init__(
        self,
        author: KernelAuthor,
        python: str = "",
        *,
        wall_s: float = WALL_S,
        address_space: int = ADDRESS_SPACE,
    ) -> None:
        self.author = author
        self._gpu = gpu_of(author.device)
        self._python = python or sys.executable
        self.name = f"triton interpreter {triton_version(self._python)}"
        python = front_python() if self._gpu.backend == "npu" else ""
        self._front = AscendFront(self._gpu, python) if python else None
        if self._front is not None:
            self.name += " and triton-ascend's front"
        self._wall_s, self._address_space = wall_s, address_space
        self._process = CandidateProcess(self._python)
        weakref.finalize(self, self._process.close)

    @property
    def confinement(self) -> str:
        """What this machine confines a candidate's process to. Raises BuildError."""
        return confinement()

    def build(self, task: KernelTask, source: KernelSource) -> Interpreted:
        """The kernel as its process will run it. Raises CandidateError for a text that Python does not
        compile, for a record that is none, and where kernels are for Ascend and triton-ascend stands on this
        machine for what its front refuses."""
        try:
            compile(source.files[KERNEL], KERNEL, "exec", dont_inherit=True)
            record = read_launches(source.files[LAUNCH])
            unknown = unknown_dtypes(dtypes_of(task, record))
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", 0) or 0
            raise CandidateError(
                "syntax", "{file}:{line}: {why}", file=KERNEL, line=line, why=error
            ) from error
        except UsageError as error:
            raise CandidateError("launch", "{file}: {why}", file=LAUNCH, why=error) from error
        if unknown:
            raise CandidateError("dtype", "Triton has no {dtypes}.", dtypes=", ".join(unknown))
        if self._front is not None:
            self._front.build(task, source)
        self._process.begin(source, self._addresses(0))
        return Interpreted(task, source, record, self._is_own(task, source))

    def execute(self, built: Interpreted, case: Case) -> Execution:
        """Runs a case with the rules of memory."""
        try:
            call = call_of(
                built.task, built.record, case.sizes, case.scalars, case.input_bytes, case.output_bytes
            )
            if not built.record.takes(call.sizes):
                return Execution(RunStatus.DECLINED, Sentence("The kernel does not take these sizes."))
            head, words = call.head(built.record.inputs, repeat=case.repeat), call.words()
        except UsageError as error:
            return Execution(RunStatus.ERROR, Sentence("{file}: {why}", file=LAUNCH, why=error))
        blobs = [path.read_bytes() for path in case.inputs]
        execution, answer = self._ran(built, head, blobs, self._limit_s(call, case), case.total_bytes)
        if answer is not None and execution.status is RunStatus.OK and not execution.hazards:
            if tuple(map(len, answer.blobs)) != case.output_bytes:
                return Execution(RunStatus.ERROR, Sentence("The outputs have other sizes than the task's."))
            for path, blob in zip(case.outputs, answer.blobs, strict=True):
                path.write_bytes(blob)
            return evolve(execution, tiling=words, us=self._witnessed_us(built, call, head, answer))
        return evolve(execution, tiling=words)

    def _witnessed_us(self, built: Interpreted, call: Call, head: dict[str, Any], answer: Answer) -> float:
        """Of a text that is not ours, at other sizes than the file's: what it did for each element there is
        held against what it does at full size."""
        estimate = self._estimate(built, call, head, answer)
        built.counted[tuple(call.sizes.values())] = estimate
        return 0.0 if built.is_own or call.sizes == built.task.sizes else estimate.us

    def execute_in_turn(
        self, built: Interpreted, cases: Sequence[Case], probes: Sequence[tuple[int, ...]] = ()
    ) -> tuple[Execution, ...]:
        """Runs cases in the same process up to the first that fails; so does ``execute``, one call each. Host
        code is the launch record, which is read here."""
        executions: list[Execution] = []
        for case in cases:
            executions.append(self.execute(built, case))
            last = executions[-1]
            if last.hazards or last.status not in (RunStatus.OK, RunStatus.DECLINED):
                return tuple(executions)
        if probes and executions:
            executions[-1] = evolve(executions[-1], probed=decisions(built.record, probes))
        return tuple(executions)

    def _addresses(self, nbytes: int) -> int:
        """Bytes of addresses for tensors of so many bytes."""
        return self._address_space + COPIES * max(nbytes, ROOM)

    def _limit_s(self, call: Call, case: Case) -> float:
        work_s = call.programs() / PROGRAMS_PER_S + case.products / PRODUCTS_PER_S
        work_s += (case.between_bytes + case.total_bytes) / BYTES_PER_S
        work_s += max(call.sizes.values(), default=0) / STEPPED_PER_S
        return self._wall_s + case.repeat * work_s

    def _ran(
        self, built: Interpreted, head: dict[str, Any], blobs: Sequence[bytes], wall_s: float, nbytes: int
    ) -> tuple[Execution, Answer | None]:
        """What came of a frame, with the answer where there was one."""
        try:
            answer = self._process.ask(built.source, head, blobs, wall_s, self._addresses(nbytes))
        except Late:
            message = Sentence("The kernel did not end within {seconds} s.", seconds=f"{wall_s:.0f}")
            return Execution(RunStatus.TIMEOUT, message, seconds=wall_s), None
        except Gone as error:
            return _ended(error), None
        return _told(answer.head), answer

    def measure(self, built: Interpreted, request: TimingRequest) -> Timing:
        """A modelled launch at the sizes: the author's own estimate of what it wrote itself, else one from
        what some programs of each launch were counted to do. Raises CandidateError where the kernel does not
        run there."""
        try:
            call = call_of(
                built.task,
                built.record,
                request.sizes,
                request.scalars,
                request.input_bytes,
                request.output_bytes,
            )
            if not built.record.takes(call.sizes):
                raise CandidateError("declined", "The kernel does not take these sizes.")
            estimate = self._counted(built, call, request)
        except UsageError as error:
            raise CandidateError("launch", "{file}: {why}", file=LAUNCH, why=error) from error
        if built.is_own:
            us = self._own_us(built, call.sizes)
            return Timing(us, estimate.programs, estimate.pipes, estimate.bottleneck)
        least = moved_us(built.task, self._gpu) if call.sizes == built.task.sizes else 0.0
        us = max(estimate.us, least)
        return Timing(us, estimate.programs, estimate.pipes, estimate.bottleneck, work=estimate.work)

    def _is_own(self, task: KernelTask, source: KernelSource) -> bool:
        try:
            return self.author.write(task, source.strategy).files == source.files
        except PlanError:
            return False

    def _own_us(self, built: Interpreted, sizes: Mapping[str, int]) -> float:
        """The author's estimate at other sizes."""
        symbols = tuple(evolve(symbol, size=sizes[symbol.name]) for symbol in built.task.symbols)
        return self.author.estimate_us(evolve(built.task, symbols=symbols), built.source.strategy)

    def _counted(self, built: Interpreted, call: Call, request: TimingRequest) -> Estimate:
        """An estimate from a case that ran at the sizes, else from some programs of each launch, on zeros and
        the indices that the request has."""
        if (known := built.counted.get(tuple(call.sizes.values()))) is not None:
            return known
        indices = dict(request.indices)
        given = [name for place, name in enumerate(built.record.inputs) if place in indices]
        blobs = [indices[place] for place in sorted(indices)]
        head = call.head(given, sample=SAMPLE)
        scratch = call.scratch_bytes()
        nbytes = sum(call.nbytes.values()) + sum(scratch.values())
        execution, answer = self._ran(built, head, blobs, self._wall_s, nbytes)
        if answer is None or execution.status is not RunStatus.OK or execution.hazards:
            hazard = execution.hazards[0] if execution.hazards else None
            code = hazard.code if hazard else str(execution.status)
            raise CandidateError(code, "{what}", what=hazard.message if hazard else execution.message)
        return self._estimate(built, call, head, answer)

    def _estimate(self, built: Interpreted, call: Call, head: dict[str, Any], answer: Answer) -> Estimate:
        told = answer.head["counts"]
        grids = [launch.get("grid", (1, 1, 1)) for launch in head["launches"]]
        works = [counted(one, x * y * z) for one, (x, y, z) in zip(told, grids, strict=True)]
        estimate = estimated(self._gpu, works, {**call.nbytes, **call.scratch_bytes()})
        return (
            estimate.with_libraries(self._library_us(built, call)) if built.record.library_calls else estimate
        )

    def _library_us(self, built: Interpreted, call: Call) -> float:
        """Microseconds of what libraries compute: at most all products of the task, at the device's rate."""
        dtype = call.dtypes[built.record.inputs[0]]
        return self._gpu.product_us(total_products(built.task, call.sizes), dtype)


def _told(head: Mapping[str, Any]) -> Execution:
    """An answer of the process as an Execution."""
    seconds = float(head.get("seconds", 0.0))
    try:
        status = RunStatus(head["status"])
        hazards = tuple(hazard_of(one) for one in head.get("hazards", ()))
    except (KeyError, ValueError, TypeError):
        message = Sentence("The interpreter's process gave an answer that is none.")
        return Execution(RunStatus.ERROR, message, seconds=seconds)
    if status is RunStatus.MEMORY:
        return Execution(status, Sentence("The kernel took more memory than the limit."), seconds=seconds)
    if status is RunStatus.ERROR:
        message = Sentence(
            "{file}:{line}: Triton refuses this: {why}",
            file=KERNEL,
            line=int(head.get("line", 0)),
            why=str(head.get("why", "")),
        )
        return Execution(status, message, seconds=seconds)
    return Execution(status, hazards=hazards, seconds=seconds)


def _ended(error: Gone) -> Execution:
    """What the end of the process says of the kernel."""
    message = Sentence(
        "The kernel ended its process ({status}: {why}).", status=error.status, why=error.words
    )
    return Execution(RunStatus.CRASH, message)
