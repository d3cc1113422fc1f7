"""Views, parts and joins of a graph as terms."""

from __future__ import annotations

from typing import Any

from evokernel_core.domain.graph import SymbolicInt
from evokernel_core.vendor.reading import NodeReader
from evokernel_core.vendor.terms import Mismatch, Term


def view(c: NodeReader) -> Term:
    return c.m.reshape(c.term(0), c.shape())


def permute(c: NodeReader) -> Term:
    return c.m.permute(c.term(0), c.axes(1, "dims"))


def transpose(c: NodeReader) -> Term:
    x = c.term(0)
    order = list(range(len(x.shape)))
    one, other = (c.m.axis(x, axis) for axis in (c.arg(1, 0), c.arg(2, 1)))
    order[one], order[other] = order[other], order[one]
    return c.m.permute(x, order)


def sliced(c: NodeReader) -> Term:
    x, axis = c.term(0), c.m.axis(c.term(0), int(c.arg(1, 0)))
    start, stop = (bound(c, c.arg(place), x, axis, default) for place, default in ((2, False), (3, True)))
    return c.m.part(x, axis, start, stop, int(c.arg(4, 1)))


def bound(c: NodeReader, arg: Any, x: Term, axis: int, default_is_end: bool) -> tuple[int, ...]:
    """A bound of a slice, which may count from the end or lie behind it."""
    size = x.shape[axis]
    if arg is None:
        return size if default_is_end else c.m.size(0)
    if not isinstance(arg, (int, SymbolicInt)):
        raise Mismatch("a bound that only the call decides")
    result = c.size(arg)
    return tuple(min(max(a + n if a < 0 else a, 0), n) for a, n in zip(result, size, strict=True))


def select(c: NodeReader) -> Term:
    axis = c.m.axis(c.term(0), int(c.arg(1)))
    size = c.term(0).shape[axis]
    start = tuple(a + n if a < 0 else a for a, n in zip(c.size(c.arg(2)), size, strict=True))
    return c.m.reshape(c.m.part(c.term(0), axis, start, tuple(a + 1 for a in start)), c.shape())


def split(c: NodeReader) -> tuple[Term, ...]:
    x, axis = c.term(0), c.m.axis(c.term(0), int(c.option(2, "dim", 0)))
    view, start = [], c.m.size(0)
    for index in range(len(c.node.outputs)):
        stop = tuple(a + n for a, n in zip(start, c.shape(index)[axis], strict=True))
        view.append(c.m.part(x, axis, start, stop))
        start = stop
    return tuple(view)


def join(c: NodeReader) -> Term:
    return c.m.join([c.value(element) for element in c.arg(0)], int(c.option(1, "dim", 0)))


def stack(c: NodeReader) -> Term:
    axis = int(c.option(1, "dim", 0)) % len(c.shape())
    one = tuple(c.m.size(1) if i == axis else size for i, size in enumerate(c.shape()))
    return c.m.join([c.m.reshape(c.value(element), one) for element in c.arg(0)], axis)
