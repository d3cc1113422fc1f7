"""LocalVerifier: the gates in order, in this process, with candidates in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import evolve

from evokernel_core.domain.admission import admit
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult, GateStatus, Latency, Verdict
from evokernel_core.verifier.base import Backend, Cancelled, ReferenceRunner, never
from evokernel_core.verifier.draw import Draw, fresh
from evokernel_core.verifier.gates import audit, compile, correctness, latency
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

    def verify(self, task: KernelTask, source: KernelSource, *, cancelled: Cancelled = never) -> Verdict:
        """The verdict up to the first gate that failed. Raises TaskRefused, VerifierError, BuildError."""
        admit(task)
        judgement = _Judgement(
            task, source, self._reference, self._backend, cancelled, self._draw(), self._thorough
        )
        return judgement.verdict()


class _Judgement:
    """One verification: the gates that have spoken so far."""

    def __init__(
        self,
        task: KernelTask,
        source: KernelSource,
        reference: ReferenceRunner,
        backend: Backend,
        cancelled: Cancelled,
        draw: Draw,
        thorough: bool,
    ) -> None:
        self._draw, self._thorough = draw, thorough
        self._task, self._source = task, source
        self._reference, self._backend = reference, backend
        self._cancelled = cancelled
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
            draw=self._draw.secret,
            replayed=self._draw.replayed,
            confinement=str(self._backend.confinement),
            full_size=self._full_size,
        )

    def _run_gates(self) -> None:
        started = time.monotonic()
        if not self._passes(audit.audit(self._task, self._source), started):
            return
        started = time.monotonic()
        result, built = compile.build(self._task, self._source, self._backend)
        if not self._passes(result, started):
            return
        started = time.monotonic()
        checked = correctness.check(
            self._task,
            built,
            self._backend,
            self._reference,
            self._cancelled,
            self._draw,
            thorough=self._thorough,
        )
        self._shapes, self._full_size = checked.shapes, checked.full_size
        if not self._passes(checked.result, started):
            return
        started = time.monotonic()
        merging = latency.merges(self._source)
        result, self._latency = latency.measure(
            self._task, built, self._backend, checked.witness, merging=merging, sampled=checked.timing
        )
        self._passes(result, started)

    def _passes(self, result: GateResult, started: float) -> bool:
        """Records a gate's result; True where the next gate may follow."""
        if self._cancelled():
            raise VerifierError("The verification was cancelled.")
        self._gates.append(evolve(result, seconds=time.monotonic() - started))
        return result.status is GateStatus.PASSED
