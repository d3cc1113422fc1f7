"""What draws are mixtures of: the classes of sizes and values, and how many verifications have each at least.

One table, which docs/security.md shows and ``benchmarks/judge.py --draws`` counts; ``gates/cases.py`` draws
from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from attrs import frozen

from evokernel_core.capture.reference import Values, base_of
from evokernel_core.domain.graph import InputKind
from evokernel_core.domain.task import KernelTask, Symbol

MILD = ("normal", "uniform", "ties", "signs")
"""How inputs may be drawn where a case asks for plain values; ``capture.reference`` says what they are."""
WIDE = ("wide", "scales", "large")
SHAPED = ("structured", "structured", "sorted", "rows")
MIXED = "mixed"
"""What every verification has: values of all magnitudes, so that no draw leaves one of them out."""
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


TINY = Magnitudes({"float32": (-40, -16), "bfloat16": (-40, -16), "float16": (-18, -8)}, MILD)
"""Squares are in range, of float16 in the wider type; a constant of one or more that comes and goes takes all
digits, in float16 also where it does so in float32."""
LARGE = Magnitudes({"float32": (24, 60), "bfloat16": (24, 60), "float16": (11, 13)}, MILD)
"""Beyond what a float holds as a whole number, squares being in range; of float16 up to its end."""
OFFSET = Magnitudes(
    {"float32": (8, 11), "bfloat16": (2, 4), "float16": (4, 7)}, ("normal", "uniform", "ties"), is_offset=True
)
"""Means so far beside their spread that a difference of squares has no digit left, and one of values has
those that are asked for."""


Holds = Callable[[KernelTask, Mapping[str, int], str], bool]


LIMITS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("sin", "cos", "tan"), (-40, 12)),
    **dict.fromkeys(("fmod", "remainder", "floor_divide"), (0, 20)),
    "scaled_dot_product_attention": (-40, 3),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh"), (-40, 6)),
}
"""Operations that keep no digits beyond some magnitude, by the exponents of two that they are asked at: the
vector unit's angles end at 65,504 by its documentation, and a remainder is 0 or all of the divisor where the
other number has no digits of its size. Of attention the scores' last bit decides which key is taken where
they are all large, and in half types they have no number. Of gates it decides on which side they are, where
the terms of their sums are large and cancel."""


def _limits(task: KernelTask) -> tuple[int, int]:
    limits = [LIMITS[name] for node in task.graph.nodes if (name := node.op.split(".")[1]) in LIMITS]
    lows, highs = zip((-127, 127), *limits, strict=True)
    return max(lows), min(highs)


@frozen
class Class:
    """A class of cases: the least share of verifications that have it in a task which can, and whether a
    case is one, by its sizes and the file's, or by how inputs are drawn; and of which tasks it is asked."""

    name: str
    floor: float
    holds: Holds
    applies: Callable[[KernelTask], bool] = lambda task: True


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
    Class("size 100", 0.9, _sizes(lambda size, _: size == ROUND)),
    Class("even, no power of two, above 64", 0.5, _sizes(_is_even), _has_powers),
    Class("the same, not 100", 0.3, _sizes(lambda size, symbol: _is_even(size, symbol) and size != ROUND),
          _has_powers),
    Class("power of two above 64, below the file's", 0.2,
          _sizes(lambda size, symbol: MANY < size < symbol.size and is_power(size)), _has_powers),
    Class("odd above 64", 0.9, _sizes(lambda size, _: size > MANY and size % 2 == 1), _has_powers),
    Class("a side of 64 or less beside a longer one", 0.9,
          lambda _, sizes, __: 1 < min(sizes.values()) <= MANY < max(sizes.values()),
          lambda task: len(task.symbols) > 1),
    Class("one size beyond the file's", 0.9, _sizes(_is_beyond)),
    Class("all sizes beyond the file's", 0.2, _sizes(_is_beyond, all), _is_modest),
    Class("the file's sizes", 1.0, lambda task, sizes, _: dict(sizes) == task.sizes, _is_modest),
    Class("all tiny", 1.0, lambda _, __, how: "*2^-" in how),
    Class("all large", 1.0, lambda _, __, how: _is_large(how)),
    Class("far from 0 beside their spread", 1.0, lambda _, __, how: "+2^" in how),
    Class("of all magnitudes", 1.0, _values(MIXED)),
    Class("integers of every width", 1.0,
          lambda _, __, how: base_of(how) in (*WIDE, MIXED) or _is_large(how)),
    Class("zeros of both signs", 0.9, lambda _, __, how: base_of(how) in ("wide", "ties", MIXED)),
    Class("structured, sorted or constant rows", 0.9, _values(*SHAPED)),
    Class("few much larger than others, or of all scales", 0.9, _values(*WIDE)),
)  # fmt: skip


def narrowest(task: KernelTask) -> str:
    """The dtype of the inputs of floats that holds the least range, ``float32`` where there are none."""
    dtypes = {operand.spec.dtype for operand in task.graph.inputs if operand.kind is not InputKind.SCALAR}
    return next((dtype for dtype in ("float16", "bfloat16") if dtype in dtypes), "float32")


def magnitudes(task: KernelTask, numbers: Random) -> list[str]:
    """One case each that is wholly tiny, wholly large, and far from 0."""
    dtype, limits = narrowest(task), _limits(task)
    return [str(choice.drawn(dtype, limits, numbers)) for choice in (TINY, LARGE, OFFSET)]


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


def below_floor(task: KernelTask, deviations: Mapping[str, float]) -> list[str]:
    """The classes that fewer verifications have than their floor."""
    return [
        class_.name for class_ in CLASSES if class_.applies(task) and deviations[class_.name] < class_.floor
    ]


def shares(
    task: KernelTask, verifications: Sequence[Sequence[tuple[Mapping[str, int], str]]]
) -> dict[str, float]:
    """Of each class the share of verifications that have it; one is its cases' sizes and distributions."""
    return {
        class_.name: sum(any(class_.holds(task, *case) for case in cases) for cases in verifications)
        / len(verifications)
        for class_ in CLASSES
    }
