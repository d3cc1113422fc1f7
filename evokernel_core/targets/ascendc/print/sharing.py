"""Kernels of a program that are one class under other sizes: the class is written once.

Layers of a network that repeat differ in names, and in the numbers that ``ComputeTiling`` computes with.
Each kernel keeps its own ``ComputeTiling``, which fills the struct of the class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from attrs import frozen

from evokernel_core.targets.ascendc.kernels.family import KernelFacts, StageText


@frozen
class Part:
    """The kernel ``number`` of a program, whose class stands with that of kernel ``owner``."""

    number: int
    owner: int
    text: StageText

    @property
    def facts(self) -> KernelFacts:
        return self.text.facts

    @property
    def owns_class(self) -> bool:
        """Whether the class stands here."""
        return self.number == self.owner

    @property
    def namespace(self) -> str:
        """That of the class and of ``OpTiling``."""
        return f"stage{self.owner}"

    @property
    def tiling_namespace(self) -> str:
        """That of ``ComputeTiling``: within that of the class, whose constants it takes."""
        return self.namespace if self.owns_class else f"{self.namespace}::stage{self.number}"

    @property
    def entry(self) -> str:
        """The function that runs it."""
        return f"{self.namespace}::{self.text.entry}"

    @property
    def tiling(self) -> str:
        """What stands in its namespace of tiling.h."""
        return self.text.tiling if self.owns_class else self.text.compute


def owners(alike: Sequence[Hashable], form: Callable[[int], StageText]) -> tuple[int, ...]:
    """For each kernel the first one of the same class.

    ``form`` gives a kernel's text with numbers for all names; only those are asked for it that are ``alike``.
    """
    counts = Counter(alike)
    result: list[int] = []
    first: dict[tuple[str, str, KernelFacts], int] = {}
    for number, key in enumerate(alike):
        if counts[key] == 1:
            result.append(number)
            continue
        text = form(number)
        result.append(first.setdefault((text.settings, text.kernel, text.facts), number))
    return tuple(result)
