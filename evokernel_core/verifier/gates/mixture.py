"""What draws are mixtures of: the classes of sizes and values, and how many verifications have each at least.

One table, which docs/cases.md shows and ``benchmarks/judge.py --draws`` counts; ``gates/cases.py`` draws
from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from attrs import field, frozen

from evokernel_core.capture.reference import Values, base_of
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.products import MATRIX_PRODUCTS

MILD = ("normal", "uniform", "ties", "signs")
"""How inputs may be drawn where a case asks for plain values; ``capture.reference`` says what they are."""
WIDE = ("wide", "scales", "large")
SHAPED = ("structured", "structured", "sorted", "rows")
MIXED = "mixed"
"""What every verification has: values of all magnitudes, so that no draw leaves one of them out."""
PEAKS = "peaks"
"""What every verification of a graph has that looks for largest or least elements (``ORDERS``)."""
ORDERS = frozenset(
    """amax amin max min argmax argmin aminmax sort topk cummax cummin median kthvalue max_pool2d_with_indices
    max_pool3d_with_indices""".split()  # noqa: SIM905
)
MANY = 64
"""Sizes up to here are shorter than a vector of float32; larger ones take several."""
LARGEST_WHOLE = 16 * 1024**2
"""Bytes of a task whose file's sizes, and somewhat larger ones, are compared in whole."""
ROUND = 100
"""A size that people write: even, no power of two, and of no alignment that a tile has."""


@frozen
class Magnitudes:
    """The exponents of two of a class, from and to, for each dtype of floats."""

    exponents: Mapping[str, tuple[int, int]]
    bases: tuple[str, ...]
    is_offset: bool = False

    def drawn(self, dtype: str, limits: tuple[int, int], numbers: Random) -> Values:
        """Values of the class for inputs whose narrowest dtype this is, within the graph's limits."""
        exponent = numbers.randint(*self.exponents.get(dtype, self.exponents["float32"]))
        exponent = min(max(exponent, limits[0]), limits[1])
        base = numbers.choice(self.bases)
        return Values(base, offset=exponent) if self.is_offset else Values(base, scale=exponent)


TINY = Magnitudes({"float32": (-40, -20), "bfloat16": (-40, -20), "float16": (-18, -8)}, MILD)
"""Squares are in range, of float16 in the wider type; a constant of one or more that comes and goes takes all
digits, in float16 also where it does so in float32, and where a norm's eps leaves a thousand of it."""
LARGE = Magnitudes({"float32": (24, 60), "bfloat16": (24, 60), "float16": (11, 13)}, MILD)
"""Beyond what a float holds as a whole number, sums of squares being in range; of float16 up to its end."""
OFFSET = Magnitudes(
    {"float32": (8, 11), "bfloat16": (2, 4), "float16": (4, 7)}, ("normal", "uniform", "ties"), is_offset=True
)
"""Means so far beside their spread that a difference of squares has no digit left, and one of values has
those that are asked for."""


Holds = Callable[[KernelTask, Mapping[str, int], str], bool]


_ATTENTION = "scaled_dot_product_attention"
LIMITS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("sin", "cos", "tan"), (-40, 12)),
    **dict.fromkeys(("fmod", "remainder", "floor_divide"), (0, 20)),
    _ATTENTION: (-40, 3),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh"), (-40, 6)),
}
"""Operations that keep no digits beyond some magnitude, by the exponents of two that they are asked at: the
vector unit's angles end at 65,504 by its documentation, and a remainder is 0 or all of the divisor where the
other number has no digits of its size. Of attention the scores' last bit decides which key is taken where
they are all large, and in half types they have no number. Of gates it decides on which side they are, where
the terms of their sums are large and cancel."""


def limits_of(task: KernelTask) -> tuple[int, int]:
    """The exponents of two between which a graph keeps digits."""
    names = [node.op.split(".")[1] for node in task.graph.nodes]
    names += [_ATTENTION] if _has_half_scores(task) else []
    limits = [LIMITS[name] for name in names if name in LIMITS]
    lows, highs = zip((-127, 127), *limits, strict=True)
    return max(lows), min(highs)


def _has_half_scores(task: KernelTask) -> bool:
    """Whether a softmax is taken of products of half types, as attention that is written out does."""
    behind: set[str] = set()
    for node in task.graph.nodes:
        is_behind = any(ref.name in behind for ref in node.operands())
        if is_behind and node.op in _SOFTMAX and narrowest(task) in _HALF_TYPES:
            return True
        if is_behind or node.op in MATRIX_PRODUCTS:
            behind.add(node.name)
    return False


_SOFTMAX = frozenset(("aten._softmax.default", "aten._log_softmax.default"))
_HALF_TYPES = ("float16", "bfloat16")


@frozen
class Class:
    """A class of cases: the least share of verifications that have it in a task which can, and whether a
    case is one, by its sizes and the file's, or by how inputs are drawn (``is_of_values``); and of which
    tasks it is asked. An author ``is_told`` of it but where it is a single size."""

    name: str
    floor: float
    holds: Holds
    applies: Callable[[KernelTask], bool] = lambda task: True
    is_of_values: bool = field(default=False, kw_only=True)
    is_told: bool = field(default=True, kw_only=True)


def _sizes(holds: Callable[[int, Symbol], bool], quantifier: Callable[[Iterator[bool]], bool] = any) -> Holds:
    return lambda task, sizes, _: quantifier(holds(sizes[symbol.name], symbol) for symbol in task.symbols)


def _values(*bases: str) -> Holds:
    return lambda task, sizes, how: how in bases


def is_power(size: int) -> bool:
    return size & (size - 1) == 0


def _is_even(size: int, symbol: Symbol) -> bool:
    return MANY < size < symbol.size and size % 2 == 0 and not is_power(size)


def _is_beyond(size: int, symbol: Symbol) -> bool:
    return size > symbol.size


def _has_powers(task: KernelTask) -> bool:
    return any(symbol.size > 2 * MANY for symbol in task.symbols)


def _is_modest(task: KernelTask) -> bool:
    sizes = task.sizes
    nbytes = sum(operand.spec.nbytes(sizes) for operand in task.graph.inputs) + sum(
        spec.nbytes(sizes) for spec in task.graph.output_specs()
    )
    return nbytes <= LARGEST_WHOLE


def _is_large(how: str) -> bool:
    return "*2^" in how and "*2^-" not in how


CLASSES: tuple[Class, ...] = (
    Class("least sizes", 1.0, _sizes(lambda size, symbol: size == symbol.minimum, all)),
    Class("size 100", 0.9, _sizes(lambda size, _: size == ROUND), is_told=False),
    Class("even, no power of two, above 64", 0.5, _sizes(_is_even), _has_powers),
    Class("the same, not 100", 0.3, _sizes(lambda size, symbol: _is_even(size, symbol) and size != ROUND),
          _has_powers, is_told=False),
    Class("power of two above 64, below the file's", 0.2,
          _sizes(lambda size, symbol: MANY < size < symbol.size and is_power(size)), _has_powers),
    Class("odd above 64", 0.9, _sizes(lambda size, _: size > MANY and size % 2 == 1), _has_powers),
    Class("a side of 64 or less beside a longer one", 0.9,
          lambda _, sizes, __: 1 < min(sizes.values()) <= MANY < max(sizes.values()),
          lambda task: len(task.symbols) > 1),
    Class("one size beyond the file's", 0.9, _sizes(_is_beyond)),
    Class("all sizes beyond the file's", 0.2, _sizes(_is_beyond, all), _is_modest),
    Class("the file's sizes", 1.0, lambda task, sizes, _: dict(sizes) == task.sizes, _is_modest),
    Class("all tiny", 1.0, lambda _, __, how: "*2^-" in how, is_of_values=True),
    Class("all large", 1.0, lambda _, __, how: _is_large(how), is_of_values=True),
    Class("far from 0 beside their spread", 1.0, lambda _, __, how: "+2^" in how, is_of_values=True),
    Class("of all magnitudes", 1.0, _values(MIXED), is_of_values=True),
    Class("integers of every width", 1.0,
          lambda _, __, how: base_of(how) in (*WIDE, MIXED) or _is_large(how), is_of_values=True),
    Class("zeros of both signs", 0.9,
          lambda _, __, how: base_of(how) in ("wide", "ties", MIXED), is_of_values=True),
    Class("structured, sorted or constant rows", 0.9, _values(*SHAPED), is_of_values=True),
    Class("few much larger than others, or of all scales", 0.9, _values(*WIDE), is_of_values=True),
)  # fmt: skip


@frozen
class Hints:
    """What may be special to a kernel: the whole numbers that its text asks something to be equal to, those
    that it compares or assigns otherwise, the others that stand there, words of its tiling data, how many
    cores the device has, and sizes at which an equation of its text holds."""

    equal: tuple[int, ...] = ()
    compared: tuple[int, ...] = ()
    named: tuple[int, ...] = ()
    tiling: tuple[int, ...] = ()
    cores: int = 1
    solved: tuple[int, ...] = ()


@frozen
class SizeClass:
    """A class of sizes of one dimension that a kernel may treat apart: how many of them a verification takes
    at first, the least share of verifications of a task of up to three symbols in which one has a size of it,
    and which they are. Where the class is of more sizes than are taken, all are as often as each other."""

    name: str
    most: int
    floor: float
    of: Callable[[Symbol, Hints, Random], Sequence[int]]
    leads: bool = False
    """Whether they are taken before all others."""


PRIMES_BELOW = (61, 127, 251, 509, 1021)
PRIMES_ABOVE = (67, 131, 257, 521, 1031)
_LONG, _LONG_UNIT = 4096, 64
_SIZES_AS_WRITTEN = (10, 50, 100, 200, 250, 500, 1000)
_UNITS = (8, 16, 32, 48, 64, 128, 256)


def _beside(size: int, numbers: Random) -> int:
    """Next to the number, or a multiple or a fraction of it."""
    return numbers.choice((size - 1, size + 1, size + 8, 2 * size, 3 * size, size // 2))


def _multiple_beyond(hints: Hints, numbers: Random) -> list[int]:
    """Multiples of a compared number just beyond a larger one."""
    known = (*hints.equal, *hints.compared)
    pairs = [(most, unit) for most in known for unit in known if 1 < unit < most]
    return [(most // unit + 1) * unit for most, unit in numbers.sample(pairs, min(len(pairs), 1))]


def _aligned(numbers: Random) -> int:
    return numbers.choice(_UNITS) * numbers.choice((1, 2, 3, 5, 7, 9)) + numbers.choice((0, 1, -1, 8))


def _long_aligned(numbers: Random) -> int:
    return _LONG + _LONG_UNIT * numbers.choice((1, 1, 2, 3, 5, 8, 11, 16))


SIZE_CLASSES: tuple[SizeClass, ...] = (
    SizeClass("a number that the kernel's text asks to be equal to", 4, 0.9,
              lambda _, hints, __: hints.equal, True),
    SizeClass("a multiple of 64 beyond 4,096", 1, 0.8,
              lambda _, __, numbers: (_long_aligned(numbers),), True),
    SizeClass("at which an equation of its text holds", 1, 0.8, lambda _, hints, __: hints.solved, True),
    SizeClass("another number that its text compares or assigns", 3, 0.4,
              lambda _, hints, __: hints.compared),
    SizeClass("a word of its tiling data", 3, 0.5, lambda _, hints, __: hints.tiling),
    SizeClass("twice a word of its tiling data", 2, 0.35,
              lambda _, hints, __: [2 * word for word in hints.tiling]),
    SizeClass("one core more, one fewer, one more than twice the cores", 3, 0.9,
              lambda _, hints, __: (hints.cores + 1, hints.cores - 1, 2 * hints.cores + 1), True),
    SizeClass("twice the cores", 1, 0.35, lambda _, hints, __: (2 * hints.cores,), True),
    SizeClass("the prime below a power of two", 1, 0.2, lambda _, __, numbers: numbers.choices(PRIMES_BELOW)),
    SizeClass("the prime above a power of two", 1, 0.2, lambda _, __, numbers: numbers.choices(PRIMES_ABOVE)),
    SizeClass("a multiple of 16, no power of two", 1, 0.35,
              lambda _, __, numbers: (16 * numbers.choice((3, 5, 7, 9)),)),
    SizeClass("next to one of those numbers, or a multiple", 1, 0.8,
              lambda _, hints, numbers: [
                  _beside(size, numbers)
                  for size in (*hints.equal, *hints.compared, *hints.tiling) for __ in range(2)
              ]),
    SizeClass("even, below 64", 0, 0.0, lambda _, __, numbers: (2 * numbers.choice((3, 5, 6, 7, 9, 11)),)),
    SizeClass("a multiple of a compared number beyond another", 0, 0.0,
              lambda _, hints, numbers: _multiple_beyond(hints, numbers)),
    SizeClass("another number of the text", 0, 0.0, lambda _, hints, __: hints.named),
    SizeClass("as many as the cores, or a multiple", 0, 0.0,
              lambda _, hints, numbers: (hints.cores * numbers.choice((1, 1, 2, 3)),)),
    SizeClass("about the file's", 0, 0.0, lambda symbol, _, numbers: (
                  symbol.size + numbers.choice((-1, 1, 8, 16, 64, -symbol.size // 2)),)),
    SizeClass("as people write it", 0, 0.0, lambda _, __, numbers: numbers.choices(_SIZES_AS_WRITTEN)),
    SizeClass("three times a power of two", 0, 0.0,
              lambda _, __, numbers: (3 * 2 ** numbers.randrange(1, 10),)),
    SizeClass("aligned, or next to that", 0, 0.0, lambda _, __, numbers: (_aligned(numbers),)),
)  # fmt: skip


def told(task: KernelTask) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The classes of sizes, and those of values, in which an author's kernel of a task is compared: names
    alone, nothing of how often or with which seed."""
    known = [each for each in CLASSES if each.is_told and each.applies(task)]
    sizes = (
        *(each.name for each in known if not each.is_of_values),
        *(each.name for each in SIZE_CLASSES),
    )
    return sizes if task.symbols else (), tuple(each.name for each in known if each.is_of_values)


def narrowest(task: KernelTask) -> str:
    """The dtype of the inputs of floats that holds the least range, ``float32`` where there are none."""
    dtypes = {operand.spec.dtype for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR}
    return next((dtype for dtype in ("float16", "bfloat16") if dtype in dtypes), "float32")


def magnitudes(task: KernelTask, numbers: Random) -> list[str]:
    """One case each that is wholly tiny, wholly large, and far from 0."""
    low, high = limits_of(task)
    dtype, limits = narrowest(task), (low, min(high, _summed(task)))
    return [str(choice.drawn(dtype, limits, numbers)) for choice in (TINY, LARGE, OFFSET)]


def _summed(task: KernelTask) -> int:
    """The exponent of two at which the squares of all elements of the largest input may be summed a thousand
    times over: what is computed of it may have more elements, and right kernels sum about another point."""
    counts = (math.prod(operand.spec.sizes(task.sizes)) for operand in task.graph.inputs)
    return (_LAST_EXPONENT - _ROOM - max(counts, default=1).bit_length()) // 2


_LAST_EXPONENT, _ROOM = 127, 10
"""Of float32 and bfloat16, and the bits that are left below it."""


def even_size(symbol: Symbol, most: int, numbers: Random) -> int:
    """An even number that is no power of two, of some alignment, above ``MANY`` where ``most`` is so large.
    Magnitudes are as often as each other."""
    least = max(symbol.minimum, MANY + 1 if most > MANY + 2 else 6)
    unit = numbers.choice((2, 4, 8, 16, 32))
    size = int(least * (max(most, least) / least) ** numbers.random())
    for step in (unit, 2):
        result = (size // step | 1) * step
        for candidate in (result, result - 2 * step, result + 2 * step):
            if least <= candidate <= most and not is_power(candidate):
                return candidate
    return max(min(size, most), symbol.minimum)
