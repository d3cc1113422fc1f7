"""The latency gate: one launch at full size, never faster than the speed of light."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, Severity
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.roofline import eager_us, roofline_us
from evokernel_core.verifier.base import Backend, Timing, TimingRequest
from evokernel_core.verifier.gates.cases import tensor_bytes, total_bytes
from evokernel_core.verifier.gates.correctness import Witness
from evokernel_core.verifier.gates.indices import Indices, drawn_indices

AGREEMENT = 0.02
"""How far the modelled time of a launch may depend on whether data moves, as a share."""
SLACK = 0.98
"""A latency below this share of the roofline is no speed but a kernel that does not do its work."""


def measure(
    task: KernelTask, built: Any, backend: Backend, witness: Witness
) -> tuple[GateResult, Latency | None]:
    """The gate's result and the latency, None where it failed."""
    total = total_bytes(task, task.sizes)
    if total > backend.chip.hbm_bytes:
        feedback = f"The tensors take {total / 1024**3:.1f} GiB, more than {backend.chip.name} has."
        return _failed("device-memory", feedback), None
    try:
        timing = backend.measure(built, _request(task, task.sizes, witness, drawn_indices(task, task.sizes)))
        lazy = _depends_on_data(task, built, backend, witness, timing)
    except CandidateError as error:
        return _failed(error.code, f"{error.feedback} (at full size)"), None
    return (_failed("data-dependent", lazy), None) if lazy else judge(task, backend, timing)


def _request(task: KernelTask, sizes: Mapping[str, int], witness: Witness, indices: Indices) -> TimingRequest:
    inputs, outputs = tensor_bytes(task, sizes)
    bound = tuple(sizes[symbol.name] for symbol in task.symbols)
    return TimingRequest(bound, witness.scalars, inputs, outputs, indices)


def _depends_on_data(task: KernelTask, built: Any, backend: Backend, witness: Witness, timing: Timing) -> str:
    """What is wrong where a launch without data takes another time than the same launch had with data.

    Timing moves no data but indices: a kernel that looks at its tensors to do less would otherwise seem
    fast.
    """
    if not witness.us:
        return ""
    sizes = dict(witness.sizes)
    timed = timing
    if sizes != task.sizes or witness.indices:
        timed = backend.measure(built, _request(task, sizes, witness, witness.indices))
    if abs(timed.us - witness.us) <= AGREEMENT * witness.us:
        return ""
    return (
        f"The same launch takes {witness.us:.4g} us on data and {timed.us:.4g} us without "
        f"({sizes or 'the sizes of the file'}): control flow must not depend on tensor values."
    )


def judge(task: KernelTask, backend: Backend, timing: Timing) -> tuple[GateResult, Latency | None]:
    """Compares a timing with the roofline."""
    errors = [hazard for hazard in timing.hazards if hazard.severity is Severity.ERROR]
    if errors:
        words = "; ".join(f"{hazard.code}: {hazard.message}" for hazard in errors[:3])
        return _failed(errors[0].code, f"{words} (at full size)"), None
    bound = roofline_us(task, backend.chip)
    if timing.us < SLACK * bound:
        feedback = (
            f"{timing.us:.3g} us {backend.latency_source} is below the bound of {bound:.3g} us of the bytes "
            "and operations of this task: the kernel leaves out work at full size."
        )
        return _failed("implausible", feedback), None
    latency = Latency(
        us=timing.us,
        source=backend.latency_source,
        chip=backend.chip.name,
        block_dim=timing.block_dim,
        pipes=timing.pipes,
        bottleneck=timing.bottleneck,
        roofline_us=bound,
        baseline_us=eager_us(task, backend.chip),
    )
    return GateResult(GateName.LATENCY, GateStatus.PASSED, hazards=timing.hazards), latency


def _failed(code: str, feedback: str) -> GateResult:
    return GateResult(GateName.LATENCY, GateStatus.FAILED, code, feedback)
