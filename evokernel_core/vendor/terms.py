"""Mathematics in a normal form: two spellings of the same computation are the same term.

Sums and products are flat, sorted and folded; divisions, roots and squares are powers. Sizes that only a
call decides are followed under several bindings of the symbols at once: a number or a size is a tuple with
its value under each, so that what is equal in all of them is taken to be equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from attrs import field, frozen

Size = tuple[int, ...]
"""A size under each binding."""
Shape = tuple[Size, ...]
Number = tuple[float, ...]
"""A number under each binding."""
_DIGITS = 7
"""Significant digits in which numbers are compared: those of float32."""


class Mismatch(Exception):
    """Terms that do not fit together, such as shapes that do not broadcast."""


@frozen
class Term:
    """A value: what it is applied to (``args``) and how (``op``, ``attributes``). Terms with the same ``key``
    are the same mathematics; dtypes are no part of it, since roundings are terms of their own."""

    op: str = field(eq=False)
    args: tuple[Term, ...] = field(eq=False)
    attributes: str = field(eq=False)
    shape: Shape = field(eq=False)
    numbers: tuple[Number, ...] = field(eq=False, default=())
    key: str = field(init=False)

    @key.default
    def _key(self) -> str:
        text = "|".join(
            (self.op, self.attributes, *map(_words, self.numbers), *(arg.key for arg in self.args))
        )
        return sha256(text.encode()).hexdigest()


def _words(number: Number) -> str:
    return ",".join(f"{value:.{_DIGITS}g}" for value in number)


def same_number(left: Number, right: Number) -> bool:
    """Whether two numbers are the same to the digits that count."""
    return _words(left) == _words(right)


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape of an elementwise result. Raises Mismatch."""
    known = list(shapes)
    rank = max(map(len, known), default=0)
    result: list[Size] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in known if len(shape) >= -axis}
        wide = {size for size in sizes if any(number != 1 for number in size)}
        if len(wide) > 1:
            raise Mismatch("shapes do not broadcast")
        result.append(wide.pop() if wide else sizes.pop())
    return tuple(result)


def walk(term: Term) -> Iterable[Term]:
    """A term and all below it, each once."""
    seen: dict[str, Term] = {}
    waiting = [term]
    while waiting:
        child = waiting.pop()
        if child.key not in seen:
            seen[child.key] = child
            waiting += child.args
    return seen.values()
