"""Greatest common divisors of words by the nearest remainder, in as many steps as the worst pair takes.

A pair has the divisors of its second number and of its first one less any multiple of that: so a quotient
that float32 estimates serves, and only the number of steps depends on how good it is.
"""

from __future__ import annotations

import math

from evokernel_core.targets.ascendc.legalization.limbs import Operand, Words

_BITS_A_STEP = math.log2(1 + math.sqrt(2))
"""By which two steps' numbers are shorter at least, where remainders are at most half of the divisor."""
_MORE = 1
"""Steps for quotients of more digits than float32 has: those leave short numbers."""


def common_divisor(words: Words, a: Operand, b: Operand, bits: int) -> Operand:
    """Of numbers of so many bits; 0 of two zeros. What has no opposite, -2**31, divides as a float."""
    a, b = _size(words, a), _size(words, b)
    for _ in range(math.ceil(bits / _BITS_A_STEP) + _MORE):
        a, b = b, _size(words, words.sub(a, words.mul(words.near_quotient(a, b), b)))
    return words.either(a, b)  # of which one is 0


def _size(words: Words, a: Operand) -> Operand:
    return words.max(a, words.mul(a, -1))
