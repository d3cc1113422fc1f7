"""What cube cores do: operands pass through L1 and L0A or L0B, their products add up in L0C.

Memories and units stand in a row: MTE2 copies from device memory to L1, MTE1 from there to L0A and L0B, M
multiplies into L0C, FIX stores. A buffer is filled by the unit in front of it and emptied by the one behind
it; which of its stages that is, and the events between the units, follow from where it is filled and used
(handing_cube.py), and are never said. Matrices lie in L1 in fractals, columns of fractals one after the
other (CANN's NZ).
"""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.targets.ascendc.ir.expr import U32, Condition, Constant, CubeSpan, Expr, Int, State, Var
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Node, Region, Slice, Work

MOST_PITCH = Constant(
    "MOST_PITCH",
    most_of("DataCopyNd2Nz", "srcDValue"),
    "elements from row to row that one copy can step over",
)
"""Where the tiling asks for it, it stands in tiling.h."""


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
    def figures(self) -> tuple[Expr, ...]:
        """What the instruction is told, in the order of its fields."""
        return (self.rows, self.columns, self.pitch)


@frozen
class Nd2NzMatrices(Work):
    """``matrices`` of ``rows`` x ``columns`` elements become fractals in L1 that are ``height`` high. In
    device memory rows are ``pitch`` and matrices ``apart`` elements from each other; in L1 a row lies
    ``row_step`` and a matrix ``matrix_step`` rows behind the one before, ``height`` rows being a column of
    fractals."""

    target: Slice
    source: Region
    matrices: Expr
    rows: Expr
    columns: Expr
    apart: Expr
    pitch: Expr
    height: Expr
    row_step: Expr
    matrix_step: Expr

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the copy is told, in the order of its fields."""
        sizes = (self.matrices, self.rows, self.columns, self.apart, self.pitch)
        return (*sizes, self.height, self.row_step, self.matrix_step)


@frozen
class CopyBlocks(Work):
    """``runs`` of ``blocks`` whole blocks of 32 bytes, as they lie: ``skipped`` blocks part them in device
    memory, and ``gap`` blocks in L1."""

    target: Slice
    source: Region
    blocks: Expr
    runs: Expr = field(factory=lambda: Int(1))
    skipped: Expr = field(factory=lambda: Int(0))
    gap: Expr = field(factory=lambda: Int(0))

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the copy is told, in the order of its fields."""
        return (self.runs, self.blocks, self.skipped, self.gap)


@frozen
class ClearBlocks(Work):
    """Zeros in ``runs`` of ``blocks`` whole blocks of L1, ``gap`` blocks between them."""

    target: Slice
    blocks: Expr
    runs: Expr
    gap: Expr

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the instruction is told, in the order of its fields."""
        return (self.runs, self.blocks, self.gap)


@frozen
class Fetch(Work):
    """From here on there is in L1 what ``body`` copies, until the same node is met again; where ``only`` is
    given, where it holds alone. Copies travel ahead, for as many turns of the loops around it as ``buffer``
    has stages: when a turn takes what is there, those of the next begin, or where a node says so (Ahead).
    ``stage`` is the stage in use, and in ``body`` the one that is filled."""

    name: str
    buffer: Buffer
    body: tuple[Node, ...]
    only: Condition | None = None

    @property
    def stage(self) -> Var:
        return stage_of(self.name)

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body,)


def stage_of(name: str) -> Var:
    """The stage of a fetch's buffer that is in use."""
    return Var(f"{name}Stage", U32)


@frozen
class Ahead(Work):
    """The copies of a fetch's next turn begin here, unless they have: behind other copies, which are needed
    before them."""

    name: str


@frozen
class Meet(Work):
    """All cores of a launch wait for each other."""


@frozen
class Keep(Work):
    """Copies of ``body`` into a buffer of L1, unless it holds what belongs to ``key`` already. A buffer of
    one stage serves all turns, and is filled anew when no turn needs it any more; one of several has a key
    for each."""

    buffer: Buffer
    key: Expr
    body: tuple[Node, ...]

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body,)

    @property
    def is_common(self) -> bool:
        """Whether the buffer serves all turns."""
        return self.buffer.stages == 1


@frozen
class Reach(Work):
    """What follows reads chunk number ``chunk`` of those that vector cores write, ``chunks`` in all, one
    after the other: it is there, and no chunk in front of it is read any more."""

    chunk: Expr
    chunks: Expr


@frozen
class LoadData(Work):
    """Part of a matrix in L1 becomes an operand in L0A or L0B. ``rows`` and ``columns`` are those of memory.
    An operand in L0A has a row of memory for a row of its own, one in L0B for a column, unless it is
    ``turned``."""

    target: Slice
    source: Slice
    rows: CubeSpan
    columns: CubeSpan
    turned: bool

    @property
    def is_left(self) -> bool:
        return self.target.buffer.memory is Memory.L0A

    @property
    def is_run(self) -> bool:
        """Whether the fractals lie in one run, in the order in which L0B takes them."""
        return not self.is_left and not self.turned


@frozen
class LoadFractals(Work):
    """As many ``fractals`` of L1 become part of an operand in L0A or L0B, each ``step`` fractals behind the
    one before, or the same one again where that is 0, and with ``gap`` fractals between them in L0."""

    target: Slice
    source: Slice
    fractals: Expr
    step: Expr = field(factory=lambda: Int(1))
    gap: Expr = field(factory=lambda: Int(0))

    @property
    def is_left(self) -> bool:
        return self.target.buffer.memory is Memory.L0A

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the load is told, in the order of its fields."""
        return (self.fractals, self.step, self.gap)


@frozen
class InitConst(Work):
    """As many ``fractals`` of a number in L0A or L0B, zero if nothing else is said."""

    target: Slice
    fractals: Expr
    value: int = 0


@frozen
class Mmad(Work):
    """The product of ``rows`` x ``depth`` by ``depth`` x ``columns`` is added to a sum in L0C, which begins
    anew where the sum around it does (Sum). ``turned``: the left operand was turned. ``ends``: this product
    is added to a sum that others have begun; or ``fresh`` is the state that tells, 1 where the sum begins,
    since which product comes first depends on numbers."""

    target: Slice
    left: Slice
    right: Slice
    rows: Expr
    columns: Expr
    depth: Expr
    turned: bool = False
    ends: bool = False
    fresh: State | None = None

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the instruction is told, in the order of its fields."""
        return (self.rows, self.columns, self.depth)


@frozen
class Fixpipe(Work):
    """``rows`` x ``columns`` of a sum, which is ``height`` rows high, go to device memory, where rows are
    ``pitch`` elements apart. ``quant``: the mode in which Fixpipe rounds float32; ``relu``: negative results
    become zero. ``in_fractals``: as they lie, column of fractals by column, each of ``height`` rows.
    ``matrices`` of them begin ``gap`` columns from each other in the sum, and ``apart`` elements
    in device memory."""

    target: Region
    source: Slice
    rows: Expr
    columns: Expr
    height: Expr
    pitch: Expr
    quant: str = ""
    relu: bool = False
    matrices: Expr = field(factory=lambda: Int(1))
    gap: Expr = field(factory=lambda: Int(0))
    apart: Expr = field(factory=lambda: Int(0))
    in_fractals: bool = False

    @property
    def figures(self) -> tuple[Expr, ...]:
        """What the store is told of its sizes; of matrices where it may be several."""
        if self.in_fractals:
            return (self.rows, self.columns)
        one = (self.rows, self.columns, self.height, self.pitch)
        return one if self.matrices == Int(1) else (*one, self.matrices, self.gap, self.apart)


@frozen
class Sum(Work):
    """A sum in L0C: what ``body`` adds, and ``stores`` of it. ``over``: the loop around it whose turns all
    add to it, so that it begins in the first and is stored in the last one. ``lane``: which of the sums of
    such a loop it is."""

    body: tuple[Node, ...]
    stores: tuple[Node, ...]
    lane: Expr = field(factory=lambda: Int(0))
    over: Var | None = None

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body, self.stores)
