"""Where a running extreme was last reached: the last of the places so far at which an element is it."""

from __future__ import annotations

from evokernel_core.compiler.ops import IOTA, SCAN
from evokernel_core.compiler.rewrites.picking import view
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import ValueRef

_EXACT = 1 << 24
"""Places that float32 counts."""


def running_places(writer: GraphWriter, x: ValueRef, extreme: ValueRef, dim: int) -> ValueRef:
    """int64 of the shape of ``x``: along ``dim``, the place of each element of ``extreme``, the running one.
    As in PyTorch it is the last of equals, and each of what is no number. A kernel refuses longer
    dimensions than float32 counts."""
    shape, is_float = writer.shape(x), "float" in writer.spec(x).dtype
    if not shape:
        return writer.call("aten.full.default", (), 0, shape=(), dtype="int64")
    dim %= len(shape)
    reached = writer.call("aten.eq.Tensor", x, extreme, shape=shape, dtype="bool")
    if is_float:
        no_number = writer.call("aten.ne.Tensor", x, x, shape=shape, dtype="bool")
        reached = writer.call("aten.logical_or.default", reached, no_number, shape=shape, dtype="bool")
    numbers = writer.call(IOTA.name, 0, 1, _EXACT, shape=(shape[dim],), dtype="float32")
    places = view(writer, numbers, (shape[dim], *(1 for _ in shape[dim + 1 :])))
    marked = writer.call("aten.where.ScalarOther", reached, places, 0.0, shape=shape, dtype="float32")
    last = writer.call(SCAN.name, marked, dim, "max", False, False, None, shape=shape, dtype="float32")
    return writer.call("aten._to_copy.default", last, shape=shape, dtype="int64")
