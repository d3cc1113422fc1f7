"""From a grid's numbers between -1 and 1 to the elements around a place and their weights, on vectors, in
PyTorch's order of operations."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.targets.ascendc.ir.builder import Builder, Place, as_float
from evokernel_core.targets.ascendc.ir.expr import Constant, Expr, Int, ceil_div, greatest
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Number, Operand
from evokernel_core.targets.ascendc.kernels.keys import KeysKernel

LANES = 64
_A = -0.75
"""The coefficient of Keys' kernel that PyTorch takes."""
ZERO, ONE, MINUS_ONE = (Converted(Int(value), "float") for value in (0, 1, -1))


@frozen
class Tap:
    """Numbers of elements along a dimension, whole and perhaps outside of it, with their weights."""

    place: Buffer
    weight: Buffer | None


class SampleAxis:
    """The taps along one dimension of ``size`` elements, for ``lanes`` of at most ``most`` places.
    ``beside``: whether the second of two elements is known by the first one, and has no place of its own."""

    def __init__(
        self, k: Builder, name: str, size: Expr, most: Constant, lanes: Expr, *, beside: bool = False
    ) -> None:
        self._k, self._name, self._size, self._most, self._lanes = k, name, size, most, lanes
        self._beside = beside

    def buffer(self, name: str) -> Buffer:
        """One number for each place."""
        return Buffer(f"{self._name}{name}", "float", 4, self._most)

    def do(self, key: str, to: Place, *operands: Operand | Buffer) -> None:
        """An instruction on all lanes."""
        self._k.call(key, to, *operands, self._lanes, repeats=ceil_div(self._lanes, LANES))

    def taps(self, place: Buffer, mode: str, padding: str, *, aligned: bool) -> list[Tap]:
        """Of places that the grid says, which are overwritten."""
        scale = self._size - 1 if aligned else self._size
        half = Number("HALF", 0.5)
        self.do("Adds", place, place, ONE)
        self.do("Muls", place, place, Converted(scale, "float"))
        self.do("Muls", place, place, half)
        if not aligned:
            self.do("Adds", place, place, Number("MINUS_HALF", -0.5))
        if mode != "bicubic":
            self._pad(place, padding, aligned)
        if mode == "nearest":
            self.do("Cast", place, place, Enumerator("RoundMode::CAST_RINT"))
            return [Tap(place, None)]
        first, share = self.buffer("First"), self.buffer("Share")
        self.do("Cast", first, place, Enumerator("RoundMode::CAST_FLOOR"))
        self.do("Sub", share, place, first)
        if mode == "bilinear":
            second, rest = first if self._beside else self.buffer("Second"), self.buffer("Rest")
            if not self._beside:
                self.do("Adds", second, first, ONE)
            self.do("Muls", rest, share, MINUS_ONE)
            self.do("Adds", rest, rest, ONE)
            return [Tap(first, rest), Tap(second, share)]
        return self._cubic(first, share, padding, aligned)

    def _cubic(self, first: Buffer, share: Buffer, padding: str, aligned: bool) -> list[Tap]:
        """Four elements, each of which goes on beyond the border for itself."""
        taps, weights = [], [self.buffer(f"Weight{number}") for number in range(4)]
        keys = KeysKernel(self.do, Number, _A)
        for number in keys.weights(share, self.buffer("Distance"), weights.__getitem__):
            place = self.buffer(f"Place{number}")
            self.do("Adds", place, first, as_float(number - 1))
            self._pad(place, padding, aligned)
            taps.append(Tap(place, weights[number]))
        return taps

    def _pad(self, place: Buffer, padding: str, aligned: bool) -> None:
        """Where a border is said, places beyond it mean the border, or what lies as far inside of it."""
        if padding == "zeros":
            return
        if padding == "reflection":
            self._reflect(place, aligned)
        self.do("Maxs", place, place, ZERO)
        self.do("Mins", place, place, Converted(self._size - 1, "float"))

    def _reflect(self, place: Buffer, aligned: bool) -> None:
        """Back and forth between the outer elements' middles, or their edges."""
        low = 0.0 if aligned else -0.5
        # Of a single element, which all places mean, any span does.
        size = greatest((self._size - 1) * 2, 1) if aligned else self._size * 2
        span = Converted(size, "float")
        turns, whole = self.buffer("Turns"), self.buffer("Whole")
        if low:
            self.do("Adds", place, place, Number("LESS_LOW", -low))
        self.do("Abs", place, place)
        self.do("Duplicate", whole, span)
        self.do("Div", turns, place, whole)
        self.do("Cast", turns, turns, Enumerator("RoundMode::CAST_TRUNC"))
        self.do("Muls", turns, turns, span)
        self.do("Sub", place, place, turns)
        self.do("Sub", turns, whole, place)
        self.do("Min", place, place, turns)
        if low:
            self.do("Adds", place, place, Number("LOW", low))
