"""Sizes at which a kernel's host code decides otherwise than at most others, found by running it alone.

ComputeTiling is cheap, so it is asked at thousands of sizes. What it answers judges nothing: it only says
which sizes are worth a case with data. A condition that its arithmetic hides, as ``7 * n == 1757``, shows as
a word that few sizes have, or as one off the line of its neighbours; the largest size that it takes, at which
a last tile is full, as one of the text's numbers behind which it declines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import numpy as np
import numpy.typing as npt
from attrs import frozen

from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.verifier.draw import Draw

CONSECUTIVE = 1280
"""Sizes that are asked one after the other, of all dimensions together."""
SCATTERED = 192
"""Others, up to ``BEYOND`` times the file's, of all dimensions together; as many of which two are related."""
BEYOND = 8
MOST_TOLD = 96
"""Numbers of the text that are asked."""
MOST_SYMBOLS = 3
"""Dimensions that are swept: those of a draw, where there are more."""
FEW_VALUES = 32
"""A word of at most so many different values is a decision and no size."""
RARE = 0.05
"""The share of the asked sizes up to which a decision is rare."""
STRAIGHT = 0.8
"""The share of neighbours that lie on a line where a word is a line."""
ASKED, MOST_ASKED = 0.5, 3
"""The share up to which a number that the text asks a word to equal says something, and of how many of them
sizes come first."""
RANKED, MOST_UNUSUAL = 3, 32
"""Of how many of the rarest the sizes come next, and of how many others they follow."""

Words = npt.NDArray[np.uint32]
Places = npt.NDArray[np.int64]
Sizes = tuple[int, ...]


@frozen
class Sweep:
    """Sizes that are asked: in ``runs`` one dimension rises by one from each to the next, in ``borders`` two
    by two from a number of the kernel's text, the others are ``apart``."""

    runs: tuple[tuple[Sizes, ...], ...]
    apart: tuple[Sizes, ...]
    borders: tuple[Sizes, ...] = ()

    @property
    def sizes(self) -> tuple[Sizes, ...]:
        return (*(sizes for run in self.runs for sizes in run), *self.apart, *self.borders)


def unusual_sizes(
    task: KernelTask, draw: Draw, sweep: Sweep, words: Words | None, asked: Sequence[int] = ()
) -> tuple[Mapping[str, int], ...]:
    """Sizes at which the host code decides as it rarely does, those of the rarest decisions first. ``words``:
    what it decides at each of the sweep's sizes, where that is known; ``asked``: numbers that the kernel's
    text asks something to equal."""
    if words is None or not len(words) or len(words) != len(sweep.sizes):
        return ()
    names = [symbol.name for symbol in task.symbols]
    numbers = draw.numbers(f"unusual sizes of {task.task_id}")
    return tuple(dict(zip(names, sizes, strict=True)) for sizes in unusual(sweep, words, numbers, asked))


def sweep_of(task: KernelTask, draw: Draw, told: Sequence[int] = ()) -> Sweep:
    """The sizes that are asked in a draw, those that a kernel's text has ``told`` and the next ones among
    them; none of a task of fixed sizes."""
    if not task.symbols:
        return Sweep((), ())
    numbers = draw.numbers(f"sweep of {task.task_id}")
    symbols = task.symbols
    swept = numbers.sample(range(len(symbols)), min(len(symbols), MOST_SYMBOLS))
    runs = [tuple(_run(symbols, place, CONSECUTIVE // len(swept), numbers)) for place in sorted(swept)]
    apart = [
        sizes
        for place in sorted(swept)
        for sizes in _scattered(symbols, place, SCATTERED // len(swept), numbers)
    ]
    others = (*apart, *_related(symbols, numbers), *_anywhere(symbols, numbers))
    borders = (sizes for place in sorted(swept) for sizes in _borders(symbols, place, told, numbers))
    return Sweep(tuple(runs), others, tuple(borders))


def _others(symbols: Sequence[Symbol], numbers: Random) -> list[int]:
    """The sizes of the other dimensions: few, which fit a case with data."""
    return [max(symbol.minimum, numbers.randint(2, 9)) for symbol in symbols]


def _run(symbols: Sequence[Symbol], place: int, count: int, numbers: Random) -> Iterator[Sizes]:
    sizes = _others(symbols, numbers)
    for size in range(symbols[place].minimum, symbols[place].minimum + count):
        yield (*sizes[:place], size, *sizes[place + 1 :])


def _scattered(symbols: Sequence[Symbol], place: int, count: int, numbers: Random) -> Iterator[Sizes]:
    symbol, sizes = symbols[place], _others(symbols, numbers)
    least = symbol.minimum + CONSECUTIVE // 4
    most = max(BEYOND * symbol.size, 4 * least)
    for _ in range(count):
        size = int(least * (most / least) ** numbers.random())
        yield (*sizes[:place], size, *sizes[place + 1 :])


def _borders(symbols: Sequence[Symbol], place: int, told: Sequence[int], numbers: Random) -> Iterator[Sizes]:
    sizes = _others(symbols, numbers)
    for size in numbers.sample(told, min(len(told), MOST_TOLD)):
        for end in (size, size + 1) if size >= symbols[place].minimum else ():
            yield (*sizes[:place], end, *sizes[place + 1 :])


def _related(symbols: Sequence[Symbol], numbers: Random) -> Iterator[Sizes]:
    """Sizes of which two are equal, or one a multiple of the other."""
    if len(symbols) < 2:
        return
    for _ in range(SCATTERED):
        sizes = _others(symbols, numbers)
        one, other = numbers.sample(range(len(symbols)), 2)
        size = numbers.randint(2, 96)
        sizes[one] = max(symbols[one].minimum, size)
        sizes[other] = max(symbols[other].minimum, RELATED[numbers.randrange(len(RELATED))](size))
        yield tuple(sizes)


def _anywhere(symbols: Sequence[Symbol], numbers: Random) -> Iterator[Sizes]:
    """Sizes of all magnitudes together, up to the file's."""
    for _ in range(SCATTERED if len(symbols) > 1 else 0):
        yield tuple(max(symbol.minimum, int(max(symbol.size, 2) ** numbers.random())) for symbol in symbols)


RELATED: tuple[Callable[[int], int], ...] = (
    lambda size: size, lambda size: size, lambda size: size + 1, lambda size: 2 * size,
    lambda size: 3 * size, lambda size: 4 * size,
)  # fmt: skip
"""How a size follows from another."""


def unusual(sweep: Sweep, words: Words, numbers: Random, asked: Sequence[int] = ()) -> list[Sizes]:
    """The largest sizes that are taken, and those of rare decisions and of words off their line: of the
    rarest ones first, those of numbers that the text asks for and of words that say yes or no before others,
    then of the rest in any order, so that many odd words hide none."""
    different = words[:, (words != words[:1]).any(axis=0)]
    columns = {column.tobytes(): column for column in np.ascontiguousarray(different.T)}
    own = {np.array(sizes, np.uint64).astype(np.uint32).tobytes() for sizes in zip(*sweep.sizes, strict=True)}
    groups = [group for column in columns.values() for group in _rare(column)]
    groups += [group for key, column in columns.items() if key not in own for group in _equal(column, asked)]
    start = 0
    for run in sweep.runs:
        end = start + len(run)
        groups += [
            group.moved(start) for column in columns.values() for group in _off_line(column[start:end])
        ]
        start = end
    given = sweep.sizes
    asked_for = list({group.places.tobytes(): group.places for group in groups if group.is_asked}.values())
    numbers.shuffle(asked_for)
    # The lightest of some: a case with data is small.
    of_asked = [
        min((given[int(numbers.choice(places))] for _ in range(RANKED)), key=math.prod)
        for places in asked_for[:MOST_ASKED]
    ]
    groups = [group for group in groups if not group.is_asked]
    groups.sort(key=lambda group: (group.is_plain, len(group.places)))
    rest = groups[RANKED:]
    numbers.shuffle(rest)
    chosen = (given[int(numbers.choice(group.places))] for group in (*groups[:RANKED], *rest[:MOST_UNUSUAL]))
    return list(dict.fromkeys((*_largest(sweep, words), *of_asked, *chosen)))


def _largest(sweep: Sweep, words: Words) -> Iterator[Sizes]:
    """The sizes of the text that the host code takes, and not the next one."""
    taken = words[len(words) - len(sweep.borders) :, 0].tolist()
    for sizes, is_taken, is_next in zip(sweep.borders[::2], taken[::2], taken[1::2], strict=True):
        if is_taken and not is_next:
            yield sizes


@frozen
class _Group:
    """Places in a sweep at which a word is unusual; ``is_plain`` where it has more than two values,
    ``is_asked`` where it has a number that the text asks it to equal."""

    places: Places
    is_plain: bool
    is_asked: bool = False

    def moved(self, start: int) -> _Group:
        return _Group(self.places + start, self.is_plain, self.is_asked)


def _rare(column: Words) -> Iterator[_Group]:
    """Where a word that decides has a value which few sizes give it."""
    values, inverse, counts = np.unique(column, return_inverse=True, return_counts=True)
    if len(values) <= FEW_VALUES:
        for value in np.flatnonzero(counts <= RARE * len(column)):
            yield _Group(np.flatnonzero(inverse == value), len(values) > 2)


def _equal(column: Words, asked: Sequence[int]) -> Iterator[_Group]:
    """Where a word has a number which the kernel's text asks for."""
    for number in asked:
        places = np.flatnonzero(column == number)
        if 0 < len(places) <= ASKED * len(column):
            yield _Group(places, False, True)


def _off_line(column: Words) -> Iterator[_Group]:
    """Where a word that mostly grows by as much for each size does not."""
    bends = np.flatnonzero(np.diff(np.diff(column.astype(np.int64))))
    if len(bends) and len(bends) <= (1 - STRAIGHT) * len(column):
        in_a_row = np.diff(bends) == 1  # a word that is off alone bends the line three times
        alone = bends[1:-1][in_a_row[:-1] & in_a_row[1:]] + 1
        if len(alone):
            yield _Group(alone, False)
