"""Sizes beyond what 32 bits count: a kernel that counts in fewer bits than its tensors have elements does
little there, which its stores tell without any data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateResult
from evokernel_core.hardware.roofline import traffic
from evokernel_core.twin.build import CandidateError
from evokernel_core.verifier.base import TimesBriefly, TimingRequest
from evokernel_core.verifier.gates.cases import tensor_bytes, total_bytes, total_products
from evokernel_core.verifier.gates.indices import index_inputs
from evokernel_core.verifier.gates.one_case import Judges, failed
from evokernel_core.verifier.gates.plausible import WHOLE, stored_bytes

BITS = (32, 31)
PATIENCE_S = 0.3
"""Seconds for a launch that does little; one that takes longer does its work."""


def beyond_32_bits(task: KernelTask, judges: Judges) -> GateResult | None:
    """Why a kernel is wrong where its largest output has more elements than 32 bits count; None where it is
    not, declines, or nothing is known. Asked where a verification is thorough."""
    numbers = judges.draw.numbers(f"index width of {task.task_id}")
    if not isinstance(judges.backend, TimesBriefly):
        return None
    choices = list(wide_sizes(task, judges.backend.author.device.memory_bytes))
    if not choices:
        return None
    sizes = numbers.choice(choices)
    try:
        timing = judges.backend.measure_briefly(judges.built, _request(task, sizes), PATIENCE_S)
    except CandidateError:
        return None
    if timing is None:
        return None
    _, written = traffic(task, sizes)
    stored = stored_bytes(timing)
    if stored >= WHOLE * written:
        return None
    return failed(
        "index-width",
        Sentence(
            "With {sizes} the kernel stores {stored} bytes of outputs that have {written}: count in 64 bits "
            "or decline these sizes.",
            sizes=dict(sizes),
            stored=stored,
            written=written,
        ),
    )


def wide_sizes(task: KernelTask, memory_bytes: int) -> Iterator[Mapping[str, int]]:
    """Bindings in which one size is so large that the largest output has just more elements than so many bits
    count, and the device has the memory; none of graphs that multiply matrices or read where indices say."""
    if total_products(task, task.sizes) or any(index_inputs(task, task.sizes)):
        return
    if any(operand.kind is InputKind.SCALAR for operand in task.graph.inputs):
        return
    for symbol in task.symbols:
        unit = _elements(task, {**task.sizes, symbol.name: 2}) - _elements(
            task, {**task.sizes, symbol.name: 1}
        )
        for bits in BITS if unit > 0 else ():
            sizes = {**task.sizes, symbol.name: (1 << bits) // unit + 1}
            if total_bytes(task, sizes) <= memory_bytes and _elements(task, sizes) > 1 << bits:
                yield sizes
                break


def _elements(task: KernelTask, sizes: Mapping[str, int]) -> int:
    return max(math.prod(spec.sizes(sizes)) for spec in task.graph.output_specs())


def _request(task: KernelTask, sizes: Mapping[str, int]) -> TimingRequest:
    inputs, outputs = tensor_bytes(task, sizes)
    return TimingRequest(tuple(sizes[symbol.name] for symbol in task.symbols), (), inputs, outputs)
