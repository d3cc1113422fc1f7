"""The verifier's interfaces: who judges, who computes the reference, who runs the candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
from attrs import field, frozen

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Hazard, LatencySource, LineTime, Verdict
from evokernel_core.twin.run import PipeWork, TensorPart

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase
    from evokernel_core.compiler.author import KernelAuthor

Cancelled = Callable[[], bool]
"""Asked between steps; True means: stop now and raise VerifierError."""


def never() -> bool:
    """The ``cancelled`` of work that nobody can cancel."""
    return False


class Verifier(Protocol):
    """Judges a kernel against its task, here or on another machine."""

    @property
    def name(self) -> str:
        """Who speaks, e.g. ``twin 0.1.0`` or ``cann@host (remote)``."""
        ...

    @property
    def workers(self) -> int:
        """How many kernels it judges at a time, 1 or more."""
        ...

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        """The verdict. A verifier that models time may time the kernel first and compare nothing where a
        launch takes ``below_us`` microseconds or longer: the verdict then ``is_slower``. Raises VerifierError
        when it cannot judge, VerifierUnavailable when away."""
        ...


class ReferenceRunner(Protocol):
    """Runs the task's graph with PyTorch, in the interpreter that has it."""

    def reference(
        self,
        task: KernelTask,
        sizes: Mapping[str, int],
        seed: int,
        distribution: str,
        folder: Path,
        *,
        rounded: bool = False,
    ) -> ReferenceCase:
        """Draws inputs, runs the graph and leaves both as raw files in ``folder``.

        ``distribution`` is one of ``capture.reference.DISTRIBUTIONS``. With ``rounded`` the case has what its
        ``rounds`` speaks of. Raises CaptureError.
        """
        ...


class RunStatus(StrEnum):
    """How a candidate's process ended."""

    OK = "ok"
    DECLINED = "declined"
    """The kernel has no tiling for the sizes."""
    ERROR = "error"
    """It ended by itself and says that there was no launch to judge."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"


@frozen
class Case:
    """One execution: sizes and scalars in the task's order, files of inputs, files and bytes of outputs.

    ``products``: multiply-adds of one run, and ``between_bytes``: bytes of all values that it makes on
    the way to its outputs; both bound its time.

    The outputs share a folder that holds nothing else; the candidate may read the inputs' folders.
    ``input_parts`` and ``output_parts`` are there where only parts of the tensors have data: files then hold
    these alone, and ``output_bytes`` are still those of whole outputs.
    """

    sizes: tuple[int, ...]
    scalars: tuple[float, ...]
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    output_bytes: tuple[int, ...]
    repeat: int = 1
    products: int = 0
    between_bytes: int = 0
    input_parts: tuple[TensorPart, ...] = ()
    output_parts: tuple[TensorPart, ...] = ()

    @property
    def input_bytes(self) -> tuple[int, ...]:
        """Bytes of each input."""
        if self.input_parts:
            return tuple(part.nbytes for part in self.input_parts)
        return tuple(path.stat().st_size for path in self.inputs)

    @property
    def total_bytes(self) -> int:
        """Bytes of all inputs and outputs."""
        return sum(self.input_bytes) + sum(self.output_bytes)


@frozen
class Timing:
    """The full-size launch: microseconds, cores, and busy microseconds of the slowest core by pipe. ``work``
    is what a backend counted over all cores, by pipe; empty where it counts nothing. ``lines`` and
    ``balance`` are those of a Latency."""

    us: float
    block_dim: int
    pipes: tuple[tuple[str, float], ...]
    bottleneck: Sentence = field(converter=Sentence)
    hazards: tuple[Hazard, ...] = ()
    work: tuple[tuple[str, PipeWork], ...] = ()
    lines: tuple[LineTime, ...] = ()
    balance: float = 1.0


@frozen
class Execution:
    """What came of a case: how it ended, in which words, and the rules that it broke.

    ``us`` is the modelled latency of one launch on this data, 0 where the backend has none; ``timing`` all
    figures of it, where it had the full size with data in parts of its tensors.
    """

    status: RunStatus
    message: str = ""
    hazards: tuple[Hazard, ...] = ()
    seconds: float = 0.0
    us: float = 0.0
    timing: Timing | None = None
    tiling: tuple[int, ...] = field(default=(), repr=False)
    """The first words of the tiling data, where the backend tells."""
    probed: npt.NDArray[np.uint32] | None = field(default=None, repr=False, eq=False)
    """What the host code decides at each of some probes, a row of words each, the first of them 0 where it
    declines; None where none was asked for, or it crashes at some of them."""


@frozen
class TimingRequest:
    """Sizes, scalars and the bytes of every tensor at full size; no data but that of inputs which say
    where others are read: ``indices`` has the raw elements of those by their position."""

    sizes: tuple[int, ...]
    scalars: tuple[float, ...]
    input_bytes: tuple[int, ...] = field(default=())
    output_bytes: tuple[int, ...] = field(default=())
    indices: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)


class Backend(Protocol):
    """A machine that compiles, runs and times candidates: the CPU twin, or CANN with an NPU."""

    @property
    def name(self) -> str:
        """What a Verdict's ``verifier`` says."""
        ...

    @property
    def author(self) -> KernelAuthor:
        """Who writes what it judges, and for which device."""
        ...

    @property
    def latency_source(self) -> LatencySource: ...

    @property
    def confinement(self) -> str:
        """How far candidates are confined, in the words of ``sandbox.Level``. Raises BuildError."""
        ...

    def build(self, task: KernelTask, source: KernelSource) -> Any:
        """Something to hand to ``execute`` and ``measure``. Raises CandidateError, BuildError."""
        ...

    @property
    def samples(self) -> bool:
        """Whether ``execute`` takes cases of parts."""
        ...

    def execute(self, built: Any, case: Case) -> Execution:
        """Runs the candidate on a case; outputs are in the case's files when status is ok."""
        ...

    def measure(self, built: Any, request: TimingRequest) -> Timing:
        """Times one launch at full size. Raises CandidateError when the candidate fails in it."""
        ...


@runtime_checkable
class CompilesOnly(Protocol):
    """A backend that runs nothing: its verdicts end behind the gate of the compiler."""

    def facts(self, built: Any) -> Sentence:
        """What the compiler made of a candidate."""
        ...


@runtime_checkable
class RunsInTurn(Protocol):
    """A backend that has many small cases run at less cost than each by itself."""

    def execute_in_turn(
        self, built: Any, cases: Sequence[Case], probes: Sequence[tuple[int, ...]] = ()
    ) -> tuple[Execution, ...]:
        """What came of the cases, in order, as many as there are up to the first that fails. ``probes``:
        sizes at which the host code alone runs behind them, as the last one's ``probed`` tells."""
        ...


@runtime_checkable
class TimesBriefly(Protocol):
    """A backend that can leave off timing a launch."""

    @property
    def author(self) -> KernelAuthor: ...

    def measure_briefly(self, built: Any, request: TimingRequest, wall_s: float) -> Timing | None:
        """Times one launch; None where that takes longer than so many seconds. Raises CandidateError."""
        ...
