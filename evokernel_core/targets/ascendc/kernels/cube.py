"""Kernels of cube cores in the IR, with what their vector cores do to the results that are handed over, or
write for them to read, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Node
from evokernel_core.targets.ascendc.kernels.epilogue.tiles import EpilogueText


@frozen
class Behind:
    """What vector cores do: ``written`` gives their class under a name, its Process being the statements
    given. ``reads_numbers``: their scalar units read device memory."""

    written: Callable[[str, Sequence[str]], EpilogueText]
    reads_numbers: bool


@frozen
class Before:
    """``kernel``: of the vector cores, which write, chunk by chunk, what all cube cores read; its fields are
    among the cube cores'. ``workspace_bytes``: what the chunks take, on the host."""

    kernel: Kernel
    workspace_bytes: Expr


@frozen(eq=False)
class CubeKernel:
    """``kernel``: of each cube core; ``takes``: the loops in which its vector cores take results up;
    ``behind`` and ``before``: what these do with results, or for operands; ``beside``: the kernel of those
    which make of a turn's results what the rest of it reads, through rings of turns."""

    kernel: Kernel
    takes: tuple[Node, ...] = ()
    behind: Behind | None = None
    before: Before | None = None
    beside: Kernel | None = None
