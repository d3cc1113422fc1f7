"""What the rules share: the type of a rule, and how a mutant is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.mutating.mutant import Aim, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import Statement, statements
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.targets.ascendc.source import KERNEL

Rule = Callable[[Subject], Iterator[Mutant]]
FLOATS = ("float", "half")


def float_statements(subject: Subject) -> Iterator[Statement]:
    """Vector instructions whose target is of a float type."""
    return (item for item in statements(subject.source.files[KERNEL]) if item.dtype in FLOATS)


def literal(value: float, dtype: str) -> str:
    """A number in C++."""
    return f"static_cast<half>({value!r})" if dtype == "half" else f"{value!r}f"


def put(source: KernelSource, start: int, end: int, text: str) -> KernelSource:
    """The kernel with a text in the place of its characters from ``start`` to ``end``."""
    whole = source.files[KERNEL]
    return source.with_files({KERNEL: whole[:start] + text + whole[end:]})


def mutant(
    kind: Kind,
    subject: Subject,
    change: str,
    source: KernelSource,
    aims: tuple[Aim, ...],
    shown: KernelSource | None = None,
) -> Mutant:
    """A mutant of a subject."""
    return Mutant(kind, subject.name, change, source, aims, shown)
