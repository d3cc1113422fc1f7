"""Division of integers: shifts by a power of two, digit by digit by other literals, integers of up to 16
bits as floats, else bit by bit.

The vector unit divides floats only, and float32 has too few digits to estimate quotients of words by;
those of digits it has.
"""

from __future__ import annotations

from attrs import define

from evokernel_core.domain.errors import PlanError
from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Word
from evokernel_core.targets.ascendc.legalization.wide import Arithmetic, Whole

_MOST_BY_HALVES = 1 << 15
MOST_BY_DIGITS = 1 << 23
"""Literal divisors up to which digits of 16 or of 8 bits are divided in float32."""

_MOST_AS_FLOATS = 16
"""Bits of integers whose quotient float32 estimates to one at most."""


@define
class Division:
    """Quotients and remainders of one width. Those that ``floor`` round down, and remainders have the
    divisor's sign; the others round towards zero, and remainders have the dividend's sign. ``bits``: those
    that the operands have at most."""

    numbers: Arithmetic
    floor: bool
    bits: int

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
        value = self._literal(b)
        if value is None or value <= 0 or value & (value - 1):
            return None
        return value.bit_length() - 1

    def _literal(self, b: Whole) -> int | None:
        if not isinstance(b.low, int) or not isinstance(b.high, int | None):
            return None
        return b.low if b.high is None else (b.high << BITS) | (b.low & ((1 << BITS) - 1))

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
        quotient, remainder = self._without_signs(numbers.abs(a), b)
        opposite = w.differing(sign_a, sign_b)
        quotient = numbers.chosen(opposite, numbers.neg(quotient), quotient)
        remainder = numbers.chosen(sign_a, numbers.neg(remainder), remainder)
        if self.floor:
            inexact = w.both(opposite, numbers.is_not_equal(remainder, numbers.number(0)))
            quotient = numbers.add(quotient, numbers.widened(Whole(inexact)))
            remainder = numbers.chosen(inexact, numbers.add(remainder, b), remainder)
        return quotient, remainder

    def _without_signs(self, a: Whole, b: Whole) -> tuple[Whole, Whole]:
        """A number without a sign by another's distance from zero."""
        value = self._literal(b)
        if value is not None and 1 < abs(value) <= MOST_BY_DIGITS:
            return by_digits(self.numbers, a, abs(value))
        if isinstance(b.low, Word) and b.low.op == "size":
            return by_digits(self.numbers, a, b.low)
        if self.bits <= _MOST_AS_FLOATS and isinstance(a.low, Word):
            quotient, rest = _digit(self.numbers, a.low, self.numbers.abs(b).low)
            return Whole(quotient), Whole(rest)
        return divided(self.numbers, a, self.numbers.abs(b))


def by_digits(numbers: Arithmetic, a: Whole, divisor: Operand) -> tuple[Whole, Whole]:
    """Digit by digit from the highest one: with what remained before it, a digit is less than 2**31, and the
    float32 estimate of its quotient, less than 2**16, off by one at most."""
    w, digit_bits = numbers.words, 16 if isinstance(divisor, int) and divisor <= _MOST_BY_HALVES else 8
    quotients: list[Operand] = []
    rest: Operand = 0
    for word in (a.low,) if a.high is None else (a.high, a.low):
        quotient: Operand = 0
        for above in range(0, BITS, digit_bits):
            digit = w.shift("shr", w.shift("shl", word, above), BITS - digit_bits)
            current = w.add(w.shift("shl", rest, digit_bits), digit)
            part, rest = _digit(numbers, current, divisor)
            quotient = w.add(w.shift("shl", quotient, digit_bits), part)
        quotients.append(quotient)
    if a.high is None:
        return Whole(quotients[0]), Whole(rest)
    return Whole(quotients[1], quotients[0]), Whole(rest, 0)


def _digit(numbers: Arithmetic, current: Operand, divisor: Operand) -> tuple[Operand, Operand]:
    """The quotient and the remainder of a word without a sign that is less than 2**31."""
    if isinstance(current, int):
        if isinstance(divisor, int):
            return current // divisor, current % divisor
        if current:
            raise PlanError("A literal whole number divided by a size is not covered.")
        return 0, 0
    w, opposite = numbers.words, numbers.words.mul(divisor, -1)
    guess = w.parted(current, divisor)
    rest = w.add(current, w.mul(guess, opposite))
    below = w.sign(rest)
    rest = w.add(rest, w.mul(below, opposite))
    within = w.sign(w.add(rest, opposite))
    rest = w.add(w.add(rest, opposite), w.mul(within, opposite))
    return w.add(w.add(w.add(guess, below), within), 1), rest


def divided(numbers: Arithmetic, a: Whole, b: Whole) -> tuple[Whole, Whole]:
    """The quotient and the remainder of numbers without a sign, see long_division."""
    operands: tuple[Operand, ...] = (a.low, b.low)
    if a.high is not None and b.high is not None:
        operands = (a.low, a.high, b.low, b.high)
    quotient_low, quotient_high, low, high = numbers.words.divide(*operands)
    if numbers.bits == BITS:
        return Whole(quotient_low), Whole(low)
    return Whole(quotient_low, quotient_high), Whole(low, high)
