"""Reads what torch_npu's profiler leaves: step_trace_time.csv and kernel_details.csv.

Columns as in the public documentation of the profiler; times are microseconds.
"""

from __future__ import annotations

import csv
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
Row = Mapping[str, str]


def read_timing(folder: Path, kernel: str) -> Timing:
    """The timing of the passes recorded under ``folder``.

    Raises CandidateError where another kernel than ``kernel`` ran on the device, VerifierError where
    the profiler's files are missing or hold no step.
    """
    steps = _read(folder, "step_trace_time.csv")
    rows = _read(folder, "kernel_details.csv")
    us = computing_us(steps)
    own = own_rows(rows, kernel)
    pipes = tuple((pipe, busy) for pipe in PIPES if (busy := _mean(own, PIPES[pipe])) > 0)
    return Timing(us, int(_mean(own, "Block Dim")), pipes, bottleneck(pipes, us))


def computing_us(steps: Sequence[Row]) -> float:
    """The mean of the column Computing: device time only. Raises VerifierError for no step."""
    values = [float(row["Computing"]) for row in steps if row.get("Computing", "").strip()]
    if not values or min(values) <= 0:
        raise VerifierError("The profiler recorded no device time; check `npu-smi info` and run it again.")
    return statistics.fmean(values)


def own_rows(rows: Sequence[Row], kernel: str) -> list[Row]:
    """The candidate's rows. Raises CandidateError where any other kernel ran."""
    own = [row for row in rows if row.get("Name", "").startswith(kernel)]
    foreign = sorted({row.get("Name", "?") for row in rows} - {row["Name"] for row in own})
    if foreign:
        raise CandidateError("foreign-kernel", f"The launch ran {', '.join(foreign[:3])} besides {kernel}.")
    if not own:
        raise CandidateError("not-launched", f"The profiler saw no launch of {kernel}.")
    return own


def bottleneck(pipes: Sequence[tuple[str, float]], us: float) -> str:
    """The busiest pipe in a sentence."""
    if not pipes:
        return "The profiler reported no pipe."
    pipe, busy = max(pipes, key=lambda item: item[1])
    return f"{pipe} is busy for {busy:.3g} of {us:.3g} us ({100 * busy / us:.0f} %)."


def _mean(rows: Sequence[Row], column: str) -> float:
    values = [float(text) for row in rows if (text := row.get(column, "").strip()) not in ("", "N/A")]
    return statistics.fmean(values) if values else 0.0


def _read(folder: Path, name: str) -> list[Row]:
    found = sorted(folder.rglob(name))
    if not found:
        raise VerifierError(f"The profiler left no {name} in {folder}; check that CANN's msprof works there.")
    with found[-1].open(newline="", encoding="utf-8-sig") as file:
        return [{key.strip(): value for key, value in row.items() if key} for row in csv.DictReader(file)]
