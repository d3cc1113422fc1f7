"""One run of a person's own AscendC on the twin: what is asked for, and what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from evokernel_core import temporary
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import Hazard, Severity
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.bare import build_bare, filled, read_launch, run_bare
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.program import build_program, run_program
from evokernel_core.twin.run import GIB, ExitStatus, Limits, Mode, RunResult
from evokernel_core.twin.sources import ProgramSource
from evokernel_core.twin.timeline import chrome_trace, write_timeline

MAX_SECONDS = 600.0
"""Seconds that a run may take where nobody says otherwise."""


@frozen
class Job:
    """``entry`` and ``launch`` name a bare kernel and its LAUNCH.json; without them ``source`` is a program
    with its own ``main``, of which ``more`` are further translation units. ``limit`` is in seconds."""

    source: Path
    chip: str
    mode: Mode = Mode.CHECK
    entry: str = ""
    launch: Path | None = None
    more: tuple[Path, ...] = ()
    includes: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    cwd: Path | None = None
    trace: Path | None = None
    limit: float = MAX_SECONDS
    auto_sync: bool = True
    arguments: tuple[str, ...] = ()

    @property
    def limits(self) -> Limits:
        """What the process of the run may use."""
        return Limits(wall_s=self.limit, address_space=16 * GIB)

    @property
    def program(self) -> ProgramSource:
        """What is compiled."""
        return ProgramSource((self.source, *self.more), self.includes, self.defines)


@frozen
class JobOutcome:
    """A run with what comparing its outputs found."""

    result: RunResult
    compile_s: float
    mismatches: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        errors = any(hazard.severity is Severity.ERROR for hazard in self.result.hazards)
        done = self.result.status is ExitStatus.OK and self.result.exit_code == 0
        return done and not errors and not self.mismatches


def run_job(job: Job) -> JobOutcome:
    """Compiles and runs; a trace whose name ends in .html becomes a page. What the compiler refuses is an
    outcome; raises UsageError for a job that cannot be begun, BuildError."""
    try:
        with chrome_trace(job.trace) as trace:
            traced = evolve(job, trace=trace)
            outcome = _run_bare(traced, job.launch) if job.launch else _run_program(traced)
            if job.trace is not None and trace != job.trace and trace is not None and trace.is_file():
                write_timeline(trace, outcome.result, job.chip, job.trace)
        return outcome
    except CandidateError as error:
        return JobOutcome(RunResult(ExitStatus.ERROR, error.feedback, exit_code=1), 0.0)


def _run_bare(job: Job, launch: Path) -> JobOutcome:
    cwd = job.cwd or launch.parent
    how = (job.mode, load_chip(job.chip), job.trace)
    with temporary.folder("inputs") as made:
        bare = build_bare(job.program, job.entry, filled(read_launch(launch), Path(made)), cwd)
        result, mismatches = run_bare(bare, cwd, how, job.limits, auto_sync=job.auto_sync)
    return JobOutcome(result, bare.built.compile_s, mismatches)


def _run_program(job: Job) -> JobOutcome:
    program = build_program(job.program)
    how = (job.mode, load_chip(job.chip), job.trace)
    cwd = job.cwd or Path.cwd()
    result = run_program(program, job.arguments, cwd, how, job.limits, auto_sync=job.auto_sync)
    return JobOutcome(_without_launches(result), program.compile_s)


def _without_launches(result: RunResult) -> RunResult:
    """A program that ended well but launched nothing has shown nothing about a kernel."""
    if result.status is ExitStatus.OK and not result.launches:
        return evolve(result, status=ExitStatus.ERROR, message="The program launched no kernel.")
    return result


def _plain(hazard: Hazard) -> dict[str, Any]:
    """Its message as a text alone, for programs and coding agents."""
    return dict(to_data(evolve(hazard, message=str(hazard.message))))


def as_data(outcome: JobOutcome) -> dict[str, Any]:
    """The outcome as ``evokernel twin run --json`` prints it; latencies are modelled microseconds."""
    result = outcome.result
    return {
        "ok": outcome.ok,
        "exit_code": result.exit_code,
        "error": " ".join([result.message, *outcome.mismatches]).strip(),
        "hazards": [_plain(hazard) for hazard in result.hazards],
        "launches": [
            {
                "kernel": launch.kernel,
                "block_dim": launch.block_dim,
                "latency_us": launch.latency_us,
                "pipes": dict(launch.pipes),
                "bottleneck": launch.bottleneck,
            }
            for launch in result.launches
        ],
        "latency_us": result.latency_us,
        "compile_s": round(outcome.compile_s, 3),
        "run_s": round(result.seconds, 3),
    }
