"""Arithmetic of the similarity search, over arrays in memory: sparse columns, cosines, scores, the best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]

_FULL = 8
"""A column is kept whole, too, from one entry in so many rows on: adding 100,000 numbers at places takes
0.5 ms, adding a whole column 0.03."""


class Growing:
    """An array that is appended to; ``array`` is what it holds now."""

    def __init__(self, kind: npt.DTypeLike) -> None:
        self._room: Array = np.zeros(64, kind)
        self._length = 0

    @property
    def array(self) -> Array:
        return self._room[: self._length]

    def __len__(self) -> int:
        return self._length

    def extend(self, values: Array) -> None:
        before = self._length
        self.lengthen(before + len(values))
        self._room[before : self._length] = values

    def lengthen(self, length: int) -> None:
        """Zeros up to a length."""
        if length > len(self._room):
            room = np.zeros(max(length, 2 * len(self._room)), self._room.dtype)
            room[: self._length] = self.array
            self._room = room
        self._length = max(self._length, length)


class Column:
    """Numbers of some rows, the others 0."""

    def __init__(self) -> None:
        self._rows = Growing(np.int32)
        self._values = Growing(np.float64)
        self._whole: Growing | None = None
        self._copied = 0

    def __len__(self) -> int:
        """Rows that have one."""
        return len(self._rows)

    def extend(self, rows: Array, values: Array) -> None:
        self._rows.extend(rows)
        self._values.extend(values)

    def over(self, rows: int) -> tuple[slice | Array, Array]:
        """Places among the first ``rows`` rows, and the numbers there."""
        if self._whole is None:
            if len(self._rows) * _FULL < rows:
                return self._rows.array, self._values.array
            self._whole = Growing(np.float64)
        self._whole.lengthen(rows)
        self._whole.array[self._rows.array[self._copied :]] = self._values.array[self._copied :]
        self._copied = len(self._rows)
        return slice(None), self._whole.array


class Vectors:
    """Sparse vectors, each kept once: items of one task share theirs."""

    def __init__(self) -> None:
        self._columns: dict[str, Column] = {}
        self._norms = Growing(np.float64)

    def append(self, vector: Mapping[str, float]) -> int:
        """Adds a vector; returns its place."""
        place = len(self._norms)
        for name, value in vector.items():
            column = self._columns.setdefault(name, Column())
            column.extend(np.array([place]), np.array([float(value)]))
        self._norms.extend(np.array([math.hypot(*vector.values())]))
        return place

    def cosines(self, vector: Mapping[str, float]) -> Floats:
        """The cosine of every vector with this one, 0 where one is empty."""
        dots = np.zeros(len(self._norms))
        for name, weight in vector.items():
            if name in self._columns:
                places, values = self._columns[name].over(len(dots))
                dots[places] += weight * values
        norms = self._norms.array * math.hypot(*vector.values())
        return np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)


def standardised(numbers: Floats) -> Floats:
    """Each number's distance from the mean in standard deviations; all 0 where they are equal."""
    if not len(numbers):
        return numbers
    centred = numbers - numbers.mean()
    deviation = math.sqrt(np.square(centred).mean())
    return centred / deviation if deviation > 1e-12 else np.zeros_like(numbers)


def mix(words: Floats, structure: Floats) -> Floats:
    """Half the z-score of the text relevance plus half that of the structural cosine."""
    return 0.5 * standardised(words) + 0.5 * standardised(structure)


def best(scores: Floats, number: int) -> Ints:
    """Places of the highest scores, best first; of equal ones the later first."""
    number = min(number, len(scores))
    if not number:
        return np.zeros(0, np.int64)
    least = np.partition(scores, len(scores) - number)[len(scores) - number]
    above = np.flatnonzero(scores > least)
    equal = np.flatnonzero(scores == least)[len(above) - number :]
    return np.concatenate([above[np.lexsort((-above, -scores[above]))], equal[::-1]])
