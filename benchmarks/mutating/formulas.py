"""Mutations of a task's formula, written as kernels by our own author: values that pass through a scale, a
clip, an offset or fewer bits on the way in, and the table's formulas that lose figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.mutating.mutant import VALUES, WHOLE, Aim, Kind, Mutant
from benchmarks.mutating.subjects import Author, Subject

_FLOATS = {"scale": ("({0} * 1e32 * 1e-32)", "({0} * 1e-38 * 1e38)"),
           "clip": ("torch.clamp({0}, -2500, 2500)", "torch.clamp({0}, -200, 200)"),
           "offset": ("({0} + 192 - 192)", "({0} - 5000 + 5000)")}  # fmt: skip
_HALVES = {"scale": ("({0} * 256 * 0.00390625)",), "clip": ("torch.clamp({0}, -100, 100)",),
           "offset": ("({0} + 64 - 64)",)}  # fmt: skip
_SHORT = Aim(sizes=((0, 3), (1, 5)))


def mutants(subject: Subject, author: Author) -> Iterator[Mutant]:
    """The mutants of a subject's formula that our author can write as one kernel of the same interface."""
    row = subject.row
    for formula in row.lossy:
        aims = WHOLE if row.kind == Kind.WIDTH else (*VALUES, _SHORT)
        yield from _mutant(subject, author, Kind(row.kind), formula, aims)
    name, item = next(iter(row.inputs.items()))
    if item.dtype.startswith("int"):
        return
    for kind, forms in (_HALVES if item.dtype == "float16" else _FLOATS).items():
        for form in forms:
            formula = re.sub(rf"\b{name}\b(?!\.shape)", form.format(name), row.formula)
            yield from _mutant(subject, author, Kind(kind), formula, VALUES)


def _mutant(
    subject: Subject, author: Author, kind: Kind, formula: str, aims: tuple[Aim, ...]
) -> Iterator[Mutant]:
    source = author.kernel_of(subject, formula)
    if source is not None and source.source_id != subject.source.source_id:
        yield Mutant(kind, subject.name, f"formula {formula}", source, aims)
