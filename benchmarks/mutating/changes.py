"""What the rules share: the type of a rule, and how a mutant is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from attrs import evolve

from benchmarks.mutating.mutant import Aim, Kind, Mutant
from benchmarks.mutating.subjects import Subject
from benchmarks.mutating.text import Statement, statements
from evokernel_core.domain.kernel import KernelSource

Rule = Callable[[Subject], Iterator[Mutant]]
FLOATS = ("float", "half")


def float_statements(subject: Subject) -> Iterator[Statement]:
    """Vector instructions whose target is of a float type."""
    return (item for item in statements(subject.source.op_kernel_cpp) if item.dtype in FLOATS)


def literal(value: float, dtype: str) -> str:
    """A number in C++."""
    return f"static_cast<half>({value!r})" if dtype == "half" else f"{value!r}f"


def put(source: KernelSource, start: int, end: int, text: str) -> KernelSource:
    """The kernel with a text in the place of its characters from ``start`` to ``end``."""
    whole = source.op_kernel_cpp
    return evolve(source, op_kernel_cpp=whole[:start] + text + whole[end:])


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
