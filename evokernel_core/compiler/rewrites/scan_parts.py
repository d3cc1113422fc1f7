"""Few long scans in parts, so that every core has work: each part is scanned, then the sums of the parts,
and what lies before a part is combined with its elements."""

from __future__ import annotations

import math

from evokernel_core.compiler.ops import SCAN
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.domain.graph import Node, SymbolicInt, ValueRef
from evokernel_core.domain.tensor import Dim, evaluate_dim

_COMBINE = {
    "sum": "aten.add.Tensor",
    "prod": "aten.mul.Tensor",
    "max": "aten.maximum.default",
    "min": "aten.minimum.default",
}
_LEAST_PART = 8192
"""Elements below which a part takes longer to start than to scan."""


def _in_parts(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """A scan of neighbouring elements whose length is a known multiple of enough parts."""
    x, dim, op, reverse, exclusive, mask = node.args
    if not isinstance(x, ValueRef) or not isinstance(dim, int) or mask is not None or exclusive:
        return None
    shape, dtype = writer.shape(x), writer.spec(x).dtype
    dim %= len(shape)
    length, combine = shape[dim], _COMBINE.get(str(op))
    rows = math.prod(evaluate_dim(item, writer.sizes) for item in shape[:dim])
    neighbours = all(item == 1 for item in shape[dim + 1 :])
    if not isinstance(length, int) or combine is None or dtype != "float32":
        return None
    if not neighbours or 2 * rows > writer.device.parallel:
        return None
    parts = _parts(length, math.ceil(writer.device.parallel / rows))
    if parts is None:
        return None
    split = (*shape[:dim], parts, length // parts)
    each = writer.call(
        SCAN.name, _view(writer, x, split), dim + 1, op, reverse, False, None, shape=split, dtype=dtype
    )
    last = 0 if reverse else length // parts - 1
    ends = (*shape[:dim], parts, 1)
    total = writer.call("aten.slice.Tensor", each, dim + 1, last, last + 1, shape=ends, dtype=dtype)
    before = writer.call(SCAN.name, total, dim, op, reverse, True, None, shape=ends, dtype=dtype)
    whole = writer.call(combine, each, before, shape=split, dtype=dtype)
    return (_view(writer, whole, shape),)


def _parts(length: int, least: int) -> int | None:
    """The smallest number of equal parts that is enough, None where there is none."""
    fits = (n for n in range(least, 8 * least) if length % n == 0 and length // n >= _LEAST_PART)
    return next(fits, None)


def _view(writer: GraphWriter, x: ValueRef, shape: tuple[Dim, ...]) -> ValueRef:
    sizes = tuple(item if isinstance(item, int) else SymbolicInt(item) for item in shape)
    return writer.call("aten.view.default", x, sizes, shape=shape, dtype=writer.spec(x).dtype)


REWRITES: dict[str, Rewrite] = {SCAN.name: _in_parts}
