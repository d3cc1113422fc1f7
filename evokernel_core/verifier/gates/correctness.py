"""The correctness gate: the candidate runs on many cases and must match PyTorch on each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from evokernel_core import temporary
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Deviation, GateResult, GateStatus, Hazard
from evokernel_core.verifier.base import Backend, Cancelled, ReferenceRunner, Timing
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import CasePlan, Unverifiable, plan_cases
from evokernel_core.verifier.gates.full_size import Shapes, at_full_size, far_beyond
from evokernel_core.verifier.gates.indices import Indices, index_inputs
from evokernel_core.verifier.gates.one_case import Judges, passed, reference_of, run_case

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase

__all__ = ["Checked", "Shapes", "Witness", "check"]


@frozen
class Witness:
    """The last and largest case that ran: its sizes and scalars, and its modelled latency on real data.

    ``us`` is 0 where the backend models none. ``indices`` are the inputs that chose what it read.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    scalars: tuple[float, ...] = ()
    us: float = 0.0
    indices: Indices = field(default=(), repr=False)


@frozen
class Checked:
    """The gate's result, the sizes that ran, and the last case as a witness for the latency gate.

    ``full_size`` says what of the file's own sizes was compared; ``timing`` are the figures of that launch
    where it had data in parts of its tensors only.
    """

    result: GateResult
    shapes: Shapes = ()
    witness: Witness = Witness()
    full_size: str = ""
    timing: Timing | None = None


def check(
    task: KernelTask,
    built: Any,
    backend: Backend,
    reference: ReferenceRunner,
    cancelled: Cancelled,
    draw: Draw,
    *,
    thorough: bool = False,
) -> Checked:
    """Runs every case of a draw until one fails. Raises VerifierError where no case can be judged."""
    try:
        plans = plan_cases(task, draw, thorough=thorough)
    except Unverifiable as error:
        return Checked(error.result)
    ran: list[tuple[tuple[str, int], ...]] = []
    witness = Witness()
    judges = Judges(built, backend, reference, draw)
    warnings: dict[tuple[str, int], Hazard] = {}
    deviation: Deviation | None = None
    for plan in plans:
        if cancelled():
            raise VerifierError("The verification was cancelled.")
        with temporary.folder("case") as folder:
            case_reference = reference_of(task, plan, reference, Path(folder), plan is plans[-1] and not ran)
            if case_reference is None:
                continue
            outcome, execution = run_case(task, plan, case_reference, judges, Path(folder))
            indices = _indices(task, plan, case_reference)
        if outcome is None:
            continue
        ran.append(plan.sizes)
        witness = Witness(plan.sizes, case_reference.scalars, execution.us, indices)
        warnings.update({(h.code, h.line): h for h in outcome.hazards})
        if outcome.status is GateStatus.FAILED:
            return Checked(outcome, tuple(dict.fromkeys(ran)), witness)
        if outcome.deviation is not None:
            deviation = outcome.deviation.joined(deviation) if deviation else outcome.deviation
    shapes = tuple(dict.fromkeys(ran))
    full = at_full_size(task, judges, shapes, thorough=thorough)
    failed = full.failed or far_beyond(task, judges)
    result = failed or passed(tuple(warnings.values()), deviation)
    return Checked(result, shapes, witness, full.words, full.timing)


def _indices(task: KernelTask, plan: CasePlan, reference: ReferenceCase) -> Indices:
    """What the case's indices were."""
    result = index_inputs(task, dict(plan.sizes))
    return tuple((position, reference.inputs[position].read_bytes()) for position, _, _ in result)
