"""A review: what a verified kernel would change in a file, and the evidence for it, as plain frozen data.

Nothing here reads or writes anything. Every figure stands beside the word for where it comes from: those of
a kernel have that of its ``source``, ``baseline_us`` and ``bound_us`` are always the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs
from attrs import frozen

from evokernel_core.domain.eager import EagerComparison
from evokernel_core.domain.graph import GraphInput
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import KernelTask, tolerance_for
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus, Latency, Verdict
from evokernel_core.targets.sources import workers_of
from evokernel_server.offers.pending import baseline_words, microseconds
from evokernel_server.options import camel
from evokernel_server.texts.hazards import warnings_in
from evokernel_server.texts.plain import plain
from evokernel_server.texts.strategies import ScheduleChange, strategy_words
from evokernel_server.texts.translations import _, sourced, told

MOST_SIZES = 3
"""Sets of sizes that are named of those which correctness ran with."""
_DETAIL = 1000
"""Characters of a gate's words."""


@frozen
class Error:
    """How far results were from PyTorch's on random inputs: ``abs`` of one element, ``rel`` in the root mean
    square."""

    abs: float
    rel: float


@frozen
class Gate:
    name: str
    status: str
    detail: str


@frozen
class ReviewedInput:
    """An input with its sizes in the person's file."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@frozen
class ReviewedKernel:
    """A verified kernel: its schedule in sentences, its latency and what is known of that. ``pipes`` are
    shares of the launch in which each pipe of the slowest core is busy."""

    source_id: str
    strategy: tuple[str, ...]
    us: float
    source: str
    chip: str
    baseline_us: float
    baseline: str
    baseline_source: str
    bound_us: float
    bottleneck: str
    pipes: Mapping[str, float]
    verifier: str
    gates: tuple[Gate, ...]
    inputs: tuple[ReviewedInput, ...]
    error: Error | None


@frozen
class Variant:
    """A verified kernel of a region, and how it stands to the others. ``attempt`` counts the task's attempts
    from 1 (0: of another memory); ``changes`` are the fields in which its schedule differs from the accepted
    kernel's, or where none is accepted from the best one's."""

    kernel: ReviewedKernel
    attempt: int
    changes: tuple[ScheduleChange, ...]
    installed: bool
    rejected: bool
    best: bool


@frozen
class Vendor:
    """The vendor's operator that computes the same; ``source`` is the word for ``us``."""

    name: str
    us: float
    source: str


@frozen
class File:
    """A file before (empty where there is none) and after."""

    name: str
    before: str
    after: str

    @property
    def is_changed(self) -> bool:
        return self.before != self.after


@frozen
class Guard:
    """What a guard asks: of ``name``, or where that is empty of the whole call."""

    name: str
    condition: str


@frozen
class InnerKernel:
    """A region inside the reviewed one that has a verified kernel of its own; ``line`` from 0."""

    region_id: str
    line: int
    words: str


@frozen
class Review:
    """``before`` and ``after`` are the whole text of ``file`` at ``version``. Lines are from 0: ``line`` is
    that of the call or the region in ``before``, ``change_line`` the first one in ``after`` that the edit of
    the region changes; both are the same where nothing changes."""

    uri: str
    file: str
    region_id: str
    name: str
    title: str
    line: int
    change_line: int
    version: int
    before: str
    after: str
    guards: tuple[Guard, ...]
    why: tuple[str, ...]
    kernel: ReviewedKernel
    installed: ReviewedKernel | None
    vendor: Vendor | None
    files: tuple[File, ...]
    parts: tuple[InnerKernel, ...]


def kernel_of(source: KernelSource, verdict: Verdict, latency: Latency, task: KernelTask) -> ReviewedKernel:
    """What is shown of a kernel. ``latency`` is the verdict's."""
    deviation = verdict.deviation
    return ReviewedKernel(
        source_id=source.source_id,
        strategy=strategy_words(source.strategy),
        us=latency.us,
        source=latency.source.value,
        chip=plain(latency.chip),
        baseline_us=latency.baseline_us,
        baseline=plain(baseline_words(latency.baseline_us, latency.baseline)),
        baseline_source=latency.baseline_word.value,
        bound_us=latency.roofline_us,
        bottleneck=plain(told(latency.bottleneck)),
        pipes=shares(latency),
        verifier=plain(verdict.verifier),
        gates=tuple(_gate(gate, verdict, task) for gate in verdict.gates),
        inputs=tuple(_operand(operand, task) for operand in task.graph.inputs),
        error=Error(deviation.largest, deviation.relative) if deviation else None,
    )


def shares(latency: Latency) -> dict[str, float]:
    """The share of the launch in which each pipe is busy, the busiest first."""
    if latency.us <= 0:
        return {}
    busy = sorted(latency.pipes, key=lambda pipe: -pipe[1])
    return {plain(pipe): round(min(1.0, us / latency.us), 4) for pipe, us in busy}


def _operand(graph_input: GraphInput, task: KernelTask) -> ReviewedInput:
    return ReviewedInput(
        plain(graph_input.expression or graph_input.name),
        graph_input.spec.dtype,
        graph_input.spec.sizes(task.sizes),
    )


def _gate(gate: GateResult, verdict: Verdict, task: KernelTask) -> Gate:
    return Gate(gate.gate.value, gate.status.value, _detail(gate, verdict, task))


def _detail(gate: GateResult, verdict: Verdict, task: KernelTask) -> str:
    """What a gate found, in words."""
    if gate.status is not GateStatus.PASSED:
        return plain(told(gate.words()), _DETAIL)
    said = {
        GateName.AUDIT: _("Static checks passed."),
        GateName.COMPILE: _("Compiled by {verifier}.", verifier=verdict.verifier),
        GateName.CORRECTNESS: _compared(verdict, task),
        GateName.LATENCY: _timed(verdict.latency),
    }[gate.gate]
    warnings = sorted({hazard.code for hazard in gate.hazards})
    more = _(" Warnings: {what}", what=warnings_in(warnings)) if warnings else ""
    return plain(f"{said}{more}", _DETAIL)


def _compared(verdict: Verdict, task: KernelTask) -> str:
    tolerance = tolerance_for(task.graph)
    limits = f"rtol {tolerance.rtol:g}, atol {tolerance.atol:g}" if tolerance.rtol else _("exactly equal")
    count = len(verdict.shapes)
    named = [_sizes(shape) for shape in verdict.shapes[-MOST_SIZES:] if shape]
    said = _("Compared with PyTorch ({limits}) at the file's sizes.", limits=limits)
    if named:
        said = _(
            "Compared with PyTorch ({limits}) at {count} sets of sizes, among them {sizes}.",
            limits=limits,
            count=count,
            sizes="; ".join(named),
        )
    full = _(" Of the full size: {what}.", what=verdict.full_size) if verdict.full_size else ""
    return f"{said}{full}{_beside_code(verdict.eager)}"


def _beside_code(eager: EagerComparison | None) -> str:
    """What came of the file's own code, run beside the captured graph that PyTorch computed."""
    if eager is None:
        return _(" The file's own code has not been run beside its graph yet; accepting the kernel does so.")
    same = ", ".join(map(_draw, eager.compared))
    said = _(" The file's own code gave the same as its graph for {draws}.", draws=same) if same else ""
    reasons: dict[str, list[str]] = {}
    for uncompared in eager.uncompared:
        reasons.setdefault(told(uncompared.reason), []).append(uncompared.draw)
    left = "; ".join(_uncompared(reason, draws) for reason, draws in reasons.items())
    return said + (_(" Not compared with the file's own code: {what}.", what=left) if left else "")


def _uncompared(reason: str, draws: list[str]) -> str:
    if not any(draws):
        return reason
    return f"{', '.join(map(_draw, draws))} ({reason})"


def _draw(name: str) -> str:
    """What both were given, in words; a name of a later version stands for itself."""
    words = {
        "normal": _("ordinary values"),
        "nan": "NaN",
        "infinity": _("infinities"),
        "zero": _("zeros of both signs"),
        "extreme": _("extremes of the dtype"),
        "equal": _("equal values"),
        "negative_index": _("negative indices"),
        "index_out_of_range": _("indices out of range"),
        "file_sizes": _("the file's own sizes"),
    }
    return words.get(name, name)


def _sizes(binding: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{name}={size}" for name, size in binding)


def _timed(latency: Latency | None) -> str:
    if latency is None:
        return ""
    return _(
        "A launch at the sizes of the file: {figure} on {chip}, {count} {workers}.",
        figure=sourced(microseconds(latency.us), latency.source.value),
        chip=latency.chip,
        count=latency.block_dim,
        workers=told(workers_of(latency.chip)),
    )


def wire(value: Any) -> Any:
    """Frozen objects as JSON objects, with names as clients expect them: ``source_id`` is ``sourceId``. A
    Variant is its kernel with what sets it apart."""
    if isinstance(value, Variant):
        own = {field.name: getattr(value, field.name) for field in attrs.fields(Variant)[1:]}
        return {**wire(value.kernel), **wire(own)}
    if attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
        return {camel(name): wire(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {key: wire(member) for key, member in value.items()}
    if isinstance(value, tuple | list):
        return [wire(element) for element in value]
    return value.value if isinstance(value, Enum) else value
