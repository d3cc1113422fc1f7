"""The step of a long division: one bit of a quotient and what remains, for numbers without a sign.

A tile is divided by as many steps as its numbers have bits. What is left to divide moves out of the
quotient's upper end into the remainder, while the quotient comes in at the lower end.
"""

from __future__ import annotations

from functools import cache

from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Words
from evokernel_core.targets.ascendc.legalization.wide import Arithmetic, Whole


@cache
def division_step(bits: int) -> dict[str, Operand]:
    """What one step on numbers of 32 or 64 bits makes of the words of a quotient and a remainder, which are
    read under the same names, and of a divisor."""
    words = Words()
    numbers = Arithmetic(words, bits)
    parts = ("Low",) if bits == BITS else ("Low", "High")
    quotient, remainder, divisor = (
        Whole(*(words.read("narrow", f"{name}{part}") for part in parts))
        for name in ("quotient", "remainder", "divisor")
    )
    top = words.shift("shr", quotient.low if quotient.high is None else quotient.high, BITS - 1)
    raised = numbers.shifted_left(remainder, 1)
    raised = Whole(words.either(raised.low, top), raised.high)
    less = _is_less(numbers, raised, divisor)
    rest = numbers.chosen(less, raised, numbers.sub(raised, divisor))
    moved = numbers.shifted_left(quotient, 1)
    grown = Whole(words.add(moved.low, words.add(less, 1)), moved.high)
    return {
        f"{name}{part}": word
        for name, whole in (("quotient", grown), ("remainder", rest))
        for part, word in zip(("Low", "High"), (whole.low, whole.high), strict=True)
        if word is not None
    }


def _is_less(numbers: Arithmetic, a: Whole, b: Whole) -> Operand:
    """Whether a is less than b, as numbers without a sign: as those are ordered that have the other sign."""
    flipped = numbers.number(-(1 << (numbers.bits - 1)))
    return numbers.is_less(numbers.add(a, flipped), numbers.add(b, flipped))
