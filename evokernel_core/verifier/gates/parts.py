"""Small parts of an output beside much larger ones: rows, pieces of long rows, and columns, each held to its
own size. The tolerance of the whole would let pass whatever a kernel puts there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import Tolerance
from evokernel_core.verifier.gates.compare import FLOATS, Expected, as_float64, read_elements

Array = npt.NDArray[np.float64]

LEAST = 32
"""Elements of a part: rounding of fewer is too much a matter of luck to be measured."""
LONGEST = 1024
"""Elements of a row from which it is looked at in pieces."""
MOST_COLUMNS = 1 << 16
CHUNK = 1 << 20
AGREEMENT = {"float32": 0.1, "float16": 0.3, "bfloat16": 0.3}
"""The root mean square of a part's error over that of its values which is taken for rounding."""
OWN = 8.0
"""How many times the rounding that was measured in this part: PyTorch's own distance from the result in wider
types, and that of long sums rounded otherwise."""
FLOOR = {"float32": 2.0**-100, "float16": 2.0**-23, "bfloat16": 2.0**-100}
"""What is as good as zero. Only tails of exponentials are so small, where the rounding of an argument of a
hundred weighs a hundred times in the result; of float16 two steps between denormal numbers."""
CANCELLED = {"float32": 2.0**-18, "float16": 2.0**-17, "bfloat16": 2.0**-17}
"""The same as a share of the whole: what is left where terms of that size cancel in float32,
as 1 + erf(x) of negative x, and which another formula than PyTorch's need not cancel."""


@frozen
class WorstPart:
    """The worst part: which ``kind`` (row or column), its place, and its error over its values."""

    kind: str
    place: tuple[int, ...]
    ratio: float


def smallest_parts(
    candidate: Path, expected: Expected, shape: tuple[int, ...], dtype: str, tolerance: Tolerance
) -> WorstPart | None:
    """The worst of the parts that are wrong by more than their rounding; None where there is none, or no
    result in wider types from which rounding can be told.

    Only parts are looked at in which ``tolerance`` admits an error as large as the values.
    """
    if dtype not in AGREEMENT or dtype not in FLOATS or expected.precise is None or not shape:
        return None
    total, columns = int(np.prod(shape)), shape[-1]
    if total < 2 * LEAST:
        return None
    starts = _starts(total, columns)
    sums = _Sums(expected, candidate, dtype, starts, columns if _has_columns(total, columns) else 0)
    for kind, sizes, counts in sums.values():
        limit = AGREEMENT[dtype] * np.sqrt(sizes / counts)
        if not (limit < tolerance.atol).any():
            continue
        floor = max(FLOOR[dtype], CANCELLED[dtype] * float(np.sqrt(sizes.sum() / total)))
        wrong = _worst(sums, kind, counts, limit, floor)
        if wrong is not None:
            number, ratio = wrong[0], AGREEMENT[dtype] * wrong[1]
            flat = int(starts[number]) if kind == "row" else number
            place = np.unravel_index(flat, shape) if kind == "row" else (number,)
            return WorstPart(kind, tuple(int(index) for index in place), ratio)
    return None


def _has_columns(total: int, columns: int) -> bool:
    return 1 < columns <= MOST_COLUMNS and total // columns >= LEAST


def _starts(total: int, columns: int) -> npt.NDArray[np.int64]:
    """Where each part begins in the flat output: rows, pieces of long ones, groups of short ones."""
    if columns < LEAST:
        unit = columns * -(-LEAST // columns)
        return np.arange(0, max(total - unit + 1, 1), unit)
    within = np.arange(0, max(columns - LEAST + 1, 1), LONGEST)
    return (np.arange(0, total, columns)[:, None] + within[None, :]).ravel()


class _Sums:
    """Sums of squares over the parts, of the values and of what differs from them."""

    def __init__(
        self, expected: Expected, candidate: Path, dtype: str, starts: npt.NDArray[np.int64], columns: int
    ) -> None:
        assert expected.precise is not None
        self._dtype, self._starts, self._columns = dtype, starts, columns
        self._precise = read_elements(expected.precise, dtype)
        self._candidate = candidate
        self._others = [path for path in (expected.eager, expected.rounded) if path is not None]
        self._by_row = max(int(np.searchsorted(starts, columns)), 1)
        self._errors: list[tuple[Array, Array]] = []
        self._counts = np.diff(starts, append=self._precise.size)

    def values(self) -> Iterator[tuple[str, Array, Array]]:
        """The kinds of parts with the sums of their values' squares and their sizes."""
        rows, columns = self._of(None)
        yield "row", rows, self._counts.astype(np.float64)
        if self._columns:
            yield "column", columns, np.full(self._columns, self._precise.size / self._columns)

    def errors(self, kind: str) -> tuple[Array, Array]:
        """Of a kind the squares of the candidate's errors, and the largest of what rounding gives."""
        if not self._errors:
            self._errors = [self._of(path) for path in (self._candidate, *self._others)]
        errors, *others = (error[0 if kind == "row" else 1] for error in self._errors)
        return errors, np.maximum.reduce(others)

    def _of(self, path: Path | None) -> tuple[Array, Array]:
        """Sums of squares of a file's distance from the precise result, or of that itself."""
        other = None if path is None else read_elements(path, self._dtype)
        rows = np.zeros(self._starts.size)
        columns = np.zeros(self._columns)
        for first, last in self._chunks():
            begin = self._starts[first]
            end = self._starts[last] if last < self._starts.size else self._precise.size
            squares = self._squares(other, int(begin), int(end))
            rows[first:last] = np.add.reduceat(squares, self._starts[first:last] - begin)
            if self._columns:
                columns += squares.reshape(-1, self._columns).sum(0)
        return rows, columns

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of parts of about ``CHUNK`` elements, whole rows where columns are summed too."""
        step = max(CHUNK * self._starts.size // self._precise.size, 1)
        step = -(-step // self._by_row) * self._by_row
        for first in range(0, self._starts.size, step):
            yield first, min(first + step, self._starts.size)

    def _squares(self, other: npt.NDArray[Any] | None, begin: int, end: int) -> Array:
        values = as_float64(self._precise[begin:end], self._dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            if other is not None:
                values = as_float64(other[begin:end], self._dtype) - values
            values *= values
        values[~np.isfinite(values)] = 0.0  # elements that are no numbers are compared one by one
        return values


def _worst(sums: _Sums, kind: str, counts: Array, limit: Array, floor: float) -> tuple[int, float] | None:
    """The number of the part whose error is farthest beyond its rounding, and its error over its limit."""
    errors, own = (np.sqrt(error / counts) for error in sums.errors(kind))
    allowed = np.maximum(np.maximum(limit, OWN * own), floor)
    beyond = errors / allowed
    number = int(beyond.argmax())
    if beyond[number] <= 1.0:
        return None
    return number, float(errors[number] / limit[number]) if limit[number] else float("inf")


def words(part: WorstPart, output: int, shape: tuple[int, ...]) -> Sentence:
    """The part as feedback."""
    where = Sentence("column {number}", number=part.place[0])
    if part.kind == "row":
        where = Sentence("the row at {place}", place=list(part.place))
    told = {"output": output, "shape": list(shape), "where": where}
    if part.ratio == float("inf"):
        return Sentence(
            "Output {output} of shape {shape} is within its tolerance, but {where} has much smaller "
            "values than others and is not 0 as PyTorch's.",
            **told,
        )
    return Sentence(
        "Output {output} of shape {shape} is within its tolerance, but {where} has much smaller "
        "values than others. It is {away} % away from PyTorch's (root mean square).",
        away=f"{100 * part.ratio:.2g}",
        **told,
    )
