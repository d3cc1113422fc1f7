"""``evokernel twin run`` and ``run-op``: AscendC on the CPU, checked and timed by a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from evokernel_core.cli.options import OutputFile, added
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.verdict import Hazard
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.ascend.chip_files import DEFAULT_CHIP, chip_names
from evokernel_core.twin.job import MAX_SECONDS, Job, JobOutcome, as_data, run_job
from evokernel_core.twin.run import GIB, Limits, Mode

MAX_SHOWN = 20


_MODES, _CHIPS = click.Choice([str(mode) for mode in Mode]), ", ".join(chip_names())
_shared = added(
    click.option("--mode", type=_MODES, default="check", show_default=True),
    click.option("--chip", default=DEFAULT_CHIP, show_default=True, help=f"One of: {_CHIPS}."),
    click.option("--limit", type=click.FloatRange(min=0.1), default=MAX_SECONDS, show_default=True,
                 help="Seconds that the run may take."),
    click.option("--auto-sync/--no-auto-sync", default=True, show_default=True,
                 help="Whether the compiler inserts barriers (--cce-auto-sync); without it the kernel needs "
                      "them all."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
)  # fmt: skip


@click.group()
def command() -> None:
    """Run AscendC on the CPU: checked against the hardware's rules and timed by a model."""


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
@_shared
@click.option(
    "--cwd", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Run in this folder."
)
@click.option(
    "--trace",
    type=OutputFile(),
    help="Write the timeline here: a page where the name ends in .html, else a Chrome trace for Perfetto.",
)
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
    In place of a golden file an output may have an expression of the kernel's parameters:
      "reference": {"z.npy": "x / sqrt(mean(x*x, -1) + eps) * w"}   (reductions keep their dimension)
    An input may be made for the run, with fill random, zeros, ones or arange:
      {"in": {"fill": "random", "shape": [8, 2048], "dtype": "float16", "seed": 0}}
    An output may hold a file before: {"out": "z.npy", "from": "before.npy", "shape": ..., "dtype": ...}
    What an operator package's build would give, each optional:
      "tiling_key": 1                      for TILING_KEY_IS and KERNEL_TASK_TYPE
      "template": ["float16", 8, true]     arguments of a kernel that is a template
      "kernel_type": "MIX_AIC_1_2"         instead of what the kernel says
      "tiling_header": "x_tiling.h", "tiling_struct": "XTilingData"   for GET_TILING_DATA
      "dtypes": {"X": "float16"}, "formats": {"X": "ND"}    for DTYPE_X, ORIG_DTYPE_X, FORMAT_X;
        dtypes of tensors are known by the names of the kernel's parameters
    """
    job = Job(source=source, **{**options, "mode": Mode(options["mode"])})
    if bool(job.entry) != (job.launch is not None):
        raise UsageError("--entry and --launch go together; give both or neither.")
    outcome = run_job(job)
    say(json.dumps(as_data(outcome)) if as_json else _as_text(outcome, job))
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
@_shared
def run_op(folder: Path, case_file: Path | None, as_json: bool, **options: Any) -> None:
    """Compile the operator in FOLDER (op_kernel, op_host), and run a call of it with its own tiling.

    Without --case every operator of the folder is compiled for the first of its dtypes.

    \b
    CASE.json: {"operator": "AddRmsNorm", "inputs": {"x1": "x1.npy", "x2": "x2.npy", "gamma": null},
      "attributes": {"epsilon": 1e-5}, "outputs": {"y": {"shape": [8, 2048], "dtype": "float16"}},
      "expect": {"y": "golden.npy"}, "rtol": 1e-3, "atol": 1e-3}
    A list of tensors is a list; a bfloat16 tensor {"file": "x.npy", "dtype": "bfloat16"} has its 16 bits,
    one of int4 a byte for each element.
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
        lines.append(f"latency: {told['latency_us']:.2f} us, estimated")
    lines += [
        f"{hazard['severity']} {hazard['code']} line {hazard['line']}: {hazard['message']}"
        for hazard in told["hazards"]
    ]
    return "\n".join([*lines, *filter(None, [told["error"]])])


def _as_text(outcome: JobOutcome, job: Job) -> str:
    result = outcome.result
    lines = [result.output.rstrip()] if result.output.strip() else []
    lines += [_hazard_line(hazard) for hazard in result.hazards[:MAX_SHOWN]]
    if len(result.hazards) > MAX_SHOWN:
        lines.append(f"(and {len(result.hazards) - MAX_SHOWN} more hazards)")
    lines += [
        f"{launch.kernel} on {launch.block_dim} blocks: {launch.latency_us:.2f} us estimated, {job.chip}. "
        f"{launch.bottleneck}"
        for launch in result.launches
    ]
    lines += [line for line in (result.message, *outcome.mismatches) if line]
    lines.append("ok" if outcome.ok else "failed")
    return "\n".join(lines)


def _hazard_line(hazard: Hazard) -> str:
    where = f"{hazard.file}:{hazard.line}: " if hazard.line else ""
    return f"{where}{hazard.severity}: {hazard.code}: {hazard.message}"
