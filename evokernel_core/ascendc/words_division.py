"""Division of integers: shifts where the divisor is a power of two, else one bit of the quotient a step.

The vector unit divides floats only, and float32 has too few digits to estimate quotients of words by.
"""

from __future__ import annotations

from attrs import define

from evokernel_core.ascendc.words import BITS, Operand
from evokernel_core.ascendc.words_whole import Arithmetic, Whole


@define
class Division:
    """Quotients and remainders of one width. Those that ``floor`` round down, and remainders have the
    divisor's sign; the others round towards zero, and remainders have the dividend's sign."""

    numbers: Arithmetic
    floor: bool

    def quotient(self, a: Whole, b: Whole) -> Whole:
        bits = self._shift_of(b)
        return self._parts(a, b)[0] if bits is None else self._shifted(a, bits)

    def remainder(self, a: Whole, b: Whole) -> Whole:
        bits = self._shift_of(b)
        if bits is None:
            return self._parts(a, b)[1]
        whole = self.numbers.shifted_left(self._shifted(a, bits), bits)
        return self.numbers.sub(a, whole)

    def _shift_of(self, b: Whole) -> int | None:
        """The bits of a literal divisor that is a power of two."""
        if not isinstance(b.low, int) or not isinstance(b.high, int | None):
            return None
        value = b.low if b.high is None else (b.high << BITS) | (b.low & ((1 << BITS) - 1))
        return value.bit_length() - 1 if value > 0 and value & (value - 1) == 0 else None

    def _shifted(self, a: Whole, bits: int) -> Whole:
        """A shift rounds down: what is below zero begins at the upper end of a step to round up."""
        numbers = self.numbers
        if not self.floor and bits:
            rest = numbers.number((1 << bits) - 1)
            below = numbers.widened(Whole(numbers.sign_of(a)))
            a = numbers.add(a, numbers.bitwise("both", below, rest))
        return numbers.shifted_right(a, bits)

    def _parts(self, a: Whole, b: Whole) -> tuple[Whole, Whole]:
        numbers, w = self.numbers, self.numbers.words
        sign_a, sign_b = numbers.sign_of(a), numbers.sign_of(b)
        quotient, remainder = divided(numbers, numbers.abs(a), numbers.abs(b))
        opposite = w.differing(sign_a, sign_b)
        quotient = numbers.chosen(opposite, numbers.neg(quotient), quotient)
        remainder = numbers.chosen(sign_a, numbers.neg(remainder), remainder)
        if self.floor:
            inexact = w.both(opposite, numbers.is_not_equal(remainder, numbers.number(0)))
            quotient = numbers.add(quotient, numbers.widened(Whole(inexact)))
            remainder = numbers.chosen(inexact, numbers.add(remainder, b), remainder)
        return quotient, remainder


def divided(numbers: Arithmetic, a: Whole, b: Whole) -> tuple[Whole, Whole]:
    """The quotient and the remainder of numbers without a sign, see words_steps."""
    operands: tuple[Operand, ...] = (a.low, b.low)
    if a.high is not None and b.high is not None:
        operands = (a.low, a.high, b.low, b.high)
    quotient_low, quotient_high, low, high = numbers.words.divide(*operands)
    if numbers.bits == BITS:
        return Whole(quotient_low), Whole(low)
    return Whole(quotient_low, quotient_high), Whole(low, high)
