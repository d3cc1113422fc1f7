"""Runs a built kernel in two processes: the candidate's code in one, all that it is judged by in the other.

The judge (the runner) keeps tensors, cores, shadow state, time, traces and the result. The candidate's
process (``evokernel-candidate``) shares one block of memory with it, of a fixed size, through which it asks
for instructions; it opens no file but its libraries. How the two talk: ``src/judge/wire.h``; why:
docs/security.md, "The verifier".
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from attrs import evolve, field, frozen, mutable

from evokernel_core import temporary
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import Severity
from evokernel_core.hardware.ascend.chip import Chip, runner_text
from evokernel_core.lifeline import lifeline
from evokernel_core.twin.build import BuiltKernel
from evokernel_core.twin.run import (
    KERNEL_LIMITS,
    PROBE_WORDS,
    PROBED,
    ExitStatus,
    Finished,
    Limits,
    RunRequest,
    RunResult,
    clean_environment,
    ended_early,
    head_of,
    limited,
    read_result,
    request_text,
)

SHARED_BYTES = 4096 + (256 + 64 + 128) * 1024
"""Of the memory that both processes see: ``wire::Shared``, which refuses any other size."""
GONE_OFFSET = 4
"""Where in it stands whether the candidate's process has ended."""
CANDIDATE_OUTPUT = 1 << 20
"""Bytes that the candidate's host code may print."""
PATIENCE_S = 10.0
"""How long the judge may take to end after the candidate's process has."""
ENDED_EARLY = "The candidate's process ended"
"""How the judge's sentence begins where it met nobody at the other end."""


@frozen
class Sandboxes:
    """The command prefixes (sandboxes) of both processes: the judge reads inputs and writes ``scratch``, the
    candidate reads its library and writes nothing."""

    judge: tuple[str, ...] = ()
    candidate: tuple[str, ...] = ()


def judge_kernel(
    built: BuiltKernel,
    request: RunRequest,
    limits: Limits | None = None,
    sandboxes: Sandboxes | None = None,
    scratch: Path | None = None,
) -> RunResult:
    """Runs the kernel as ``run_kernel`` does, with its code out of reach of what it is judged by.

    ``limits`` holds for the judge; the candidate's process has the same time, and memory of its own.
    ``scratch`` is the folder of the request and the result, a temporary one by default. Raises BuildError
    where a process cannot be confined.
    """
    sandboxes = sandboxes or Sandboxes()
    if scratch is not None:
        return _run_in(scratch, built, (request,), limits or KERNEL_LIMITS, sandboxes)[0]
    with temporary.folder("run") as folder:
        return _run_in(Path(folder), built, (request,), limits or KERNEL_LIMITS, sandboxes)[0]


def judge_in_turn(
    built: BuiltKernel, requests: Sequence[RunRequest], limits: Limits, sandboxes: Sandboxes, scratch: Path
) -> tuple[RunResult, ...]:
    """The results of several requests, one after the other in the same two processes, which starts them once:
    as many as there are up to the first that fails. One chip has them all, and each the limits' wall time."""
    return _run_in(scratch, built, requests, limits, sandboxes)


def probed_in(scratch: Path) -> npt.NDArray[np.uint32]:
    """What ComputeTiling made of each probe of a run with this folder, a row of ``PROBE_WORDS`` each."""
    return np.fromfile(scratch / PROBED, "<u4").reshape(-1, PROBE_WORDS)


def _run_in(
    folder: Path, built: BuiltKernel, requests: Sequence[RunRequest], limits: Limits, sandboxes: Sandboxes
) -> tuple[RunResult, ...]:
    chip = requests[0].chip
    (folder / "chip.txt").write_text(runner_text(chip))
    texts, results = [], []
    for number, request in enumerate(requests):
        results.append(folder / f"result{number or ''}.json")
        results[-1].unlink(missing_ok=True)
        texts.append(folder / f"request{number or ''}.txt")
        texts[-1].write_text(request_text(built.library, request, folder, results[-1].name))
    twin = built.twin
    judge = (*limited(twin, limits), *sandboxes.judge, str(twin.runner), "--judge", *map(str, texts))
    candidate = (
        *limited(twin, _of_candidate(limits)),
        *sandboxes.candidate,
        str(twin.candidate),
        str(built.library),
    )
    pair = _run_pair(judge, candidate, (folder, built.library.parent), results, limits.wall_s)
    made = [path for path in results[:-1] if path.exists()]
    ended = results[len(made)]
    # What ended the processes ended them in the last request that began.
    before = evolve(pair, judge=evolve(pair.judge, exit_code=0, timed_out=False), alone=False)
    whole = [_verdict(path, before, limits, chip) for path in made]
    if any(map(_is_last, whole)):
        return tuple(whole)
    return (*whole, _verdict(ended, pair, limits, chip))


def _is_last(result: RunResult) -> bool:
    """Whether the judge went no further."""
    is_broken = any(hazard.severity is Severity.ERROR for hazard in result.hazards)
    return is_broken or result.status not in (ExitStatus.OK, ExitStatus.DECLINED)


def _of_candidate(limits: Limits) -> Limits:
    return evolve(limits, address_space=KERNEL_LIMITS.address_space, file_size=CANDIDATE_OUTPUT)


@frozen
class _Pair:
    """Both processes as they ended; ``alone``: the candidate's ended first and left the judge alone."""

    judge: Finished
    candidate: Finished
    alone: bool


def _verdict(result_file: Path, pair: _Pair, limits: Limits, chip: Chip) -> RunResult:
    """The judge's result, or how the candidate's process ended where it left the judge without an answer."""
    launcher_failed = pair.candidate.exit_code == 120 and "evokernel-launcher" in pair.candidate.stderr
    result = read_result(result_file, pair.candidate if launcher_failed else pair.judge, limits, chip)
    unanswered = result.status is ExitStatus.ERROR and result.message.startswith(ENDED_EARLY)
    if unanswered and pair.alone:
        early = ended_early(pair.candidate, limits)
        result = evolve(early, hazards=result.hazards, seconds=result.seconds)
    elif result.status is ExitStatus.CRASH:
        result = evolve(
            result,
            message=Sentence(
                "What the kernel asked for ended the verifier: {message}", message=result.message
            ),
        )
    return evolve(result, output=pair.judge.stdout + pair.judge.stderr + pair.candidate.stderr)


@mutable
class _Process:
    """A started process, its group, and what it prints."""

    popen: subprocess.Popen[bytes]
    stderr: IO[bytes]
    started: float
    seconds: float = 0.0
    descriptor: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.descriptor = os.pidfd_open(self.popen.pid)

    def end(self) -> None:
        """Kills what is left of the group before its leader is reaped: until then its number is its own."""
        os.close(self.descriptor)
        os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.wait()
        self.seconds = self.seconds or time.monotonic() - self.started

    def finished(self, timed_out: bool) -> Finished:
        return Finished(self.popen.returncode, "", head_of(self.stderr), self.seconds, timed_out)


def _run_pair(
    judge: Sequence[str],
    candidate: Sequence[str],
    folders: tuple[Path, Path],
    results: Sequence[Path],
    wall_s: float,
) -> _Pair:
    """Both processes in their folders, until the judge has written its results, each within the wall time."""
    with (
        _shared_memory() as shared,
        lifeline() as line,
        mmap.mmap(shared, SHARED_BYTES) as mapping,
        tempfile.TemporaryFile() as own_words,
        tempfile.TemporaryFile() as other_words,
    ):
        with contextlib.ExitStack() as running:
            with _one_processor():
                # The candidate starts first: it loads its library while the judge reads the tensors.
                other = _start(candidate, folders[1], shared, line, other_words)
                running.callback(other.end)
                own = _start(judge, folders[0], shared, line, own_words)
                running.callback(own.end)
            alone, timed_out = _watch(own, other, mapping, results, wall_s)
        return _Pair(own.finished(timed_out), other.finished(timed_out), alone)


@contextlib.contextmanager
def _one_processor() -> Iterator[None]:
    """Processes that start here stay on this thread's processor, which it leaves to them while it waits: they
    take turns, and waking another processor takes several times as long as a turn."""
    allowed = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):  # where the system keeps processors to itself, it places them
        os.sched_setaffinity(0, {_processor()})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, allowed)


def _processor() -> int:
    """The number of the processor that this thread runs on."""
    after_name = Path("/proc/thread-self/stat").read_text().rpartition(")")[2].split()
    return int(after_name[36])


@contextlib.contextmanager
def _shared_memory() -> Iterator[int]:
    """The block of memory. Nobody can make it smaller, so that reading it never faults, or larger."""
    descriptor = os.memfd_create("evokernel-judge", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, SHARED_BYTES)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        yield descriptor
    finally:
        os.close(descriptor)


def _start(command: Sequence[str], cwd: Path, shared: int, line: int, stderr: IO[bytes]) -> _Process:
    """Starts a process. Standard output is the shared memory: sandboxes pass on three descriptors only."""
    started = time.monotonic()
    popen = subprocess.Popen(
        command,
        cwd=cwd,
        env=clean_environment(),
        stdin=line,
        stdout=shared,
        stderr=stderr,
        start_new_session=True,
    )
    return _Process(popen, stderr, started)


def _watch(
    own: _Process, other: _Process, mapping: mmap.mmap, results: Sequence[Path], wall_s: float
) -> tuple[bool, bool]:
    """Waits for the judge: whether the candidate's process ended first, and whether time ran out for the next
    result."""
    poll = select.poll()
    poll.register(own.descriptor, select.POLLIN)
    poll.register(other.descriptor, select.POLLIN)
    alone, made = False, 0
    deadline = own.started + wall_s
    while True:
        left = deadline - time.monotonic()
        ready = {descriptor for descriptor, _ in poll.poll(max(0, math.ceil(left * 1000)))}
        before, made = made, sum(path.exists() for path in results)
        if not ready and not alone and made > before:
            deadline = time.monotonic() + wall_s
            continue
        if own.descriptor in ready or not ready:
            own.seconds = time.monotonic() - own.started
            return alone, not ready
        alone = True
        mapping[GONE_OFFSET] = 1
        poll.unregister(other.descriptor)
        deadline = min(deadline, time.monotonic() + PATIENCE_S)
