"""Runs a kernel in one process and in two, and says that nothing tells them apart."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from evokernel_core.twin.build import BuiltKernel
from evokernel_core.twin.judge import judge_kernel
from evokernel_core.twin.run import ExitStatus, RunRequest, RunResult, run_kernel


def run_both(built: BuiltKernel, request: RunRequest) -> RunResult:
    """The result of the judged run. Outputs, hazards, times and traces are those of a run in one process."""
    _clear(request)
    alone = run_kernel(built, request)
    written = _written(request)
    _clear(request)
    judged = judge_kernel(built, request)
    assert _comparable(judged) == _comparable(alone)
    assert _written(request) == written
    return judged


def _comparable(result: RunResult) -> RunResult:
    """Without what may differ: seconds, order of output, words for how a process crashed, tiling data, which
    only a process of the candidate's own tells."""
    crashed = result.status is ExitStatus.CRASH
    message = "" if crashed else result.message
    hazards = () if crashed else result.hazards
    return evolve(result, message=message, hazards=hazards, seconds=0.0, exit_code=0, output="", tiling=())


def _files(request: RunRequest) -> list[Path]:
    paths = [output.path for output in request.outputs] + [request.trace]
    return [path for path in paths if path is not None]


def _clear(request: RunRequest) -> None:
    for path in _files(request):
        path.unlink(missing_ok=True)


def _written(request: RunRequest) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in _files(request) if path.exists()}
