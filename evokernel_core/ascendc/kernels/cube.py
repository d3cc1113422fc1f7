"""Kernels of cube cores in the IR, with what their vector cores do to the results that are handed over, or
write for them to read, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import frozen

from evokernel_core.ascendc.ir.expr import Expr
from evokernel_core.ascendc.ir.nodes import Kernel, Node
from evokernel_core.ascendc.kernels.epilogue.tiles import EpilogueText


@frozen
class Behind:
    """What vector cores do: ``written`` gives their class under a name, its Process being the statements
    given. ``reads_numbers``: their scalar units read device memory."""

    written: Callable[[str, Sequence[str]], EpilogueText]
    reads_numbers: bool


@frozen
class BeforeText:
    """The vector cores in front: what they put into tiling.h (``settings``) and into the kernel
    (``text``), their class, the arguments of its Init in front of the pipe, and which statement refuses a
    call."""

    settings: str
    text: str
    class_name: str
    arguments: str
    check: str


@frozen
class Before:
    """What vector cores write, chunk by chunk, and all cube cores read: ``written`` gives their class under a
    name. ``workspace_bytes``: what the chunks take, on the host."""

    written: Callable[[str], BeforeText]
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
