"""What kernels share that read or write where indices say so."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from evokernel_core.compiler.schedule import Scaled
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.builder import Builder, at
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Function,
    Index,
    Int,
    Size,
    Var,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

MOST_INDICES = most_of("DataCopyPadIn", "blockCount")
"""Of a tile, whose runs one copy could bring."""


def more_or_fewer(things: str) -> Scaled:
    """The changes of what there are so many of in a tile."""
    return Scaled(Sentence("more {things}", things=things), Sentence("fewer {things}", things=things))


class Indices:
    """The indices of a tile's entries, which the scalar unit reads.

    ``places``: the name, the dtype and the counted size of each. ``clamps``: an index outside of its
    dimension means the nearest element, so that no other memory is touched; otherwise its place is negative.
    ``wraps``: negative ones count from the end.
    """

    def __init__(
        self,
        k: Builder,
        places: Sequence[tuple[str, str, Extent]],
        entries: Constant,
        *,
        wraps: bool,
        clamps: bool,
    ) -> None:
        self._k, self._wraps, self._clamps = k, wraps, clamps
        self._tensors, self._buffers, self.sizes = [], [], []
        for number, (source, dtype, size) in enumerate(places):
            name, ctype, width = f"index{number}", CPP_TYPE[dtype], ITEM_SIZE[dtype]
            self._tensors.append(k.input(f"indices{number}", parameter(source), ctype, width))
            self._buffers.append(Buffer(name, ctype, width, entries))
            counts = k.param(f"size{number}", Size(size), f"that index {number} counts", _SIGNED)
            self.sizes.append(counts)

    @property
    def places(self) -> Expr:
        """How many there are."""
        return reduce(operator.mul, self.sizes)

    def load(self, start: Index, count: Index) -> None:
        """Of the entries from ``start`` on."""
        for tensor, buffer in zip(self._tensors, self._buffers, strict=True):
            self._k.load(buffer, tensor, start, count)

    def given(self, entry: Expr, number: int = 0) -> Expr:
        """One of the indices of an entry, as it was given."""
        return self._k.get(f"given{number}", at(self._buffers[number], entry), entry, _SIGNED)

    def place(self, entry: Expr) -> Expr:
        """The place that entry number ``entry`` of the tile means."""
        result = []
        for number, size in enumerate(self.sizes):
            index = self.given(entry, number)
            if self._wraps:
                index = _COUNTED(index, size)
            inside = (_NEAREST if self._clamps else _INSIDE)(index, size)
            result.append(self._k.let(f"at{number}", inside, U64 if self._clamps else _SIGNED))
        place: Expr = result[0]
        for index, size in zip(result[1:], self.sizes[1:], strict=True):
            place = place * size + index
        if not self._clamps and len(result) > 1:
            for index in result:
                place = Choice(index, "<", Int(0), Int(-1), place)
        return place


_SIGNED = "int64_t"
_INDEX, _SIZE = Var("index", _SIGNED), Var("size", _SIGNED)
_COUNTED = Function(
    "Counted",
    (_INDEX, _SIZE),
    Choice(_INDEX, "<", Int(0), _INDEX + _SIZE, _INDEX),
    "Negative indices count from the end.",
    _SIGNED,
)
_NEAREST = Function(
    "Nearest",
    (_INDEX, _SIZE),
    Choice(_INDEX, "<", Int(0), Int(0), least(_INDEX, _SIZE - 1)),
    "An index outside of its dimension means the nearest element.",
    U64,
)
_INSIDE = Function(
    "Inside",
    (_INDEX, _SIZE),
    Choice(_INDEX, "<", _SIZE, _INDEX, Int(-1)),
    "Negative where an index is outside of its dimension.",
    _SIGNED,
)
