"""The correctness gate: the candidate runs on many cases and must match PyTorch on each."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Deviation, GateResult, Hazard
from evokernel_core.verifier.base import Backend, Cancelled, ReferenceRunner, Timing
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import CasePlan, Unverifiable, plan_cases
from evokernel_core.verifier.gates.full_size import Shapes, at_full_size, far_beyond
from evokernel_core.verifier.gates.in_turn import grouped, runs
from evokernel_core.verifier.gates.index_width import beyond_32_bits
from evokernel_core.verifier.gates.indices import Indices, index_inputs
from evokernel_core.verifier.gates.landmarks import landmarks_of, small_cases, telling_words
from evokernel_core.verifier.gates.narrow_types import narrow_bits, wide_cases
from evokernel_core.verifier.gates.one_case import Judges, passed
from evokernel_core.verifier.gates.sweep import Words, sweep_of, unusual_sizes

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


def check(  # noqa: PLR0913 - whom and what it asks
    task: KernelTask,
    built: Any,
    backend: Backend,
    reference: ReferenceRunner,
    cancelled: Cancelled,
    draw: Draw,
    *,
    thorough: bool = False,
    source: KernelSource | None = None,
) -> Checked:
    """Runs every case of a draw until one fails; with a ``source`` small ones about the numbers that it names
    too. Raises VerifierError where no case can be judged."""
    try:
        plans = plan_cases(task, draw, thorough=thorough)
    except Unverifiable as error:
        return Checked(error.result)
    ran: list[tuple[tuple[str, int], ...]] = []
    witness = Witness()
    judges = Judges(built, backend, reference, draw)
    warnings: dict[tuple[str, int], Hazard] = {}
    deviation: Deviation | None = None
    tilings: list[tuple[int, ...]] = []
    known = landmarks_of(task.graph, source)
    sweep = sweep_of(task, draw, known.compared)
    probed: Words | None = None
    for group in grouped(task, plans, judges):
        _go_on(cancelled)
        last = group[-1] is plans[-1] and not ran
        for case in runs(task, group, judges, is_last_chance=last, probes=sweep.sizes):
            outcome, plan = case.outcome, case.plan
            probed = probed if case.execution.probed is None else case.execution.probed
            if outcome is None:
                continue
            ran.append(plan.sizes)
            tilings.append(case.execution.tiling)
            indices = _indices(task, plan, case.reference)
            witness = Witness(plan.sizes, case.reference.scalars, case.execution.us, indices)
            warnings.update({(h.code, h.line): h for h in outcome.hazards})
            if case.failed:
                return Checked(outcome, tuple(dict.fromkeys(ran)), witness)
            if outcome.deviation is not None:
                deviation = outcome.deviation.joined(deviation) if deviation else outcome.deviation
    shapes = tuple(dict.fromkeys(ran))
    if source is not None:
        _go_on(cancelled)
        cores = backend.author.device.parallel
        unusual = unusual_sizes(task, draw, sweep, probed, known.equal)
        plans = small_cases(task, draw, known, telling_words(tilings), cores, unusual)
        wide = tuple(wide_cases(task, draw, narrow_bits(source)))
        near = chain(runs(task, plans, judges), *(runs(task, (plan,), judges) for plan in wide))
        failure = next((case.outcome for case in near if case.failed), None)
        if failure is not None:
            return Checked(failure, shapes, witness)
    full = at_full_size(task, judges, shapes, thorough=thorough)
    failed = full.failed or far_beyond(task, judges) or (beyond_32_bits(task, judges) if thorough else None)
    result = failed or passed(tuple(warnings.values()), deviation)
    return Checked(result, shapes, witness, full.words, full.timing)


def _go_on(cancelled: Cancelled) -> None:
    if cancelled():
        raise VerifierError("The verification was cancelled.")


def _indices(task: KernelTask, plan: CasePlan, reference: ReferenceCase) -> Indices:
    """What the case's indices were."""
    result = index_inputs(task, dict(plan.sizes))
    return tuple((position, reference.inputs[position].read_bytes()) for position, _, _ in result)
