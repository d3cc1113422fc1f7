"""Changes of values: a scale and its inverse, a clip, an offset, a factor for a class of sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.mutating.changes import float_statements, literal, mutant
from benchmarks.mutating.mutant import VALUES, Aim, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import SCALAR, behind, instead, with_tiling
from evokernel_core.targets.ascendc.source import TILING

SCALES = {
    "float": ((1e32, 1e-32), (1e34, 1e-34), (1e-36, 1e36), (1e-40, 1e40)),
    "half": ((128.0, 1 / 128), (1 / 4096, 4096.0), (2048.0, 1 / 2048)),
}
CLIPS = {"float": (100.0, 2500.0, 20000.0), "half": (8.0, 100.0, 2500.0)}
OFFSETS = {"float": (16.0, 192.0, 4096.0, 100000.0), "half": (4.0, 64.0, 1000.0)}
GROWN = 1.125
LEAST_ROUNDED = 0.01
_WORDS = re.compile(r"\n +tiling\.(\w+) = ")


def scale(subject: Subject) -> Iterator[Mutant]:
    """A value times a constant, times its inverse."""
    for item in float_statements(subject):
        for up, down in SCALES[item.dtype]:
            lines = [
                f"Muls({item.target}, {item.target}, {literal(value, item.dtype)}, {item.count});"
                for value in (up, down)
            ]
            yield mutant(
                Kind.SCALE,
                subject,
                f"{item.op} * {up:g} * {down:g}",
                behind(subject.source, item, *lines),
                VALUES,
            )


def clip(subject: Subject) -> Iterator[Mutant]:
    """A value held within bounds."""
    for item in float_statements(subject):
        for most in CLIPS[item.dtype]:
            lines = [
                f"{op}({item.target}, {item.target}, {literal(bound, item.dtype)}, {item.count});"
                for op, bound in (("Mins", most), ("Maxs", -most))
            ]
            yield mutant(
                Kind.CLIP, subject, f"{item.op} within {most:g}", behind(subject.source, item, *lines), VALUES
            )


def offset(subject: Subject) -> Iterator[Mutant]:
    """A value plus a constant, minus the same."""
    for item in float_statements(subject):
        for by in OFFSETS[item.dtype]:
            lines = [
                f"Adds({item.target}, {item.target}, {literal(value, item.dtype)}, {item.count});"
                for value in (by, -by)
            ]
            yield mutant(
                Kind.OFFSET,
                subject,
                f"{item.op} + {by:g} - {by:g}",
                behind(subject.source, item, *lines),
                VALUES,
            )


def rounded_constant(subject: Subject) -> Iterator[Mutant]:
    """A constant of a formula with one figure."""
    for item in float_statements(subject):
        number = re.fullmatch(r"(-?\d+\.\d{3,}(?:e-?\d+)?)f", item.arguments[-2])
        if item.op in SCALAR and number:
            value = f"{float(number[1]):.1g}"
            if abs(float(value) / float(number[1]) - 1) < LEAST_ROUNDED:
                continue
            made = ", ".join((*item.arguments[:-2], literal(float(value), item.dtype), item.count))
            source = instead(subject.source, item, f"{item.op}({made});")
            yield mutant(Kind.FORMULA, subject, f"{number[1]} rounded to {value}", source, VALUES)


def size_class(subject: Subject) -> Iterator[Mutant]:
    """Wrong for a class of sizes alone: by a factor behind an instruction, or by one word of the tiling data,
    such as the number of cores."""
    symbols = subject.task.symbols
    sites = list(float_statements(subject))[-2:]
    for place, symbol in enumerate(symbols):
        for words, condition, example in _classes(f"sizes[{place}]", place, symbol.size):
            aims = (Aim(sizes=((place, example),)),)
            flagged = with_tiling(subject.source, "uint32_t special;", f"tiling.special = {condition};")
            for item in sites[-1:]:
                line = (
                    f"if (tiling_.special) {{ Muls({item.target}, {item.target}, "
                    f"{literal(GROWN, item.dtype)}, {item.count}); }}"
                )
                yield mutant(
                    Kind.SIZE,
                    subject,
                    f"{item.op} * {GROWN} where {symbol.name} is {words}",
                    behind(flagged, item, line),
                    aims,
                )
            for word in dict.fromkeys(_WORDS.findall(subject.source.files[TILING])):
                fewer = f"tiling.{word} -= {condition} && tiling.{word} > 1;"
                yield mutant(
                    Kind.SIZE,
                    subject,
                    f"{word} less by one where {symbol.name} is {words}",
                    with_tiling(subject.source, "uint32_t special;", fewer),
                    aims,
                )
    if len(symbols) > 1:
        beyond = " && ".join(f"sizes[{i}] > {symbol.size}" for i, symbol in enumerate(symbols))
        aims = (Aim(sizes=tuple((i, symbol.size * 5 // 4 + 1) for i, symbol in enumerate(symbols))),)
        flagged = with_tiling(subject.source, "uint32_t special;", f"tiling.special = {beyond};")
        for item in sites:
            line = (
                f"if (tiling_.special) {{ Muls({item.target}, {item.target}, "
                f"{literal(GROWN, item.dtype)}, {item.count}); }}"
            )
            yield mutant(
                Kind.SIZE,
                subject,
                f"{item.op} * {GROWN} where all sizes are beyond the file's",
                behind(flagged, item, line),
                aims,
            )


def _classes(size: str, place: int, given: int) -> Iterator[tuple[str, str, int]]:
    """Classes of one size: words, a condition, and a size of the class."""
    power = f"({size} & ({size} - 1)) == 0"
    if given > 100:
        yield (
            f"even, no power of two, from 66 to below {given}",
            f"({size} > 64 && {size} < {given} && {size} % 2 == 0 && !({power}))",
            100,
        )
    yield f"beyond {given}", f"({size} > {given})", given + given // 4 + 1
    yield "a multiple of 16, no power of two", f"({size} % 16 == 0 && !({power}))", 48
    yield "odd, beyond 64", f"({size} > 64 && {size} % 2 == 1)", 77
    yield "below 64, even", f"({size} < 64 && {size} % 2 == 0)", 12
