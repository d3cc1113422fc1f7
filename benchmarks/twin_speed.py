"""How fast the twin is on this machine.

    python benchmarks/twin_speed.py [--runs N] [--json OUT]

``add_warm_s`` and ``add_cold_s``: seconds to compile, run and check a double-buffered add of 1 M
floats, with the compiled kernel's caches warm or empty (median; aims 1.0 and 2.5). A cold run still has
the twin's own library, which is built once for each version. ``peak_mib``: most memory that the run held.
``races_cost``: seconds of the add's process in checking mode over those with the race detector switched
off (median of pairs; aim 2). ``timing_m_instructions_per_s``: instructions a second in timing mode (aim 5),
best of three; ``..._per_processor_s``: the same by processor time, for a machine that is busy with other
things. ``load``: processes that want a core, before and after. ``matmul_s``: seconds to compute a half
matrix product of 1024 x 1024 x 1024 with its checks, process start included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402
from evokernel_core.twin.bare import build_bare, read_launch, run_bare  # noqa: E402
from evokernel_core.twin.build import prepare  # noqa: E402
from evokernel_core.twin.run import (  # noqa: E402
    ExitStatus,
    Mode,
    RunRequest,
    RunResult,
    TensorFile,
    run_kernel,
)
from evokernel_core.twin.sources import ProgramSource  # noqa: E402

KERNELS = Path(__file__).parent / "kernels"
ELEMENTS = 1 << 20
SIDE = 1024
INSTRUCTION_ELEMENTS = 1 << 28
"""Elements of the add whose instructions are counted: 4096 tiles a core, without data."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    prepare()
    with tempfile.TemporaryDirectory(prefix="evokernel-speed-") as name:
        folder = Path(name)
        os.environ["EVOKERNEL_HOME"] = str(folder / "home")
        figures = measure(folder, args.runs)
    print(json.dumps(figures, indent=2))
    if args.json:
        args.json.write_text(json.dumps(figures, indent=2))
    return 0


def measure(folder: Path, runs: int) -> dict[str, Any]:
    """All figures; ``folder`` holds inputs, outputs and the caches."""
    load = os.getloadavg()[0]
    write_add(folder, ELEMENTS)
    cold = [_cold_add(folder) for _ in range(max(3, runs // 2))]
    warm = [_add(folder) for _ in range(runs)]
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        peak = fresh.submit(_peak_mib, folder).result()
    write_matmul(folder)
    _run(folder, "matmul.cpp", "matmul", "matmul.json", Mode.CHECK)
    product = [_run(folder, "matmul.cpp", "matmul", "matmul.json", Mode.CHECK).seconds for _ in range(3)]
    rates = [_instruction_rates(folder) for _ in range(3)]
    return {
        "add_cold_s": round(statistics.median(cold), 3),
        "add_warm_s": round(statistics.median(warm), 3),
        "peak_mib": round(peak, 1),
        "races_cost": round(_races_cost(folder, runs), 2),
        "timing_m_instructions_per_s": round(max(wall for wall, _ in rates), 2),
        "timing_m_instructions_per_processor_s": round(max(processor for _, processor in rates), 2),
        "matmul_s": round(statistics.median(product), 3),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def write_add(folder: Path, elements: int) -> None:
    """The add's inputs, expected output and LAUNCH.json."""
    values = np.random.default_rng(7)
    x, y = (values.standard_normal(elements).astype(np.float32) for _ in range(2))
    for name, array in (("x.npy", x), ("y.npy", y), ("golden.npy", x + y)):
        np.save(folder / name, array)
    _write_launch(folder / "add.json", _add_launch({"in": "x.npy"}, {"in": "y.npy"}, elements, "golden.npy"))


def _add_launch(x: dict[str, Any], y: dict[str, Any], elements: int, golden: str) -> dict[str, Any]:
    out = {"out": "z.npy", "shape": [elements], "dtype": "float32"}
    count = {"scalar": "uint32", "value": elements}
    return {"block_dim": 32, "args": [x, y, out, count], "expect": {"z.npy": golden} if golden else {}}


def write_matmul(folder: Path) -> None:
    """The product's inputs, expected output and LAUNCH.json."""
    values = np.random.default_rng(7)
    a, b = (values.integers(-3, 4, (SIDE, SIDE)).astype(np.float16) for _ in range(2))
    for name, array in (
        ("a.npy", a),
        ("b.npy", b),
        ("c_golden.npy", a.astype(np.float32) @ b.astype(np.float32)),
    ):
        np.save(folder / name, array)
    out = {"out": "c.npy", "shape": [SIDE, SIDE], "dtype": "float32"}
    launch = {
        "block_dim": 16,
        "args": [{"in": "a.npy"}, {"in": "b.npy"}, out],
        "expect": {"c.npy": "c_golden.npy"},
    }
    _write_launch(folder / "matmul.json", launch)


def _write_launch(path: Path, launch: dict[str, Any]) -> None:
    path.write_text(json.dumps(launch))


def _cold_add(folder: Path) -> float:
    shutil.rmtree(folder / "home", ignore_errors=True)
    return _add(folder)


def _add(folder: Path) -> float:
    started = time.perf_counter()
    _run(folder, "add.cpp", "add", "add.json", Mode.CHECK)
    return time.perf_counter() - started


def _peak_mib(folder: Path) -> float:
    """Most memory of the add's process; for a fresh process, none of whose children compiled anything."""
    _add(folder)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def _run(folder: Path, source: str, entry: str, launch: str, mode: Mode) -> RunResult:
    bare = build_bare(ProgramSource((KERNELS / source,)), entry, read_launch(folder / launch), folder)
    result, mismatches = run_bare(bare, folder, (mode, load_chip(), None))
    if result.status is not ExitStatus.OK or mismatches or result.hazards:
        raise SystemExit(f"{entry} failed: {result.message} {mismatches} {result.hazards}")
    return result


def _races_cost(folder: Path, runs: int) -> float:
    """What the race detector does to the time of a checking run: 2 is twice the time."""
    built = build_bare(
        ProgramSource((KERNELS / "add.cpp",)), "add", read_launch(folder / "add.json"), folder
    ).built
    inputs = []
    for name in ("x", "y"):
        np.load(folder / f"{name}.npy").tofile(folder / f"{name}.bin")
        inputs.append(TensorFile(folder / f"{name}.bin", ELEMENTS * 4))
    ratios = []
    for _ in range(runs):
        seconds = []
        for find_races in (True, False):
            request = RunRequest(
                mode=Mode.CHECK,
                chip=load_chip(),
                inputs=tuple(inputs),
                outputs=(TensorFile(folder / "z.bin", ELEMENTS * 4),),
                find_races=find_races,
            )
            result = run_kernel(built, request)
            if result.status is not ExitStatus.OK or result.hazards:
                raise SystemExit(f"add failed: {result.message} {result.hazards}")
            seconds.append(result.seconds)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios)


def _instruction_rates(folder: Path) -> tuple[float, float]:
    """Millions of instructions a second in timing mode, of wall time and of processor time.

    The process's start is left out.
    """
    seen = []
    for name in ("few", "many"):
        elements = INSTRUCTION_ELEMENTS if name == "many" else ELEMENTS
        with (folder / f"{name}.bin").open("wb") as file:
            file.truncate(elements * 4)
        both = {"in": f"{name}.bin"}
        _write_launch(folder / f"{name}.json", _add_launch(both, both, elements, ""))
        _run(folder, "add.cpp", "add", f"{name}.json", Mode.TIME)
        before = _processor_seconds()
        result = _run(folder, "add.cpp", "add", f"{name}.json", Mode.TIME)
        seen.append((result.instructions, result.seconds, _processor_seconds() - before))
    (few, *short), (many, *long) = seen
    wall, processor = (
        (many - few) / (after - before) / 1e6 for before, after in zip(short, long, strict=True)
    )
    return wall, processor


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
