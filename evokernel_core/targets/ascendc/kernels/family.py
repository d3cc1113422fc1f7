"""The text of one kernel, and what those that launch it must know of it."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


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
