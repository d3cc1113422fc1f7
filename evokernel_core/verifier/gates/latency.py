"""The latency gate: one launch at full size, whose time must be that of the whole work."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.language import TokenKind
from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import (
    SLOWER,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Severity,
)
from evokernel_core.targets.sources import language_of, main_file
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import Backend, Timing, TimingRequest
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import tensor_bytes, total_bytes
from evokernel_core.verifier.gates.correctness import Witness
from evokernel_core.verifier.gates.indices import PUBLIC, Indices, drawn_indices
from evokernel_core.verifier.gates.plausible import implausible, unsteady

AGREEMENT = 0.02
"""How far the modelled time of a launch may depend on whether data moves, as a share."""
MERGING = 0.2
"""The same for a kernel that asks the sorting unit how far a merge came, which depends on the numbers and
not on what the kernel does about them; its latency is then that of a launch on data."""


def merges(source: KernelSource) -> bool:
    """Whether a kernel asks how far a merge came, of sorted runs that do not fit the memory on chip."""
    language, main = language_of(source.target), main_file(source.target)
    words = language.tokens(main, source.files[main]) if language.data_dependent else ()
    return any(word.kind is TokenKind.NAME and word.text in language.data_dependent for word in words)


@frozen
class Early:
    """What a kernel's time says before it is compared: the launch, and where that ends the verification the
    result, with the latency where it is known."""

    timing: Timing | None = None
    result: GateResult | None = None
    latency: Latency | None = None


def timed_first(task: KernelTask, built: Any, backend: Backend, below_us: float, draw: Draw) -> Early:
    """One launch at full size before any comparison, where it is modelled, all its scalars are settings whose
    values were captured, and it is asked to take less than ``below_us``."""
    scalars = [operand.value for operand in task.graph.inputs if operand.kind is InputKind.SCALAR]
    known = tuple(value for value in scalars if value is not None)
    is_known = len(known) == len(scalars)
    total = total_bytes(task, task.sizes)
    is_modelled = backend.latency_source is LatencySource.MODELLED
    if math.isinf(below_us) or not is_known or not is_modelled or total > backend.author.device.memory_bytes:
        return Early()
    try:
        indices = drawn_indices(task, task.sizes, draw)
        timing = backend.measure(built, _request(task, task.sizes, Witness(scalars=known), indices))
    except CandidateError as error:
        return Early(result=_failed(error.code, _at_full_size(error.feedback)))
    if timing.us < below_us:
        # With settings as they were captured: the case that is compared draws others.
        return Early() if known else Early(timing)
    result, latency = judge(task, backend, timing)
    if latency is None:
        return Early(timing, result)
    words = Sentence(
        "A launch takes {us} us, and {reached} us are reached: nothing was compared.",
        us=f"{timing.us:.4g}",
        reached=f"{below_us:.4g}",
    )
    return Early(timing, _failed(SLOWER, words), latency)


def captured_request(task: KernelTask) -> TimingRequest:
    """A launch at the sizes and with the scalars that were captured."""
    scalars = tuple(operand.value or 0.0 for operand in task.graph.inputs if operand.kind is InputKind.SCALAR)
    return _request(task, task.sizes, Witness(scalars=scalars), drawn_indices(task, task.sizes))


def measure(
    task: KernelTask,
    built: Any,
    backend: Backend,
    witness: Witness,
    *,
    merging: bool = False,
    known: Timing | None = None,
    draw: Draw = PUBLIC,
) -> tuple[GateResult, Latency | None]:
    """The gate's result and the latency, None where it failed. ``known``: the figures of a launch at full
    size that was timed already, or had data in parts of its tensors, which needs no second one."""
    total = total_bytes(task, task.sizes)
    if total > backend.author.device.memory_bytes:
        feedback = Sentence(
            "The tensors take {total} GiB, more than {chip} has.",
            total=f"{total / 1024**3:.1f}",
            chip=backend.author.device.name,
        )
        return _failed("device-memory", feedback), None
    try:
        timing = known or backend.measure(
            built, _request(task, task.sizes, witness, drawn_indices(task, task.sizes, draw))
        )
        timed = _timed_as_witnessed(task, built, backend, witness, timing)
    except CandidateError as error:
        return _failed(error.code, _at_full_size(error.feedback)), None
    if timed is None:
        return judge(task, backend, timing)
    if abs(timed.us - witness.us) > (MERGING if merging else AGREEMENT) * witness.us:
        return _failed("data-dependent", _lazy(witness, timed)), None
    if skipped := unsteady(task, timing, timed, dict(witness.sizes) or task.sizes):
        return _failed("work-skipped", skipped), None
    on_data = max(1.0, witness.us / timed.us) if merging else 1.0
    return judge(task, backend, evolve(timing, us=timing.us * on_data))


def _request(task: KernelTask, sizes: Mapping[str, int], witness: Witness, indices: Indices) -> TimingRequest:
    inputs, outputs = tensor_bytes(task, sizes)
    bound = tuple(sizes[symbol.name] for symbol in task.symbols)
    return TimingRequest(bound, witness.scalars, inputs, outputs, indices)


def _timed_as_witnessed(
    task: KernelTask, built: Any, backend: Backend, witness: Witness, timing: Timing
) -> Timing | None:
    """A launch without data at the sizes of the one that had data, None where there was none.

    Timing moves no data but indices: a kernel that looks at its tensors to do less would otherwise seem
    fast.
    """
    if not witness.us:
        return None
    sizes = dict(witness.sizes)
    if sizes == task.sizes and not witness.indices:
        return timing
    return backend.measure(built, _request(task, sizes, witness, witness.indices))


def _at_full_size(words: str) -> Sentence:
    return Sentence("{feedback} (at full size)", feedback=words)


def _lazy(witness: Witness, timed: Timing) -> Sentence:
    return Sentence(
        "The same launch takes {us} us on data and {without} us without ({sizes}): "
        "control flow must not depend on tensor values.",
        us=f"{witness.us:.4g}",
        without=f"{timed.us:.4g}",
        sizes=dict(witness.sizes) or Sentence("the sizes of the file"),
    )


def judge(task: KernelTask, backend: Backend, timing: Timing) -> tuple[GateResult, Latency | None]:
    """Compares a timing with what the task's bytes and the counted work take at least."""
    errors = [hazard for hazard in timing.hazards if hazard.severity is Severity.ERROR]
    if errors:
        told = [Sentence("{where}: {what}", where=hazard.code, what=hazard.message) for hazard in errors[:3]]
        return _failed(errors[0].code, _at_full_size(joined(told, "; "))), None
    if reason := implausible(task, backend.author.device, timing):
        return _failed("implausible", reason), None
    baseline = backend.author.baseline(task)
    latency = Latency(
        us=timing.us,
        source=backend.latency_source,
        chip=backend.author.device.name,
        block_dim=timing.block_dim,
        pipes=timing.pipes,
        bottleneck=timing.bottleneck,
        roofline_us=backend.author.least_us(task),
        baseline_us=baseline.us,
        baseline=baseline,
        lines=timing.lines,
        balance=timing.balance,
    )
    return GateResult(GateName.LATENCY, GateStatus.PASSED, hazards=timing.hazards), latency


def _failed(code: str, feedback: str) -> GateResult:
    return GateResult(GateName.LATENCY, GateStatus.FAILED, code, feedback)
