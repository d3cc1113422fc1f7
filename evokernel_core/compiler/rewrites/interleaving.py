"""Which joins a kernel interleaves in the unified buffer; elements repeated in a row are one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.compiler.limits import MOST_INTERLEAVED, words_of
from evokernel_core.compiler.ops import INTERLEAVE
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite
from evokernel_core.compiler.shapes.sizes import extent, product
from evokernel_core.domain.graph import Node, ValueRef

_LEAST_ITEMS = 4096
"""Items of each tensor, below which copying them one by one takes no longer than a kernel of its own."""


def is_interleaved(writer: GraphWriter, refs: Sequence[ValueRef], dim: int) -> bool:
    """Whether a join along ``dim`` is of many items that are shorter than a block, and of one length."""
    specs = [writer.spec(ref) for ref in refs]
    first = specs[0]
    sizes = list(map(extent, first.shape))
    if not 2 <= len(refs) <= MOST_INTERLEAVED or any(
        list(map(extent, spec.shape)) != sizes for spec in specs
    ):
        return False
    if any(spec.dtype != first.dtype for spec in specs) or words_of(first, dim) is None:
        return False
    return product(sizes[:dim]).evaluate(writer.sizes) >= _LEAST_ITEMS


def _repeated(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Elements of which each comes several times in a row, as repeat_interleave along a last dimension
    writes it: the tensor joined with itself. What reads the result then reads long rows."""
    x = next(node.operands(), None)
    if x is None or not writer.shape(x):
        return None
    spec, result = writer.spec(x), node.outputs[0]
    count, last = spec.shape[-1], len(spec.shape) - 1
    if not isinstance(count, int) or not 2 <= count <= MOST_INTERLEAVED:
        return None
    if not result.shape or extent(result.shape[-1]) == extent(count):
        return None
    source = _expanded_last(writer, x)
    if source is None or not is_interleaved(writer, [source] * count, last):
        return None
    joined = writer.like(spec, INTERLEAVE.name, (source,) * count, last)
    return (writer.call(node.op, joined, *node.args[1:], shape=result.shape, dtype=spec.dtype),)


def _expanded_last(writer: GraphWriter, x: ValueRef) -> ValueRef | None:
    """What is expanded along its last dimension only to give a value; None where nothing is."""
    node = next((node for node in reversed(writer.nodes) if node.name == x.name), None)
    while node is not None and node.op == "aten.clone.default":
        below = next(node.operands())
        node = next((node for node in reversed(writer.nodes) if node.name == below.name), None)
    if node is None or node.op != "aten.expand.default":
        return None
    source = next(node.operands(), None)
    if source is None:
        return None
    given, shape = ([*map(extent, dims)] for dims in (writer.shape(source), node.outputs[0].shape))
    same = len(given) == len(shape) and given[:-1] == shape[:-1]
    return source if same and given[-1].is_one else None


REWRITES: Mapping[str, Rewrite] = dict.fromkeys(
    ("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"), _repeated
)
"""Operation to its rewrite."""
