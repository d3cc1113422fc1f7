"""Which joins a kernel interleaves in the unified buffer."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.ascendc.families.interleave import MOST_TENSORS, words_of
from evokernel_core.ascendc.lowering_sizes import extent, product
from evokernel_core.ascendc.rewrites.writer import GraphWriter
from evokernel_core.domain.graph import ValueRef

_LEAST_ITEMS = 4096
"""Items of each tensor, below which copying them one by one takes no longer than a kernel of its own."""


def is_interleaved(writer: GraphWriter, refs: Sequence[ValueRef], dim: int) -> bool:
    """Whether a join along ``dim`` is of many items that are shorter than a block, and of one length."""
    specs = [writer.spec(ref) for ref in refs]
    first = specs[0]
    sizes = list(map(extent, first.shape))
    if not 2 <= len(refs) <= MOST_TENSORS or any(list(map(extent, spec.shape)) != sizes for spec in specs):
        return False
    if any(spec.dtype != first.dtype for spec in specs) or words_of(first, dim) is None:
        return False
    return product(sizes[:dim]).evaluate(writer.sizes) >= _LEAST_ITEMS
