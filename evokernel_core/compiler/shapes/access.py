"""Which element of an operand each element of a result is: affine indices, followed through views.

A result is read over *atoms*, loops in the row-major order of its memory. Each dimension of the value
that is read is indexed by a sum of atoms times weights. Views change the indices; where a view cuts a
dimension in two, an atom may have to be split. All sizes may be symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.compiler.shapes.sums import UNIT, ZERO, Sum, expanded
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.tensor import Dim


@frozen
class Atom:
    """A loop over ``size`` elements that lie ``stride`` apart in the result's memory; ``backwards``
    where it begins at the last one."""

    size: Extent
    stride: Sum
    backwards: bool = False


@frozen
class Term:
    atom: int
    weight: Extent


@frozen
class Index:
    """``start`` plus each term's atom times its weight."""

    terms: tuple[Term, ...] = ()
    start: Sum = ZERO

    def scaled(self, step: int, start: Sum) -> Index:
        """The index of the operand of a slice."""
        terms = tuple(Term(term.atom, term.weight.times(Extent(step))) for term in self.terms)
        return Index(terms, self.start.times(Sum.number(step)).plus(start))


@frozen
class Reading:
    """A value that is read with ``dims``, one index for each of its dimensions; the result's element at
    all atoms 0 lies at ``origin``."""

    atoms: tuple[Atom, ...]
    origin: Sum
    dims: tuple[Index, ...]

    @staticmethod
    def whole(shape: Sequence[Dim]) -> Reading:
        """Every element of a row-major result of ``shape``."""
        atoms: list[Atom] = []
        stride = UNIT
        for dim in reversed(shape):
            atoms.insert(0, Atom(extent(dim), stride))
            stride = stride.times(expanded(extent(dim)))
        return Reading(tuple(atoms), ZERO, tuple(Index((Term(i, ONE),)) for i in range(len(atoms))))

    def with_dim(self, dim: int, index: Index) -> Reading:
        return evolve(self, dims=(*self.dims[:dim], index, *self.dims[dim + 1 :]))

    def split(self, atom: int, outer: Extent, inner: Extent) -> Reading:
        """The same reading with the atom as two loops."""
        old = self.atoms[atom]
        wide = old.stride.times(expanded(inner))
        parts = (Atom(outer, wide, old.backwards), Atom(inner, old.stride, old.backwards))

        def renumbered(index: Index) -> Index:
            terms: list[Term] = []
            for term in index.terms:
                if term.atom == atom:
                    terms += [Term(atom, term.weight.times(inner)), Term(atom + 1, term.weight)]
                else:
                    terms.append(Term(term.atom + (term.atom > atom), term.weight))
            return Index(tuple(terms), index.start)

        atoms = (*self.atoms[:atom], *parts, *self.atoms[atom + 1 :])
        return Reading(atoms, self.origin, tuple(map(renumbered, self.dims)))

    def cut(self, atom: int, first: Sum, length: Extent) -> Reading:
        """Only ``length`` elements of an atom from ``first`` on, counted anew from 0."""
        old = self.atoms[atom]
        atoms = (*self.atoms[:atom], Atom(length, old.stride, old.backwards), *self.atoms[atom + 1 :])
        return evolve(self, atoms=atoms, origin=self.origin.plus(old.stride.times(first)))

    def mirrored(self, atom: int) -> Reading:
        """The same reading with the atom counted from its end."""
        old = self.atoms[atom]
        last = expanded(old.size).plus(Sum.number(-1))

        def turned(index: Index) -> Index:
            start, terms = index.start, list(index.terms)
            for place, term in enumerate(terms):
                if term.atom == atom:
                    start = start.plus(Sum.of(term.weight).times(last))
                    terms[place] = Term(atom, term.weight.times(Extent(-1)))
            return Index(tuple(terms), start)

        back = Atom(old.size, old.stride.times(Sum.number(-1)), not old.backwards)
        atoms = (*self.atoms[:atom], back, *self.atoms[atom + 1 :])
        return Reading(atoms, self.origin.plus(old.stride.times(last)), tuple(map(turned, self.dims)))

    def reshaped(self, result: Sequence[Dim], operand: Sequence[Dim], what: str) -> Reading:
        """The reading of the operand of a view whose result is read here."""
        given = [i for i, dim in enumerate(result) if not extent(dim).is_one]
        wanted = [i for i, dim in enumerate(operand) if not extent(dim).is_one]
        mine, its = [extent(result[i]) for i in given], [extent(operand[i]) for i in wanted]
        reading = self
        for old, new in _segments(mine, its, what):
            reading = reading._regrouped([given[i] for i in old], [mine[i] for i in old],
                                         [its[i] for i in new], what)  # fmt: skip
        members = iter(reading.dims[len(result) :])
        dims = tuple(Index() if extent(dim).is_one else next(members) for dim in operand)
        return evolve(reading, dims=dims)

    def _regrouped(
        self, dims: Sequence[int], sizes: Sequence[Extent], lengths: Sequence[Extent], what: str
    ) -> Reading:
        """Appends ``dims`` of ``sizes`` as dimensions of ``lengths``."""
        if len(dims) == len(lengths) == 1:
            return evolve(self, dims=(*self.dims, self.dims[dims[0]]))
        flat = Index()
        for position, dim in enumerate(dims):
            weight, index = product(sizes[position + 1 :]), self.dims[dim]
            terms = tuple(Term(term.atom, term.weight.times(weight)) for term in index.terms)
            flat = Index((*flat.terms, *terms), flat.start.plus(index.start.times(expanded(weight))))
        reading, place = evolve(self, dims=(*self.dims, flat)), len(self.dims)
        for length in reversed(lengths[1:]):
            reading = reading._divided(place, length, what)
        return reading

    def _divided(self, place: int, length: Extent, what: str) -> Reading:
        """The dimension at ``place`` as two: the quotient by ``length``, and behind it the remainder."""
        index = self.dims[place]
        above: list[Term] = []
        below: list[Term] = []
        for term in index.terms:
            size = self.atoms[term.atom].size
            weight = term.weight.divided_by(length)
            if term.weight.coefficient < 0:
                return self.mirrored(term.atom)._divided(place, length, what)
            if weight is not None:
                above.append(Term(term.atom, weight))
            elif length.divided_by(term.weight.times(size)) is not None:
                below.append(term)
            else:
                inner = length.divided_by(term.weight)
                outer = None if inner is None else size.divided_by(inner)
                if inner is None or outer is None:
                    raise _uneven(what)
                return self.split(term.atom, outer, inner)._divided(place, length, what)
        start = quotient(index.start, length)
        if start is None:
            raise _uneven(what)
        parts = (Index(tuple(above), start), Index(tuple(below)))
        return evolve(self, dims=(*self.dims[:place], *parts, *self.dims[place + 1 :]))


def quotient(start: Sum, length: Extent) -> Sum | None:
    """The sum divided by an extent, None where it is no multiple of it."""
    parts = [term.divided_by(length) for term in start.terms]
    return None if None in parts else Sum.of(*(part for part in parts if part is not None))


def _segments(
    mine: Sequence[Extent], its: Sequence[Extent], what: str
) -> Iterator[tuple[list[int], list[int]]]:
    """The shortest runs of dimensions on both sides that hold as many elements."""
    i = j = 0
    while i < len(mine) and j < len(its):
        left, right = [i], [j]
        while (ours := product(mine[k] for k in left)) != (theirs := product(its[k] for k in right)):
            fewer = theirs.divided_by(ours) is not None or right[-1] + 1 >= len(its)
            grown = left if fewer else right
            grown.append(grown[-1] + 1)
            if left[-1] >= len(mine) or right[-1] >= len(its):
                raise _uneven(what)
        yield left, right
        i, j = left[-1] + 1, right[-1] + 1
    if i < len(mine) or j < len(its):
        raise _uneven(what)


def _uneven(what: str) -> PlanError:
    return PlanError("The shape of {what} does not nest in that of what is made of it.", what=what)
