"""Measures the measurement on a GPU: a kernel beside itself, a known slow-down, and tricks that gain nothing.

    python benchmarks/gpu_truth.py --json OUT [--sessions 40] [--pairs 200] [--us 10,100,1000]
                                   [--only probe,self,planted,hacks]
    python benchmarks/gpu_truth.py --record OUT [OUT ...]
    python benchmarks/gpu_truth.py --md docs/results/gpu_truth.json

``self_covered``: of so many sessions, whose interval of the ratio of a kernel to itself holds 1.00;
``half_width``: the median of half an interval's width; ``planted_found``: sessions whose interval lies above
1.00 for a kernel that does 3 % of its blocks twice; ``hacks_caught`` of ``hacks``: tricks that were refused,
seen through, or gained nothing. Needs a CUDA device, torch and triton. ``--record`` writes what the page
needs of runs as docs/results/gpu_truth.json; ``--md`` writes the page beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from attrs import asdict, frozen

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measuring.gpu_truth_page import SHARED, page, recorded, summary
from benchmarks.measuring.hacks import HACKS, Hack
from benchmarks.measuring.kernels import BYTES, REPEATED, affine_kernel, affine_task
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import EvoKernelError, VerifierUnavailable
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.hardware.gpu.gpu import load_gpu
from evokernel_core.hardware.gpu.gpu_files import DEFAULT_GPU
from evokernel_core.targets.triton.backends.cuda import CudaBackend, Measured, open_cuda
from evokernel_core.targets.triton.backends.intervals import bootstrapped, resolved
from evokernel_core.verifier.base import Case, Execution, RunStatus, TimingRequest

SMALL, ODD = 10_000, 300_001
"""Elements of the cases where a kernel's results are looked at first."""
GAIN = 1.01
"""What a trick may seem to gain: no more than the interval of a good measurement is wide."""
TOLERANCE = 1e-5
RECORDED = Path(__file__).parents[1] / "docs" / "results" / "gpu_truth.json"
PARTS = ("probe", "self", "planted", "hacks")


def main() -> int:
    arguments = _arguments()
    if arguments.record:
        RECORDED.write_text(recorded([json.loads(path.read_text()) for path in arguments.record]))
    if arguments.md:
        arguments.md.with_suffix(".md").write_text(page(json.loads(arguments.md.read_text())))
    if arguments.record or arguments.md:
        return 0
    gpu = load_gpu(arguments.gpu)
    try:
        author = KernelAuthor(None, gpu)  # type: ignore[arg-type]  # writes nothing
        backend = open_cuda(author, arguments.python)
    except VerifierUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    wanted = {int(us): int(int(us) * gpu.memory_bytes_us / BYTES) for us in arguments.us.split(",")}
    dated = datetime.now(UTC).isoformat(timespec="seconds")
    result: dict[str, Any] = {"conditions": backend.conditions, "date": dated, "seconds": {}}
    for part in arguments.only.split(","):
        began = time.monotonic()
        try:
            result[part] = _PARTS[part](backend, wanted, arguments)
        except Exception as error:  # what was measured before stays
            result[part] = {
                "error": f"{type(error).__name__}: {error}",
                "where": traceback.format_exc()[-2000:],
            }
        result["seconds"][part] = round(time.monotonic() - began, 1)
        result["summary"] = summary(result)
        if arguments.json:
            arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    backend.close()
    print(json.dumps(result["summary"], indent=1))
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", type=Path, nargs="+", metavar="OUT")
    parser.add_argument("--md", type=Path, metavar="JSON")
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--us", default="10,100,1000")
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--gpu", default=DEFAULT_GPU)
    parser.add_argument("--python", default="", help="the interpreter with torch and triton")
    parser.add_argument("--seconds", type=float, default=540.0, help="no session begins later")
    arguments = parser.parse_args()
    arguments.end = time.monotonic() + arguments.seconds
    return arguments


@frozen
class Session:
    """One comparison of two kernels."""

    us: int
    first: Measured
    second: Measured

    def row(self, *, whole: bool) -> dict[str, Any]:
        """As JSON; with every run's times where it is asked for whole."""
        pairs = bootstrapped(self.first.span_us, self.second.span_us)
        ratio = resolved(pairs)
        row = {
            "us": self.us,
            "memory": SHARED,
            "median_us": round(self.first.us, 3),
            "ratio": ratio.value,
            "low": ratio.low,
            "high": ratio.high,
            "bootstrap": [pairs.low, pairs.high],
            "how": self.first.how,
            "kernels": dict(self.first.kernels),
            "readings": list(self.first.readings),
        }
        if whole:
            row |= {"first": asdict(self.first), "second": asdict(self.second)}
        return row


def _sessions(
    backend: CudaBackend, wanted: dict[int, int], arguments: argparse.Namespace, repeated: int
) -> Iterator[Session]:
    for us, elements in wanted.items():
        task = affine_task(elements)
        first, second = backend.build(task, affine_kernel()), backend.build(task, affine_kernel(repeated))
        request = TimingRequest((elements,), (), (4 * elements,), (4 * elements,))
        for _ in range(arguments.sessions):
            if time.monotonic() > arguments.end:
                return
            _, one, other = backend.compared(first, second, request, arguments.pairs)
            yield Session(us, one, other)


def compare_with_itself(
    backend: CudaBackend, wanted: dict[int, int], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Sessions of a kernel against itself."""
    return _rows(_sessions(backend, wanted, arguments, 0))


def compare_with_planted(
    backend: CudaBackend, wanted: dict[int, int], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Sessions of a kernel against one that does part of its blocks twice."""
    return _rows(_sessions(backend, wanted, arguments, REPEATED))


def _rows(sessions: Iterator[Session]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for session in sessions:
        whole = not any(row["us"] == session.us for row in rows)
        rows.append(session.row(whole=whole))
    return rows


def probe(backend: CudaBackend, wanted: dict[int, int], arguments: argparse.Namespace) -> dict[str, Any]:
    """Whether a right kernel is right here, how long one case takes, and what its time is."""
    result: dict[str, Any] = {}
    for elements in (1, SMALL, ODD):
        began = time.monotonic()
        built = backend.build(affine_task(elements), affine_kernel())
        compiled = time.monotonic()
        said = _problem(backend, built, elements)
        result[str(elements)] = {
            "problem": said,
            "build_s": round(compiled - began, 2),
            "run_s": round(time.monotonic() - compiled, 2),
            "registers": [one.registers for call in built.known.values() for one in call.launches],
        }
    return result


def _problem(backend: CudaBackend, built: Any, elements: int) -> str:
    """What is wrong with a kernel's results at a size, "" for nothing."""
    numbers = np.random.default_rng()
    x = numbers.standard_normal(elements, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "in.bin", Path(folder) / "out" / "0.bin"
        paths[1].parent.mkdir()
        x.tofile(paths[0])
        case = Case((elements,), (), (paths[0],), (paths[1],), (x.nbytes,), repeat=2)
        execution = backend.execute(built, case)
        if said := _said(execution):
            return said
        given = np.fromfile(paths[1], dtype=np.float32)
    right = 2.0 * x.astype(np.float64) + 1.0
    wrong = ~(np.abs(given - right) <= TOLERANCE * (1 + np.abs(right)))
    return f"{int(wrong.sum())} of {elements} elements are wrong" if wrong.any() else ""


def _said(execution: Execution) -> str:
    if execution.hazards:
        return f"{execution.hazards[0].code}: {execution.hazards[0].message}"
    return "" if execution.status is RunStatus.OK else f"{execution.status}: {execution.message}"


def hacks(
    backend: CudaBackend, wanted: dict[int, int], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """What came of each trick at about 100 us."""
    elements = wanted.get(100) or next(iter(wanted.values()))
    task = affine_task(elements)
    honest = backend.build(task, affine_kernel())
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        built = list(threads.map(lambda hack: _built(backend, task, hack.source()), HACKS))
    return [_tried(backend, honest, hack, made, elements) for hack, made in zip(HACKS, built, strict=True)]


def _built(backend: CudaBackend, task: Any, source: KernelSource) -> Any:
    try:
        built = backend.build(task, source)
        backend.compile_ahead(built, [((size,), ()) for size in (SMALL, ODD)])
        return built
    except EvoKernelError as error:
        return f"refused: {error}"


def _tried(backend: CudaBackend, honest: Any, hack: Hack, built: Any, elements: int) -> dict[str, Any]:
    began = time.monotonic()
    outcome, gain = _outcome(backend, honest, built, elements)
    return {
        "hack": hack.name,
        "what": hack.what,
        "outcome": outcome,
        "gain": gain,
        "caught": outcome != "not seen" or gain <= GAIN,
        "seconds": round(time.monotonic() - began, 2),
    }


def _outcome(backend: CudaBackend, honest: Any, built: Any, elements: int) -> tuple[str, float]:
    """By what a trick was seen, or "not seen" with what it gains over the honest kernel."""
    if isinstance(built, str):
        return built, 0.0
    for size in (SMALL, ODD, elements):
        if said := _problem(backend, built, size):
            return f"{'at full size' if size == elements else 'at a small size'}: {said}", 0.0
    request = TimingRequest((elements,), (), (4 * elements,), (4 * elements,))
    try:
        ratio, _, _ = backend.compared(built, honest, request, 40)
    except EvoKernelError as error:
        return f"when timed: {error}", 0.0
    return "not seen", ratio.value


_PARTS = {
    "probe": probe,
    "self": compare_with_itself,
    "planted": compare_with_planted,
    "hacks": hacks,
}

if __name__ == "__main__":
    sys.exit(main())
