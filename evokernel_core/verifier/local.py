"""LocalVerifier: the gates in order, in this process, with candidates in processes of their own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from attrs import evolve, frozen

from evokernel_core.domain.admission import admit
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, Verdict
from evokernel_core.targets.sources import require_known
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Backend, Cancelled, CompilesOnly, ReferenceRunner, never
from evokernel_core.verifier.draw import Draw, fresh
from evokernel_core.verifier.gates import correctness, latency
from evokernel_core.verifier.gates.correctness import Shapes


class LocalVerifier:
    """Judges with one backend; the reference runs in the torch agent. ``draw`` gives each verification the
    secret of its cases: only replays and tests name another source than the system's. ``thorough``: full
    sizes of hundreds of megabytes are run with data in every verification, and not in some."""

    def __init__(
        self,
        reference: ReferenceRunner,
        backend: Backend,
        *,
        draw: Callable[[], Draw] = fresh,
        thorough: bool = False,
    ) -> None:
        self._thorough = thorough
        self._reference = reference
        self._backend = backend
        self._draw = draw

    @property
    def name(self) -> str:
        return self._backend.name

    @property
    def workers(self) -> int:
        """One: this process shares the machine with an editor."""
        return 1

    def verify(
        self,
        task: KernelTask,
        source: KernelSource,
        *,
        cancelled: Cancelled = never,
        below_us: float = math.inf,
    ) -> Verdict:
        """The verdict up to the first gate that failed; as Verifier says of ``below_us``. Raises TaskRefused,
        UsageError for a kernel of an unknown target, VerifierError, BuildError."""
        admit(task)
        require_known(source)
        how = _How(cancelled, self._draw(), self._thorough, below_us)
        return _Judgement(task, source, self._reference, self._backend, how).verdict()


@frozen
class _How:
    """What one verification is asked for."""

    cancelled: Cancelled
    draw: Draw
    thorough: bool
    below_us: float


class _Judgement:
    """One verification: the gates that have spoken so far."""

    def __init__(
        self,
        task: KernelTask,
        source: KernelSource,
        reference: ReferenceRunner,
        backend: Backend,
        how: _How,
    ) -> None:
        self._task, self._source, self._how = task, source, how
        self._reference, self._backend = reference, backend
        self._gates: list[GateResult] = []
        self._shapes: Shapes = ()
        self._full_size = ""
        self._latency: Latency | None = None

    def verdict(self) -> Verdict:
        self._run_gates()
        return Verdict(
            task_id=self._task.task_id,
            source_id=self._source.source_id,
            verifier=self._backend.name,
            gates=tuple(self._gates),
            latency=self._latency,
            shapes=self._shapes,
            draw=self._how.draw.secret,
            replayed=self._how.draw.replayed,
            confinement=str(self._backend.confinement),
            full_size=self._full_size,
        )

    def _run_gates(self) -> None:
        started = time.monotonic()
        if not self._passes(self._backend.author.target.audit(self._task, self._source), started):
            return
        started = time.monotonic()
        result, built = build(self._task, self._source, self._backend)
        if isinstance(self._backend, CompilesOnly):
            facts = result.feedback if built is None else self._backend.facts(built)
            self._passes(evolve(result, feedback=facts), started)
            return
        if not self._passes(result, started):
            return
        started = time.monotonic()
        early = latency.timed_first(self._task, built, self._backend, self._how.below_us, self._how.draw)
        if early.result is not None:
            self._latency = early.latency
            self._passes(early.result, started)
            return
        started = time.monotonic()
        checked = correctness.check(
            self._task,
            built,
            self._backend,
            self._reference,
            self._how.cancelled,
            self._how.draw,
            thorough=self._how.thorough,
            source=self._source,
        )
        self._shapes, self._full_size = checked.shapes, checked.full_size
        if not self._passes(checked.result, started):
            return
        started = time.monotonic()
        merging = latency.merges(self._source)
        known = checked.timing or early.timing
        result, self._latency = latency.measure(
            self._task,
            built,
            self._backend,
            checked.witness,
            merging=merging,
            known=known,
            draw=self._how.draw,
        )
        self._passes(result, started)

    def _passes(self, result: GateResult, started: float) -> bool:
        """Records a gate's result; True where the next gate may follow."""
        if self._how.cancelled():
            raise VerifierError("The verification was cancelled.")
        self._gates.append(evolve(result, seconds=time.monotonic() - started))
        return result.status is GateStatus.PASSED


def build(task: KernelTask, source: KernelSource, backend: Backend) -> tuple[GateResult, Any]:
    """The gate's result and what was built, None where it failed. Raises BuildError."""
    try:
        built = backend.build(task, source)
    except CandidateError as error:
        return GateResult(GateName.COMPILE, GateStatus.FAILED, error.code, error.feedback), None
    return GateResult(GateName.COMPILE, GateStatus.PASSED), built
