"""Integers as words: one for up to 32 bits, a low and a high one for 64.

Results wrap around as PyTorch's do. A truth value is a word too, -1 or 0.
"""

from __future__ import annotations

from attrs import define, frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Words, wrapped

WIDTHS = {"int64": 64, "int32": 32, "int16": 16, "int8": 8, "uint8": 8}
"""Bits of what this module computes with."""


@frozen
class Whole:
    """An integer; shorter ones than 32 bits are extended to a word, by zeros if they have no sign. The
    high word of one that comes from a shorter one is the low word's sign."""

    low: Operand
    high: Operand | None = None


@define
class Arithmetic:
    """Operations on integers of one width; ``bits`` is 64, or 32 for all shorter ones, whose results are
    ``narrowed`` in the end."""

    words: Words
    bits: int

    def number(self, value: int) -> Whole:
        value = wrapped(value, self.bits)
        if self.bits == BITS:
            return Whole(value)
        return Whole(wrapped(value), value >> BITS)

    def _high(self, a: Whole) -> Operand:
        return self.words.sign(a.low) if a.high is None else a.high

    def widened(self, a: Whole) -> Whole:
        """The same integer in this width; of 64 bits only the low word is left in 32."""
        return Whole(a.low, self._high(a) if self.bits > BITS else None)

    # -- sums ---------------------------------------------------------------------------------

    def _carry(self, a: Operand, b: Operand, total: Operand) -> Operand:
        """1 where the unsigned sum of two words is more than a word."""
        w = self.words
        carries = w.either(w.both(a, b), w.both(w.either(a, b), w.complement(total)))
        return w.shift("shr", carries, BITS - 1)

    def _borrow(self, a: Operand, b: Operand, rest: Operand) -> Operand:
        """1 where a is less than b, both unsigned; ``rest`` is their difference."""
        w = self.words
        not_a = w.complement(a)
        return w.shift("shr", w.either(w.both(not_a, b), w.both(w.either(not_a, b), rest)), BITS - 1)

    def add(self, a: Whole, b: Whole) -> Whole:
        w = self.words
        low = w.add(a.low, b.low)
        if a.high is None or b.high is None:
            return Whole(low)
        carry = 0 if 0 in (a.low, b.low) else self._carry(a.low, b.low, low)
        return Whole(low, w.add(w.add(a.high, b.high), carry))

    def sub(self, a: Whole, b: Whole) -> Whole:
        w = self.words
        low = w.sub(a.low, b.low)
        if a.high is None or b.high is None:
            return Whole(low)
        borrow = 0 if b.low == 0 else self._borrow(a.low, b.low, low)
        return Whole(low, w.sub(w.sub(a.high, b.high), borrow))

    def neg(self, a: Whole) -> Whole:
        return self.sub(self.number(0), a)

    # -- products -----------------------------------------------------------------------------

    def mul(self, a: Whole, b: Whole) -> Whole:
        w = self.words
        low = w.mul(a.low, b.low)
        if a.high is None or b.high is None:
            return Whole(low)
        across = w.add(w.mul(a.high, b.low), w.mul(a.low, b.high))
        return Whole(low, w.add(self._upper_product(a.low, b.low), across))

    def _upper_product(self, a: Operand, b: Operand) -> Operand:
        """The high word of the unsigned product of two words, by halves of 16 bits."""
        w = self.words
        a_low, a_high = self._halves(a)
        b_low, b_high = self._halves(b)
        least, first, second = w.mul(a_low, b_low), w.mul(a_low, b_high), w.mul(a_high, b_low)
        (first_low, first_high), (second_low, second_high) = self._halves(first), self._halves(second)
        middle = w.add(w.add(w.shift("shr", least, 16), first_low), second_low)
        upper = w.add(w.mul(a_high, b_high), w.add(first_high, second_high))
        return w.add(upper, w.shift("shr", middle, 16))

    def _halves(self, a: Operand) -> tuple[Operand, Operand]:
        w = self.words
        return w.shift("shr", w.shift("shl", a, 16), 16), w.shift("shr", a, 16)

    def power(self, a: Whole, exponent: int) -> Whole:
        result, square = self.number(1), a
        while exponent:
            if exponent & 1:
                result = self.mul(result, square)
            exponent >>= 1
            if exponent:
                square = self.mul(square, square)
        return result

    # -- comparisons --------------------------------------------------------------------------

    def is_not_equal(self, a: Whole, b: Whole) -> Operand:
        w = self.words
        low = w.sub(a.low, b.low)
        if a.high is None or b.high is None:
            return w.is_not_zero(low)
        return w.is_not_zero(w.either(low, w.sub(a.high, b.high)))

    def is_less(self, a: Whole, b: Whole) -> Operand:
        """The sign of the difference; of words with different signs a's own."""
        w = self.words
        if a.high is None or b.high is None:
            return w.is_less(a.low, b.low)
        high = self.sub(a, b).high
        assert high is not None
        not_b = w.complement(b.high)
        return w.sign(w.either(w.both(a.high, not_b), w.both(w.either(a.high, not_b), high)))

    def chosen(self, truth: Operand, a: Whole, b: Whole) -> Whole:
        w = self.words
        low = w.chosen(truth, a.low, b.low)
        if a.high is None or b.high is None:
            return Whole(low)
        return Whole(low, w.chosen(truth, a.high, b.high))

    def max(self, a: Whole, b: Whole) -> Whole:
        if self.bits == BITS:
            return Whole(self.words.max(a.low, b.low))
        return self.chosen(self.is_less(a, b), b, a)

    def min(self, a: Whole, b: Whole) -> Whole:
        if self.bits == BITS:
            return Whole(self.words.min(a.low, b.low))
        return self.chosen(self.is_less(a, b), a, b)

    def sign_of(self, a: Whole) -> Operand:
        """-1 where it is negative, else 0."""
        return self.words.sign(a.low if a.high is None else a.high)

    def abs(self, a: Whole) -> Whole:
        return self.chosen(self.sign_of(a), self.neg(a), a)

    # -- bits ---------------------------------------------------------------------------------

    def bitwise(self, name: str, a: Whole, b: Whole) -> Whole:
        """``name`` is a method of Words for two operands."""
        combine = getattr(self.words, name)
        if a.high is None or b.high is None:
            return Whole(combine(a.low, b.low))
        return Whole(combine(a.low, b.low), combine(a.high, b.high))

    def complement(self, a: Whole) -> Whole:
        high = None if a.high is None else self.words.complement(a.high)
        return Whole(self.words.complement(a.low), high)

    def shifted_left(self, a: Whole, bits: int) -> Whole:
        w = self.words
        if a.high is None:
            return Whole(w.shift("shl", a.low, bits))
        if bits >= BITS:
            return Whole(0, w.shift("shl", a.low, bits - BITS))
        moved = w.shift("shr", a.low, BITS - bits) if bits else 0
        return Whole(w.shift("shl", a.low, bits), w.either(w.shift("shl", a.high, bits), moved))

    def shifted_right(self, a: Whole, bits: int) -> Whole:
        """With the sign."""
        w = self.words
        if a.high is None:
            return Whole(w.shift("sar", a.low, bits))
        if bits >= BITS:
            return Whole(w.shift("sar", a.high, bits - BITS), w.sign(a.high))
        moved = w.shift("shl", a.high, BITS - bits) if bits else 0
        return Whole(w.either(w.shift("shr", a.low, bits), moved), w.shift("sar", a.high, bits))


def narrowed(words: Words, a: Whole, dtype: str) -> Whole:
    """The integer as ``dtype`` has it. Raises PlanError for truth values, which are none."""
    if dtype not in WIDTHS:
        raise PlanError("Arithmetic on {dtype} tensors is not covered.", dtype=dtype)
    bits = WIDTHS[dtype]
    if bits >= BITS:
        return Arithmetic(words, bits).widened(a)
    moved = words.shift("shl", a.low, BITS - bits)
    return Whole(words.shift("shr" if dtype == "uint8" else "sar", moved, BITS - bits))


def truth_as_whole(words: Words, truth: Operand) -> Whole:
    """0 or 1 of a truth value."""
    return Whole(words.mul(truth, -1))
