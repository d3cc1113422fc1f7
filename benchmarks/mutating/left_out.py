"""Changes that leave something out: a value that is not set, bits, the last elements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.mutating.changes import float_statements, mutant, put
from benchmarks.mutating.mutant import PLAIN, WHOLE, Aim, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import (
    Statement,
    behind,
    instead,
    statements,
    with_member,
    with_tiling,
    with_unset,
)
from evokernel_core.targets.ascendc.source import KERNEL, TILING

WRONG = 3
"""What an undefined value is set to where the oracle looks."""


_WIDE = r"const (?:u?int64_t \w+ = |uint32_t \w+ = static_cast<uint32_t>)([^;?]+);"
"""Constants of 64 bits, and those of 32 bits that something wider is converted to."""

_BYTES = re.compile(r"static_cast<uint32_t>\(([\w.]+(?: \* [\w.]+)*?) \* sizeof\((\w+)\)\)")
"""The bytes of so many elements of a type."""


def integer_width(subject: Subject) -> Iterator[Mutant]:
    """A variable of 64 bits, or an index, that is held in fewer."""
    text = subject.source.files[KERNEL]
    places = range(len(subject.task.symbols))
    aims = (
        PLAIN,
        *WHOLE,
        *(Aim(sizes=((place, 1500),)) for place in places),
        *(
            Aim(sizes=tuple((other, size if other == place else 3) for other in places))
            for size in (300, 70_000)
            for place in places
        ),
    )
    for match in re.finditer(_WIDE, text):
        for narrow in ("uint8_t", "uint16_t", "int16_t"):
            made = match[0].replace(match[1], f"(static_cast<{narrow}>({match[1]}))")
            yield mutant(
                Kind.WIDTH,
                subject,
                f"{match[0].split()[2]} as {narrow}",
                put(subject.source, match.start(), match.end(), made),
                aims,
            )


def undefined(subject: Subject) -> Iterator[Mutant]:
    """A value that nothing sets: new members, locals and tiling fields that are added to a value, starts that
    are left out."""
    yield from _added_values(subject)
    yield from _missing_starts(subject)


def _added_values(subject: Subject) -> Iterator[Mutant]:
    for item in list(float_statements(subject))[-3:]:

        def added(name: str, item: Statement = item) -> str:
            value = f"static_cast<half>({name})" if item.dtype == "half" else name
            return f"Adds({item.target}, {item.target}, {value}, {item.count});"

        source = behind(subject.source, item, added("bias_"))
        yield mutant(
            Kind.UNDEFINED,
            subject,
            f"a member that nothing sets, behind {item.op}",
            with_member(source, "float bias_;"),
            (PLAIN,),
            with_member(source, f"float bias_ = {WRONG};"),
        )
        yield mutant(
            Kind.UNDEFINED,
            subject,
            f"a local that nothing sets, behind {item.op}",
            behind(subject.source, item, "float bias;", added("bias")),
            (PLAIN,),
            behind(subject.source, item, f"float bias = {WRONG};", added("bias")),
        )
        source = behind(subject.source, item, added("tiling_.bias"))
        yield mutant(
            Kind.UNDEFINED,
            subject,
            f"a tiling field that nothing sets, behind {item.op}",
            with_unset(source, "float bias;"),
            (PLAIN,),
            with_tiling(source, "float bias;", f"tiling.bias = {WRONG};"),
        )


def _missing_starts(subject: Subject) -> Iterator[Mutant]:
    source, text = subject.source, subject.source.files[KERNEL]
    for match in re.finditer(r"\n( +)(u?int\d+_t) (\w+) = 0;", text):
        yield mutant(
            Kind.UNDEFINED,
            subject,
            f"{match[3]} without its start",
            put(source, match.start(), match.end(), f"\n{match[1]}{match[2]} {match[3]};"),
            (PLAIN,),
            put(source, match.start(), match.end(), f"\n{match[1]}{match[2]} {match[3]} = {WRONG};"),
        )
    for item in statements(text):
        if item.op == "Duplicate":
            yield mutant(
                Kind.UNDEFINED,
                subject,
                f"{item.target} is not filled",
                instead(source, item, ";"),
                (PLAIN,),
                instead(
                    source,
                    item,
                    f"Duplicate({item.target}, static_cast<{item.dtype}>({WRONG * 1000}), {item.count});",
                ),
            )
    for match in re.finditer(r"\n +tiling\.(\w+) = [^;]+;", subject.source.files[TILING]):
        made = subject.source.files[TILING]
        set_to = made[: match.start()] + f"\n    tiling.{match[1]} = {WRONG};" + made[match.end() :]
        yield mutant(
            Kind.UNDEFINED,
            subject,
            f"tiling.{match[1]} is not set",
            source.with_files({TILING: made[: match.start()] + made[match.end() :]}),
            (PLAIN,),
            source.with_files({TILING: set_to}),
        )


def dropped_tail(subject: Subject) -> Iterator[Mutant]:
    """The last elements are not computed, or not copied."""
    source, text = subject.source, subject.source.files[KERNEL]
    odd = tuple(
        Aim(
            sizes=tuple(
                (i, max(symbol.size - 1 - symbol.size % 2, symbol.minimum, 1))
                for i, symbol in enumerate(subject.task.symbols)
                if i == only or only < 0
            )
        )
        for only in (-1, *range(len(subject.task.symbols)))
    )
    for item in statements(text):
        for unit in (8, 64):
            cut = f"({item.count} > {unit} ? ({item.count}) / {unit} * {unit} : {item.count})"
            arguments = ", ".join((*item.arguments[:-1], cut))
            yield mutant(
                Kind.TAIL,
                subject,
                f"{item.op} of whole {unit}s",
                instead(source, item, f"{item.op}({arguments});"),
                odd,
            )
    for match in _BYTES.finditer(text):
        for unit in (2, 16):
            cut = f"({match[1]} > {unit} ? ({match[1]}) / {unit} * {unit} : {match[1]})"
            yield mutant(
                Kind.TAIL,
                subject,
                f"copies of {match[1]} elements, whole {unit}s",
                put(source, match.start(), match.end(), f"static_cast<uint32_t>({cut} * sizeof({match[2]}))"),
                odd,
            )
    for match in re.finditer(r"if \((tail\d*) > 0\)", text):
        yield mutant(
            Kind.TAIL,
            subject,
            "no tail of up to 8",
            put(source, match.start(), match.end(), f"if ({match[1]} > 8)"),
            odd,
        )
    for match in re.finditer(r"= (\w+ = )?CeilDiv\(([^,()]+), ([^,()]+)\);", subject.source.files[TILING]):
        made = f"= ({match[2]}) / ({match[3]}) > 0 ? ({match[2]}) / ({match[3]}) : 1;"
        header = subject.source.files[TILING]
        yield mutant(
            Kind.TAIL,
            subject,
            f"{match[2]} / {match[3]} rounded down",
            source.with_files({TILING: header[: match.start()] + made + header[match.end() :]}),
            odd,
        )
