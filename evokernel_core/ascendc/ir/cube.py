"""What cube cores do: operands pass through L1 and L0A or L0B, their products add up in L0C.

Memories and units stand in a row: MTE2 copies from device memory to L1, MTE1 from there to L0A and L0B, M
multiplies into L0C, FIX stores. A buffer is filled by the unit in front of it and emptied by the one behind
it; which of its stages that is, and the events between the units, follow from where it is filled and used
(handing_cube.py), and are never said. Matrices lie in L1 in fractals, columns of fractals one after the
other (CANN's NZ).
"""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.ascendc.ir.expr import Expr, Int, Var
from evokernel_core.ascendc.ir.nodes import Memory, Node, Region, Slice, Work


@frozen
class Nd2Nz(Work):
    """``rows`` of ``columns`` elements, ``pitch`` elements apart in device memory, become fractals in L1 that
    are ``rows`` high, in whole fractals."""

    target: Slice
    source: Region
    rows: Expr
    columns: Expr
    pitch: Expr

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        return ((True, self.target),)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.target.offset, self.source.offset, self.rows, self.columns, self.pitch)


@frozen
class Span:
    """``count`` rows or columns from ``start`` on, of ``of`` in all."""

    start: Expr
    count: Expr
    of: Expr


@frozen
class LoadData(Work):
    """Part of a matrix in L1 becomes an operand in L0A or L0B. ``rows`` and ``columns`` are those of memory.
    An operand in L0A has a row of memory for a row of its own, one in L0B for a column, unless it is
    ``turned``."""

    target: Slice
    source: Slice
    rows: Span
    columns: Span
    turned: bool

    @property
    def is_left(self) -> bool:
        return self.target.buffer.memory is Memory.L0A

    @property
    def is_run(self) -> bool:
        """Whether the fractals lie in one run, in the order in which L0B takes them."""
        return not self.is_left and not self.turned

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        return ((True, self.target), (False, self.source))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        spans = (part for span in (self.rows, self.columns) for part in (span.start, span.count, span.of))
        return (self.target.offset, self.source.offset, *spans)


@frozen
class InitConst(Work):
    """As many ``fractals`` of zeros in L0A or L0B."""

    target: Slice
    fractals: Expr

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        return ((True, self.target),)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.target.offset, self.fractals)


@frozen
class Mmad(Work):
    """The product of ``rows`` x ``depth`` by ``depth`` x ``columns`` is added to a sum in L0C, which begins
    anew where the sum around it does (Sum). ``turned``: the left operand was turned."""

    target: Slice
    left: Slice
    right: Slice
    rows: Expr
    columns: Expr
    depth: Expr
    turned: bool = False

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        return ((True, self.target), (False, self.left), (False, self.right))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.target.offset, self.rows, self.columns, self.depth)


@frozen
class Fixpipe(Work):
    """``rows`` x ``columns`` of a sum, which is ``height`` rows high, go to device memory, where rows are
    ``pitch`` elements apart. ``quant``: the mode in which Fixpipe rounds float32; ``relu``: negative results
    become zero."""

    target: Region
    source: Slice
    rows: Expr
    columns: Expr
    height: Expr
    pitch: Expr
    quant: str = ""
    relu: bool = False

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        return ((False, self.source),)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        offsets = (self.target.offset, self.source.offset)
        return (*offsets, self.rows, self.columns, self.height, self.pitch)


@frozen
class Sum(Work):
    """A sum in L0C: what ``body`` adds, and ``stores`` of it. ``over``: the loop around it whose turns all
    add to it, so that it begins in the first and is stored in the last one. ``lane``: which of the sums of
    such a loop it is."""

    body: tuple[Node, ...]
    stores: tuple[Node, ...]
    over: Var | None = None
    lane: Expr = field(factory=lambda: Int(0))

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body, self.stores)

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.lane,) if self.over is None else (self.lane, self.over)


@frozen
class Take(Work):
    """Vector cores work on the next result of their cube core: ``rows`` x ``columns`` from ``row`` and
    ``column`` on, of all rows."""

    row: Expr
    column: Expr
    rows: Expr
    columns: Expr

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (self.row, self.column, self.rows, self.columns)
