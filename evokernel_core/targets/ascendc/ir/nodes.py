"""The nodes of the kernel IR: tensors, buffers, copies, instructions and loops of one kernel.

A kernel is what one core does: ``setup`` once, then ``body`` for each tile. Memories are said by where a
buffer stands; queues, events, the unified buffer's size, ComputeTiling and the modelled cost are derived
from the nodes (allocation.py, cost.py, and the printer), never said twice. What only cube cores do is in
cube.py.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, cached_property
from typing import Any

from attrs import evolve, field, fields, frozen

from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, REPEAT_BYTES
from evokernel_core.targets.ascendc.ir.expr import (
    Condition,
    Constant,
    CubeSpan,
    Expr,
    Index,
    Int,
    Param,
    Side,
    State,
    Table,
    Var,
    ceil_div,
    compared,
)
from evokernel_core.targets.ascendc.ir.floats import INFINITE, Literal


class Role(Enum):
    """What a tensor in device memory is to the task."""

    INPUT = "input"
    OUTPUT = "output"
    WORKSPACE = "workspace"


@frozen
class Tensor:
    """A tensor in device memory. ``name`` is the kernel's own, ``address`` that of its address among the
    parameters, ``ctype`` the C++ type of its elements, ``item_bytes`` their size. ``bypass_l2``: what is
    read of it is not kept in L2, which is left to other tensors. ``own``: elements of the workspace that each
    core has for itself, where it is no tensor of the task; ``common``: those that all cores have together."""

    name: str
    address: str
    ctype: str
    item_bytes: int
    role: Role
    bypass_l2: bool = False
    own: Expr | None = None
    common: Expr | None = None

    @property
    def handle(self) -> str:
        """The GlobalTensor's name."""
        return f"{self.name}Global"


_FRACTIONS = ("half", "bfloat16_t")
"""Types of numbers with a fraction that the scalar unit does not compute with."""


@frozen
class Element(Expr):
    """An element of a tensor in device memory that the scalar unit reads, ``offset`` elements into it; as
    float, where it is a number with a fraction of fewer bits."""

    tensor: Tensor
    offset: Expr

    def cpp(self, side: Side = Side.DEVICE, tightness: int = 0) -> str:
        text = f"{self.tensor.handle}.GetValue({self.offset.cpp(side)})"
        if self.tensor.ctype == "bfloat16_t":
            return f"ToFloat({text})"
        return f"static_cast<float>({text})" if self.tensor.ctype in _FRACTIONS else text

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Estimates do not know it."""
        return 0

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.offset,)


@frozen
class TensorList:
    """Tensors of one type that a loop chooses among."""

    name: str
    tensors: tuple[Tensor, ...]

    @property
    def bypass_l2(self) -> bool:
        return self.tensors[0].bypass_l2

    @property
    def ctype(self) -> str:
        return self.tensors[0].ctype

    @property
    def item_bytes(self) -> int:
        return self.tensors[0].item_bytes

    @property
    def role(self) -> Role:
        return self.tensors[0].role


@frozen
class Ring:
    """``places`` of ``elements`` each in a cube core's own workspace, through which results go to its vector
    cores one after the other. ``of_turns``: each turn of the cube core's loops has the next place, which is
    free again when what vector cores made of the turn is there: that comes through a ring whose ``role`` is
    to be read."""

    name: str
    ctype: str
    item_bytes: int
    places: Constant
    elements: Expr
    bypass_l2: bool = False
    role: Role = Role.OUTPUT
    of_turns: bool = False

    @property
    def flag(self) -> str:
        """Of a ring of turns the name of the flag which says that a place is filled."""
        return f"{self.name.upper()}_READY"

    @property
    def handle(self) -> str:
        """The GlobalTensor's name."""
        return f"{self.name}Global"


@frozen
class Region:
    """The place in device memory that is ``offset`` elements into a tensor, or into the one that ``index``
    chooses from a list; in a ring, into its next place."""

    tensor: Tensor | TensorList | Ring
    offset: Expr
    index: Expr | None = None


class Memory(Enum):
    """Where a buffer lies: the unified buffer of a vector core, or a memory of a cube core."""

    UB = "UB"
    L1 = "L1"
    L0A = "L0A"
    L0B = "L0B"
    L0C = "L0C"


@frozen(cache_hash=True)
class Buffer:
    """Memory of a core, the unified buffer if nothing else is said, of which ``stages`` copies let as many
    tiles be under way. Whether it is a queue follows from who writes and reads it. ``cleared``: zeros before
    anything else, since instructions read whole blocks or repeats behind what was written; a queue's buffers
    hold nothing to rely on when they come round again, so only what no copy fills or empties may be.
    ``joined``: its stages are one run of memory, in which a turn finds what was left there by those before;
    places count from its beginning. ``idle``: nothing works on it; of a layout, what lies behind it begins so
    much further. ``by_events``: units hand it to each other by events, as what the scalar unit works on, and
    not through a queue."""

    name: str
    ctype: str
    item_bytes: int
    elements: Expr
    stages: int = 1
    cleared: bool = False
    memory: Memory = Memory.UB
    joined: bool = False
    idle: bool = False
    by_events: bool = False

    @property
    def bytes(self) -> int:
        """Of one stage."""
        return self.elements.evaluate({}) * self.item_bytes


@frozen
class Slice:
    """What lies in a buffer from element ``offset`` on; ``read_as``: as elements of another type."""

    buffer: Buffer
    offset: Expr
    read_as: str = ""

    @property
    def ctype(self) -> str:
        return self.read_as or self.buffer.ctype

    def behind(self, elements: Index) -> Slice:
        """What lies so many elements further."""
        return evolve(self, offset=self.offset + elements)


@frozen
class SliceList:
    """``count`` slices, one for each value of ``var``: the operand of instructions that take addresses."""

    name: str
    var: Var
    count: Constant
    slice: Slice


@frozen
class Enumerator:
    """A named constant of the interface, such as a rounding mode."""

    name: str


@frozen
class Number:
    """A named floating-point constant of the kernel, such as the worst value of a search."""

    name: str
    value: float
    note: str = ""


@frozen
class Converted:
    """An integer or a named number passed to an instruction as another type, such as ``int32_t``."""

    value: Expr | Number
    ctype: str


@frozen
class Fields:
    """A parameter structure of the interface, set field by field. ``types``: what values are converted to.
    ``is_short``: written as one value, its fields in their order."""

    struct: str
    values: Mapping[str, Expr] = field(hash=False)
    types: Mapping[str, str] = field(factory=dict, hash=False)
    is_short: bool = False


@frozen
class Ratio:
    """The quotient of two integers as a float."""

    over: Expr
    under: Expr


@frozen
class Told:
    """A state to which an instruction gives a value, which estimates take for ``likely``."""

    state: State
    likely: Expr

    @property
    def name(self) -> str:
        return self.state.name


@frozen
class Runs:
    """Sorted runs of pairs, of which an instruction merges ``count``, at least two of four: where each begins
    and how many pairs it has; ``times`` over, runs following each other. ``told``: the states that become how
    many pairs of each were taken, where it stops when one run is used up."""

    slices: tuple[Slice, ...]
    lengths: tuple[Expr, ...]
    count: Expr
    times: Expr = field(factory=lambda: Int(1))
    told: tuple[Told, ...] = ()


@frozen
class Kept:
    """Where an instruction that picks elements says how many it kept, which nothing reads."""

    name: str = "kept_"


@frozen
class Difference:
    """The difference of two integers as a float, which may be negative."""

    left: Expr
    right: Expr


@frozen
class InverseRoot:
    """One over the square root of an integer of the tiling: a float under a name of its own there, which the
    host computes."""

    name: str
    of: Param


Operand = (
    Slice
    | SliceList
    | Runs
    | Converted
    | Enumerator
    | Number
    | Fields
    | Ratio
    | Difference
    | InverseRoot
    | Kept
    | Told
    | Expr
)


LANES = "uint64_t[1]"
"""The type of a mask: a bit for each lane of a repeat of 32-bit elements."""


@frozen
class Let:
    """A local constant, or a mask."""

    var: Var
    value: Expr


@frozen
class Assign:
    """A state of the core takes a value."""

    state: State
    value: Expr


@frozen
class Get:
    """A local constant that the scalar unit reads from a buffer. ``likely``: what estimates take it for."""

    var: Var
    source: Slice
    likely: Expr


@frozen
class Put:
    """The scalar unit writes one element of a buffer."""

    target: Slice
    value: Expr


@frozen
class Fence:
    """What a unit does behind it begins when what it does in front of it has ended: stores of a core, if no
    other ``unit`` of a cube core is said, or an event, as of loads behind stores (``MTE3_MTE2``); of ``ALL``
    any unit waits for all of them, and of ``CORES`` all cores for each other."""

    unit: str = "FIX"


@frozen
class Await:
    """A core goes on when cores on the other side, a cube core or its vector cores, have set a flag: that of
    a ring of turns says that its next place is filled."""

    flag: str


@frozen
class Signal:
    """A core sets a flag for those on the other side when ``unit`` has done what stands in front of it."""

    flag: str
    unit: str = "MTE3"


@frozen
class Copy:
    """``rows`` of ``count`` consecutive elements between device memory, where they begin ``apart`` elements
    from each other, and the unified buffer, where each begins ``pitch`` elements behind the one before, or at
    the next whole block where that is 0. ``zeros`` of them follow each row, or as many of ``filler``, then
    anything up to the next block; ``before`` of them lie in front of each, less than a block."""

    source: Region | Slice
    target: Region | Slice
    count: Expr
    rows: Expr = field(factory=lambda: Int(1))
    apart: Expr = field(factory=lambda: Int(0))
    zeros: Expr = field(factory=lambda: Int(0))
    pitch: Expr = field(factory=lambda: Int(0))
    filler: Number | Expr | None = None
    before: Expr = field(factory=lambda: Int(0))

    @property
    def skipped_blocks(self) -> Expr:
        """Blocks of the unified buffer between one row and the next."""
        if self.pitch == Int(0):
            return Int(0)
        elements = BLOCK_BYTES // self.slice.buffer.item_bytes
        return self.pitch // elements - ceil_div(self.before + self.count, elements)

    @property
    def is_load(self) -> bool:
        return isinstance(self.source, Region)

    @property
    def region(self) -> Region:
        """The side in device memory."""
        side = self.source if isinstance(self.source, Region) else self.target
        assert isinstance(side, Region)
        return side

    @property
    def slice(self) -> Slice:
        """The side in the unified buffer."""
        side = self.source if isinstance(self.source, Slice) else self.target
        assert isinstance(side, Slice)
        return side


@frozen
class Instruction:
    """A vector instruction, a row of the API table by its ``key``. The first operand is written, other slices
    are read. ``repeats``: how many times the vector unit works on 256 bytes, or on a group of blocks.
    ``template``: the element type where calls must say it. ``former``: the older name by which it is called,
    one of the row's. ``note``: what it and those behind it compute."""

    key: str
    operands: tuple[Operand, ...]
    repeats: Expr
    template: str = ""
    former: str = ""
    note: str = ""

    @cached_property
    def told(self) -> tuple[Told, ...]:
        """The states to which it gives values."""
        return tuple(
            told
            for operand in self.operands
            if isinstance(operand, (Told, Runs))
            for told in (operand.told if isinstance(operand, Runs) else (operand,))
        )

    @cached_property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        """Every slice with whether it is written."""
        return tuple(
            (place == 0, one) for place, operand in enumerate(self.operands) for one in _slices_in(operand)
        )


def _slices_in(operand: Operand) -> tuple[Slice, ...]:
    match operand:
        case Slice():
            return (operand,)
        case SliceList():
            return (operand.slice,)
        case Runs():
            return operand.slices
    return ()


@frozen
class Clear:
    """Zeros in ``count`` elements of a queue's buffer before a load of the same step fills parts of them."""

    target: Slice
    count: Expr

    @property
    def instruction(self) -> Instruction:
        """What the vector unit does."""
        ctype, size = self.target.ctype, self.target.buffer.item_bytes
        repeats = ceil_div(self.count * size, REPEAT_BYTES)
        return Instruction("Duplicate", (self.target, Int(0), self.count), repeats, ctype)


@frozen
class For:
    """``body`` for ``var`` from 0 to below ``end``. ``cores``: the values are dealt to cores: in turn; where
    neighbours read the same, in runs of ``run`` each; or ``in_a_row``, each core those that follow each
    other; ``with_cube``: both vector cores of a cube core have what that one has. ``apart``: those for which
    it holds, and the others, each by themselves. ``even``: of such a loop estimates take all turns for the
    first one, of which the last may do less. ``each``: of a loop of one core estimates meet every turn by
    itself, since it has few, which differ. ``one_load``: what it loads, from where numbers say that it
    reads, is one load to what is around it. ``ring``: each turn writes a chunk that cube cores read, so many
    of which lie there at a time; all vector cores share it in a loop of cores ``beside`` cube cores.
    ``so_long``: it goes on so long as this holds, which depends on numbers; then ``end`` is how many turns
    estimates take it for. ``preloaded``: it has a turn at least, and what the first one loads, which nothing
    in front of the loop decides but local constants, travels earlier: while the last turn of the preloaded
    loop before it in the body is computed, and of the first such loop in a turn of the loop around, while the
    last one in the turn before is."""

    var: Var
    end: Expr
    body: tuple[Node, ...]
    cores: bool = False
    apart: Condition | None = None
    run: Expr | None = None
    even: bool = False
    in_a_row: bool = False
    each: bool = False
    with_cube: bool = False
    one_load: bool = False
    ring: Constant | None = None
    beside: bool = False
    so_long: Condition | None = None
    preloaded: bool = False

    @property
    def most_cores(self) -> Expr:
        """How many cores have something to do."""
        return self.end if self.run is None else ceil_div(self.end, self.run)

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body,)


@frozen
class If:
    """``then`` where ``left sign right`` holds, else ``otherwise``. ``share``: of how many times estimates
    take it to hold once, where it depends on numbers that they do not know, or ``even``: exactly once, as it
    depends on the number of a turn."""

    left: Expr
    sign: str
    right: Expr
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()
    share: Expr = field(factory=lambda: Int(1))
    even: bool = False

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.then, self.otherwise)

    def holds(self, values: Mapping[str, int]) -> bool:
        """Raises KeyError for a variable not given."""
        return compared(self.left, self.sign, self.right, values)


@frozen
class Routine:
    """What several sections have in common: a method that takes places in buffers and numbers. ``places`` and
    ``numbers`` are its parameters, of which ``body`` is made; ``arguments`` and ``values`` what a section
    gives it."""

    places: tuple[Slice, ...]
    numbers: tuple[Var, ...]
    body: tuple[Node, ...]
    arguments: tuple[Slice, ...]
    values: tuple[Expr, ...]


@frozen
class Section:
    """Nodes that read as one step: a method of their own in the printed class, which is written once where a
    kernel has the same section several times. ``routine``: the method takes parameters, and ``body`` is what
    it does with those that are given here. ``remark``: what this call of it and those behind it compute."""

    name: str
    body: tuple[Node, ...]
    note: str = ""
    routine: Routine | None = None
    remark: str = ""

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body,)


@frozen
class Atomic:
    """Stores of ``body`` combine with what is there: ``kind`` is ``Add``, ``Max`` or ``Min``."""

    kind: str
    ctype: str
    body: tuple[Node, ...]

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return (self.body,)


class Work:
    """What other units than the vector unit do; one that has ``bodies`` is a block."""

    @property
    def bodies(self) -> tuple[tuple[Node, ...], ...]:
        return ()

    @property
    def slices(self) -> tuple[tuple[bool, Slice], ...]:
        """Every slice of its own with whether it is written."""
        given = ((name, getattr(self, name)) for name in _names_in(self))
        return tuple((name == "target", value) for name, value in given if isinstance(value, Slice))


Node = (
    Let
    | Assign
    | Get
    | Put
    | Fence
    | Await
    | Signal
    | Copy
    | Clear
    | Instruction
    | For
    | If
    | Section
    | Atomic
    | Work
)


@frozen
class Require:
    """What must hold for a call to be taken, which ComputeTiling checks: ``left sign right``, ``sign`` being
    one of C++'s comparisons."""

    left: Expr
    sign: str
    right: Expr
    note: str = ""


@frozen(eq=False)
class Kernel:
    """A kernel of vector cores or of cube cores, compared by identity. ``note`` says what it computes and
    why so; ComputeTiling has ``params`` in their order; ``rings`` lie in the workspace. ``layout``: the
    buffers that lie first in the unified buffer, in their order, so that what instructions read and write
    lies in banks apart."""

    note: str
    tensors: tuple[Tensor | TensorList, ...]
    params: tuple[Param | Table | Require, ...]
    body: tuple[Node, ...]
    rings: tuple[Ring, ...] = ()
    layout: tuple[Buffer, ...] = ()

    @property
    def structure(self) -> Hashable:
        """All that the text follows from: equal for kernels that are built alike."""
        return self.note, self.tensors, self.params, self.body, self.rings, self.layout

    @property
    def results(self) -> tuple[str, ...]:
        """The addresses of what is written, in their order among the parameters."""
        written = (
            tensor for tensor in self.tensors if isinstance(tensor, Tensor) and tensor.role is Role.OUTPUT
        )
        return tuple(node.address for node in written)

    def roots(self) -> tuple[InverseRoot, ...]:
        """What the host computes in floats."""
        given = (child for node in self.nodes for child in _given(node))
        return tuple(dict.fromkeys(element for element in given if isinstance(element, InverseRoot)))

    def numbers(self) -> tuple[Number, ...]:
        """The named floating-point constants, in the order of their first use."""
        given = (child for node in self.nodes for child in _given(node))
        result = (element.value if isinstance(element, Converted) else element for element in given)
        literals = (part for part in self.expressions() if isinstance(part, Literal))
        infinite = [Number(INFINITE, math.inf)] if any(one.is_infinite for one in literals) else []
        return tuple(
            dict.fromkeys((*(element for element in result if isinstance(element, Number)), *infinite))
        )

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, in the order of the text."""
        return tuple(flat(self.body))

    @property
    def tiles(self) -> For:
        """The loop that cores share. Raises StopIteration where there is none, which no builder makes."""
        return next(node for node in self.nodes if isinstance(node, For) and node.cores)

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """In the order in which they lie: those of the layout, others as they are used first."""
        used = dict.fromkeys(child.buffer for node in self.nodes for _, child in accesses(node))
        first = (node for node in self.layout if node in used or node.idle)
        return tuple(dict.fromkeys((*first, *used)))

    @property
    def workspaces(self) -> tuple[tuple[Tensor, Expr], ...]:
        """What each core has in the workspace for itself, with its elements."""
        result = (tensor for tensor in self.tensors if isinstance(tensor, Tensor))
        return tuple((element, element.own) for element in result if element.own is not None)

    @property
    def common(self) -> tuple[tuple[Tensor, Expr], ...]:
        """What all cores have in the workspace together, with its elements."""
        result = (tensor for tensor in self.tensors if isinstance(tensor, Tensor))
        return tuple((element, element.common) for element in result if element.common is not None)

    @cached_property
    def meets(self) -> bool:
        """Whether all cores wait for each other."""
        return any(isinstance(node, Fence) and node.unit == "CORES" for node in self.nodes)

    @property
    def reads_numbers(self) -> bool:
        """Whether the scalar unit reads device memory."""
        return any(isinstance(expression, Element) for expression in self.expressions())

    def variables(self) -> tuple[Var, ...]:
        """Loop variables and local constants in the order of their definition."""
        return tuple(node.var for node in self.nodes if isinstance(node, (For, Let, Get)))

    def states(self) -> tuple[State, ...]:
        """What nodes read of what they assign to, in the order of the first time."""
        return tuple(
            dict.fromkeys(expression for expression in self.expressions() if isinstance(expression, State))
        )

    def expressions(self) -> tuple[Expr, ...]:
        """Every expression of the kernel and of its tiling, with what it is made of."""
        return self._expressions

    @cached_property
    def _expressions(self) -> tuple[Expr, ...]:
        written = {id(one): one for one in self._written()}
        return tuple(part for one in written.values() for part in one.walk())

    def _written(self) -> Iterator[Expr]:
        for param in self.params:
            yield from _fields(param)
        for node in self.nodes:
            yield from expressions_of(node)
        for buffer in self.buffers:
            yield buffer.elements
        for ring in self.rings:
            yield from (ring.places, ring.elements)
        yield from (own for _, own in (*self.workspaces, *self.common))


def _fields(node: Param | Table | Require) -> tuple[Expr, ...]:
    match node:
        case Param():
            return (node.value,)
        case Table():
            return node.values
    return (node.left, node.right)


def flat(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every node with all that are in it."""
    for node in nodes:
        yield node
        if isinstance(node, (For, If, Section, Atomic, Work)):
            for body in node.bodies:
                yield from flat(body)


def accesses(node: Node) -> Iterator[tuple[bool, Slice]]:
    """The slices that a node itself writes (True) and reads (False)."""
    if isinstance(node, Copy):
        yield node.is_load, node.slice
    elif isinstance(node, (Instruction, Work)):
        yield from node.slices
    elif isinstance(node, Get):
        yield False, node.source
    elif isinstance(node, (Put, Clear)):
        yield True, node.target


def _given(node: Node) -> tuple[Operand | None, ...]:
    """What a node is given besides places in device memory."""
    if isinstance(node, Copy):
        return (node.filler,)
    return node.operands if isinstance(node, Instruction) else ()


_DEFINED = frozenset({(Let, "var"), (Get, "var"), (For, "var"), (SliceList, "var"), (Assign, "state")})
"""Fields that say what a node defines, and are no expressions of it."""
_HOLDERS = (
    Slice,
    SliceList,
    Region,
    Converted,
    Fields,
    Ratio,
    Told,
    Runs,
    Difference,
    InverseRoot,
    Condition,
    CubeSpan,
)
"""What holds expressions inside nodes."""


def expressions_of(node: Node) -> Iterator[Expr]:
    """The expressions that stand in a node itself."""
    match node:
        case Copy():
            yield from (node.count, node.rows, node.apart, node.zeros, node.pitch, node.before)
            yield from (node.region.offset, node.slice.offset)
            yield from (choice for choice in (node.filler, node.region.index) if isinstance(choice, Expr))
        case Instruction():
            yield from (node.repeats, *_expressions_within(node.operands))
        case _:
            yield from _expressions_in_fields(node)


def _expressions_in_fields(node: object) -> Iterator[Expr]:
    for name in _names_in(node):
        if (type(node), name) not in _DEFINED:
            yield from _expressions_within(getattr(node, name))


def _expressions_within(value: object) -> Iterator[Expr]:
    """Those of a field; nodes of a body are no part of the node around it."""
    match value:
        case Expr():
            yield value
        case tuple():
            for each in value:
                yield from _expressions_within(each)
        case Mapping():
            yield from _expressions_within(tuple(value.values()))
        case _ if isinstance(value, _HOLDERS):
            yield from _expressions_in_fields(value)


def _names_in(node: object) -> tuple[str, ...]:
    kind: Any = type(node)
    return _names_of(kind)


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
