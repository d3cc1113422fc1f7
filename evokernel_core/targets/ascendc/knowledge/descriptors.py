"""What the text of a kernel that a model wrote says of its schedule."""

from __future__ import annotations

import re

from evokernel_core.domain.descriptor import Algorithm, Descriptor, Overlap, Split

_REDUCTION = re.compile(r"\b(?:Whole|Block|Pair|Repeat)?Reduce\w+")
_DEPTH = re.compile(r"InitBuffer\s*\(\s*\w+\s*,\s*(\w+)\s*,")
"""How many buffers a queue has, as a number or a name."""


def describe(kernel: str) -> Descriptor:
    """The archive cell that the text of a kernel suggests; coarse, as nothing is executed. What its names do
    not say is unknown."""
    cube, reduces = "Mmad" in kernel, _REDUCTION.search(kernel) is not None
    vectors = Algorithm.SINGLE_PASS if reduces else Algorithm.DIRECT
    return Descriptor(
        split=Split.UNKNOWN if "GetBlockIdx" in kernel else Split.NOTHING,
        algorithm=Algorithm.MATRIX_PRODUCT if cube else vectors if "DataCopy" in kernel else Algorithm.SCALAR,
        overlap=Overlap.PIPELINED if _is_doubled(kernel) else Overlap.NONE,
    )


def _is_doubled(kernel: str) -> bool:
    depths = (match[1].lower() for match in _DEPTH.finditer(kernel))
    return any(depth == "2" or "buffer" in depth for depth in depths)
