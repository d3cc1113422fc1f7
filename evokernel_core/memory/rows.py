"""Rows of the memory as objects. A disk that fails, another program or a stranger may have written any bytes
into any column: such a row is set aside, and the others go on."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, wraps
from typing import Any, TypeVar, get_type_hints

from attrs import AttrsInstance, asdict
from cattrs.errors import BaseValidationError

from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.sentence import Sentence, read

log = logging.getLogger(__name__)

Row = dict[str, Any]
"""Values by the names of their columns."""
T = TypeVar("T")
_UNREADABLE = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, BaseValidationError,
    EvoKernelError,
)  # fmt: skip
_MOST_TOLD = 1000
_LONGEST = 60
_MOST_COUNTED = 2**53


class UnreadableRow(Exception):
    """A row that is none of ours: ``kind`` is what it should be."""

    def __init__(self, kind: str, row: Row, why: str) -> None:
        super().__init__(kind, why)
        self.kind, self.why = kind, why
        self.first = ascii(next(iter(row.values()), None))[:_LONGEST]


def decoded(make: Callable[[Row], T]) -> Callable[[Row], T]:
    """Of a function that makes something of a row: it raises UnreadableRow for a row that is none of ours."""

    @wraps(make)
    def made(row: Row) -> T:
        try:
            return make(row)
        except _UNREADABLE as error:
            raise UnreadableRow(make.__name__.strip("_"), row, type(error).__name__) from error

    return made


class Reader:
    """Reads rows, and says of each that cannot be read so once in the log."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def readable(self, make: Callable[[Row], T], rows: Iterable[Row]) -> Iterator[T]:
        """What ``make`` (a ``decoded`` function) gives for every row that can be read."""
        for row in rows:
            try:
                yield make(row)
            except UnreadableRow as error:
                self._say(error)

    def _say(self, error: UnreadableRow) -> None:
        told = (error.kind, error.first)
        if told in self._told or len(self._told) >= _MOST_TOLD:
            return
        self._told.add(told)
        log.warning(
            "A row of the memory is damaged and was set aside (%s %s: %s); the others are used.",
            error.kind,
            error.first,
            error.why,
        )


def as_text(data: bytes) -> str | bytes:
    """A text column; bytes where it holds no UTF-8, for then the row alone is damaged and not the query."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def columns(record: AttrsInstance) -> Row:
    """A record's fields as the columns of their names, choices by their values."""
    fields = asdict(record, recurse=False)
    return {name: value.value if isinstance(value, Enum) else value for name, value in fields.items()}


def text(row: Row, name: str) -> str:
    """Raises TypeError for another type."""
    value = row[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def whole(row: Row, name: str) -> int:
    """Raises TypeError for another type."""
    value = row[name]
    if not isinstance(value, int):
        raise TypeError(name)
    return value


def counted(row: Row, name: str) -> int:
    """A number of events. Raises TypeError for another type, ValueError for one that nothing counts to."""
    count = whole(row, name)
    if not 0 <= count < _MOST_COUNTED:
        raise ValueError(name)
    return count


def number(row: Row, name: str) -> float:
    """Raises TypeError for another type, and for what is not finite."""
    value = row[name]
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(name)
    return value


def record(kind: Callable[..., T], row: Row, **others: object) -> T:
    """An object of a class, each field from the column of its name but those that ``others`` give. Raises
    what the readers of columns raise."""
    own = {name: read_column(row, name) for name, read_column in _readers(kind) if name not in others}
    return kind(**own, **others)


@cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Row, str], Any]], ...]:
    """How the column of each field is read: as the field's type says."""
    return tuple(
        (name, _COLUMNS.get(hint) or _converted(hint)) for name, hint in get_type_hints(kind).items()
    )


_COLUMNS: Mapping[type, Callable[[Row, str], Any]] = {
    str: text,
    int: whole,
    float: number,
    bool: lambda row, name: bool(whole(row, name)),
    Sentence: lambda row, name: read(text(row, name)),
}


def _converted(kind: Any) -> Callable[[Row, str], Any]:
    """Of a choice, from its value."""
    return lambda row, name: kind(row[name])
