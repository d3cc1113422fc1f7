"""Sizes at which equations in a kernel's text hold, found by trying: ``7 * n == 1393``, ``n % 97 == 13``.

What is special to a kernel may stand in its text behind arithmetic. An equation of one unknown and of numbers
is computed for all sizes at once; those for which it holds are worth a case where they are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from attrs import define

from evokernel_core.twin.lexer import CppTokenKind, Token, tokenize

LARGEST = 8192
"""Sizes that are tried."""
RARE = 0.05
"""The share of them at which an equation holds at most that says something."""
MOST_EACH = 8
"""Solutions of one equation that are told, spread over all."""
MOST_EQUATIONS = 200
LONGEST, DEEPEST = 60, 12
"""Tokens of a side, and brackets in one another."""

Numbers = npt.NDArray[np.int64]

_OPERATORS: Mapping[str, tuple[int, Callable[[Numbers, Numbers], Numbers]]] = {
    "|": (1, np.bitwise_or), "^": (2, np.bitwise_xor), "&": (3, np.bitwise_and),
    "<<": (4, lambda a, b: np.left_shift(a, b & 63)), ">>": (4, lambda a, b: np.right_shift(a, b & 63)),
    "+": (5, np.add), "-": (5, np.subtract),
    "*": (6, np.multiply), "/": (6, lambda a, b: _divided(a, b)[0]), "%": (6, lambda a, b: _divided(a, b)[1]),
}  # fmt: skip
"""How strongly an operator binds, and what it computes."""
_ENDS = frozenset((";", "{", "}", ",", "?", ":", "=", "!", "return"))
_OPEN, _CLOSE = "([", ")]"


class _Unclear(Exception):
    """Text that is no arithmetic of one unknown."""


def solutions(texts: Iterable[str]) -> tuple[int, ...]:
    """Sizes from 2 on at which some equation of the texts holds that mostly does not, in rising order."""
    result: set[int] = set()
    for text in texts:
        tokens = tokenize(text)
        known = dict(_constants(tokens))
        for number, (left, right) in enumerate(_equations(tokens)):
            if number == MOST_EQUATIONS:
                break
            result |= set(_solved(left, right, known))
    return tuple(sorted(result))


def _constants(tokens: Sequence[Token]) -> Iterator[tuple[str, int]]:
    """Names that are set to a number where they begin."""
    for name, sign, number, end in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if name.kind is CppTokenKind.NAME and sign.text == "=" and end.text == ";":
            value = whole(number)
            if value is not None:
                yield name.text, value


def _equations(tokens: Sequence[Token]) -> Iterator[tuple[Sequence[Token], Sequence[Token]]]:
    """The sides of every ``==`` and ``!=``."""
    for index in range(1, len(tokens) - 2):
        if tokens[index + 1].text == "=" and tokens[index].text in ("=", "!") and _touch(tokens, index):
            yield _side(tokens, index - 1, -1), _side(tokens, index + 2, 1)


def _touch(tokens: Sequence[Token], index: int) -> bool:
    return tokens[index].end == tokens[index + 1].start


def _side(tokens: Sequence[Token], index: int, step: int) -> Sequence[Token]:
    """The tokens from an index on, one way, up to what ends a side."""
    depth, at = 0, index
    opening, closing = (_OPEN, _CLOSE) if step > 0 else (_CLOSE, _OPEN)
    while 0 <= at < len(tokens) and abs(at - index) < LONGEST:
        text = tokens[at].text
        depth += (text in opening) - (text in closing)
        is_pair = text in ("&", "|") and 0 <= at + step < len(tokens) and tokens[at + step].text == text
        if depth < 0 or (depth == 0 and (text in _ENDS or is_pair)):
            break
        at += step
    return tokens[index:at] if step > 0 else tokens[at + 1 : index + 1]


def _solved(left: Sequence[Token], right: Sequence[Token], known: Mapping[str, int]) -> Iterator[int]:
    sizes = np.arange(2, LARGEST, dtype=np.int64)
    try:
        unknowns: list[str] = []
        with np.errstate(all="ignore"):
            sides = [_EquationReader(side, known, sizes, unknowns).whole() for side in (left, right)]
    except _Unclear:
        return
    holds = sizes[np.broadcast_to(sides[0] == sides[1], sizes.shape)]
    if len(unknowns) == 1 and 0 < len(holds) <= RARE * len(sizes):
        yield from (int(size) for size in holds[:: max(1, len(holds) // MOST_EACH)])


@define
class _EquationReader:
    """Computes an expression; all names are one unknown, whose values are ``sizes``."""

    tokens: Sequence[Token]
    known: Mapping[str, int]
    sizes: Numbers
    unknowns: list[str]
    at: int = 0
    depth: int = 0

    def whole(self) -> Numbers:
        result = self._binary(0)
        if self.at != len(self.tokens):
            raise _Unclear
        return result

    def _text(self, ahead: int = 0) -> str:
        place = self.at + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def _operator(self) -> str:
        text = self._text()
        return text * 2 if text in ("<", ">") and self._text(1) == text else text

    def _binary(self, least: int) -> Numbers:
        self.depth += 1
        if self.depth > DEEPEST:
            raise _Unclear
        result = self._one()
        while (operator := self._operator()) in _OPERATORS and _OPERATORS[operator][0] >= least:
            binds, compute = _OPERATORS[operator]
            self.at += len(operator)
            result = compute(result, self._binary(binds + 1))
        self.depth -= 1
        return result

    def _one(self) -> Numbers:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None:
            raise _Unclear
        if token.text == "static_cast":
            self.at += 1
            while self._text() not in (">", ""):
                self.at += 1
            self.at += 1
            return self._one()
        if token.text == "(":
            self.at += 1
            result = self._binary(0)
            if self._text() != ")":
                raise _Unclear
            self.at += 1
            return result
        if token.kind is CppTokenKind.NUMBER:
            value = whole(token)
            if value is None:
                raise _Unclear
            self.at += 1
            return np.full(1, value, np.int64)
        if token.kind is CppTokenKind.NAME:
            return self._name()
        raise _Unclear

    def _name(self) -> Numbers:
        """A known number, or the unknown: ``n``, ``tiling_.columns``, ``sizes[1]``."""
        words = [self._text()]
        self.at += 1
        while self._text() in (".", "["):
            length = 2 if self._text() == "." else 3
            words += [self._text(ahead) for ahead in range(length)]
            self.at += length
        if len(words) == 1 and words[0] in self.known:
            return np.full(1, self.known[words[0]], np.int64)
        name = "".join(words)
        if self._text() == "(" or "(" in name or self.unknowns not in ([], [name]):
            raise _Unclear
        self.unknowns[:] = [name]
        return self.sizes


def _divided(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """Quotient and remainder as C++ has them, of positive numbers; a division by zero is unclear."""
    if not right.all():
        raise _Unclear
    quotient = (left // right).astype(np.int64)
    return quotient, (left - quotient * right).astype(np.int64)


def whole(token: Token) -> int | None:
    """A whole number that is written so, below 2**62."""
    text = token.text.replace("'", "").lower()
    if token.kind is not CppTokenKind.NUMBER or ("." in text and not text.startswith("0x")):
        return None
    try:
        value = int(text.rstrip("ulz"), 0)
    except ValueError:
        return None
    return value if value < 1 << 62 else None
