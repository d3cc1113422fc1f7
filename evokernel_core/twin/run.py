"""Runs a built kernel in a process of its own, with limits, and reads what it found."""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, Any

from attrs import field, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import BuildError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import Hazard, LineTime, Severity
from evokernel_core.hardware.ascend.chip import Chip, runner_text
from evokernel_core.lifeline import lifeline
from evokernel_core.twin.bottleneck import bottleneck_words, overhead_of
from evokernel_core.twin.build import BuiltKernel, Twin
from evokernel_core.twin.said import sentence_said

GIB = 1024**3


class Mode(StrEnum):
    """``check`` moves data and looks for hazards; ``time`` counts cycles, with no data but that of inputs
    which have a file; ``sample`` does as ``check`` with the data of chosen parts of the tensors alone."""

    CHECK = "check"
    TIME = "time"
    SAMPLE = "sample"


class ExitStatus(StrEnum):
    """How the process ended. ``declined``: the kernel has no tiling for the sizes. ``error``: it ended by
    itself and says that the run cannot be judged."""

    OK = "ok"
    DECLINED = "declined"
    ERROR = "error"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"


@frozen
class Limits:
    """Seconds of wall clock and of processor time, bytes of address space and of any one file written.

    Processor time (None: all that the cores give meanwhile) tells a slow kernel from a busy machine.
    """

    wall_s: float = 120.0
    cpu_s: float | None = None
    address_space: int = 4 * GIB
    file_size: int = GIB

    @property
    def processor_s(self) -> float:
        return self.wall_s * (os.cpu_count() or 1) if self.cpu_s is None else self.cpu_s


KERNEL_LIMITS = Limits(cpu_s=30.0)


Run = tuple[int, int]
"""The first of some neighbouring indices, and how many they are."""


@frozen
class TensorPart:
    """Chosen elements of a tensor: those whose index along each dimension is in one of its runs, which rise.

    ``item_size``: bytes of an element; ``sizes``: the tensor's shape.
    """

    item_size: int
    sizes: tuple[int, ...]
    runs: tuple[tuple[Run, ...], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.item_size * math.prod(self.sizes)

    @property
    def text(self) -> str:
        """``ITEM_SIZE DIMS`` and for each dimension ``SIZE RUNS`` with ``FIRST COUNT`` for each run."""
        words = [self.item_size, len(self.sizes)]
        for size, runs in zip(self.sizes, self.runs, strict=True):
            words += [size, len(runs), *(number for run in runs for number in run)]
        return " ".join(map(str, words))


@frozen
class TensorFile:
    """A tensor argument: its raw file and its bytes. In ``time`` mode no data moves and the path is None,
    but for inputs that say where others are read: their elements reach the scalar unit. In ``sample`` mode
    the file holds the elements of ``part`` alone, in their order; all of them where that is None."""

    path: Path | None
    nbytes: int
    initial: Path | None = None
    """What an output holds before the launch, for one that is read too."""
    is_list: bool = False
    """An input into which the launcher writes the addresses of a list's tensors."""
    part: TensorPart | None = None


@frozen
class RunRequest:
    """One run. Sizes, scalars and tensors are in the task's order; ``repeat`` compares that many runs.

    ``find_races``: whether the race detector listens; only measurements of its cost turn it off.
    """

    mode: Mode
    chip: Chip
    sizes: tuple[int, ...] = ()
    scalars: tuple[float, ...] = ()
    inputs: tuple[TensorFile, ...] = ()
    outputs: tuple[TensorFile, ...] = ()
    repeat: int = 1
    trace: Path | None = None
    auto_sync: bool = True
    """Whether the compiler is taken to insert barriers (``--cce-auto-sync``)."""
    find_races: bool = True
    refuse_unknown: bool = False
    """Whether in ``time`` mode a scalar of global memory that a kernel computes ends the run (hazard
    ``data-dependent``); else it is 0."""
    probes: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    """Sizes at which ComputeTiling alone runs; where there are any, nothing is launched."""


PROBED, PROBE_WORDS = "probes.bin", 4 + 256
"""The file of a run's probes, and the words of 32 bits of each: whether it is covered, blocks, two of the
bytes of the workspace, and the first ones of the tiling data."""


@frozen
class PipeWork:
    """What all cores of a launch did on one pipe, as the twin counted it: instructions, bytes that were
    copied to or from global memory, and modelled microseconds in sum over the cores."""

    instructions: int = 0
    nbytes: int = 0
    us: float = 0.0

    def __add__(self, other: PipeWork) -> PipeWork:
        return PipeWork(
            self.instructions + other.instructions, self.nbytes + other.nbytes, self.us + other.us
        )


@frozen
class LaunchReport:
    """One launch as modelled: microseconds, busy microseconds of the slowest block by pipe, and the work of
    all of them. ``lines``: of the same block, those that take most of each pipe; ``balance``: the mean time
    of the cores that such a launch could use, as a share of the slowest one's."""

    kernel: str
    block_dim: int
    latency_us: float
    pipes: tuple[tuple[str, float], ...]
    bottleneck: Sentence = field(converter=Sentence)
    slowest_block: int = 0
    work: tuple[tuple[str, PipeWork], ...] = ()
    lines: tuple[LineTime, ...] = ()
    balance: float = 1.0


@frozen
class RunResult:
    """What came of a run; ``message`` is a sentence unless status is ok. ``latency_us`` is modelled."""

    status: ExitStatus
    message: Sentence = field(default=Sentence(), converter=Sentence)
    hazards: tuple[Hazard, ...] = ()
    launches: tuple[LaunchReport, ...] = ()
    latency_us: float = 0.0
    instructions: int = 0
    outputs_written: tuple[bool, ...] = ()
    input_changed: tuple[bool, ...] = ()
    seconds: float = 0.0
    exit_code: int = 0
    output: str = ""
    tiling: tuple[int, ...] = field(default=(), repr=False)
    """The first words of 32 bits of the tiling data, which a candidate in a process of its own tells."""


@frozen
class Finished:
    """A process that ended: exit status (negative: a signal), what it printed, seconds it took."""

    exit_code: int
    stdout: str
    stderr: str
    seconds: float
    timed_out: bool


def run_kernel(
    built: BuiltKernel,
    request: RunRequest,
    limits: Limits | None = None,
    command_prefix: tuple[str, ...] = (),
    scratch: Path | None = None,
) -> RunResult:
    """Runs the kernel. ``command_prefix`` (a sandbox) is put before the runner's command line.

    ``scratch`` is the folder of the request and the result, a temporary one by default; a sandbox
    must let the runner write there.
    """
    if scratch is not None:
        return _run_in(scratch, built, request, limits or KERNEL_LIMITS, command_prefix)
    with temporary.folder("run") as folder:
        return _run_in(Path(folder), built, request, limits or KERNEL_LIMITS, command_prefix)


def _run_in(
    folder: Path, built: BuiltKernel, request: RunRequest, limits: Limits, command_prefix: tuple[str, ...]
) -> RunResult:
    result_file = folder / "result.json"
    result_file.unlink(missing_ok=True)
    (folder / "chip.txt").write_text(runner_text(request.chip))
    (folder / "request.txt").write_text(request_text(built.library, request, folder))
    command = [
        *limited(built.twin, limits),
        *command_prefix,
        str(built.twin.runner),
        str(folder / "request.txt"),
    ]
    finished = run_process(command, folder, limits.wall_s, clean_environment())
    return read_result(result_file, finished, limits, request.chip)


def request_text(library: Path, request: RunRequest, folder: Path, result: str = "result.json") -> str:
    """The runner's request: one ``key value...`` a line; ``result`` names the file that it makes."""
    lines = [
        f"library {library}",
        f"result {folder / result}",
        f"mode {request.mode}",
        f"chip {folder / 'chip.txt'}",
        " ".join(["sizes", *(str(size) for size in request.sizes)]),
        " ".join(["scalars", *(f"{scalar:.9g}" for scalar in request.scalars)]),
        *_tensor_lines(request),
        f"repeat {request.repeat}",
    ]
    if request.trace is not None:
        lines.append(f"trace {request.trace}")
    if not request.auto_sync:
        lines.append("auto_sync off")
    if request.refuse_unknown:
        lines.append("unknown refuse")
    if not request.find_races:
        lines.append("races off")
    if request.probes:
        lines.append(f"probed {folder / PROBED}")
        lines += [" ".join(["probe", *map(str, sizes)]) for sizes in request.probes]
    return "\n".join(lines) + "\n"


def _tensor_lines(request: RunRequest) -> Iterator[str]:
    for operand in request.inputs:
        yield f"tensor {'list' if operand.is_list else 'in'} {operand.path or '-'} {operand.nbytes}"
        if operand.part is not None:
            yield f"part {operand.part.text}"
    for operand in request.outputs:
        yield f"tensor out {operand.path or '-'} {operand.nbytes} {operand.initial or ''}".rstrip()
        if operand.part is not None:
            yield f"part {operand.part.text}"


def limited(twin: Twin, limits: Limits) -> tuple[str, ...]:
    """The command prefix that applies limits, and ends the program with its lifeline."""
    return (
        *(str(twin.launcher), "--until-eof", "--address-space", str(limits.address_space)),
        *("--file-size", str(limits.file_size), "--cpu", str(math.ceil(limits.processor_s))),
        "--",
    )


def clean_environment() -> dict[str, str]:
    """What a candidate's process sees of the environment: nothing of the person's."""
    return {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def run_process(command: Sequence[str], cwd: Path, wall_s: float, environment: Mapping[str, str]) -> Finished:
    """Runs a command in a process group of its own, and kills the group when its time is over.

    Standard input is a lifeline without data: a command ends with this process, even when that is killed,
    where it starts with ``limited`` or with another watcher, which gives the program an empty input.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr, lifeline() as line:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=line,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        timed_out = _wait(process, wall_s)
        seconds = time.monotonic() - started
        return Finished(process.returncode, head_of(stdout), head_of(stderr), seconds, timed_out)


def _wait(process: subprocess.Popen[bytes], wall_s: float) -> bool:
    """Waits and then kills whatever is left of the group. True where time ran out.

    The group is killed before its leader is reaped: until then its number belongs to nobody else.
    """
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ended = bool(poll.poll(wall_s * 1000))
    finally:
        os.close(descriptor)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return not ended


def head_of(file: IO[bytes], limit: int = 65536) -> str:
    """What a process printed first."""
    file.seek(0)
    return file.read(limit).decode(errors="replace")


def read_result(path: Path, finished: Finished, limits: Limits, chip: Chip) -> RunResult:
    """The result that the runner left on a chip, or why it left none."""
    if finished.exit_code == 120 and "evokernel-launcher" in finished.stderr:
        raise BuildError("The kernel's process could not be confined: {said}", said=finished.stderr.strip())
    if finished.exit_code == -signal.SIGKILL and "evokernel-launcher: quota" in finished.stderr:
        return _ended(
            ExitStatus.CRASH,
            Sentence("The kernel wrote more files or bytes than its outputs have."),
            finished,
        )
    if _out_of_time(finished):
        return ended_early(finished, limits)
    data = _load(path)
    if data is None:
        return ended_early(finished, limits)
    if finished.exit_code < 0:
        return _ended(ExitStatus.CRASH, _crash_words(finished), finished)
    return _parsed(data, finished, chip)


def _load(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _out_of_time(finished: Finished) -> bool:
    return finished.timed_out or finished.exit_code in (-signal.SIGXCPU, -signal.SIGKILL)


def ended_early(finished: Finished, limits: Limits) -> RunResult:
    """Why a process left no result: time, memory or a crash."""
    if _out_of_time(finished):
        words = Sentence("The kernel did not finish within {seconds} s.", seconds=f"{limits.wall_s:.0f}")
        if not finished.timed_out:
            words = Sentence(
                "The kernel did not finish within {seconds} s of work.", seconds=f"{limits.processor_s:.0f}"
            )
        return _ended(ExitStatus.TIMEOUT, words, finished)
    if "bad_alloc" in finished.stderr or "out of memory" in finished.stderr.lower():
        gib = limits.address_space / GIB
        return _ended(
            ExitStatus.MEMORY,
            Sentence("The kernel asked for more than {gib} GiB of host memory.", gib=f"{gib:.0f}"),
            finished,
        )
    return _ended(ExitStatus.CRASH, _crash_words(finished), finished)


def _crash_words(finished: Finished) -> Sentence:
    if finished.exit_code >= 0:
        return Sentence(
            "The kernel's process ended with exit status {status} before the launch was over.",
            status=finished.exit_code,
        )
    name = signal.Signals(-finished.exit_code).name
    why = {
        "SIGSEGV": Sentence("it touched memory that is not its own"),
        "SIGFPE": Sentence("an integer division by zero"),
        "SIGABRT": Sentence("it aborted"),
        "SIGXFSZ": Sentence("it wrote a file that is too large"),
        "SIGILL": Sentence(
            "an index outside of an array, a shift by too many bits, a fraction beyond an integer's range, "
            "or code that cannot be reached"
        ),
    }.get(name, Sentence("it was ended by a signal"))
    last = finished.stderr.strip().splitlines()[-1:] or [""]
    if last[0]:
        detail = Sentence(last[0][:200])  # translated where the process itself said it
        return Sentence(
            "The kernel crashed with {name}: {why} ({detail}).", name=name, why=why, detail=detail
        )
    return Sentence("The kernel crashed with {name}: {why}.", name=name, why=why)


def _ended(status: ExitStatus, message: Sentence, finished: Finished) -> RunResult:
    return RunResult(
        status,
        message,
        seconds=finished.seconds,
        exit_code=finished.exit_code,
        output=finished.stdout + finished.stderr,
    )


def _parsed(data: dict[str, Any], finished: Finished, chip: Chip) -> RunResult:
    error = sentence_said(data.get("error") or "")
    if not error and finished.exit_code:
        error = Sentence("The program ended with exit status {status}.", status=finished.exit_code)
    return RunResult(
        status=_status(error, declined=data.get("declined") is True),
        message=error,
        hazards=tuple(_hazard(hazard) for hazard in data.get("hazards", ())),
        launches=tuple(_launch(launch, chip) for launch in data.get("launches", ())),
        latency_us=float(data.get("latency_us", 0.0)),
        instructions=int(data.get("instructions", 0)),
        outputs_written=tuple(bool(entry) for entry in data.get("outputs_written", ())),
        input_changed=tuple(bool(entry) for entry in data.get("input_changed", ())),
        seconds=finished.seconds,
        exit_code=finished.exit_code,
        output=finished.stdout + finished.stderr,
        tiling=tuple(map(int, data.get("tiling", ()))),
    )


def _status(error: str, *, declined: bool) -> ExitStatus:
    if declined:
        return ExitStatus.DECLINED
    return ExitStatus.ERROR if error else ExitStatus.OK


def _hazard(entry: Mapping[str, Any]) -> Hazard:
    return Hazard(
        code=str(entry["code"]),
        severity=Severity(entry["severity"]),
        message=sentence_said(entry["message"]),
        file=str(entry.get("file", "")),
        line=int(entry.get("line", 0)),
    )


def _launch(entry: Mapping[str, Any], chip: Chip) -> LaunchReport:
    block_dim, latency_us = int(entry["block_dim"]), float(entry["latency_us"])
    overhead = overhead_of(chip, latency_us, int(entry["cores"]))
    return LaunchReport(
        kernel=str(entry["kernel"]),
        block_dim=block_dim,
        latency_us=latency_us,
        pipes=tuple((str(pipe), float(us)) for pipe, us in entry.get("pipes", {}).items()),
        bottleneck=bottleneck_words(entry.get("bottleneck", {}), overhead),
        slowest_block=int(entry.get("blocks", {}).get("slowest", 0)),
        work=tuple((str(pipe), _work(counted)) for pipe, counted in entry.get("work", {}).items()),
        lines=tuple(_lines(entry.get("lines", {}))),
        balance=float(entry.get("balance", 1.0)),
    )


def _lines(by_pipe: Mapping[str, Sequence[Sequence[Any]]]) -> Iterator[LineTime]:
    for pipe, lines in by_pipe.items():
        for file, line, calls, us in lines:
            yield LineTime(pipe, Path(file).name, int(line), int(calls), float(us))


def _work(counted: Sequence[float]) -> PipeWork:
    instructions, nbytes, us = counted
    return PipeWork(int(instructions), int(nbytes), float(us))
