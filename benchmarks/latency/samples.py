"""Runs the public kernels that measurements name, in timing mode, from a checkout of the samples."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from benchmarks.latency.rows import Row
from evokernel_core.twin.program import build_program, run_program
from evokernel_core.twin.run import ExitStatus, Limits, Mode, RunResult
from evokernel_core.twin.sources import ProgramSource

MIB = 1 << 20
HALF_8192 = 128 * MIB
"""Bytes of a half matrix of 8192 x 8192."""


@frozen
class Sample:
    """How a public sample is built and what it reads.

    ``source``: its file under the samples' folder. ``macros``: as its build file defines them, with
    ``{n}`` for the scenario. ``inputs``: the files that it reads, and their bytes; no data moves in
    timing mode, so they are empty space.
    """

    source: str
    macros: tuple[str, ...]
    inputs: Mapping[str, int]


PRACTICES = "05_best_practices"
ACCESS = f"{PRACTICES}/04_memory_access"
MATRIX = f"{PRACTICES}/01_matrix_compute"
NO_INPUT: Mapping[str, int] = {}

SAMPLES: Mapping[str, Sample] = {
    "add_high_performance/add.asc": Sample(
        f"{PRACTICES}/00_vector_compute/add_high_performance/add.asc",
        ("SCENARIO={n}", "NPU_ARCH=2201"),
        {"input/input_x.bin": HALF_8192, "input/input_y.bin": HALF_8192},
    ),
    "bank_conflict_nd2nz/bank_conflict_nd2nz.asc": Sample(
        f"{ACCESS}/bank_conflict_nd2nz/bank_conflict_nd2nz.asc",
        ("SCENARIO={n}", "NPU_ARCH=2201"),
        {"input/input.bin": HALF_8192},
    ),
    "bank_conflict_ub/bank_conflict_ub.asc": Sample(
        f"{ACCESS}/bank_conflict_ub/bank_conflict_ub.asc",
        ("SCENARIO_NUM={n}",),
        {"input/input_x.bin": 16384, "input/input_y.bin": 16384},
    ),
    "data_copy/data_copy.asc:UB": Sample(
        f"{ACCESS}/data_copy/data_copy.asc",
        ("SCENARIO_NUM={n}", "COPY_DST_UB=1", "ARCH_2201=1"),
        {"input/input.bin": 288 * MIB},
    ),
    "data_copy/data_copy.asc:L1": Sample(
        f"{ACCESS}/data_copy/data_copy.asc",
        ("SCENARIO_NUM={n}", "COPY_DST_L1=1", "ARCH_2201=1"),
        {"input/input.bin": 288 * MIB},
    ),
    "matmul_high_performance/matmul.asc": Sample(
        f"{MATRIX}/matmul_high_performance/matmul.asc",
        ("SCENARIO_NUM={n}", "NPU_ARCH=2201"),
        {"input/x1_gm.bin": HALF_8192, "input/x2_gm.bin": HALF_8192},
    ),
    "matmul_basic_api_high_performance/mmad.asc": Sample(
        f"{MATRIX}/matmul_basic_api_high_performance/mmad.asc",
        ("SCENARIO_NUM={n}", "NPU_ARCH=2201"),
        {"input/x1_gm.bin": HALF_8192, "input/x2_gm.bin": HALF_8192},
    ),
    "matmul_gelu_high_performance/mmad_gelu.asc": Sample(
        f"{PRACTICES}/03_fusion_compute/matmul_gelu_high_performance/mmad_gelu.asc",
        ("SCENARIO_NUM={n}", "NPU_ARCH=2201"),
        {"input/x1_gm.bin": HALF_8192, "input/x2_gm.bin": HALF_8192},
    ),
    "matmul_constant_tiling/matmul_constant_tiling.asc": Sample(
        "04_advanced_api/00_matmul/matmul_constant_tiling/matmul_constant_tiling.asc", (), NO_INPUT
    ),
    "matmul_preload/matmul_preload.asc": Sample(
        "04_advanced_api/00_matmul/matmul_preload/matmul_preload.asc", (), NO_INPUT
    ),
    "matmul_l2cache/matmul_l2cache.asc": Sample(
        "04_advanced_api/00_matmul/matmul_l2cache/matmul_l2cache.asc", (), NO_INPUT
    ),
    "matmul_splitk/matmul_splitk.asc": Sample(
        "04_advanced_api/00_matmul/matmul_splitk/matmul_splitk.asc", (), NO_INPUT
    ),
}


@frozen
class Prediction:
    """What the twin gives for a row, in the row's unit; ``why`` says why it gives nothing."""

    value: float | None
    how: str
    why: str = ""
    counters: Mapping[str, float] = {}


def sample_of(row: Row) -> tuple[Sample, str] | None:
    """The sample that a row runs unchanged, and its scenario; None where it names none.

    Rows of tier A- describe a sample with edits that its file does not hold.
    """
    words = str(row.data["kernel_source"])
    if row.tier != "A":
        return None
    scenario = re.search(r"SCENARIO(?:_NUM)?=(\d+)", words)
    copies = re.search(r"COPY_DST=(\w+)", words)
    for key, sample in SAMPLES.items():
        path, _, variant = key.partition(":")
        if path in words and (not variant or (copies and copies[1] == variant)):
            return sample, scenario[1] if scenario else ""
    return None


def run_sample(row: Row, samples: Path) -> Prediction | None:
    """Runs the row's kernel; None where no unchanged public sample is it."""
    found = sample_of(row)
    if found is None:
        return None
    sample, scenario = found
    source = samples / sample.source
    macros = tuple(macro.format(n=scenario) for macro in sample.macros)
    program = build_program(ProgramSource((source,), (source.parent,), macros))
    with tempfile.TemporaryDirectory(prefix="evokernel-latency-") as name:
        cwd = Path(name)
        (cwd / "output").mkdir()
        for path, size in sample.inputs.items():
            (cwd / path).parent.mkdir(exist_ok=True)
            with (cwd / path).open("wb") as file:
                file.truncate(size)
        mode = Mode.CHECK if "ticks" in row.unit else Mode.TIME  # kernels print nothing in timing mode
        ran = run_program(program, (), cwd, (mode, row.chip, None), Limits(580.0, 16 << 30, 1 << 30))
    return read_run(row, ran)


def read_run(row: Row, ran: RunResult) -> Prediction:
    """What a run says about a row; nothing where it did not run what was measured."""
    if ran.status is not ExitStatus.OK or not ran.launches:
        return Prediction(None, "executed", (ran.message or "it launched nothing").splitlines()[0])
    if ran.instructions == 0:
        words = "; ".join(f"{hazard.code}: {hazard.message}" for hazard in ran.hazards[:1])
        return Prediction(
            None, "executed", f"its cores did nothing ({words})" if words else "its cores did nothing"
        )
    blocks = {launch.block_dim for launch in ran.launches}
    measured = row.data.get("block_dim")
    if measured is not None and blocks != {measured}:
        words = ", ".join(str(count) for count in sorted(blocks))
        return Prediction(None, "executed", f"it launches {words} blocks, and {measured} were measured")
    return _READERS["ticks" if "ticks" in row.unit else "us"](row, ran)


def _ticks(row: Row, ran: RunResult) -> Prediction:
    found = re.search(r"cost total cycles: (\d+)", ran.output)
    return Prediction(float(found[1]) if found else None, "executed", "" if found else "it printed no cycles")


def _microseconds(row: Row, ran: RunResult) -> Prediction:
    total = ran.latency_us
    pipes = {name: us for launch in ran.launches for name, us in launch.pipes}
    if row.kernel_side:
        for launch in ran.launches:
            active = min(launch.block_dim, row.chip.aiv)
            total -= row.chip.launch.launch_us + active * row.chip.launch.per_block_us
    return Prediction(total, "executed", counters=pipes)


_READERS: Mapping[str, Callable[[Row, RunResult], Prediction]] = {"ticks": _ticks, "us": _microseconds}
