"""Tables of one dimension, which a core computes on its vector unit: where taps of results begin, and what
they weigh."""

from __future__ import annotations

from evokernel_core.compiler.ops import NEAREST
from evokernel_core.compiler.problems.resize import IDENTITY, SMOOTH, ResizeAxis
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, as_float, at
from evokernel_core.targets.ascendc.ir.expr import Constant, Index, Int
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Number, Operand
from evokernel_core.targets.ascendc.kernels.keys import KeysKernel

LANES = 64
_CUBIC, _SMOOTH_CUBIC = -0.75, -0.5
"""The coefficient of Keys' kernel that PyTorch takes."""


class Tables:
    """``first``: the number of each result's first tap, int32, made positive by the axis' shift. ``weights``:
    for each tap those of all results, one tap behind the other; None where none are needed."""

    def __init__(self, k: Builder, name: str, axis: ResizeAxis, length: int) -> None:
        self._k, self._name, self._axis = k, name, axis
        self.length = Constant(f"{name.upper()}_ENTRIES", -(-length // LANES) * LANES, "of its tables")
        self.first = Buffer(f"{name}First", "int32_t", 4, self.length)
        self.weights = Buffer(f"{name}Weights", "float", 4, self.length * axis.taps)
        self._place, self._whole, self._sum = (
            Buffer(f"{name}{word}", "float", 4, self.length) for word in ("Place", "Whole", "Sum")
        )

    def compute(self, start: Index) -> None:
        """Of the results from number ``start`` on."""
        axis, place = self._axis, self._place
        with self._k.section(f"Tabulate{self._name.capitalize()}s", "Taps and weights of each result."):
            repeats = self.length // LANES
            first = as_float(start)
            self._k.call("CreateVecIndex", place, first, self.length, repeats=repeats)
            if axis.kind == IDENTITY or axis.kind in NEAREST:
                self._nearest(place)
            elif axis.kind in SMOOTH:
                self._smooth(place)
            else:
                self._interpolated(place)

    # -- where taps begin -----------------------------------------------------------------------

    def _nearest(self, place: Buffer) -> None:
        if self._axis.kind == "nearest_exact":
            self._do("Adds", place, place, self._number("half", 0.5))
        if self._axis.kind != IDENTITY:
            self._do("Muls", place, place, self._step)
        self._floor(self.first, place)
        self._do("Mins", self.first, self.first, self._last)

    def _interpolated(self, place: Buffer) -> None:
        axis, is_cubic = self._axis, self._axis.kind == "cubic"
        if axis.aligned:
            self._do("Muls", place, place, self._step)
        else:
            self._do("Adds", place, place, self._number("half", 0.5))
            self._do("Muls", place, place, self._step)
            self._do("Adds", place, place, self._number("minus_half", -0.5))
        if not is_cubic:
            self._do("Maxs", place, place, as_float(0))
        self._floor(self.first, place)
        self._do("Mins", self.first, self.first, self._last)
        self._cast(self._whole, self.first)
        self._do("Sub", place, place, self._whole)
        self._do("Maxs", place, place, as_float(0))
        self._do("Mins", place, place, as_float(1))
        if is_cubic:
            self._do("Adds", self.first, self.first, Converted(Int(axis.shift - 1), "int32_t"))
            self._cubic(place)
        else:
            self._rest(self._weight(0), place)
            self._do("Muls", self._weight(1), place, as_float(1))

    def _cubic(self, share: Buffer) -> None:
        """Keys' kernel at 1 + share, share, 1 - share and 2 - share."""
        for _ in self._keys(_CUBIC).weights(share, self._whole, self._weight):
            pass

    def _keys(self, coefficient: float) -> KeysKernel:
        return KeysKernel(self._do, self._number, coefficient)

    # -- kernels as wide as a result ------------------------------------------------------------

    def _smooth(self, place: Buffer) -> None:
        """The kernel around the middle of each result, in shares of its sum. ``place``: that middle."""
        axis, begin, total, kept = self._axis, self._whole, self._sum, self._kept
        self._do("Adds", place, place, self._number("half", 0.5))
        self._do("Muls", place, place, self._step)
        self._do("Adds", begin, place, self._number("before", 0.5 - axis.support))
        self._do("Maxs", begin, begin, as_float(0))
        self._floor(self.first, begin)
        self._do("Mins", self.first, self.first, self._last)
        self._cast(begin, self.first)
        for tap in range(axis.taps):
            weight = self._weight(tap)
            self._do("Sub", kept, begin, place)
            self._do("Adds", kept, kept, self._number("half", 0.5))
            self._do("Muls", kept, kept, self._number("narrow", 1.0 / axis.width))
            self._do("Abs", kept, kept)
            self._profile(weight, kept)
            # Behind the source there is nothing to weigh.
            self._rest(kept, begin, axis.sources)
            self._do("Maxs", kept, kept, as_float(0))
            self._do("Mins", kept, kept, as_float(1))
            self._do("Mul", weight, weight, kept)
            if tap:
                self._do("Add", total, total, weight)
            else:
                self._do("Muls", total, weight, as_float(1))
            self._do("Adds", begin, begin, as_float(1))
        for tap in range(axis.taps):
            self._do("Div", self._weight(tap), self._weight(tap), total)

    def _profile(self, to: Place, distance: Buffer) -> None:
        if self._axis.kind == "smooth_linear":
            self._rest(to, distance)
            self._do("Maxs", to, to, as_float(0))
            return
        # The near part up to a distance of 1 and the far part from there to 2 meet as 0 there: they add up.
        near, far, limited, keys = to, self._other, self._third, self._keys(_SMOOTH_CUBIC)
        self._do("Mins", limited, distance, as_float(1))
        keys.near(near, limited)
        self._do("Maxs", limited, distance, as_float(1))
        self._do("Mins", limited, limited, as_float(2))
        keys.far(far, limited)
        self._do("Add", near, near, far)

    # -- instructions ---------------------------------------------------------------------------

    @property
    def _kept(self) -> Buffer:
        return Buffer(f"{self._name}Kept", "float", 4, self.length)

    @property
    def _other(self) -> Buffer:
        return Buffer(f"{self._name}Other", "float", 4, self.length)

    @property
    def _third(self) -> Buffer:
        return Buffer(f"{self._name}Third", "float", 4, self.length)

    @property
    def _step(self) -> Number:
        return self._number("step", self._axis.step)

    @property
    def _last(self) -> Converted:
        return Converted(Int(self._axis.sources - 1), "int32_t")

    def _number(self, name: str, value: float) -> Number:
        return Number(f"{self._name}_{name}".upper(), value)

    def _weight(self, tap: int) -> Place:
        return at(self.weights, self.length * tap)

    def _rest(self, to: Place, x: Place, whole: int = 1) -> None:
        """``whole`` less x."""
        self._do("Muls", to, x, as_float(-1))
        self._do("Adds", to, to, as_float(whole))

    def _floor(self, to: Place, x: Place) -> None:
        self._do("Cast", to, x, Enumerator("RoundMode::CAST_FLOOR"))

    def _cast(self, to: Place, x: Place) -> None:
        self._do("Cast", to, x, Enumerator("RoundMode::CAST_NONE"))

    def _do(self, key: str, to: Place, *operands: Operand | Buffer) -> None:
        self._k.call(key, to, *operands, self.length, repeats=self.length // LANES)
