"""Views, parts, joins and reductions of terms, in a normal form."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import frozen

from evokernel_core.vendor.algebra import Algebra
from evokernel_core.vendor.terms import Mismatch, Number, Shape, Size, Term, broadcast

_POINTWISE = frozenset(
    {"sum", "product", "power", "exp", "erf", "tanh", "sigmoid", "softplus", "abs", "round"}
)
"""Terms whose views are terms of views."""


def count(shape: Shape, bindings: int) -> Size:
    """Elements of a shape, under each binding."""
    return tuple(math.prod(size[i] for size in shape) for i in range(bindings))


def _text(shape: Sequence[Size]) -> str:
    return ";".join(",".join(map(str, size)) for size in shape)


@frozen
class Layouts(Algebra):
    """Algebra, and what moves elements or joins them."""

    def size(self, value: int) -> Size:
        return (value,) * self.bindings

    def axis(self, term: Term, axis: int) -> int:
        """The axis from the front. Raises Mismatch for one that the term lacks."""
        if not -len(term.shape) <= axis < len(term.shape):
            raise Mismatch("no such axis")
        return axis % len(term.shape)

    def reshape(self, term: Term, shape: Shape) -> Term:
        """The same elements in order. Views go inwards, to where an elementwise term is made from."""
        if term.shape == shape:
            return term
        if count(term.shape, self.bindings) != count(shape, self.bindings):
            raise Mismatch("a view of another size")
        if term.op == "reshape":
            return self.reshape(term.args[0], shape)
        scalars = [arg for arg in term.args if not arg.shape]
        if term.op in _POINTWISE and all(arg.shape == term.shape or arg in scalars for arg in term.args):
            args = [arg if arg in scalars else self.reshape(arg, shape) for arg in term.args]
            return self.rebuilt(term, args)
        return Term("reshape", (term,), _text(shape), shape)

    def rebuilt(self, term: Term, args: Sequence[Term]) -> Term:
        """An elementwise term of other arguments."""
        if term.op == "sum":
            counted = zip(args, term.numbers[1:], strict=True)
            parts = [self.multiply(arg, self.number(number)) for arg, number in counted]
            return self.add(self.number(term.numbers[0]), *parts)
        if term.op == "product":
            return self.multiply(self.number(term.numbers[0]), *args)
        if term.op == "power":
            return self.power(args[0], term.numbers[0][0])
        return self.function(term.op, *args, attributes=term.attributes)

    @staticmethod
    def repeated_from(term: Term) -> Term:
        """What a term repeats along axes, or the term."""
        while term.op == "expand":
            term = term.args[0]
        return term

    def narrowed(self, term: Term, shape: Shape) -> Term:
        """The term as an elementwise one of ``shape`` reads it: repeated along axes, or with axes of one in
        front, or not."""
        term = self.repeated_from(term)
        left = term.shape
        while left and set(left[0]) == {1} and set(shape[len(shape) - len(left)]) != {1}:
            left = left[1:]
        return self.reshape(term, left)

    def add(self, *terms: Term) -> Term:
        return super().add(*self._alike(terms))

    def multiply(self, *terms: Term) -> Term:
        return super().multiply(*self._alike(terms))

    def _alike(self, terms: Sequence[Term]) -> list[Term]:
        shape = broadcast(term.shape for term in terms)
        return [self.narrowed(term, shape) for term in terms]

    def expand(self, term: Term, shape: Shape) -> Term:
        """The term repeated to a shape that it broadcasts to."""
        if term.shape == shape:
            return term
        inner = self.narrowed(term, shape)
        return inner if inner.shape == shape else Term("expand", (inner,), _text(shape), shape)

    def part(self, term: Term, axis: int, start: Size, stop: Size, step: int = 1) -> Term:
        """The elements ``start`` to ``stop`` of an axis, each ``step``-th. Raises Mismatch outside it."""
        axis = self.axis(term, axis)
        size = term.shape[axis]
        if any(not 0 <= a <= b <= n for a, b, n in zip(start, stop, size, strict=True)) or step < 1:
            raise Mismatch("a part outside its axis")
        if step == 1 and not any(start) and stop == size:
            return term
        length = tuple(-(-(b - a) // step) for a, b in zip(start, stop, strict=True))
        shape = (*term.shape[:axis], length, *term.shape[axis + 1 :])
        from_the_end = axis - len(term.shape)
        return Term("part", (term,), f"{from_the_end} {_text((start, length))} {step}", shape)

    def half(self, term: Term, axis: int, second: bool) -> Term:
        """One half of an axis. Raises Mismatch for an odd one."""
        size = term.shape[self.axis(term, axis)]
        if any(number % 2 for number in size):
            raise Mismatch("an odd axis has no halves")
        middle = tuple(number // 2 for number in size)
        return self.part(term, axis, middle if second else self.size(0), size if second else middle)

    def join(self, terms: Sequence[Term], axis: int) -> Term:
        """The terms one behind the other along an axis. Raises Mismatch where they do not fit."""
        first = terms[0]
        axis = self.axis(first, axis)
        for term in terms:
            others = term.shape[:axis], term.shape[axis + 1 :]
            if others != (first.shape[:axis], first.shape[axis + 1 :]):
                raise Mismatch("parts of other shapes")
        length = tuple(sum(term.shape[axis][i] for term in terms) for i in range(self.bindings))
        shape = (*first.shape[:axis], length, *first.shape[axis + 1 :])
        return Term("join", tuple(terms), str(axis - len(shape)), shape)

    def permute(self, term: Term, order: Sequence[int]) -> Term:
        order = [self.axis(term, axis) for axis in order]
        if order == sorted(order):
            return term
        shape = tuple(term.shape[axis] for axis in order)
        if term.op == "permute":
            inner = [int(axis) for axis in term.attributes.split()]
            return self.permute(term.args[0], [inner[axis] for axis in order])
        return Term("permute", (term,), " ".join(map(str, order)), shape)

    def reduce(self, op: str, term: Term, axes: Sequence[int], keep: bool = True) -> Term:
        """``mean``, ``amax`` or ``amin`` over axes, which stay with one element where ``keep``."""
        over = {self.axis(term, axis) for axis in axes}
        over = over or set(range(len(term.shape)))
        one = self.size(1)
        shape = tuple(one if axis in over else size for axis, size in enumerate(term.shape))
        places = sorted(axis - len(term.shape) for axis in over)
        moved = Term(op, (term,), " ".join(map(str, places)), shape)
        left = tuple(size for axis, size in enumerate(term.shape) if axis not in over)
        return moved if keep else self.reshape(moved, left)

    def total(self, term: Term, axes: Sequence[int], keep: bool = True) -> Term:
        """The sum over axes: the mean, as often as there are elements."""
        mean = self.reduce("mean", term, axes)
        elements: Number = tuple(
            float(a // max(b, 1))
            for a, b in zip(count(term.shape, self.bindings), count(mean.shape, self.bindings), strict=True)
        )
        total = self.multiply(mean, self.number(elements))
        over = {self.axis(term, axis) for axis in axes} or set(range(len(term.shape)))
        left = tuple(size for axis, size in enumerate(term.shape) if axis not in over)
        return total if keep else self.reshape(total, left)

    def attention(self, query: Term, key: Term, value: Term, scale: Number) -> Term:
        """``softmax(scale * query key^T) value`` over (batch, heads, positions, features)."""
        shape = (*query.shape[:-1], value.shape[-1])
        return Term("attention", (query, key, value), "", shape, (scale,))
