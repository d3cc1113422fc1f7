"""What a schedule family makes: one kernel in the IR or as text, and what it declares of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import evolve, frozen

from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.cube import CubeKernel


class Cores(Enum):
    """The cores that a kernel runs on."""

    VECTOR = "vector cores"
    CUBE = "cube cores"
    BOTH = "each cube core with its two vector cores"


@frozen
class KernelFacts:
    """What those that launch a kernel, or put it beside others, must know of it.

    ``waits_for_all``: all its cores wait for each other, so that it has a launch of its own.
    ``uses_workspace``: it writes device memory beyond its results, which two kernels at a time may not.
    ``reads_numbers``: its scalar unit reads device memory, of which its cache may hold what was there before.
    ``tiling_headers``: those of the standard library that ComputeTiling needs beside ``cstdint``.
    """

    cores: Cores = Cores.VECTOR
    waits_for_all: bool = False
    uses_workspace: bool = False
    reads_numbers: bool = False
    tiling_headers: tuple[str, ...] = ()

    @property
    def on_cube(self) -> bool:
        return self.cores is not Cores.VECTOR


VECTORS_ALONE = KernelFacts()
"""Vector cores that do not meet, and copy between the task's tensors and the unified buffer only."""


@frozen
class StageText:
    """One kernel before it is put into files.

    ``settings`` and ``compute`` are its part of tiling.h: the constants with ``OpTiling``, and
    ``ComputeTiling``. ``kernel`` holds the constants, the class and the global function ``entry``, whose
    parameters are the task's tensor inputs in order, its outputs in order, the workspace and the tiling.
    ``facts`` are declared by who writes the text; nobody looks for them in it.
    """

    settings: str
    compute: str
    kernel: str
    entry: str
    facts: KernelFacts

    @property
    def tiling(self) -> str:
        """All of its part of tiling.h."""
        return f"{self.settings.rstrip()}\n\n{self.compute}"


@frozen
class Printed:
    """A class that is printed from the IR: its ``text``, and what its Init is given before the tiling."""

    text: str
    arguments: str


@frozen
class Added:
    """What a text beside a kernel of the IR adds to its tiling: ``constants`` of tiling.h, ``fields`` of
    OpTiling and the statements that fill them (``computed``), a condition under which ComputeTiling
    ``refuses``, where there is one, and statements behind all others (``blocks``). ``symbols``: those of the
    task that these mention."""

    constants: tuple[str, ...]
    fields: tuple[str, ...]
    computed: tuple[str, ...]
    refuses: str
    blocks: tuple[str, ...]
    symbols: frozenset[str]


@frozen(eq=False)
class Beside:
    """Cores that are built in the IR beside cores that are text: vector cores, or cube cores. ``around``: all
    of it, given the class ``class_name`` of those in the IR; where something is ``added``, the tiling is that
    of the kernel in the IR, and ``around`` gives the kernel's text alone."""

    kernel: Kernel
    class_name: str
    around: Callable[[Printed], StageText]
    facts: KernelFacts
    added: Added | None = None


Made = StageText | Kernel | CubeKernel | Beside
"""What a family makes: a kernel in the IR, or its text."""


def facts_of(made: Made) -> KernelFacts:
    """What a family declares of its text, or what the nodes of the IR are."""
    if isinstance(made, (StageText, Beside)):
        return made.facts
    if isinstance(made, Kernel):
        own = bool(made.workspaces or made.common)
        return evolve(
            VECTORS_ALONE, reads_numbers=made.reads_numbers, uses_workspace=own, waits_for_all=made.meets
        )
    if made.beside is not None:
        headers = ("cmath",) if made.beside.roots() else ()
        return KernelFacts(Cores.BOTH, uses_workspace=True, tiling_headers=headers)
    if made.before is not None:
        return KernelFacts(Cores.BOTH, waits_for_all=True, uses_workspace=True)
    if made.behind is None:
        return KernelFacts(Cores.CUBE)
    return KernelFacts(Cores.BOTH, uses_workspace=True, reads_numbers=made.behind.reads_numbers)
