"""Numbers at which a kernel may do something else, and small cases about them.

What is special to a kernel stands in its text: a size that it asks for, a bound, a factor. What it chose for
the file's sizes, such as a tile, stands in its tiling data. A graph names its own eps and bounds. Cases at
and next to these, and of classes of sizes that tiles and cores make, are small and run one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, ValuesView
from itertools import pairwise
from random import Random

from attrs import frozen

from evokernel_core.capture.reference import Values
from evokernel_core.domain.graph import Graph, InputKind
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.task import EXACT, KernelTask, Symbol
from evokernel_core.twin.lexer import CppTokenKind, tokenize
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import SEED_BITS, SHORT, CasePlan, is_heavy, total_bytes
from evokernel_core.verifier.gates.mixture import narrowest

SMALL_CASES = 12
"""Cases about sizes; two thirds are near a number of the kernel's where it has any."""
LIMIT = 48 * 1024
"""Bytes of one of them on top of what the least sizes take; of one in four eight times as much."""
MOST_NUMBERS = 12
"""Numbers of one case of values."""
MOST_SIZE = 1 << 20
_SWALLOWING = 4.0
COMPARED = 4
_COMPARING = frozenset("=<>%&")
_PRIMES = (5, 7, 13, 29, 53, 97, 127, 131, 251, 257, 509, 521, 1021, 1031)
_UNITS = (8, 16, 32, 48, 64, 128, 256)
_ROUND = (10, 50, 100, 200, 250, 500, 1000)
_TRIES = 12
_ORDINARY = ("normal", "normal", "mixed", "ties", "wide")
_HUGE = {"float16": (13, 15), "bfloat16": (61, 120), "float32": (61, 120)}
"""Exponents of two beyond those at which squares are in range, for what rounds nothing."""


@frozen
class Landmarks:
    """Whole numbers and fractions that a kernel's text and tiling, and the graph, have."""

    sizes: tuple[int, ...] = ()
    """What is compared stands here several times, since it is drawn as often."""
    values: tuple[float, ...] = ()
    own_values: tuple[float, ...] = ()
    """Those of the graph."""


def landmarks_of(graph: Graph, source: KernelSource | None) -> Landmarks:
    """What a graph and a kernel's text name; 0 and 1 are no landmarks."""
    wholes: dict[int, int] = {}
    fractions: set[float] = set()
    for text in source.files.values() if source is not None else ():
        for before, token in pairwise(tokenize(text)):
            value = _number(token.text) if token.kind is CppTokenKind.NUMBER else None
            if isinstance(value, int) and 1 < value <= MOST_SIZE:
                wholes[value] = max(wholes.get(value, 1), COMPARED if before.text in _COMPARING else 1)
            if isinstance(value, float) and _is_told(value):
                fractions.add(value)
    args = [(node.args, dict(node.kwargs).values()) for node in graph.nodes]
    own = {value for value in _constants(args) if _is_told(value)}
    sizes = [value for value in sorted(wholes) for _ in range(wholes[value])]
    return Landmarks(tuple(sizes), tuple(sorted(fractions - own)), tuple(sorted(own)))


def _is_told(value: float) -> bool:
    return math.isfinite(value) and 1e-37 < abs(value) < 1e37 and abs(value) != 1.0


def _number(text: str) -> int | float | None:
    """A literal of C++, None for other text."""
    plain = text.replace("'", "").lower()
    is_hex = plain.startswith("0x")
    try:
        if is_hex or not any(sign in plain for sign in ".ef"):
            return int(plain.rstrip("ulz"), 0)
        return float(plain.rstrip("fl"))
    except ValueError:
        return None


def _constants(args: object) -> Iterator[float]:
    """The numbers among a node's arguments."""
    if isinstance(args, list | tuple | ValuesView):
        for arg in args:
            yield from _constants(arg)
    elif isinstance(args, int | float) and not isinstance(args, bool):
        yield float(args)


def small_cases(
    task: KernelTask, draw: Draw, known: Landmarks, tiling: Sequence[int], cores: int
) -> tuple[CasePlan, ...]:
    """Cases at and next to the landmarks, each of a few thousand elements: of values about the numbers that
    are named, of values whose squares are out of range, of inputs near each other, and of sizes.
    ``tiling``: words of the tiling data at the file's sizes; ``cores``: how many the device has."""
    numbers = draw.numbers(f"landmarks of {task.task_id}")
    told = [word for word in tiling if 1 < word <= MOST_SIZE]
    hows = enumerate(_values(task, known, numbers))
    plans = [(_few(task, numbers, long=place % 2), how) for place, how in hows]
    if task.symbols:
        named = (*known.sizes, *told, *told)
        plans += [
            (_sizes(task, named if place % 3 else (), cores, numbers), numbers.choice(_ORDINARY))
            for place in range(SMALL_CASES)
        ]
    return tuple(
        CasePlan(tuple(sizes.items()), numbers.getrandbits(SEED_BITS), how, 1, _is_beyond(task, sizes))
        for sizes, how in plans
        if sizes is not None
    )


def _values(task: KernelTask, known: Landmarks, numbers: Random) -> Iterator[str]:
    """How inputs are drawn in the cases of values."""
    wholes = [float(size) for size in dict.fromkeys(known.sizes)]
    named = _some(known.values, numbers) or _some(wholes, numbers)
    for chosen in (named, _some(known.own_values, numbers), named):
        if chosen:
            yield str(Values("normal", near=chosen))
    large = [value for value in known.values if abs(value) >= _SWALLOWING]
    if large and narrowest(task) == "float16":
        # Subnormal numbers are few: in one case all are of the magnitude that a sum with the number swallows.
        exponent = round(math.log2(abs(numbers.choice(large)))) - 20
        yield str(Values("normal", min(max(exponent, -18), -1)))
    if all(node.op.split(".")[1] in EXACT for node in task.graph.nodes):
        yield str(Values(numbers.choice(("normal", "uniform")), numbers.randint(*_HUGE[narrowest(task)])))
    specs = [o.spec for o in task.graph.inputs if o.kind is InputKind.TENSOR and "float" in o.spec.dtype]
    if len({(spec.dtype, spec.shape) for spec in specs}) < len(specs):
        yield "alike"


def _some(pool: Sequence[float], numbers: Random) -> tuple[float, ...]:
    return tuple(numbers.sample(pool, min(len(pool), MOST_NUMBERS)))


def _is_beyond(task: KernelTask, sizes: Mapping[str, int]) -> bool:
    return any(sizes[symbol.name] > symbol.size for symbol in task.symbols)


def _few(task: KernelTask, numbers: Random, *, long: int) -> dict[str, int] | None:
    """Sizes of many short rows, or of few ``long`` ones; the file's where these are fixed and light."""
    if not task.symbols:
        return {} if total_bytes(task, {}) <= 8 * LIMIT and not is_heavy(task, {}) else None
    sizes = {symbol.name: max(symbol.minimum, numbers.randint(5, 9)) for symbol in task.symbols}
    if long and len(task.symbols) > 1:
        sizes[task.symbols[0].name] = max(task.symbols[0].minimum, numbers.randint(13, 24))
    for symbol in reversed(task.symbols) if long else task.symbols:
        grown = {**sizes, symbol.name: max(symbol.minimum, numbers.randint(90, 130) << long)}
        if _fits(task, grown, LIMIT):
            sizes = grown
    return sizes


def _sizes(task: KernelTask, named: Sequence[int], cores: int, numbers: Random) -> dict[str, int] | None:
    """One size near a landmark, or of a class, or the product of two near one; others short, or of a class.
    None where that takes too long whatever is drawn."""
    limit = LIMIT * (8 if numbers.randrange(4) == 0 else 1)
    for _ in range(_TRIES):
        given = numbers.choice(task.symbols)
        sizes = {
            symbol.name: max(
                symbol.minimum,
                _of_class(symbol, cores, numbers) if numbers.randrange(3) == 0 else numbers.choice(SHORT),
            )
            for symbol in task.symbols
        }
        size = _near(numbers.choice(named), numbers) if named else _of_class(given, cores, numbers)
        if named and len(task.symbols) > 1 and numbers.randrange(4) == 0:
            other = numbers.choice([symbol for symbol in task.symbols if symbol is not given])
            sizes[other.name] = max(other.minimum, numbers.choice((1, 2, 3, 4)))
            size = size // sizes[other.name]
        sizes[given.name] = max(size, given.minimum)
        if _fits(task, sizes, limit):
            return sizes
        least = numbers.choice((1, 1, 2, 3))
        short = {s.name: max(s.minimum, least) for s in task.symbols if s is not given}
        if _fits(task, {**sizes, **short}, limit):
            return {**sizes, **short}
    return None


def _near(landmark: int, numbers: Random) -> int:
    """The number, or next to it, a multiple or a fraction of it."""
    factor = numbers.choice((1, 1, 1, 2, 3, 5, 0.5))
    return int(landmark * factor) + numbers.choice((0, 0, 0, 1, -1, 8))


_CLASSES: tuple[Callable[[Symbol, int, Random], int], ...] = (
    lambda _, __, numbers: 3 * 2 ** numbers.randrange(1, 10),
    lambda _, __, numbers: numbers.choice(_PRIMES),
    lambda _, cores, numbers: cores * numbers.choice((1, 1, 2, 3)) + numbers.choice((-1, 0, 1)),
    lambda _, __, numbers: numbers.choice(_ROUND) * numbers.choice((1, 1, 2, 3)),
    lambda symbol, _, numbers: symbol.size + numbers.choice((-1, 1, 8, 16, 64, -symbol.size // 2)),
    lambda _, __, numbers: numbers.choice((1, 2)),
    *[lambda _, __, numbers: _aligned(numbers)] * 3,
)
"""Sizes that tiles, cores, or the file's size make: three times a power of two, primes, about the cores, as
people write them, about the file's, the least, and multiples of what is aligned or beside those."""


def _of_class(symbol: Symbol, cores: int, numbers: Random) -> int:
    return numbers.choice(_CLASSES)(symbol, cores, numbers)


def _aligned(numbers: Random) -> int:
    return numbers.choice(_UNITS) * numbers.choice((1, 2, 3, 5, 7, 9)) + numbers.choice((0, 0, 0, 1, -1, 8))


def _fits(task: KernelTask, sizes: Mapping[str, int], limit: int) -> bool:
    least = total_bytes(task, {symbol.name: symbol.minimum for symbol in task.symbols})
    return total_bytes(task, sizes) <= least + limit and not is_heavy(task, sizes)
