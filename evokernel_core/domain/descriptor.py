"""Descriptor: the archive cell of a strategy, by what it does and not by how fast it is.

KernelFoundry's archive has axes of memory access, algorithm and parallelism, each a number; here each axis
has words of its own, and what stays where, in which memory, and what overlaps are axes apart. A program has
the cell of its most expensive kernel, and how it is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from attrs import astuple, field, frozen


class Dataflow(StrEnum):
    """What stays where it is while other data pass by."""

    UNKNOWN = "unknown"
    STREAMED = "streamed"
    """Runs of elements pass on-chip memory, and nothing of them is kept."""
    RESIDENT_ROWS = "resident rows"
    """A row is kept from load to store."""
    PACKED_ROWS = "packed rows"
    """Several whole rows are one tile."""
    LANES = "lanes"
    """Neighbours side by side are lanes, and steps of a reduction go by."""
    BLOCKS = "blocks"
    """Tiles of two or more dimensions."""
    PICKED = "picked elements"
    """Single elements are picked from, or put into, a tile in on-chip memory."""
    OUTPUT_STATIONARY = "output-stationary"
    WEIGHT_STATIONARY = "weight-stationary"
    ROW_STATIONARY = "row-stationary"
    """Rows of the input are kept for all taps that they meet."""
    IM2COL_PANELS = "im2col panels"
    """Panels of patches are loaded anew for each step."""


class Reuse(StrEnum):
    """Where no memory is known from which data are read again; ``none``: all are read once, or anew from
    device memory."""

    UNKNOWN = "unknown"
    NONE = "none"


class Split(StrEnum):
    """What cores that work at the same time share out."""

    UNKNOWN = "unknown"
    NOTHING = "nothing"
    ELEMENTS = "elements"
    ROWS = "rows"
    SEGMENTS = "segments of rows"
    COLUMNS = "columns"
    TILES = "tiles"
    REDUCTION = "split reduction"
    """Parts of one sum, whose results are put together: split-K."""
    HEADS = "heads"
    IMAGES = "images"
    CHANNELS = "channels"
    RANGES = "ranges of places"


class Algorithm(StrEnum):
    """How results are computed."""

    UNKNOWN = "unknown"
    DIRECT = "direct"
    SINGLE_PASS = "single pass"
    TWO_PASS = "two-pass"
    MULTI_PASS = "multi-pass"
    ONLINE = "online"
    """Sums are rescaled as data come, so that one pass does for several reductions."""
    MATRIX_PRODUCT = "matrix product"
    TRANSPOSED_PRODUCT = "transposed matrix product"
    """Operands change sides, and results are transposed."""
    RECURRENCE = "recurrence"
    COPY = "copy"
    TRANSPOSE = "transpose"
    TABLE = "table of addresses"
    POLYPHASE = "polyphase"
    SORT = "sort"
    SELECTION = "selection"
    MERGE = "merge"
    SCALAR = "scalar unit"


class Overlap(StrEnum):
    """Whether data are on their way while others are computed, which takes a second place for them."""

    UNKNOWN = "unknown"
    NONE = "none"
    PIPELINED = "pipelined"

    @staticmethod
    def of(buffers: int) -> Overlap:
        """That of so many places for one kind of data."""
        return Overlap.PIPELINED if buffers > 1 else Overlap.NONE


class Stages(StrEnum):
    """How the kernels of a program follow each other."""

    SINGLE = "single kernel"
    LAUNCHES = "a launch each"
    ONE_LAUNCH = "one launch"
    CHUNKED = "images in chunks"


@frozen
class Descriptor:
    """The cell: strategies of one task that really differ have different ones. Hashable. ``reuse`` is the
    name of a memory in capitals, as its target's device has it, or a word of ``Reuse``."""

    dataflow: Dataflow = Dataflow.UNKNOWN
    reuse: str = field(default=Reuse.UNKNOWN, converter=str)
    split: Split = Split.UNKNOWN
    algorithm: Algorithm = Algorithm.UNKNOWN
    overlap: Overlap = Overlap.UNKNOWN
    stages: Stages = Stages.SINGLE
    kernels: int = 1

    def apart(self, others: Iterable[Descriptor]) -> int:
        """The number of axes in which it differs from the nearest of others; as many as there are without
        any."""
        mine = astuple(self)
        differing = (sum(a != b for a, b in zip(mine, astuple(other), strict=True)) for other in others)
        return min(differing, default=len(mine))


NOT_KNOWN = Descriptor()
"""The cell of what earlier versions stored, or nobody described."""
_MEMORY = re.compile(r"[A-Z][A-Z0-9]{0,15}")
_AXES: Mapping[str, type[StrEnum]] = {
    "dataflow": Dataflow,
    "split": Split,
    "algorithm": Algorithm,
    "overlap": Overlap,
    "stages": Stages,
}


def read_descriptor(data: Any) -> Descriptor:
    """From plain data of any version: numbers of before, and words that this version does not know, are
    unknown."""
    if not isinstance(data, dict):
        return NOT_KNOWN
    words: dict[str, Any] = {
        name: kind(data[name]) for name, kind in _AXES.items() if data.get(name) in [*kind]
    }
    reuse, count = data.get("reuse"), data.get("kernels")
    if isinstance(reuse, str) and (reuse in [*Reuse] or _MEMORY.fullmatch(reuse)):
        words["reuse"] = reuse
    if isinstance(count, int) and not isinstance(count, bool) and count > 0:
        words["kernels"] = count
    return Descriptor(**words)
