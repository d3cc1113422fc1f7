"""Expressions over 32-bit words, from which integers of every width are made.

The vector cores of an A2 add, multiply, compare and shift int32, wrapping around, and combine bits of
int16; nothing else is used here. Equal expressions are one word; words that are known become numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from attrs import define, field

BITS: Final = 32
SIGN: Final = -(1 << 31)
"""The word of which only the highest bit is set."""
COMMUTATIVE = frozenset({"add", "mul", "max", "min", "and", "or"})
SHIFTS = frozenset({"shl", "sar", "shr"})
"""To the left, to the right with the sign, to the right with zeros."""
LEAVES = frozenset({"low", "high", "narrow", "size", "difference"})
"""Words that are read: ``low`` and ``high`` of eight-byte integers, ``narrow`` of shorter ones, ``size``
a size of a tensor, ``difference`` an expression of sizes that may be below 0. ``detail`` is the name under
which the input is loaded, of a size its expression."""


PARTS = ("quotientLow", "quotientHigh", "remainderLow", "remainderHigh")
"""What a ``divide`` gives, by the ``detail`` of the ``part`` that reads it before another one follows."""


@define(frozen=True, eq=False)
class Word:
    """One operation; the bits of a shift are its second operand."""

    index: int
    op: str
    args: tuple[Operand, ...] = ()
    detail: str = ""
    origin: str = ""

    def words(self) -> tuple[Word, ...]:
        """The operands that are not numbers."""
        return tuple(arg for arg in self.args if isinstance(arg, Word))


Operand = Word | int
"""A number is that of a signed word."""


def wrapped(value: int, bits: int = BITS) -> int:
    """The signed number of so many bits that equals ``value`` modulo 2**bits."""
    low = value & ((1 << bits) - 1)
    return low - (1 << bits) if low >> (bits - 1) else low


_UNSIGNED = (1 << BITS) - 1
_KNOWN: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "shl": lambda a, b: a << b,
    "sar": lambda a, b: a >> b,
    "shr": lambda a, b: (a & _UNSIGNED) >> b,
}
"""What an operation makes of two known words, before it wraps around."""
_NEUTRAL = {"add": 0, "or": 0, "and": -1, "mul": 1, "max": SIGN, "min": -1 - SIGN}
_ABSORBING = {"and": 0, "or": -1, "mul": 0, "max": -1 - SIGN, "min": SIGN}


@define
class Words:
    """Makes words; ``origin`` names the graph node that they belong to."""

    values: list[Word] = field(factory=list)
    origin: str = ""
    _made: dict[tuple[object, ...], Word] = field(factory=dict)

    def _make(self, op: str, *args: Operand, detail: str = "") -> Word:
        key = (op, tuple(arg.index if isinstance(arg, Word) else str(arg) for arg in args), detail)
        if key not in self._made:
            self._made[key] = Word(len(self.values), op, args, detail, self.origin)
            self.values.append(self._made[key])
        return self._made[key]

    def read(self, op: str, name: str) -> Word:
        """A word of an input, see LEAVES."""
        return self._make(op, detail=name)

    def _binary(self, op: str, a: Operand, b: Operand) -> Operand:
        if isinstance(a, int) and isinstance(b, int):
            return wrapped(_KNOWN[op](a, b))
        if op in COMMUTATIVE and (isinstance(a, int) or _later(a, b)):
            a, b = b, a
        if isinstance(b, int):
            if b == _NEUTRAL.get(op):
                return a
            if b == _ABSORBING.get(op):
                return b
        if a is b and op in ("max", "min", "and", "or"):
            return a
        return self._make(op, a, b)

    def add(self, a: Operand, b: Operand) -> Operand:
        return self._binary("add", a, b)

    def sub(self, a: Operand, b: Operand) -> Operand:
        if a is b:
            return 0
        if isinstance(b, int):
            return self.add(a, wrapped(-b))
        if isinstance(a, int):  # the vector unit has no number minus tensor
            return self.add(self.mul(b, -1), a)
        return self._binary("sub", a, b)

    def mul(self, a: Operand, b: Operand) -> Operand:
        return self._binary("mul", a, b)

    def max(self, a: Operand, b: Operand) -> Operand:
        return self._binary("max", a, b)

    def min(self, a: Operand, b: Operand) -> Operand:
        return self._binary("min", a, b)

    def both(self, a: Operand, b: Operand) -> Operand:
        """The bits that both have."""
        return self._binary("and", a, b)

    def either(self, a: Operand, b: Operand) -> Operand:
        return self._binary("or", a, b)

    def differing(self, a: Operand, b: Operand) -> Operand:
        """The bits that one of them has: there is no such instruction."""
        if a == -1 or b == -1:
            return self.complement(b if a == -1 else a)
        return self.sub(self.either(a, b), self.both(a, b))

    def complement(self, a: Operand) -> Operand:
        if isinstance(a, int):
            return -1 - a
        if a.op == "not":
            return a.args[0]
        return self._make("not", a)

    def shift(self, op: str, a: Operand, bits: int) -> Operand:
        """``op`` is one of SHIFTS; from 0 up to 32 bits."""
        if bits == 0:
            return a
        if bits >= BITS:
            if op != "sar":
                return 0
            bits = BITS - 1
        if isinstance(a, Word) and a.op == op:
            inner = a.args[1]
            assert isinstance(inner, int)
            return self.shift(op, a.args[0], inner + bits)
        return self._binary(op, a, bits)

    def divide(self, *operands: Operand) -> tuple[Operand, Operand, Operand, Operand]:
        """Low and high words of a quotient and a remainder, of numbers without a sign: two of a word, or
        the low and high word of each."""
        whole = self._make("divide", *operands)
        low, high, rest, upper = (self._make("part", whole, detail=name) for name in PARTS)
        return low, high, rest, upper

    def parted(self, a: Word, divisor: Operand) -> Word:
        """The quotient by a number, a size or a word as float32 estimates it, without its fraction."""
        if isinstance(divisor, int) or divisor.op == "size":
            return self._make("scaled", a, divisor)
        ratio = self._make("ratio", self._make("floated", a), self._make("floated", divisor))
        return self._make("truncated", ratio)

    def near_quotient(self, a: Operand, b: Operand) -> Operand:
        """The whole number next to the quotient as float32 estimates it; by 0 it is any number."""
        ratio = self._make("ratio", self._make("floated", a), self._make("floated", b))
        return self._make("rounded", ratio)

    def sign(self, a: Operand) -> Operand:
        """-1 where it is negative, else 0."""
        if isinstance(a, Word) and a.op == "size":
            return 0
        return self.shift("sar", a, BITS - 1)

    # -- truth: -1 or 0 -----------------------------------------------------------------------

    def is_not_zero(self, a: Operand) -> Operand:
        """Of a number that is not zero, it or its negative has the sign."""
        return self.sign(self.either(a, self.mul(a, -1)))

    def is_less(self, a: Operand, b: Operand) -> Operand:
        """Whether a is less than b, both signed."""
        if b == 0:
            return self.sign(a)
        return self.is_not_zero(self.sub(self.max(a, b), a))

    def chosen(self, truth: Operand, a: Operand, b: Operand) -> Operand:
        """a where the truth holds, else b."""
        if a is b or (isinstance(a, int) and a == b):
            return a
        if b == 0:
            return self.both(a, truth)
        if a == 0:
            return self.both(b, self.complement(truth))
        return self.add(b, self.mul(truth, self.sub(b, a)))


def _later(a: Operand, b: Operand) -> bool:
    return isinstance(a, Word) and isinstance(b, Word) and a.index > b.index


def needed(roots: Iterable[Operand]) -> list[Word]:
    """The words that the roots are made of, themselves included, in the order in which they were made."""
    result: dict[int, Word] = {}
    waiting = [root for root in roots if isinstance(root, Word)]
    while waiting:
        word = waiting.pop()
        if word.index not in result:
            result[word.index] = word
            waiting.extend(word.words())
    return [result[index] for index in sorted(result)]
