"""Numbers at which a kernel may do something else, and small cases about them.

What is special to a kernel stands in its text: a size that it asks for, a bound, a factor. What it chose for
the file's sizes, such as a tile, stands in its tiling data. A graph names its own eps and bounds. Cases at
and next to these, and of classes of sizes that tiles and cores make, are small and run one after the other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set, ValuesView
from enum import IntEnum
from itertools import combinations, islice
from random import Random

from attrs import frozen

from evokernel_core.capture.reference import Values
from evokernel_core.domain.graph import Graph, InputKind, Node
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.language import Language, SourceToken, TokenKind
from evokernel_core.domain.task import EXACT, KernelTask, Symbol
from evokernel_core.targets.sources import language_of
from evokernel_core.twin.lexer import tokenize
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.cases import (
    LONG_LIMIT,
    MULTIPLES,
    SEED_BITS,
    SHORT,
    SHORT_OTHERS,
    CasePlan,
    is_heavy,
    long_sizes,
    total_bytes,
    total_products,
)
from evokernel_core.verifier.gates.equations import solutions, whole
from evokernel_core.verifier.gates.indices import index_inputs
from evokernel_core.verifier.gates.mixture import MANY, SIZE_CLASSES, Hints, limits_of, narrowest
from evokernel_core.verifier.gates.room import Room
from evokernel_core.verifier.gates.texts import lexed_texts

SMALL_CASES, MANY_SYMBOLS, OF_DECKS = 18, 3, 14
"""Cases about sizes; of tasks of so many symbols so many are of decks beside all others, since fewer leave
some symbol out."""
UNUSUAL_CASES = 5
"""Cases of sizes at which the host code decides as it rarely does."""
LIMIT = 28 * 1024
"""Bytes of one of them on top of what the least sizes take."""
COMMON, MOST_COMMON = 3, 2
"""In how many cases a word of tiling data is common, and how many of them are taken."""
LEADING = 2
"""Sizes of leading classes that are tried for one of others."""
LONG, LONG_STEPS, LONG_EVERY = 1 << 16, 8, 4
"""The innermost size is beyond this by up to so many thirds of an octave: a loop over tiles then turns more
often than in any other case. In one of so many draws any size is just beyond it."""
EQUAL = (11, 90)
"""Of sizes that are as large as each other."""
MOST_AREA, MOST_RANGES, TRIES = 1 << 19, 3, 16
"""The largest number of a range that is looked at, how many ranges, and how often sizes are sought in one."""
ODD = (9, 11, 13, 15, 19, 21, 23, 27, 29, 31)
EVEN = (MULTIPLES, (6, 10, 12, 14, 18, 20, 22, 26, 28, 34, 44, 60))
MOST_LARGER = 3
LARGER = 8
"""So many of them may have so many times as much."""
MOST_NUMBERS = 12
"""Numbers of one case of values."""
MOST_SIZE = 1 << 20
_SWALLOWING = 4.0
_COMPARING = frozenset("=<>%&^")
_ORDINARY = ("normal", "normal", "mixed", "ties", "wide")
_HUGE = {"float16": (13, 15), "bfloat16": (113, 120), "float32": (113, 120)}
"""Exponents of two at the end of the range, for what multiplies no two values: what a kernel clips or
overflows anywhere before shows there."""
_MINUTE = {"bfloat16": (-120, -113), "float32": (-120, -113)}
"""The same at its beginning; of float16 all are drawn as tiny."""
_LARGEST = {"bfloat16": 126, "float32": 126}
"""Exponents at which some values are within a factor of two of the type's largest number, where at most one
operation computes with them: no order of several overflows on the way. Those of float16 are above."""
_TAILED = frozenset(("exp", "log1p", "logaddexp", "mish", "sigmoid", "silu", "softplus"))
"""Operations that have digits far on one side of 0, where a sum with one loses them."""
_TAIL = 4
"""The exponent of two from which on it has lost all."""
_SUMS = frozenset(("mean", "sum", "avg_pool2d"))
_ADDING = _SUMS | frozenset(("add", "sub", "rsub", "neg", "leaky_relu"))


@frozen
class Landmarks:
    """Whole numbers and fractions that a kernel's text and tiling, and the graph, have."""

    sizes: tuple[int, ...] = ()
    compared: tuple[int, ...] = ()
    """Those of them that something is compared with or set to."""
    equal: tuple[int, ...] = ()
    """Those of these that something is asked to be equal to."""
    values: tuple[float, ...] = ()
    own_values: tuple[float, ...] = ()
    """Those of the graph."""
    solved: tuple[int, ...] = ()
    """Sizes at which an equation of the text holds that mostly does not."""
    ranges: tuple[tuple[int, int], ...] = ()
    """Two numbers between which the text asks something to lie: a size, or a product of sizes."""


def landmarks_of(graph: Graph, source: KernelSource | None) -> Landmarks:
    """What a graph and a kernel's text name; 0 and 1 are no landmarks."""
    uses: dict[int, Use] = {}
    fractions: set[float] = set()
    for value, use in _named(source) if source is not None else ():
        if isinstance(value, float):
            fractions |= {value} if _is_told(value) else set()
        elif 1 < value <= MOST_SIZE:
            uses[value] = max(uses.get(value, Use.NAMED), use)
    args = [(node.args, dict(node.kwargs).values()) for node in graph.nodes]
    own = {value for value in _constants(args) if _is_told(value)}
    sizes, compared, equal = (
        tuple(sorted(value for value, use in uses.items() if use >= least)) for least in Use
    )
    solved = solutions(lexed_texts(source)) if source is not None else ()
    values = tuple(sorted(fractions - own)), tuple(sorted(own))
    ranges = tuple(sorted(set(_ranges(source)))) if source is not None else ()
    return Landmarks(sizes, compared, equal, *values, solved, ranges)


class Use(IntEnum):
    """What a text does with a whole number."""

    NAMED = 0
    COMPARED = 1
    EQUAL = 2


def _named(source: KernelSource) -> Iterator[tuple[int | float, Use]]:
    """The numbers of all texts of a kernel."""
    language = language_of(source.target)
    for name, text in source.files.items():
        yield from _literals(language.tokens(name, text), language)


def _ranges(source: KernelSource) -> Iterator[tuple[int, int]]:
    """Pairs of numbers beyond what every draw has that one condition compares with something."""
    for text in lexed_texts(source):
        tokens = tokenize(text)
        bound = 0
        for before, token, behind in zip(tokens, tokens[1:], tokens[2:], strict=False):
            if token.text in _ENDS:
                bound = 0
            value = whole(token)
            if (
                value is not None
                and MANY < value <= MOST_AREA
                and {before.text, behind.text} & {"<", ">", "="}
            ):
                if bound not in (0, value):
                    yield min(bound, value), max(bound, value)
                bound = value


def _literals(tokens: Sequence[SourceToken], language: Language) -> Iterator[tuple[int | float, Use]]:
    """The numbers of a text and the whole results of two next to each other, with what is done with them, on
    either side; what is done with a name counts for the number that it is set to."""
    row = [_NONE, _NONE, *tokens, _NONE, _NONE, _NONE]
    asked = {row[at].text for at in range(2, len(row) - 3) if _is_asked(row, at, at)}
    for at, token in enumerate(row):
        value = language.number(token.text) if token.kind is TokenKind.NUMBER else None
        if value is None:
            continue
        yield value, _use(row, at, at, asked)
        end = at + (3 if row[at + 1].text == row[at + 2].text == "<" else 2)
        sign = "".join(token.text for token in row[at + 1 : end])
        other = language.number(row[end].text) if row[end].kind is TokenKind.NUMBER else None
        if isinstance(value, int) and isinstance(other, int):
            use = _use(row, at, end, asked)
            yield from ((both, use) for both in _folded(value, sign, other))


def _use(row: Sequence[SourceToken], first: int, last: int, asked: Set[str]) -> Use:
    before, behind = row[first - 1].text[-1:], row[last + 1].text[-1:]
    is_set = before == "=" and row[first - 2].text in asked
    if is_set or _is_asked(row, first, last):
        return Use.EQUAL
    return Use.COMPARED if before in _COMPARING or behind in _COMPARING else Use.NAMED


def _is_asked(row: Sequence[SourceToken], first: int, last: int) -> bool:
    """Whether the tokens stand beside ``==``, ``!=``, ``^`` or ``case``."""
    while row[first - 1].text == "(" and row[last + 1].text == ")":
        first, last = first - 1, last + 1
    before = row[first - 2].text + row[first - 1].text
    behind = row[last + 1].text + row[last + 2].text
    if before[-2:] in _EQUALITY or "^" in (before[-1:], behind[:1]) or row[first - 1].text == "case":
        return True
    return behind in _EQUALITY and before[-1:] not in _MASKING


_EQUALITY = ("==", "!=")
_ENDS = (";", "{", "}", "|", "?", ",")
_MASKING = ("%", "&", "*", "/", "+", "-")
"""Behind these a number is no side of a comparison by itself."""
_NONE = SourceToken(TokenKind.PUNCTUATION, "", 0)


def _folded(left: int, sign: str, right: int) -> Iterator[int]:
    """What two whole numbers with a sign between them come to."""
    if sign in ("*", "+", "-"):
        yield {"*": left * right, "+": left + right, "-": left - right}[sign]
    elif sign == "<<" and right < MOST_SIZE.bit_length():
        yield left << right


def _is_told(value: float) -> bool:
    return math.isfinite(value) and 1e-37 < abs(value) < 1e37 and abs(value) != 1.0


def _constants(args: object) -> Iterator[float]:
    """The numbers among a node's arguments."""
    if isinstance(args, list | tuple | ValuesView):
        for arg in args:
            yield from _constants(arg)
    elif isinstance(args, int | float) and not isinstance(args, bool):
        yield float(args)


def small_cases(
    task: KernelTask,
    draw: Draw,
    known: Landmarks,
    tiling: Sequence[int],
    cores: int,
    unusual: Sequence[Mapping[str, int]] = (),
) -> tuple[CasePlan, ...]:
    """Cases at and next to the landmarks, each of a few thousand elements: of values about the numbers that
    are named, of values whose squares are out of range, of inputs near each other, and of sizes.
    ``tiling``: words of the tiling data; ``cores``: how many the device has; ``unusual``: sizes at which the
    host code decides as it rarely does, of which the first that are light are taken."""
    room = Room(task)
    numbers = draw.numbers(f"landmarks of {task.task_id}")
    hows = enumerate(_values(task, known, numbers))
    plans = [(_few(room, numbers, long=place % 2 or "columns" in how), how) for place, how in hows]
    hints = _hints(task, known, tiling, cores)
    light = (sizes for sizes in unusual if room.fits(sizes, LARGER * LIMIT))
    others = [
        *_equal(room, numbers),
        *_odd(room, numbers),
        *_even(room, numbers),
        *_long(task, numbers),
        *islice(light, UNUSUAL_CASES),
    ]
    count = SMALL_CASES - len(others) if len(task.symbols) < MANY_SYMBOLS else OF_DECKS
    plans += [(sizes, numbers.choice(_ORDINARY)) for sizes in _special_sizes(room, hints, numbers, count)]
    others += _in_ranges(room, known.ranges, numbers)
    plans += [(dict(sizes), "normal") for sizes in others]
    return tuple(
        CasePlan(tuple(sizes.items()), numbers.getrandbits(SEED_BITS), how, 1, _is_beyond(task, sizes))
        for sizes, how in plans
        if sizes is not None
    )


def _hints(task: KernelTask, known: Landmarks, tiling: Sequence[int], cores: int) -> Hints:
    """What sizes are chosen from: of a tiling what is none of the file's own sizes."""
    told = {1, cores, *known.equal, *(symbol.size for symbol in task.symbols)}
    words = [word for word in dict.fromkeys(tiling) if 1 < word <= MOST_SIZE and word not in told]
    compared = tuple(size for size in known.compared if size not in known.equal)
    named = tuple(size for size in known.sizes if size not in known.compared)
    solved = tuple(size for size in known.solved if size not in known.equal)
    return Hints(known.equal, compared, named, tuple(words), cores, solved)


def _values(task: KernelTask, known: Landmarks, numbers: Random) -> Iterator[str]:
    """How inputs are drawn in the cases of values: about numbers at which the graph keeps digits."""
    most = 2.0 ** limits_of(task)[1]
    values, own, wholes = (
        [float(value) for value in pool if abs(value) <= most]
        for pool in (known.values, known.own_values, dict.fromkeys(known.sizes))
    )
    named = _some(values, numbers) or _some(wholes, numbers)
    for base, chosen in (("normal", named), ("normal", _some(own, numbers)), ("columns", named)):
        if chosen:
            yield str(Values(base, near=chosen))
    large = [value for value in values if abs(value) >= _SWALLOWING]
    if large and narrowest(task) == "float16":
        # Subnormal numbers are few: in one case all are of the magnitude that a sum with the number swallows.
        exponent = round(math.log2(abs(numbers.choice(large)))) - 20
        yield str(Values("normal", min(max(exponent, -18), -1)))
    if any(node.op.split(".")[1] in _TAILED for node in task.graph.nodes):
        yield from (str(Values("uniform", offset=_TAIL, side=side)) for side in "<>")
    if all(_keeps_magnitude(node) for node in task.graph.nodes):
        dtype = narrowest(task)
        for exponents in (_HUGE, _MINUTE)[: 1 + (dtype in _MINUTE)]:
            yield str(Values(numbers.choice(("normal", "uniform")), numbers.randint(*exponents[dtype])))
        computing = [packet for node in task.graph.nodes if (packet := node.op.split(".")[1]) not in EXACT]
        if dtype in _LARGEST and len(computing) < 2 and not {*computing} & _SUMS:
            yield str(Values("normal", _LARGEST[dtype]))
    specs = [o.spec for o in task.graph.inputs if o.kind is InputKind.TENSOR and "float" in o.spec.dtype]
    if specs:
        yield "zeros"
    if len({(spec.dtype, spec.shape) for spec in specs}) < len(specs):
        yield "alike"


def _keeps_magnitude(node: Node) -> bool:
    """Whether a result is in range wherever its operands are, up to a constant."""
    packet = node.op.split(".")[1]
    if packet in ("mul", "div"):
        return isinstance(node.args[1], int | float)
    return packet in EXACT or packet in _ADDING


def _some(pool: Sequence[float], numbers: Random) -> tuple[float, ...]:
    return tuple(numbers.sample(pool, min(len(pool), MOST_NUMBERS)))


def _is_beyond(task: KernelTask, sizes: Mapping[str, int]) -> bool:
    return any(sizes[symbol.name] > symbol.size for symbol in task.symbols)


def _takes_long(task: KernelTask) -> bool:
    windows = any("_pool" in node.op for node in task.graph.nodes)
    return windows or total_products(task, task.sizes) > 0 or any(index_inputs(task, task.sizes))


def _long(task: KernelTask, numbers: Random) -> Iterator[dict[str, int]]:
    """The innermost size beyond what 16 bits count, as far beyond as is light, with the others small; in some
    draws another one just beyond. What takes work of its own for each element is asked just beyond alone:
    products, windows, and indices, which the scalar unit reads one by one."""
    steps = 0 if _takes_long(task) else LONG_STEPS
    longest = [2.0 ** (max(step - numbers.random(), 0.0) / 3) for step in range(steps, -1, -1)]
    asked = [(symbol.name, longest) for symbol in task.symbols[-1:]]
    if task.symbols and numbers.randrange(LONG_EVERY) == 0:
        asked.append((numbers.choice(task.symbols).name, longest[-1:]))
    for name, factors in asked:
        others = (numbers.randint(*SHORT_OTHERS), 1)
        light = (
            long_sizes(task, name, int(LONG * factor) + numbers.randint(1, 99), others) for factor in factors
        )
        yield from islice((sizes for sizes in light if sizes is not None), 1)


def _few(room: Room, numbers: Random, *, long: int) -> dict[str, int] | None:
    """Sizes of many short rows, or of few ``long`` ones; the file's where these are fixed and light."""
    if not room.task.symbols:
        return {} if total_bytes(room.task, {}) <= 8 * LIMIT and not is_heavy(room.task, {}) else None
    sizes = {symbol.name: max(symbol.minimum, numbers.randint(5, 9)) for symbol in room.task.symbols}
    if long and len(room.task.symbols) > 1:
        sizes[room.task.symbols[0].name] = max(room.task.symbols[0].minimum, numbers.randint(13, 24))
    for symbol in reversed(room.task.symbols) if long else room.task.symbols:
        grown = {**sizes, symbol.name: max(symbol.minimum, numbers.randint(90, 130) << long)}
        if room.fits(grown, LIMIT):
            sizes = grown
    return sizes


def telling_words(tilings: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Words of the tiling data of a verification's cases: those of the last, which is the largest, and those
    that several of different sizes have, as a tile of a fixed size."""
    common = Counter(word for words in tilings[:-1] for word in set(words) if word > 1)
    several = [word for word, count in common.most_common(MOST_COMMON) if count >= COMMON]
    return tuple(dict.fromkeys((*(tilings[-1] if tilings else ()), *several)))


def special_decks(task: KernelTask, hints: Hints, numbers: Random) -> dict[str, list[int]]:
    """Of each symbol the sizes that are tried, in order: of each class as many as the table says, two of
    leading classes for one of others, so that a symbol of few turns meets both, then the rest."""
    decks = {}
    for symbol in task.symbols:
        leading: list[int] = []
        first: list[int] = []
        rest: list[int] = []
        for class_ in SIZE_CLASSES:
            sizes = list(dict.fromkeys(class_.of(symbol, hints, numbers)))
            numbers.shuffle(sizes)
            (leading if class_.leads else first).extend(sizes[: class_.most])
            rest += sizes[class_.most :]
        numbers.shuffle(first)
        numbers.shuffle(rest)
        deck = dict.fromkeys([*_merged(leading, first, LEADING), *rest])
        decks[symbol.name] = [size for size in deck if size >= max(symbol.minimum, 2)]
    return decks


def _merged(leading: Sequence[int], others: Sequence[int], count: int) -> Iterator[int]:
    """``count`` of the first for each of the second, then what is left of either."""
    behind = iter(others)
    for number, size in enumerate(leading, 1):
        yield size
        if number % count == 0:
            yield from islice(behind, 1)
    yield from behind


def _special_sizes(room: Room, hints: Hints, numbers: Random, count: int) -> Iterator[dict[str, int]]:
    """Bindings in which one symbol after the other has the next of its special sizes, and the others one of
    theirs where that fits, or are short."""
    decks = special_decks(room.task, hints, numbers)
    larger = MOST_LARGER
    for number in range(count if room.task.symbols else 0):
        given = room.task.symbols[number % len(room.task.symbols)]
        sizes = {symbol.name: max(symbol.minimum, 1) for symbol in room.task.symbols}
        limit = LARGER * LIMIT if larger else LIMIT
        sizes[given.name] = _taken(room, decks[given.name], sizes, given, limit, numbers)
        is_larger = not room.fits(sizes, LIMIT)
        larger -= is_larger
        others = [symbol for symbol in room.task.symbols if symbol is not given]
        for symbol in numbers.sample(others, len(others)):
            deck = decks[symbol.name] if numbers.randrange(6) else []
            fits = limit if is_larger else LIMIT
            sizes[symbol.name] = _taken(room, deck, sizes, symbol, fits, numbers)
        if room.fits(sizes, LARGER * LIMIT):
            yield sizes


def _equal(room: Room, numbers: Random) -> Iterator[dict[str, int]]:
    """All sizes as large as each other."""
    size = numbers.randint(*EQUAL) if len(room.task.symbols) > 1 else 0
    while size > 1:
        sizes = {symbol.name: max(symbol.minimum, size) for symbol in room.task.symbols}
        if room.fits(sizes, LARGER * LIMIT):
            yield sizes
            return
        size = size * 3 // 4


def _odd(room: Room, numbers: Random) -> Iterator[dict[str, int]]:
    """All sizes odd: none is a whole number of blocks, and ordinary values show what the last one lacks."""
    sizes = {symbol.name: max(symbol.minimum | 1, numbers.choice(ODD)) for symbol in room.task.symbols}
    if sizes and room.fits(sizes, LARGER * LIMIT):
        yield sizes


def _even(room: Room, numbers: Random) -> Iterator[dict[str, int]]:
    """Each size is once a multiple of 16 that is no power of two, in as few cases as are light, and in one
    more all are even and below 64."""
    left = numbers.sample(room.task.symbols, len(room.task.symbols))
    while left:
        sizes = _filled(room, left, EVEN[0], _shortest(room.task, SHORT_OTHERS[0]), numbers)
        done = {name for name, size in sizes.items() if size in EVEN[0]} | {left[0].name}
        left = [symbol for symbol in left if symbol.name not in done]
        rest = [symbol for symbol in room.task.symbols if sizes[symbol.name] not in EVEN[0]]
        yield _filled(room, rest, EVEN[1], sizes, numbers)
    if room.task.symbols:
        symbols = numbers.sample(room.task.symbols, len(room.task.symbols))
        yield _filled(room, symbols, EVEN[1], _shortest(room.task, SHORT_OTHERS[0]), numbers)


def _shortest(task: KernelTask, size: int) -> dict[str, int]:
    return {symbol.name: max(symbol.minimum, size) for symbol in task.symbols}


def _filled(
    room: Room,
    symbols: Sequence[Symbol],
    pool: Sequence[int],
    sizes: Mapping[str, int],
    numbers: Random,
) -> dict[str, int]:
    """The sizes with those of the pool for the symbols one after the other, where the case stays light."""
    result = dict(sizes)
    for symbol in symbols:
        grown = {**result, symbol.name: max(symbol.minimum, numbers.choice(pool))}
        if room.fits(grown, LARGER * LIMIT):
            result = grown
    return result


def _in_ranges(room: Room, ranges: Sequence[tuple[int, int]], numbers: Random) -> Iterator[dict[str, int]]:
    """Each size, and the products of two and of all, between two numbers, with all others at their least."""
    least = {symbol.name: symbol.minimum for symbol in room.task.symbols}
    names = list(least)
    groups = {(name,) for name in names} | set(combinations(names, 2)) | {tuple(names)}
    for low, high in ranges[:MOST_RANGES]:
        for group in sorted(groups - {()}):
            for _ in range(TRIES):
                sizes, wanted = dict(least), numbers.uniform(low + 1, high)
                for place, name in enumerate(group):
                    share = numbers.uniform(0.3, 0.7) if place + 1 < len(group) else 1.0
                    sizes[name] = max(least[name], round(wanted**share))
                    wanted /= sizes[name]
                if low < math.prod(sizes[name] for name in group) < high:
                    break
            if total_bytes(room.task, sizes) <= total_bytes(room.task, least) + LONG_LIMIT and not is_heavy(
                room.task, sizes
            ):
                yield sizes


def _taken(
    room: Room,
    deck: list[int],
    sizes: Mapping[str, int],
    symbol: Symbol,
    limit: int,
    numbers: Random,
) -> int:
    """The first of the deck that fits, which leaves it; a short size, or the least, where none does."""
    for size in deck:
        if room.fits({**sizes, symbol.name: size}, limit):
            deck.remove(size)
            return size
    short = [size for size in SHORT if size >= symbol.minimum]
    fitting = [size for size in short if room.fits({**sizes, symbol.name: size}, limit)]
    return numbers.choice(fitting) if fitting else max(symbol.minimum, 1)
