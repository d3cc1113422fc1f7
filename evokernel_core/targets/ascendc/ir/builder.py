"""Builds kernels node by node, as a kernel's author would write them.

k = Builder("Adds one to every element.")
x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
count = k.param("count", Size(extent))
tiles = k.param("tiles", ceil_div(count, TILE))
source, result = Buffer("source", "float", 4, TILE, 2), Buffer("result", "float", 4, TILE, 2)
with k.cores("tile", tiles) as tile:
    start = k.let("start", tile * TILE, U64)
    length = k.let("length", least(count - start, TILE))
    k.load(source, x, start, length)
    k.call("Adds", result, source, Converted(Int(1), "float"), length, repeats=ceil_div(length, 64))
    k.store(y, start, result, length)
kernel = k.kernel()
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from attrs import evolve

from evokernel_core.targets.ascendc.ir.cube import Ahead, Fetch, Keep, Sum
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Condition,
    Constant,
    Expr,
    Index,
    Int,
    Param,
    State,
    Table,
    Var,
    ceil_div,
    expr,
    is_narrow,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    LANES,
    Assign,
    Atomic,
    Await,
    Buffer,
    Clear,
    Converted,
    Copy,
    Enumerator,
    Fence,
    Fields,
    For,
    Get,
    If,
    Instruction,
    Kernel,
    Let,
    Node,
    Number,
    Operand,
    Put,
    Region,
    Require,
    Ring,
    Role,
    Routine,
    Section,
    Signal,
    Slice,
    SliceList,
    Tensor,
    TensorList,
    Work,
)

Place = Buffer | Slice
_Blocks = tuple[Slice, Index]
_LANES, _BLOCK = 64, 8
_SQUARE = Constant("SQUARE", 16, "blocks that a transposition takes")
_ALL = Constant("ALL_LANES", (1 << _LANES) - 1, "of a repeat of 32-bit elements")


class Builder:
    """Collects the nodes of one kernel; ``kernel`` gives it, frozen."""

    def __init__(self, note: str) -> None:
        self._note = note
        self._tensors: list[Tensor | TensorList] = []
        self._rings: list[Ring] = []
        self._params: list[Param | Table | Require] = []
        self._blocks: list[list[Node]] = [[]]
        self._layout: tuple[Buffer, ...] = ()
        self._remark = ""

    # -- what a kernel works on -----------------------------------------------------------------

    def input(
        self, name: str, address: str, ctype: str, item_bytes: int, *, bypass_l2: bool = False
    ) -> Tensor:
        """A tensor that is read; ``address`` is the parameter that says where it lies."""
        return self._tensor(Tensor(name, address, ctype, item_bytes, Role.INPUT, bypass_l2))

    def inputs(self, name: str, addresses: Sequence[str], ctype: str, item_bytes: int) -> TensorList:
        """Tensors of one type that a loop chooses among."""
        items = (
            Tensor(f"{name}{place}", address, ctype, item_bytes, Role.INPUT)
            for place, address in enumerate(addresses)
        )
        tensor_list = TensorList(name, tuple(items))
        self._tensors.append(tensor_list)
        return tensor_list

    def output(
        self, name: str, address: str, ctype: str, item_bytes: int, *, bypass_l2: bool = False
    ) -> Tensor:
        """A tensor that is written in full."""
        return self._tensor(Tensor(name, address, ctype, item_bytes, Role.OUTPUT, bypass_l2))

    def workspace(self, name: str, ctype: str, item_bytes: int, own: Expr) -> Tensor:
        """Elements of the workspace that each core has for itself."""
        return self._tensor(Tensor(name, "workspace", ctype, item_bytes, Role.WORKSPACE, own=own))

    def common(self, name: str, ctype: str, item_bytes: int, elements: Expr) -> Tensor:
        """Elements of the workspace that all cores have together."""
        return self._tensor(Tensor(name, "workspace", ctype, item_bytes, Role.WORKSPACE, common=elements))

    def in_workspace(self, name: str, address: str, ctype: str, item_bytes: int) -> Tensor:
        """A tensor in the workspace, where another text lays it out."""
        return self._tensor(Tensor(name, address, ctype, item_bytes, Role.WORKSPACE))

    def ring(self, name: str, ctype: str, item_bytes: int, places: Constant, elements: Expr) -> Ring:
        """Places through which a cube core hands results to its vector cores."""
        return self._ring(Ring(name, ctype, item_bytes, places, elements))

    def ring_of_turns(
        self, name: str, ctype: str, item_bytes: int, places: Constant, elements: Expr, role: Role
    ) -> Ring:
        """Places of which each turn of a cube core's loops has one: it fills it, or finds there what vector
        cores made of the turn (see Ring)."""
        return self._ring(Ring(name, ctype, item_bytes, places, elements, role=role, of_turns=True))

    def take(self, flag: Ring | str) -> None:
        """A core goes on when those on the other side have set a flag, or filled the next place of a ring of
        turns."""
        self._add(Await(flag if isinstance(flag, str) else flag.flag))

    def give(self, flag: Ring | str, unit: str = "MTE3") -> None:
        """A core sets a flag, or has filled its part of the next place of a ring of turns (see Signal)."""
        self._add(Signal(flag if isinstance(flag, str) else flag.flag, unit))

    def _ring(self, ring: Ring) -> Ring:
        self._rings.append(ring)
        return ring

    def _tensor(self, tensor: Tensor) -> Tensor:
        self._tensors.append(tensor)
        return tensor

    def param(self, name: str, value: Expr, note: str = "", ctype: str = U64) -> Param:
        """A field of OpTiling that ComputeTiling computes from sizes and earlier fields."""
        param = Param(name, value, note, ctype)
        self._params.append(param)
        return param

    def on_host(self, name: str, value: Expr, note: str = "") -> Param:
        """A number on the way to fields, which ComputeTiling alone knows."""
        param = Param(name, value, note, U64, is_local=True)
        self._params.append(param)
        return param

    def table(self, name: str, values: Sequence[Expr], note: str = "", ctype: str = U64) -> Table:
        """Fields of OpTiling among which the kernel chooses by number."""
        table = Table(name, tuple(values), note, ctype)
        self._params.append(table)
        return table

    def require(self, left: Index, sign: str, right: Index, note: str = "") -> None:
        """A call is refused where this does not hold."""
        self._params.append(Require(expr(left), sign, expr(right), note))

    def lay_out(self, *buffers: Buffer) -> None:
        """These buffers lie first in the unified buffer, in this order."""
        self._layout = buffers

    # -- what it does ---------------------------------------------------------------------------

    def let(self, name: str, value: Index, ctype: str = U32) -> Var:
        """A local constant."""
        var = Var(name, ctype)
        self._add(Let(var, expr(value)))
        return var

    def assign(self, state: State, value: Index) -> None:
        """A state of the core takes a value."""
        self._add(Assign(state, expr(value)))

    def get(self, name: str, source: Slice, likely: Index, ctype: str) -> Var:
        """A local constant that the scalar unit reads from a buffer; estimates take it for ``likely``."""
        var = Var(name, ctype)
        self._add(Get(var, source, expr(likely)))
        return var

    def put(self, target: Slice, value: Index) -> None:
        """The scalar unit writes an element of a buffer."""
        self._add(Put(target, expr(value)))

    def fence(self, unit: str = "FIX") -> None:
        """What a unit does behind it, stores if no other is said, waits for what it does in front of it."""
        self._add(Fence(unit))

    def lanes(self, name: str, value: Expr) -> Var:
        """A mask of 64 lanes, for instructions that take repeats."""
        return self.let(name, value, LANES)

    def load(  # noqa: PLR0913
        self,
        target: Place,
        tensor: Tensor | TensorList | Ring,
        offset: Index,
        count: Index,
        *,
        index: Expr | None = None,
        rows: Index = 1,
        apart: Index = 0,
        zeros: Index = 0,
        pitch: Index = 0,
        filler: Number | Expr | None = None,
        before: Index = 0,
    ) -> None:
        """Copies ``count`` elements from ``offset`` of a tensor, or ``rows`` of so many, into the unified
        buffer (see Copy)."""
        source, target = Region(tensor, expr(offset), index), whole(target)
        steps = expr(apart), expr(zeros), expr(pitch)
        self._add(Copy(source, target, expr(count), expr(rows), *steps, filler, expr(before)))

    def clear(self, target: Place, count: Index) -> None:
        """Zeros where a load behind it, in the same step, fills only parts (see Clear)."""
        self._add(Clear(whole(target), expr(count)))

    def store(
        self,
        tensor: Tensor | Ring,
        offset: Index,
        source: Place,
        count: Index,
        *,
        rows: Index = 1,
        apart: Index = 0,
        pitch: Index = 0,
    ) -> None:
        """Copies ``count`` elements from the unified buffer to ``offset`` of a tensor, or ``rows`` of so
        many."""
        region = Region(tensor, expr(offset))
        self._add(Copy(whole(source), region, expr(count), expr(rows), expr(apart), pitch=expr(pitch)))

    def call(
        self,
        key: str,
        *operands: Operand | Buffer | int,
        repeats: Index,
        template: str = "",
        former: str = "",
        note: str = "",
    ) -> None:
        """A vector instruction by its row in the API table, or a former name of it; the first operand is
        written. ``note``: what it and those behind it compute."""
        given = tuple(map(_operand, operands))
        self._add(Instruction(key, given, expr(repeats), template, former, note or self._remarked()))

    def on(
        self, key: str, to: Place, *operands: Operand | Buffer | int, count: Index, former: str = ""
    ) -> None:
        """An instruction on ``count`` elements of 32 bits."""
        self.call(key, to, *operands, expr(count), repeats=ceil_div(count, _LANES), former=former)

    def cast(self, to: Place, source: Place, mode: str, count: Index) -> None:
        """``on`` of a conversion; ``mode`` is the name of a rounding."""
        self.on("Cast", to, source, Enumerator(f"RoundMode::CAST_{mode}"), count=count)

    def remark(self, note: str) -> None:
        """What the next instruction or routine, and those behind it, compute."""
        self._remark = note

    def _remarked(self) -> str:
        note, self._remark = self._remark, ""
        return note

    def do(self, node: Work) -> None:
        """What another unit than the vector unit does."""
        self._add(node)

    @contextmanager
    def cores(
        self,
        name: str,
        end: Index,
        *,
        run: Expr | None = None,
        even: bool = False,
        in_a_row: bool = False,
        beside: bool = False,
        with_cube: bool = False,
    ) -> Iterator[Var]:
        """A loop whose values are dealt to cores: in turn, in runs of so many, or in a row; or to vector
        cores as to their cube core (see For)."""
        how = {"run": run, "even": even, "in_a_row": in_a_row, "beside": beside, "with_cube": with_cube}
        with self._loop(Var(name, U64), end, cores=True, **how) as var:
            yield var

    def deal_apart(self, condition: Condition) -> None:
        """Values of the last loop for which the condition holds are dealt to cores by themselves."""
        last = self._blocks[-1].pop()
        if not isinstance(last, For) or not last.cores:
            raise TypeError("What is dealt apart is said right behind a loop that cores share.")
        self._add(evolve(last, apart=condition))

    @contextmanager
    def loop(
        self,
        name: str,
        end: Index,
        ctype: str = U32,
        *,
        each: bool = False,
        one_load: bool = False,
        preloaded: bool = False,
    ) -> Iterator[Var]:
        """A loop of one core. ``each``: of few turns, which differ; ``one_load``: all that it loads counts as
        one load; ``preloaded``: what its first turn loads travels before it (see For)."""
        how = {"each": each, "one_load": one_load, "preloaded": preloaded}
        with self._loop(Var(name, ctype), end, cores=False, **how) as var:
            yield var

    @contextmanager
    def repeat(self, name: str, so_long: Condition, likely: Index) -> Iterator[Var]:
        """A loop that goes on so long as numbers say so; estimates take it for ``likely`` turns."""
        with self._loop(Var(name, U32), likely, cores=False, so_long=so_long) as var:
            yield var

    @contextmanager
    def chunks(self, name: str, end: Index, ring: Constant) -> Iterator[Var]:
        """A loop whose turns write a ring of chunks that cube cores read (see For)."""
        with self._loop(Var(name, U64), end, cores=False, ring=ring) as var:
            yield var

    @contextmanager
    def pieces(self, name: str, span: tuple[Index, Index], most: Index) -> Iterator[tuple[Var, Var]]:
        """A loop of one core over pieces of at most ``most`` of a span, whose end is not in it: where each
        begins, under the name, and its length."""
        begin, end = span
        number = ceil_div(expr(end) - begin, most)
        ctype = U32 if is_narrow(number) else U64
        with self.loop(f"{name}Piece", number, ctype) as piece:
            start = self.let(name, expr(begin) + piece * most, ctype)
            left = self.let(f"{name}Left", expr(end) - start, ctype)
            yield start, self.let(f"{name}Count", least(left, most))

    @contextmanager
    def _loop(self, var: Var, end: Index, *, cores: bool, **how: Any) -> Iterator[Var]:
        with self._block() as body:
            yield var
        self._add(For(var, expr(end), tuple(body), cores, **how))

    @contextmanager
    def section(self, name: str, note: str = "") -> Iterator[None]:
        """Nodes that read as one step."""
        with self._block() as body:
            yield
        self._add(Section(name, tuple(body), note))

    def routine(
        self,
        name: str,
        places: Mapping[str, Slice],
        numbers: Mapping[str, Expr],
        write: Callable[[Sequence[Slice], Sequence[Var]], None],
        note: str = "",
    ) -> None:
        """A section whose method takes ``places`` and ``numbers`` (``uint32_t``) by their names, and does
        what ``write`` writes of them: a method for all sections of its name. No variable around has a name
        of the numbers."""
        formal = tuple(
            Slice(Buffer(parameter, place.ctype, place.buffer.item_bytes, expr(0)), expr(0))
            for parameter, place in places.items()
        )
        variables, remark = tuple(Var(parameter) for parameter in numbers), self._remarked()
        with self._block() as common:
            write(formal, variables)
        with self._block() as body:
            for var, value in zip(variables, numbers.values(), strict=True):
                self._add(Let(var, value))
            write(tuple(places.values()), variables)
        routine = Routine(formal, variables, tuple(common), tuple(places.values()), tuple(numbers.values()))
        self._add(Section(name, tuple(body), note, routine, remark))

    def again(self, section: Section) -> None:
        """The same step once more."""
        self._add(section)

    @property
    def last(self) -> Node:
        """The node that was made last."""
        return self._blocks[-1][-1]

    @contextmanager
    def atomic(self, kind: str, ctype: str) -> Iterator[None]:
        """Stores that combine with what is there (see Atomic)."""
        with self._block() as body:
            yield
        self._add(Atomic(kind, ctype, tuple(body)))

    @contextmanager
    def when(
        self, left: Index, sign: str, right: Index, *, share: Index = 1, even: bool = False
    ) -> Iterator[None]:
        """Nodes where ``left sign right`` holds, once in ``share`` times where estimates cannot know, or do
        not meet every turn (see If)."""
        with self._block() as body:
            yield
        self._add(If(expr(left), sign, expr(right), tuple(body), share=expr(share), even=even))

    @contextmanager
    def where(self, condition: Condition) -> Iterator[None]:
        """Nodes where a condition holds."""
        with self.when(condition.left, condition.sign, condition.right):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """Nodes where what the last ``when`` asks does not hold."""
        last = self._blocks[-1].pop()
        if not isinstance(last, If) or last.otherwise:
            raise TypeError("Otherwise stands right behind a condition.")
        with self._block() as body:
            yield
        self._add(evolve(last, otherwise=tuple(body)))

    @contextmanager
    def sum(self, over: Var | None = None, lane: Index = 0) -> Iterator[None]:
        """What adds to a sum in L0C (see Sum)."""
        with self._block() as body:
            yield
        self._add(Sum(tuple(body), (), expr(lane), over))

    @contextmanager
    def stored(self) -> Iterator[None]:
        """What is stored of the last ``sum``."""
        last = self._blocks[-1].pop()
        if not isinstance(last, Sum) or last.stores:
            raise TypeError("Stores stand right behind their sum.")
        with self._block() as body:
            yield
        self._add(evolve(last, stores=tuple(body)))

    @contextmanager
    def kept(self, buffer: Buffer, key: Index) -> Iterator[None]:
        """Copies into a buffer of L1 that holds them as long as the key is the same (see Keep)."""
        with self._block() as body:
            yield
        self._add(Keep(buffer, expr(key), tuple(body)))

    @contextmanager
    def fetched(self, name: str, buffer: Buffer, only: Condition | None = None) -> Iterator[None]:
        """Copies that travel ahead, into a buffer of L1 that holds them until the next ones are taken (see
        Fetch)."""
        with self._block() as body:
            yield
        self._add(Fetch(name, buffer, tuple(body), only))

    def ahead(self, name: str) -> None:
        """What is fetched next begins to travel here (see Ahead)."""
        self._add(Ahead(name))

    @contextmanager
    def _block(self) -> Iterator[list[Node]]:
        self._blocks.append([])
        yield self._blocks[-1]
        self._blocks.pop()

    def _add(self, node: Node) -> None:
        self._blocks[-1].append(node)

    def kernel(self) -> Kernel:
        """The kernel of all nodes so far."""
        body = tuple(self._blocks[0])
        made = Kernel(
            self._note, tuple(self._tensors), tuple(self._params), body, tuple(self._rings), self._layout
        )
        names = Counter(buffer.name for buffer in made.buffers if buffer.name)
        assert max(names.values(), default=1) == 1, f"Two buffers are called {names.most_common(1)[0][0]}."
        return made


def whole(place: Place) -> Slice:
    """A buffer from its first element on."""
    return Slice(place, expr(0)) if isinstance(place, Buffer) else place


def at(buffer: Buffer, offset: Index) -> Slice:
    """What lies in a buffer from element ``offset`` on."""
    return Slice(buffer, expr(offset))


def as_float(value: Index) -> Converted:
    """A whole number in float32."""
    return Converted(expr(value), "float")


def clear_behind(
    k: Builder, target: Place, width: Expr, rows: Expr, pitch: Expr, value: Operand | None = None
) -> None:
    """Zeros, or a ``value``, behind ``width`` elements of every row, up to the next whole repeat of 32-bit
    elements, so that instructions on whole repeats read nothing undefined. ``pitch``: elements from row to
    row, at most what repeats step over."""
    node = whole(target)
    with k.when(width % _LANES, "!=", 0):
        behind = k.lanes("behind", _ALL - (_ALL >> (expr(_LANES) - width % _LANES)))
        place = node.behind(width // _LANES * _LANES)
        times = Converted(rows, "uint8_t")
        step = Converted(pitch // _BLOCK, "uint8_t")
        filler = Converted(expr(0), "float") if value is None else value
        k.call("Duplicate", place, filler, behind, times, 1, step, repeats=rows)


def transpose(k: Builder, made: _Blocks, taken: _Blocks, number: Var, repeats: Expr) -> None:
    """Squares of 16 blocks, so many. Each operand is the block of a ``number`` from 0 to 15 in the first
    square, and the blocks from one square to the next, which one alone has not. Of 32-bit elements a square
    is two of 8 blocks, whose rows alternate in the result."""
    sides = (("dstRepStride", made[1]), ("srcRepStride", taken[1]))
    values: dict[str, Expr] = {"repeatTimes": repeats}
    values |= {name: Choice(repeats, ">", Int(1), expr(step), Int(0)) for name, step in sides}
    types = {"repeatTimes": "uint8_t", **{name: "uint16_t" for name, _ in sides}}
    to, source = (
        SliceList("targets", number, _SQUARE, made[0]),
        SliceList("origins", number, _SQUARE, taken[0]),
    )
    fields = Fields("TransDataTo5HDParams", values, types)
    k.call("TransDataTo5HD", to, source, fields, repeats=repeats, template=made[0].ctype)


_STRIDES = {
    "UnaryRepeatParams": ("dstBlkStride", "srcBlkStride", "dstRepStride", "srcRepStride"),
    "BinaryRepeatParams": (
        *("dstBlkStride", "src0BlkStride", "src1BlkStride"),
        *("dstRepStride", "src0RepStride", "src1RepStride"),
    ),
}


def strides(struct: str, *values: Index) -> Fields:
    """Steps in blocks of an instruction's operands, from block to block and from repeat to repeat."""
    names = _STRIDES[struct]
    given = dict(zip(names, map(expr, values), strict=True))
    return Fields(struct, given, dict.fromkeys(names, "uint8_t"), is_short=True)


def read_as(ctype: str, place: Place) -> Slice:
    """What lies there as elements of another type; offsets count the buffer's own."""
    return evolve(whole(place), read_as=ctype)


def _operand(node: Operand | Buffer | int) -> Operand:
    if isinstance(node, Buffer):
        return whole(node)
    return expr(node) if isinstance(node, int) else node
