"""Kernels of cube cores in the IR, with what their vector cores do to the results that are handed over, or
write for them to read, or both by turns."""

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
class VectorText:
    """The vector cores in front or beside: what they put into tiling.h (``settings``) and into the kernel
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

    written: Callable[[str], VectorText]
    workspace_bytes: Expr


@frozen
class Beside:
    """What vector cores make of a turn's results, which the rest of the turn reads: ``written`` gives their
    class under a name, its Process being the statements given, which call ``Join`` for each turn and
    ``Finish`` behind the last one; its check is asked when the tiling is known. ``fields``: of the tiling
    beside the kernel's, each with its value on the host. ``headers``: see KernelFacts.tiling_headers."""

    written: Callable[[str, Sequence[str]], VectorText]
    fields: tuple[tuple[str, str], ...] = ()
    headers: tuple[str, ...] = ()


@frozen(eq=False)
class CubeKernel:
    """``kernel``: of each cube core; ``takes``: the loops in which its vector cores take results up;
    ``behind``, ``before`` and ``beside``: what these do with results, for operands, or with the one for the
    other."""

    kernel: Kernel
    takes: tuple[Node, ...] = ()
    behind: Behind | None = None
    before: Before | None = None
    beside: Beside | None = None
