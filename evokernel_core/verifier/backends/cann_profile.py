"""Reads what torch_npu's profiler leaves: step_trace_time.csv and kernel_details.csv.

Columns as in the public documentation of the profiler; times are microseconds.
"""

from __future__ import annotations

import csv
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from evokernel_core.domain.errors import VerifierError
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Timing

PIPES: Mapping[str, str] = {
    "V": "aiv_vec_time(us)",
    "S": "aiv_scalar_time(us)",
    "MTE2": "aiv_mte2_time(us)",
    "MTE3": "aiv_mte3_time(us)",
    "M": "aic_mac_time(us)",
    "MTE1": "aic_mte1_time(us)",
    "FIX": "aic_fixpipe_time(us)",
}
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "step": ("Step Id",),
    "kernel": ("Name",),
    "blocks": ("Block Num", "Block Dim"),
    "computing": ("Computing",),
    **{pipe: (column,) for pipe, column in PIPES.items()},
}
"""The names of a column, the newest first: torch_npu 2.13 has Block Num where older ones have Block Dim."""
Row = Mapping[str, str]


def read_timing(folder: Path, kernels: Sequence[str]) -> Timing:
    """The timing of the passes recorded under ``folder``, in which all ``kernels`` ran and no other one.

    Busy times of the kernels of a pass are added up; its cores are those of the widest kernel. Raises
    CandidateError where the kernels are others, VerifierError where the profiler's files are missing, hold
    no step or lack a column.
    """
    steps = _read(folder, "step_trace_time.csv")
    rows = _read(folder, "kernel_details.csv")
    us = computing_us(steps)
    own = own_rows(rows, kernels)
    passes = len({_cell(row, "step") for row in own})
    pipes = tuple((pipe, busy) for pipe in PIPES if (busy := sum(_numbers(own, pipe)) / passes) > 0)
    blocks = _numbers(own, "blocks")
    if not blocks:
        raise VerifierError(
            f"kernel_details.csv has none of the columns {', '.join(COLUMNS['blocks'])}; "
            "report the version of torch_npu."
        )
    return Timing(us, int(max(blocks)), pipes, bottleneck(pipes, us))


def computing_us(steps: Sequence[Row]) -> float:
    """The mean of the column Computing: device time only. Raises VerifierError for no step."""
    values = _numbers(steps, "computing")
    if not values or min(values) <= 0:
        raise VerifierError("The profiler recorded no device time; check `npu-smi info` and run it again.")
    return statistics.fmean(values)


def own_rows(rows: Sequence[Row], kernels: Sequence[str]) -> list[Row]:
    """The candidate's rows. Raises CandidateError where any other kernel ran, or one of them did not."""
    seen = {_cell(row, "kernel"): _kernel_of(_cell(row, "kernel"), kernels) for row in rows}
    foreign = sorted(name or "?" for name, kernel in seen.items() if not kernel)
    if foreign:
        names = ", ".join(kernels)
        raise CandidateError("foreign-kernel", f"The launch ran {', '.join(foreign[:3])} besides {names}.")
    missing = [kernel for kernel in kernels if kernel not in seen.values()]
    if missing:
        raise CandidateError("not-launched", f"The profiler saw no launch of {', '.join(missing)}.")
    return list(rows)


def _kernel_of(name: str, kernels: Sequence[str]) -> str:
    """The kernel that a row is about, "" for none: names of rows may go on behind it, as in ``_mix_aic``."""
    found = [kernel for kernel in kernels if re.fullmatch(rf"{re.escape(kernel)}(_mix_ai[cv]|_\d+)*", name)]
    return max(found, key=len, default="")


def bottleneck(pipes: Sequence[tuple[str, float]], us: float) -> str:
    """The busiest pipe in a sentence."""
    if not pipes:
        return "The profiler reported no pipe."
    pipe, busy = max(pipes, key=lambda item: item[1])
    return f"{pipe} is busy for {busy:.3g} of {us:.3g} us ({100 * busy / us:.0f} %)."


def _cell(row: Row, column: str) -> str:
    """What a row says in a column, "" where it has none of that name."""
    return next((row[name].strip() for name in COLUMNS[column] if row.get(name) is not None), "")


def _numbers(rows: Sequence[Row], column: str) -> list[float]:
    return [float(text) for row in rows if (text := _cell(row, column)) not in ("", "N/A")]


def _read(folder: Path, name: str) -> list[Row]:
    found = sorted(folder.rglob(name))
    if not found:
        raise VerifierError(f"The profiler left no {name} in {folder}; check that CANN's msprof works there.")
    with found[-1].open(newline="", encoding="utf-8-sig") as file:
        return [{key.strip(): value for key, value in row.items() if key} for row in csv.DictReader(file)]
