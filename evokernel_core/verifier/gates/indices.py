"""Indices of a timed launch: which addresses it reads depends on them, so they are drawn, not left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from evokernel_core.capture.agent.reference.index_ranges import Range, ranges
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.verifier.draw import Draw

_MOST_BYTES = 256 * 1024**2
"""Larger inputs are left out of a timed launch: drawing them would take longer than the launch."""

Indices = tuple[tuple[int, bytes], ...]
"""Raw elements of inputs that are read as indices, by their position among the tensors."""


def index_inputs(task: KernelTask, sizes: Mapping[str, int]) -> Iterator[tuple[int, TensorSpec, Range]]:
    """The integer inputs that the graph reads as indices: position among the tensors, spec, and values."""
    specs = {(operand.name, 0): operand.spec for operand in task.graph.inputs}
    specs |= {(node.name, i): spec for node in task.graph.nodes for i, spec in enumerate(node.outputs)}
    shapes = {key: spec.sizes(sizes) for key, spec in specs.items()}
    result = ranges(to_data(task.graph), shapes)
    tensors = [operand for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR]
    for position, tensor in enumerate(tensors):
        integer = tensor.spec.dtype.startswith(("int", "uint"))
        if integer and tensor.name in result and tensor.spec.nbytes(sizes) <= _MOST_BYTES:
            yield position, tensor.spec, result[tensor.name]


PUBLIC = Draw("")
"""The draw of launches that nothing is judged by: the same in every run."""


def drawn_indices(task: KernelTask, sizes: Mapping[str, int], draw: Draw = PUBLIC) -> Indices:
    """Indices of given sizes, evenly spread over their dimensions. Those of a judged launch are secret: a
    kernel that knew them could read less."""
    random = np.random.default_rng(draw.numbers(f"timed indices of {task.task_id}").getrandbits(64))
    drawn = []
    for position, spec, limit in index_inputs(task, sizes):
        known = np.iinfo(spec.dtype)  # a range may be wider than the type
        low = max(limit.low, int(known.min))
        high = min(max(limit.high, low + 1), int(known.max) + 1)
        values = random.integers(low, high, spec.sizes(sizes), spec.dtype)
        if limit.divides:
            values[values == 0] = 1
        if limit.offsets:
            values.sort(-1)
            values[..., :1] = low
        drawn.append((position, values.tobytes()))
    return tuple(drawn)
