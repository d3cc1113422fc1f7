"""The iteration space as a row of atoms, and how tensor dimensions map onto it.

An access gives, for each dimension of a tensor, the atoms that index it: none where the size is
one. Views only regroup atoms, so they cost nothing; where a view cuts an atom in two, the atom is
split and the lowering starts again with the finer space.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import Dim

Access = tuple[tuple[int, ...], ...]
"""For each dimension the indices of the atoms that make it up."""


class Refine(Exception):
    """The atom must be split into ``parts`` before the lowering can go on."""

    def __init__(self, atom: int, parts: tuple[Extent, Extent]) -> None:
        super().__init__(atom, parts)
        self.atom = atom
        self.parts = parts


@frozen
class Space:
    """Atoms in row-major order: first those that index rows, then those that index columns.

    The first ``outer_atoms`` of the row atoms are the outer loops; inside them rows are dense for
    every input, so that one copy fetches a value a row. Where the columns are not innermost in memory,
    the last ``lane_atoms`` atoms lie behind them and belong to the rows; the first ``leading_atoms``
    are columns that lie in front of the rows.
    """

    atoms: tuple[Extent, ...]
    row_atoms: int
    outer_atoms: int = 0
    lane_atoms: int = 0
    leading_atoms: int = 0

    @staticmethod
    def of(rows: Sequence[Dim], columns: Sequence[Dim], leading: Sequence[Dim] = ()) -> Space:
        first, row_extents = _without_ones(leading), _without_ones(rows)
        atoms = first + row_extents + _without_ones(columns)
        return Space(atoms, len(row_extents), leading_atoms=len(first))

    @staticmethod
    def around(outer: Sequence[Dim], columns: Sequence[Dim], lanes: Sequence[Dim]) -> Space:
        """Columns between the outer loops and the lanes."""
        first, last = _without_ones(outer), _without_ones(lanes)
        return Space(first + _without_ones(columns) + last, len(first), len(first), len(last))

    @property
    def lanes(self) -> tuple[int, ...]:
        return tuple(range(len(self.atoms) - self.lane_atoms, len(self.atoms)))

    @property
    def rows(self) -> tuple[int, ...]:
        return (*range(self.leading_atoms, self._behind_rows), *self.lanes)

    @property
    def _behind_rows(self) -> int:
        return self.leading_atoms + self.row_atoms

    @property
    def columns(self) -> tuple[int, ...]:
        return (*range(self.leading_atoms), *range(self._behind_rows, len(self.atoms) - self.lane_atoms))

    @property
    def everything(self) -> tuple[int, ...]:
        return tuple(range(len(self.atoms)))

    def split(self, refine: Refine) -> Space:
        atoms = (*self.atoms[: refine.atom], *refine.parts, *self.atoms[refine.atom + 1 :])
        is_row = self.leading_atoms <= refine.atom < self._behind_rows
        return evolve(
            self,
            atoms=atoms,
            row_atoms=self.row_atoms + is_row,
            outer_atoms=self.outer_atoms + bool(is_row and self.outer_atoms),
            lane_atoms=self.lane_atoms + (refine.atom in self.lanes),
            leading_atoms=self.leading_atoms + (refine.atom < self.leading_atoms),
        )

    def regroup(self, atoms: Sequence[int], shape: Sequence[Dim], what: str) -> Access:
        """The access of a tensor of ``shape`` whose elements run over ``atoms`` in row-major order.

        Raises Refine where an atom must be split, PlanError where the sizes do not nest.
        """
        waiting = list(atoms)
        access = tuple(self._take(waiting, extent(dim), what) for dim in shape)
        if waiting:
            raise _mismatch(what)
        return access

    def _take(self, waiting: list[int], wanted: Extent, what: str) -> tuple[int, ...]:
        group = []
        while not wanted.is_one:
            if not waiting:
                raise _mismatch(what)
            size = self.atoms[waiting[0]]
            rest = wanted.divided_by(size)
            if rest is None:
                remainder = size.divided_by(wanted)
                if remainder is None:
                    raise _mismatch(what)
                raise Refine(waiting[0], (wanted, remainder))
            group.append(waiting.pop(0))
            wanted = rest
        return tuple(group)


def _without_ones(dims: Sequence[Dim]) -> tuple[Extent, ...]:
    return tuple(size for size in map(extent, dims) if not size.is_one)


def _mismatch(what: str) -> PlanError:
    return PlanError(
        "The shape of {what} does not nest in the iteration space; keep it out of the fused region.",
        what=what,
    )


def flatten(access: Access) -> tuple[int, ...]:
    return tuple(atom for group in access for atom in group)


def broadcast(access: Access, result: Sequence[Dim], operand: Sequence[Dim]) -> Access:
    """The access of an operand of an element-wise operation, by right alignment. Raises PlanError where the
    operand has more dimensions than the result."""
    offset = len(result) - len(operand)
    if offset < 0:
        raise _mismatch(Sentence("an operand with more dimensions than the result"))
    return tuple(() if extent(dim).is_one else access[offset + i] for i, dim in enumerate(operand))
