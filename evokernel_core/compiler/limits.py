"""What kernels of the dialect can take at most: rewrites ask before they write an op, families hold it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from attrs import frozen

from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.tensor import ITEM_SIZE, Dim, TensorSpec
from evokernel_core.hardware.device import SECTOR_BYTES

MOST_INTERLEAVED = 16
"""Tensors that one kernel interleaves."""
MOST_INNER = 128
"""Channels and taps of one row of a convolution's kernel beyond which L1 holds too few pixels of each."""
SORTED_KEPT = (32, 128, 512, 1024, 2048)
"""How many elements a kernel may keep of a row that no tile holds."""
SORTED_TILES = (512, 1024, 2048, 4096)
"""Elements of a row that are sorted at a time."""
MOST_RESIZED_ROWS = 2048
"""Rows of results for which a core's tables hold where each begins and what it weighs."""
MOST_RESIZED_STEP: Mapping[str, float] = {
    **dict.fromkeys(("nearest", "nearest_exact", "linear"), 16.0),
    "cubic": 8.0,
    "smooth_linear": 5.0,
    "smooth_cubic": 2.5,
}
"""Sources that a result steps over at most, by the kind of resizing, so that what a tile needs of them fits:
antialiased results weigh all of those."""
MOST_MULTIPLIED = 256
"""Sources along a dimension up to which a product with a matrix of weights takes less time than gathering
more than two taps for each result."""
MOST_SAMPLED = 1 << 18
"""Elements of a plane that is sampled, which passes band by band for every run of places."""
WIDTH_UNIT = 16
"""Elements in which rows of ``space_to_depth`` are whole, so that each begins on a 32-byte block."""


def words_of(spec: TensorSpec, dim: int) -> tuple[int, int] | None:
    """Bytes of a word, and the words of one tensor of a join along ``dim`` that stay together; None where
    the squares that are transposed do not hold whole such items."""
    size = ITEM_SIZE[spec.dtype]
    inner = product(map(extent, spec.shape[dim:])).constant
    if size < 2 or not inner:
        return None
    width = min(size, 4)
    item = inner * size // width
    side = SECTOR_BYTES // width
    return (width, item) if item < side and side % item == 0 else None


@frozen
class Sharing:
    """``outer`` times ``factors`` groups of ``rows``, each of which is multiplied by the same row of
    ``numbers`` complex factors: group g takes row g % factors."""

    outer: Extent
    factors: Extent
    rows: Extent
    numbers: Extent


def sharing(sizes: Sequence[Dim], given: Sequence[Dim]) -> Sharing | None:
    """How numbers of ``sizes`` share factors of the sizes ``given``; None where that is no such grid."""
    whole = list(map(extent, sizes))
    own = [ONE] * (len(whole) - len(given)) + list(map(extent, given))
    if len(own) != len(whole) or any(w != x and not w.is_one for x, w in zip(whole, own, strict=True)):
        return None
    kept = [(w == x, x) for x, w in zip(whole, own, strict=True) if not x.is_one]
    runs = [(key, product([x for _, x in run])) for key, run in groupby(kept, key=lambda pair: pair[0])]
    if not runs or not runs[-1][0] or len(runs) > 4:
        return None
    lengths = [ONE] * (4 - len(runs)) + [length for _, length in runs]
    outer, factors, rows, numbers = lengths
    return Sharing(outer, factors, rows, numbers)
