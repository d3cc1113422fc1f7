"""The twin as a backend: candidates run on the CPU, checked, and timed by a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from evokernel_core import __version__, temporary
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.hardware.ascend.chip import chip_of
from evokernel_core.twin import timeline
from evokernel_core.twin.build import BuiltKernel, CandidateError, build_kernel
from evokernel_core.twin.gaps import Summary
from evokernel_core.twin.judge import Sandboxes, judge_in_turn, judge_kernel, probed_in
from evokernel_core.twin.run import (
    KERNEL_LIMITS,
    ExitStatus,
    LaunchReport,
    Limits,
    Mode,
    PipeWork,
    RunRequest,
    RunResult,
    TensorFile,
    TensorPart,
)
from evokernel_core.verifier.base import Case, Execution, RunStatus, Timing, TimingRequest
from evokernel_core.verifier.sandbox import FILES, confinement_here, sandbox_prefix

RESULT_BYTES = 64 * 1024**2
"""What a run may write beside its outputs: the result and what it prints."""
TRACE_BYTES = 512 * 1024**2
"""What the trace of a timed run may take: some two million instructions."""
COPIES = 8
"""Host bytes for each byte of a tensor: its data, its shadow, guard zones and one output per repeat."""
SHADOWED = 3
"""Bytes of addresses for each byte of a tensor of which only parts have data."""
TOLD_PIPES = 2
"""Pipes of which a timing has the lines."""
FULL_SIZE = 4
"""How many times as long as others a run at full size with data in parts may take."""
PRODUCTS_PER_S = 2e8
"""Multiply-adds that any sensible kernel gets through the checking twin in a second of work; plain matrix
products reach ten times this (benchmarks/twin_speed.py)."""
BYTES_PER_S = 5e7
"""Bytes of values that any sensible kernel makes in the checking twin in a second of work."""
PASSED_BYTES_PER_S = 2**26
"""Bytes of tensors without data that a kernel of many instructions, such as a scan, passes in a second."""


class TwinBackend:
    """Builds, runs and times candidates with the twin: their code in one sandbox, their judge in another."""

    latency_source = LatencySource.MODELLED
    samples = True

    def __init__(self, author: KernelAuthor, limits: Limits | None = None) -> None:
        self.chip, self.author = chip_of(author.device), author
        self.name = f"twin {__version__}"
        self._limits = limits or KERNEL_LIMITS

    @property
    def confinement(self) -> str:
        """What this machine's Linux can confine. Raises BuildError."""
        return confinement_here()

    def build(self, task: KernelTask, source: KernelSource) -> BuiltKernel:
        """The kernel's library. Raises CandidateError, BuildError."""
        return build_kernel(source)

    def execute(self, built: BuiltKernel, case: Case) -> Execution:
        """Runs a case with data and hazard checks."""
        result = self._run(built, self._request(case), self._limits_of(case), case.outputs[0].parent)
        return _executed(case, result)

    def execute_in_turn(
        self, built: BuiltKernel, cases: Sequence[Case], probes: Sequence[tuple[int, ...]] = ()
    ) -> tuple[Execution, ...]:
        """Runs small cases in the same two processes, which takes a third of the time of starting them for
        each, and behind them ComputeTiling alone at some sizes."""
        requests = [self._request(case) for case in cases]
        if probes:
            requests.append(evolve(requests[-1], mode=Mode.TIME, inputs=(), outputs=(), probes=tuple(probes)))
        limits = self._limits_of_all(cases)
        folders = list(dict.fromkeys(case.outputs[0].parent for case in cases))
        sandboxes = self._sandboxes(built, requests, folders)
        results = judge_in_turn(built, requests, limits, sandboxes, folders[0])
        executions = tuple(map(_executed, cases, results))
        if len(results) == len(requests) > len(cases) and results[-1].status is ExitStatus.OK:
            return (*executions[:-1], evolve(executions[-1], probed=probed_in(folders[0])))
        return executions

    def _request(self, case: Case) -> RunRequest:
        return RunRequest(
            mode=Mode.SAMPLE if case.output_parts else Mode.CHECK,
            chip=self.chip,
            sizes=case.sizes,
            scalars=case.scalars,
            inputs=_files(case.inputs, case.input_bytes, case.input_parts),
            outputs=_files(case.outputs, case.output_bytes, case.output_parts),
            repeat=case.repeat,
        )

    def _limits_of(self, case: Case) -> Limits:
        """Memory grows with the tensors, time with the products and with the values between."""
        base = self._limits
        if case.output_parts:  # addresses are reserved for all, and memory is taken for what has data
            passed_s = case.total_bytes / PASSED_BYTES_PER_S
            return evolve(
                base,
                address_space=base.address_space + SHADOWED * case.total_bytes,
                wall_s=FULL_SIZE * base.wall_s + passed_s,
                cpu_s=None if base.cpu_s is None else FULL_SIZE * base.cpu_s + passed_s,
            )
        work_s = case.products / PRODUCTS_PER_S + case.between_bytes / BYTES_PER_S
        extra_s = case.repeat * work_s
        return evolve(
            base,
            address_space=base.address_space + COPIES * case.total_bytes,
            wall_s=base.wall_s + 4 * extra_s,
            cpu_s=None if base.cpu_s is None else base.cpu_s + extra_s,
        )

    def _limits_of_all(self, cases: Sequence[Case]) -> Limits:
        """Memory and time of the one that may take most, and the processor time of all."""
        each = list(map(self._limits_of, cases))
        return evolve(
            max(each, key=lambda limits: limits.address_space),
            wall_s=max(limits.wall_s for limits in each),
            cpu_s=None if self._limits.cpu_s is None else sum(limits.processor_s for limits in each),
        )

    def measure(self, built: BuiltKernel, request: TimingRequest) -> Timing:
        """The modelled latency at full size. Raises CandidateError where the run has none."""
        with temporary.folder("time") as folder:
            return _timing(self._timed(built, request, Path(folder)))

    def measure_briefly(self, built: BuiltKernel, request: TimingRequest, wall_s: float) -> Timing | None:
        """The same, None where timing takes longer than so many seconds. Raises CandidateError."""
        brief = TwinBackend(self.author, evolve(self._limits, wall_s=wall_s))
        try:
            return brief.measure(built, request)
        except CandidateError as error:
            if error.code == ExitStatus.TIMEOUT:
                return None
            raise

    def write_timeline(self, built: BuiltKernel, request: TimingRequest, page: Path) -> Summary:
        """Writes the timeline of the launch that ``measure`` would time; gives what it comes to. Raises
        CandidateError, OSError."""
        with temporary.folder("time") as folder:
            trace = Path(folder) / "trace.json"
            result = self._timed(built, request, Path(folder), trace)
            return timeline.write_timeline(trace, result, self.chip.name, page)

    def _timed(
        self, built: BuiltKernel, request: TimingRequest, folder: Path, trace: Path | None = None
    ) -> RunResult:
        # Addresses are reserved for tensors of any size, but no page of them is ever touched.
        reserved = 2 * sum(request.input_bytes) + 2 * sum(request.output_bytes)
        limits = evolve(self._limits, address_space=self._limits.address_space + reserved)
        run = RunRequest(
            mode=Mode.TIME,
            chip=self.chip,
            sizes=request.sizes,
            scalars=request.scalars,
            inputs=_timed_inputs(request, folder),
            outputs=tuple(TensorFile(None, nbytes) for nbytes in request.output_bytes),
            trace=trace,
        )
        result = self._run(built, run, limits, folder)
        if result.status is not ExitStatus.OK:
            raise CandidateError(result.status, result.message)
        return result

    def _run(self, built: BuiltKernel, request: RunRequest, limits: Limits, scratch: Path) -> RunResult:
        return judge_kernel(built, request, limits, self._sandboxes(built, [request], [scratch]), scratch)

    def _sandboxes(
        self, built: BuiltKernel, requests: Sequence[RunRequest], scratch: Sequence[Path]
    ) -> Sandboxes:
        folders = {tensor.path.parent for one in requests for tensor in one.inputs if tensor.path is not None}
        quota = sum(RESULT_BYTES + sum(tensor.nbytes for tensor in one.outputs) for one in requests)
        quota += TRACE_BYTES if any(one.trace is not None for one in requests) else 0
        return Sandboxes(
            judge=sandbox_prefix(
                built.twin, sorted(folders), scratch, quota=quota, files=FILES * len(requests)
            ),
            candidate=sandbox_prefix(built.twin, [built.library.parent], []),
        )


def _executed(case: Case, result: RunResult) -> Execution:
    """What a case came to."""
    us = sum(launch.latency_us for launch in result.launches)
    timing = _timing(result) if case.output_parts and result.launches else None
    return Execution(
        RunStatus(result.status), result.message, result.hazards, result.seconds, us, timing, result.tiling
    )


def _busiest(launch: LaunchReport) -> frozenset[str]:
    """The pipes of a launch that are busy for longest, those whose lines are worth telling."""
    ordered = sorted(launch.pipes, key=lambda pipe: -pipe[1])
    return frozenset(pipe for pipe, _ in ordered[:TOLD_PIPES])


def _files(
    paths: tuple[Path, ...], sizes: tuple[int, ...], parts: tuple[TensorPart, ...]
) -> tuple[TensorFile, ...]:
    known = parts or (None,) * len(paths)
    return tuple(
        TensorFile(path, nbytes, part=part) for path, nbytes, part in zip(paths, sizes, known, strict=True)
    )


def _timed_inputs(request: TimingRequest, folder: Path) -> tuple[TensorFile, ...]:
    """The inputs of a timed run: files in ``folder`` for those that are known."""
    known = {}
    for position, elements in request.indices:
        known[position] = folder / f"indices_{position}.bin"
        known[position].write_bytes(elements)
    return tuple(TensorFile(known.get(i), nbytes) for i, nbytes in enumerate(request.input_bytes))


def _timing(result: RunResult) -> Timing:
    """The figures of a run: pipes over all launches; blocks, bottleneck, lines and balance of the longest.
    Raises CandidateError where nothing was launched."""
    if not result.launches:
        raise CandidateError("launches", "The launcher launched nothing; launch the kernel.")
    longest = max(result.launches, key=lambda launch: launch.latency_us)
    words = longest.bottleneck
    if len(result.launches) > 1:
        share = 100 * longest.latency_us / max(result.latency_us, 1e-9)
        words = Sentence(
            "{kernel} takes {share} % of {count} launches: {bottleneck}",
            kernel=longest.kernel,
            share=f"{share:.0f}",
            count=len(result.launches),
            bottleneck=words,
        )
    busy: Counter[str] = Counter()
    for launch in result.launches:
        busy.update(dict(launch.pipes))
    work: dict[str, PipeWork] = {}
    for launch in result.launches:
        for pipe, counted in launch.work:
            work[pipe] = work.get(pipe, PipeWork()) + counted
    return Timing(
        us=result.latency_us,
        block_dim=longest.block_dim,
        pipes=tuple(busy.items()),
        bottleneck=words,
        hazards=result.hazards,
        work=tuple(work.items()),
        lines=tuple(line for line in longest.lines if line.pipe in _busiest(longest)),
        balance=longest.balance,
    )
