"""Reads what torch_npu's profiler leaves: step_trace_time.csv and kernel_details.csv.

Columns as in the public documentation of torch_npu's profiler and of msprof's op_summary, versions as in
``cann_versions.py``; times are microseconds. The profiler writes a row for each task of the device, numbers
that nobody measured as ``N/A``, and numbers of rows at times with a tab behind them.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Timing

PIPES: Mapping[str, tuple[str, ...]] = {
    "V": ("aiv_vec_time(us)",),
    "S": ("aiv_scalar_time(us)", "aic_scalar_time(us)"),
    "MTE2": ("aiv_mte2_time(us)", "aic_mte2_time(us)"),
    "MTE3": ("aiv_mte3_time(us)", "aic_mte3_time(us)"),
    "M": ("aic_mac_time(us)",),
    "MTE1": ("aic_mte1_time(us)",),
    "FIX": ("aic_fixpipe_time(us)",),
}
"""The columns of a pipe: vector and cube cores have pipes of one name, which work side by side in kernels
that start both, so that the busier one counts."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "step": ("Step Id", "Step ID"),
    "kernel": ("Name",),
    "blocks": ("Block Num", "Block Dim"),
    "computing": ("Computing",),
}
"""The names of a column, the newest first. Blocks are those of the kernel's primary kind of core."""
NOT_MEASURED = ("", "N/A")
Row = Mapping[str, str]


def read_timing(folder: Path, kernels: Sequence[str]) -> Timing:
    """The timing of the passes recorded under ``folder``, in which all ``kernels`` ran and no other one.

    Busy times of the kernels of a pass are added up; its cores are those of the widest kernel. Raises
    CandidateError where the kernels are others, VerifierError where the profiler's files are missing, hold
    no step or lack a column.
    """
    steps = read_rows(folder, "step_trace_time.csv")
    rows = read_rows(folder, "kernel_details.csv")
    us = computing_us(steps)
    own = own_rows(rows, kernels)
    passes = _passes(own, steps)
    busy = ((pipe, sum(_busy(row, pipe) for row in own) / passes) for pipe in PIPES)
    pipes = tuple((pipe, time) for pipe, time in busy if time > 0)
    return Timing(us, _blocks(own), pipes, bottleneck(pipes, us))


def computing_us(steps: Sequence[Row]) -> float:
    """The mean of the column Computing: device time only. Raises VerifierError for no step."""
    values = [value for row in steps if (value := _number(_cell(row, "computing"))) is not None]
    if not values or min(values) <= 0:
        raise VerifierError("The profiler recorded no device time; check `npu-smi info` and run it again.")
    return statistics.fmean(values)


def own_rows(rows: Sequence[Row], kernels: Sequence[str]) -> list[Row]:
    """The candidate's rows. Raises CandidateError where any other kernel ran, or one of them did not."""
    seen = {_cell(row, "kernel"): kernel_of(_cell(row, "kernel"), kernels) for row in rows}
    foreign = sorted(name or "?" for name, kernel in seen.items() if not kernel)
    if foreign:
        names = ", ".join(kernels)
        raise CandidateError(
            "foreign-kernel",
            "The launch ran {foreign} besides {names}.",
            foreign=", ".join(foreign[:3]),
            names=names,
        )
    missing = [kernel for kernel in kernels if kernel not in seen.values()]
    if missing:
        raise CandidateError(
            "not-launched", "The profiler saw no launch of {missing}.", missing=", ".join(missing)
        )
    return list(rows)


def kernel_of(name: str, kernels: Sequence[str]) -> str:
    """The kernel that a row is about, "" for none: rows name more behind it, as in ``_0_mix_aic``."""
    matches = [kernel for kernel in kernels if re.fullmatch(rf"{re.escape(kernel)}(_mix_ai[cv]|_\d+)*", name)]
    return max(matches, key=len, default="")


def bottleneck(pipes: Sequence[tuple[str, float]], us: float) -> Sentence:
    """The busiest pipe in a sentence."""
    if not pipes:
        return Sentence("The profiler reported no pipe.")
    pipe, busy = max(pipes, key=lambda pipe: pipe[1])
    return Sentence(
        "{pipe} is busy for {busy} of {us} us ({share} %).",
        pipe=pipe,
        busy=f"{busy:.3g}",
        us=f"{us:.3g}",
        share=f"{100 * busy / us:.0f}",
    )


def _passes(rows: Sequence[Row], steps: Sequence[Row]) -> int:
    """The passes that the rows are of. Rows have no step where the profiler knew none: then each kernel must
    have run equally often in each of the recorded steps. Raises VerifierError where it did not."""
    known = {step for row in rows if (step := _cell(row, "step")) not in NOT_MEASURED}
    if known and all(_cell(row, "step") in known for row in rows):
        return len(known)
    passes = len(steps)
    names = [_cell(row, "kernel") for row in rows]
    uneven = sorted({name for name in names if names.count(name) % passes})
    if uneven:
        raise VerifierError(
            "kernel_details.csv has {rows} rows of {kernel} for {passes} steps and does not say of "
            "which step they are; run it again.",
            rows=names.count(uneven[0]),
            kernel=uneven[0],
            passes=passes,
        )
    return passes


def _busy(row: Row, pipe: str) -> float:
    """Busy microseconds of a pipe in one launch, on the kind of core that has more of them."""
    return max((_number(row.get(column) or "") or 0.0 for column in PIPES[pipe]), default=0.0)


def _blocks(rows: Sequence[Row]) -> int:
    """The cores of the widest kernel. Raises VerifierError where the profiler does not tell."""
    names = ", ".join(COLUMNS["blocks"])
    if not any(name in row for row in rows for name in COLUMNS["blocks"]):
        raise VerifierError(
            "kernel_details.csv has none of the columns {names}; report the version of torch_npu.",
            names=names,
        )
    blocks = max((_number(_cell(row, "blocks")) or 0.0 for row in rows), default=0.0)
    if blocks < 1:
        raise VerifierError(
            "kernel_details.csv has no number in the column {names}: its profiler level is 0.", names=names
        )
    return int(blocks)


def _cell(row: Row, column: str) -> str:
    """What a row says in a column, "" where it has none of that name."""
    return next((row[name].strip() for name in COLUMNS[column] if row.get(name) is not None), "")


def _number(text: str) -> float | None:
    """The number of a cell, None where nobody measured it. Raises VerifierError for any other text."""
    text = text.strip()
    try:
        return None if text in NOT_MEASURED else float(text)
    except ValueError as error:
        raise VerifierError(
            "The profiler wrote {text} where a number stands; report it.", text=repr(text[:40])
        ) from error


def read_rows(folder: Path, name: str) -> list[Row]:
    """The rows of the newest file of that name below the folder. Raises VerifierError where there is none."""
    paths = sorted(folder.rglob(name))
    if not paths:
        raise VerifierError(
            "The profiler left no {name} in {folder}; check that CANN's msprof works there.",
            name=name,
            folder=folder,
        )
    with paths[-1].open(newline="", encoding="utf-8-sig") as file:
        return [
            {key.strip(): value or "" for key, value in row.items() if key} for row in csv.DictReader(file)
        ]
