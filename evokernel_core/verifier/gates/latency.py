"""The latency gate: one launch at full size, never faster than the speed of light."""

from __future__ import annotations

from typing import Any

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, Severity
from evokernel_core.twin.build import CandidateError
from evokernel_core.twin.roofline import eager_us, roofline_us
from evokernel_core.verifier.base import Backend, Timing, TimingRequest
from evokernel_core.verifier.gates.cases import tensor_bytes

SLACK = 0.98
"""A latency below this share of the roofline is no speed but a kernel that does not do its work."""


def measure(
    task: KernelTask, built: Any, backend: Backend, scalars: tuple[float, ...]
) -> tuple[GateResult, Latency | None]:
    """The gate's result and the latency, None where it failed."""
    inputs, outputs = tensor_bytes(task, task.sizes)
    if sum(inputs) + sum(outputs) > backend.chip.hbm_bytes:
        gib = (sum(inputs) + sum(outputs)) / 1024**3
        return _failed(
            "device-memory", f"The tensors take {gib:.1f} GiB, more than {backend.chip.name} has."
        ), None
    wanted = sum(item.kind is InputKind.SCALAR for item in task.graph.inputs)
    request = TimingRequest(
        sizes=tuple(symbol.size for symbol in task.symbols),
        scalars=scalars if len(scalars) == wanted else (1.0,) * wanted,
        input_bytes=inputs,
        output_bytes=outputs,
    )
    try:
        timing = backend.measure(built, request)
    except CandidateError as error:
        return _failed(error.code, f"{error.feedback} (at full size)"), None
    return judge(task, backend, timing)


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
