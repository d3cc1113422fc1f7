"""``evokernel twin run`` and ``run-op``: AscendC on the CPU, checked and timed by a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

from evokernel_core.cli.options import OutputFile
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import Hazard, Severity
from evokernel_core.twin.chip import DEFAULT_CHIP, chip_names, load_chip
from evokernel_core.twin.run import GIB, Limits, Mode, RunResult, Status

MAX_SECONDS = 600.0
MAX_SHOWN = 20


@click.group()
def command() -> None:
    """Run AscendC on the CPU: checked against the hardware's rules and timed by a model."""


@frozen
class _Job:
    """What the command line asks for."""

    source: Path
    more: tuple[Path, ...]
    includes: tuple[Path, ...]
    entry: str
    launch: Path | None
    defines: tuple[str, ...]
    mode: Mode
    chip: str
    cwd: Path | None
    trace: Path | None
    limit: float
    auto_sync: bool
    arguments: tuple[str, ...]

    @property
    def limits(self) -> Limits:
        """What the process of the run may use."""
        return Limits(wall_s=self.limit, address_space=16 * GIB)


@frozen
class _Outcome:
    """A run with what comparing its outputs found."""

    result: RunResult
    compile_s: float
    mismatches: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        errors = any(hazard.severity is Severity.ERROR for hazard in self.result.hazards)
        done = self.result.status is Status.OK and self.result.exit_code == 0
        return done and not errors and not self.mismatches


@command.command()
@click.argument("source", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--entry", default="", help="Launch this kernel of the source, as --launch says.")
@click.option("--launch", type=click.Path(path_type=Path, dir_okay=False), help="LAUNCH.json for --entry.")
@click.option(
    "--source",
    "more",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Another translation unit of the program.",
)
@click.option(
    "-I",
    "includes",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Look for included files here too.",
)
@click.option("-D", "defines", multiple=True, metavar="NAME=VALUE", help="Define a macro.")
@click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), default="check", show_default=True)
@click.option("--chip", default=DEFAULT_CHIP, show_default=True, help=f"One of: {', '.join(chip_names())}.")
@click.option(
    "--cwd", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Run in this folder."
)
@click.option(
    "--trace",
    type=OutputFile(),
    help="Write the timeline here: a page where the name ends in .html, else a Chrome trace for Perfetto.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=0.1),
    default=MAX_SECONDS,
    show_default=True,
    help="Seconds that the run may take.",
)
@click.option(
    "--auto-sync/--no-auto-sync",
    default=True,
    show_default=True,
    help="Whether the compiler inserts barriers (--cce-auto-sync); without it the kernel needs them all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(source: Path, as_json: bool, **options: Any) -> None:
    """Compile SOURCE and run it on the twin.

    With --entry and --launch a device kernel runs on .npy or .bin files; without them SOURCE is a
    whole program with its own main. Exit status 0: it ran without hazards and as expected.

    \b
    LAUNCH.json: {"block_dim": 8, "args": [{"in": "x.npy"},
      {"out": "z.npy", "shape": [8, 2048], "dtype": "float16"}, {"scalar": "uint32", "value": 2048},
      {"bytes": "tiling.bin"}, {"workspace": 0}, {"null": true}, {"same": 1},
      {"list": [{"in": "a.npy"}, {"in": "b.npy"}]}], "expect": {"z.npy": "golden.npy"}, "rtol": 1e-3}
    What an operator package's build would give, each optional:
      "tiling_key": 1                      for TILING_KEY_IS and KERNEL_TASK_TYPE
      "template": ["float16", 8, true]     arguments of a kernel that is a template
      "kernel_type": "MIX_AIC_1_2"         instead of what the kernel says
      "tiling_header": "x_tiling.h", "tiling_struct": "XTilingData"   for GET_TILING_DATA
      "dtypes": {"X": "float16"}, "formats": {"X": "ND"}    for DTYPE_X, ORIG_DTYPE_X, FORMAT_X;
        dtypes of tensors are known by the names of the kernel's parameters
    """
    from evokernel_core.twin.build import CandidateError

    job = _Job(source=source, **{**options, "mode": Mode(options["mode"])})
    if bool(job.entry) != (job.launch is not None):
        raise UsageError("--entry and --launch go together; give both or neither.")
    try:
        outcome = _traced(job)
    except CandidateError as error:
        outcome = _Outcome(RunResult(Status.ERROR, error.feedback, exit_code=1), 0.0)
    say(json.dumps(_as_json(outcome)) if as_json else _as_text(outcome, job))
    if not outcome.ok:
        sys.exit(1)


@command.command("run-op")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--case", "case_file", type=click.Path(path_type=Path, dir_okay=False), help="CASE.json of a call."
)
@click.option(
    "--project",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Look for headers below this folder; found from FOLDER upwards if not given.",
)
@click.option("--mode", type=click.Choice([str(mode) for mode in Mode]), default="check", show_default=True)
@click.option("--chip", default=DEFAULT_CHIP, show_default=True, help=f"One of: {', '.join(chip_names())}.")
@click.option(
    "--limit",
    type=click.FloatRange(min=0.1),
    default=MAX_SECONDS,
    show_default=True,
    help="Seconds that the run may take.",
)
@click.option(
    "--auto-sync/--no-auto-sync",
    default=True,
    show_default=True,
    help="Whether the compiler inserts barriers (--cce-auto-sync).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run_op(folder: Path, case_file: Path | None, as_json: bool, **options: Any) -> None:
    """Compile the operator in FOLDER (op_kernel, op_host), and run a call of it with its own tiling.

    Without --case every operator of the folder is compiled for the first of its dtypes.

    \b
    CASE.json: {"operator": "AddRmsNorm", "inputs": {"x1": "x1.npy", "x2": "x2.npy", "gamma": null},
      "attributes": {"epsilon": 1e-5}, "outputs": {"y": {"shape": [8, 2048], "dtype": "float16"}},
      "expect": {"y": "golden.npy"}, "rtol": 1e-3, "atol": 1e-3}
    A list of tensors is a list; a bfloat16 tensor {"file": "x.npy", "dtype": "bfloat16"} has its 16 bits.
    An input in "expect" is changed in place. An output given as a file holds it before the call; one that the
    operator requires and the case leaves out has the shape that the operator's own shape function says.
    """
    told = _operator_told(folder, case_file, options)
    say(json.dumps(told) if as_json else _operator_text(told))
    wrong = told["compared"] and not told["right"]
    if not told["compiled"] or (case_file and not told["ran"]) or wrong:
        sys.exit(1)


def _operator_told(folder: Path, case_file: Path | None, options: dict[str, Any]) -> dict[str, Any]:
    from evokernel_core.twin.operators.report import compiled_operators, ran_case

    chip = load_chip(options["chip"])
    if case_file is None:
        return compiled_operators(folder, options["project"], chip)
    limits = Limits(wall_s=options["limit"], address_space=16 * GIB)
    how = (Mode(options["mode"]), limits, options["auto_sync"])
    return ran_case(folder, options["project"], chip, case_file, how)


def _operator_text(told: dict[str, Any]) -> str:
    refused = told["stage"] == "call"
    lines = ["the call was refused" if refused else f"compiled: {'yes' if told['compiled'] else 'no'}"]
    lines += [f"  missing: {name}" for name in told["missing"]]
    if told["ran"]:
        compared = "yes" if told["right"] else "no" if told["compared"] else "nothing was compared"
        lines.append(f"right: {compared}")
        lines.append(f"latency: {told['latency_us']:.2f} us, modelled")
    lines += [
        f"{item['severity']} {item['code']} line {item['line']}: {item['message']}"
        for item in told["hazards"]
    ]
    return "\n".join([*lines, *filter(None, [told["error"]])])


def _traced(job: _Job) -> _Outcome:
    """Runs the job; a trace whose name ends in .html becomes a page."""
    from evokernel_core.twin.timeline import chrome_trace, write_timeline

    with chrome_trace(job.trace) as trace:
        traced = evolve(job, trace=trace)
        outcome = _run_bare(traced) if job.entry else _run_program(traced)
        if job.trace is not None and trace != job.trace and trace is not None and trace.is_file():
            write_timeline(trace, outcome.result, job.chip, job.trace)
    return outcome


def _run_bare(job: _Job) -> _Outcome:
    from evokernel_core.twin.bare import build_bare, read_launch, run_bare

    assert job.launch is not None  # checked by the caller
    from evokernel_core.twin.sources import ProgramSource

    cwd = job.cwd or job.launch.parent
    program = ProgramSource((job.source,), job.includes, job.defines)
    bare = build_bare(program, job.entry, read_launch(job.launch), cwd)
    how = (job.mode, load_chip(job.chip), job.trace)
    result, mismatches = run_bare(bare, cwd, how, job.limits, auto_sync=job.auto_sync)
    return _Outcome(result, bare.built.compile_s, mismatches)


def _run_program(job: _Job) -> _Outcome:
    from evokernel_core.twin.program import build_program, run_program
    from evokernel_core.twin.sources import ProgramSource

    program = build_program(ProgramSource((job.source, *job.more), job.includes, job.defines))
    how = (job.mode, load_chip(job.chip), job.trace)
    cwd = job.cwd or Path.cwd()
    result = run_program(program, job.arguments, cwd, how, job.limits, auto_sync=job.auto_sync)
    return _Outcome(_without_launches(result), program.compile_s)


def _without_launches(result: RunResult) -> RunResult:
    """A program that ended well but launched nothing has shown nothing about a kernel."""
    if result.status is Status.OK and not result.launches:
        return evolve(result, status=Status.ERROR, message="The program launched no kernel.")
    return result


def _as_json(outcome: _Outcome) -> dict[str, Any]:
    result = outcome.result
    return {
        "ok": outcome.ok,
        "exit_code": result.exit_code,
        "error": " ".join([result.message, *outcome.mismatches]).strip(),
        "hazards": [to_data(hazard) for hazard in result.hazards],
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


def _as_text(outcome: _Outcome, job: _Job) -> str:
    result = outcome.result
    lines = [result.output.rstrip()] if result.output.strip() else []
    lines += [_hazard_line(hazard) for hazard in result.hazards[:MAX_SHOWN]]
    if len(result.hazards) > MAX_SHOWN:
        lines.append(f"(and {len(result.hazards) - MAX_SHOWN} more hazards)")
    lines += [
        f"{launch.kernel} on {launch.block_dim} blocks: {launch.latency_us:.2f} us modelled, {job.chip}. "
        f"{launch.bottleneck}"
        for launch in result.launches
    ]
    lines += [line for line in (result.message, *outcome.mismatches) if line]
    lines.append("ok" if outcome.ok else "failed")
    return "\n".join(lines)


def _hazard_line(hazard: Hazard) -> str:
    where = f"{hazard.file}:{hazard.line}: " if hazard.line else ""
    return f"{where}{hazard.severity}: {hazard.code}: {hazard.message}"
