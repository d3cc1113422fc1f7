"""Kernels of cube cores in the IR, with what their vector cores do to the results that are handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from evokernel_core.ascendc.ir.nodes import Kernel, Node
from evokernel_core.ascendc.kernels.epilogue.tiles import EpilogueText


@frozen
class Behind:
    """What vector cores do: ``written`` gives their class under a name, its Process being the statements
    given. ``reads_numbers``: their scalar units read device memory."""

    written: Callable[[str, Sequence[str]], EpilogueText]
    reads_numbers: bool


@frozen(eq=False)
class CubeKernel:
    """``kernel``: of each cube core; ``takes``: the loops in which its vector cores take results up."""

    kernel: Kernel
    takes: tuple[Node, ...] = ()
    behind: Behind | None = None
