"""The kernel of element-wise arithmetic: tiles are loaded as words, computed, and stored as what they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.schedule import Named, OneOf, Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import LANES
from evokernel_core.targets.ascendc.ir.allocation import bytes_of
from evokernel_core.targets.ascendc.ir.builder import Builder, at, read_as, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Constant,
    CoreCount,
    Expr,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Element,
    Instruction,
    Kernel,
    Slice,
    Tensor,
)
from evokernel_core.targets.ascendc.kernels.integers.instructions import (
    PAIR,
    IntegerTiles,
    Places,
    Registers,
    Source,
    Writer,
    pick,
    rounding,
)
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE
from evokernel_core.targets.ascendc.legalization.division import MOST_BY_DIGITS
from evokernel_core.targets.ascendc.legalization.graph import Read, WordPlan, Written
from evokernel_core.targets.ascendc.legalization.limbs import BITS, LEAVES, SIGN, Operand, Word, needed
from evokernel_core.targets.ascendc.lowering.program import camel, size_field

_NOTE = "Integers as 32-bit words, the lanes of the vector unit: results wrap around like PyTorch's."
_SHORT = frozenset({"bool", "uint8", "int8"})
"""dtypes that reach words through half."""
_WORD_BITS = Constant("WORD_BITS", BITS)
_REPEAT = Constant("REPEAT_WORDS", LANES, "words of one vector repeat")
_ANY_NUMBER = 256
"""Of registers, until it is known how many a plan takes."""


@frozen
class Integers:
    """What a task asks for: words, and the names of the results. ``registers`` are in use at a time;
    ``element_bytes``: of the unified buffer for each element of a tile, with one buffer for each tensor;
    ``instructions``: of a tile."""

    plan: WordPlan
    results: tuple[str, ...]
    registers: int = _ANY_NUMBER
    element_bytes: int = 0
    instructions: int = 0

    @property
    def roots(self) -> tuple[Operand, ...]:
        """The words that results are stored from."""
        outputs = self.plan.outputs
        return tuple(word for output in outputs for word in output.words[: None if _is_joined(output) else 1])

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """The inputs that these are made of."""
        used = {word.detail for word in needed(self.roots) if word.op in LEAVES}
        return tuple(read for read in self.plan.reads if read.name in used)

    @property
    def queues(self) -> int:
        """Of loads or of stores, whichever are more."""
        return max(sum(read.columns for read in self.reads), len(self.results))

    @property
    def moved_bytes(self) -> int:
        """Of an element of all tensors that are loaded or stored in tiles."""
        loaded = (read.dtype for read in self.reads if read.columns)
        return sum(ITEM_SIZE[dtype] for dtype in (*loaded, *(output.dtype for output in self.plan.outputs)))


TILES = (256, 512, 1024, 2048, 4096, 8192)


@frozen
class IntegerSchedule(Schedule):
    """``tile`` elements at a time, ``buffers`` for each tensor."""

    tile: Annotated[int, OneOf(TILES), Scaled("double tile", "halve tile")]
    buffers: Annotated[int, BUFFERS, Range(1, 2), Named({2: "double buffer", 1: "single buffer"})] = 2


class Elementwise:
    """One kernel; ``taken`` registers are those that it has once it is built."""

    def __init__(self, problem: Integers, schedule: IntegerSchedule) -> None:
        self.k, self._problem, self._plan = Builder(_NOTE), problem, problem.plan
        self._tile = Constant("TILE", schedule.tile, "most elements of a tile")
        self._tiles = IntegerTiles(self._tile, problem.registers)
        self._inputs = {read.name: self._input(read, problem.results) for read in problem.reads}
        self._outputs = [
            self.k.output(f"{name}Out", name, CPP_TYPE[output.dtype], ITEM_SIZE[output.dtype])
            for name, output in zip(problem.results, problem.plan.outputs, strict=True)
        ]
        stages = schedule.buffers
        self._loaded = {
            read.name: self._queue(f"{camel(read.name)}Tile", read.dtype, stages)
            for read in problem.reads
            if read.columns
        }
        self._made = [
            self._queue(f"{name}Tile", output.dtype, stages)
            for name, output in zip(problem.results, problem.plan.outputs, strict=True)
        ]
        self._half = Buffer("halves", "half", 2, self._tile)
        self._pair = Buffer("pair", "int32_t", 4, PAIR * self._tile)
        self._places = Places("Places", PAIR * self._tile, 1, self._tile * 4)
        self._reads = {read.name: read for read in problem.reads}
        self._extents: dict[int, Param] = {}
        self._numbers: dict[str, Var] = {}
        self._sizes: dict[str, Param] = {}

    @property
    def taken(self) -> int:
        return self._tiles.taken

    def _input(self, read: Read, results: Sequence[str]) -> Tensor:
        address = parameter(read.source, results)
        return self.k.input(f"{camel(read.name)}In", address, CPP_TYPE[read.dtype], ITEM_SIZE[read.dtype])

    def _queue(self, name: str, dtype: str, stages: int) -> Buffer:
        return Buffer(name, CPP_TYPE[dtype], ITEM_SIZE[dtype], self._tile, stages)

    # -- tiling -------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """All of it."""
        k, plan = self.k, self._plan
        rows: Expr = Int(1) if plan.rows.is_one else k.param("rows", Size(plan.rows))
        columns = k.param("columns", Size(plan.columns), "elements of a row")
        for size in (rows, columns):
            if size != Int(1):
                k.require(size, ">=", 1)
        cores = CoreCount() if rows == Int(1) else ceil_div(CoreCount(), rows)
        share = ceil_div(columns, k.param("coresPerRow", cores))
        rounded = k.param("share", round_up(share, _REPEAT), "of a core in a row, in whole repeats")
        length = k.param("segmentElements", least(rounded, self._tile))
        segments = k.param("segments", ceil_div(columns, length), "of a row")
        if self._joins:
            self._places.make(k, self._pair)
        with k.cores("unit", k.param("units", rows * segments, "segments of all rows")) as unit:
            row, part = self._row_and_part(unit, rows, segments)
            column = k.let("column", part * length, U64)
            count = k.let("count", least(k.let("left", columns - column, U64), length))
            for read in self._problem.reads:
                self._load(read, row, column, columns, count)
            self._compute(Writer(k, count, Registers(self._tiles.new), self._leaf))
            for tensor, made in zip(self._outputs, self._made, strict=True):
                k.store(tensor, row * columns + column, made, count)
        return k.kernel()

    def _row_and_part(self, unit: Expr, rows: Expr, segments: Expr) -> tuple[Expr, Expr]:
        if rows == Int(1):
            return Int(0), unit
        return self.k.let("row", unit // segments, U64), unit % segments

    def _load(self, read: Read, row: Expr, column: Expr, columns: Expr, count: Expr) -> None:
        """A tile of an input, or the number that a row has of it."""
        tensor, own = self._inputs[read.name], self._row_of(read, row)
        if read.columns:
            self.k.load(self._loaded[read.name], tensor, own * columns + column, count)
        else:
            name = f"{camel(read.name)}Number"
            self._numbers[read.name] = self.k.let(name, Element(tensor, own), "int64_t")

    def _row_of(self, read: Read, row: Expr) -> Expr:
        """Which row of an input belongs to a row, by the atoms of the rows that it has."""
        every = tuple(range(self._plan.row_atoms))
        if read.rows == every:
            return row
        index: Expr = Int(0)
        for atom in read.rows:
            place = row
            for other in reversed(every[atom + 1 :]):
                place = place // self._extent(other)
            index = index * self._extent(atom) + (place if atom == 0 else place % self._extent(atom))
        return index

    def _extent(self, atom: int) -> Param:
        if atom not in self._extents:
            self._extents[atom] = self.k.param(f"extent{atom}", Size(self._plan.atoms[atom]))
        return self._extents[atom]

    def _size(self, expression: str) -> Param:
        """A size with which elements are computed."""
        if expression not in self._sizes:
            most, note = -1 - SIGN, "a size is computed with as a word"
            if self._plan.divides_by_sizes:
                most, note = MOST_BY_DIGITS, "float32 estimates quotients well enough up to here"
            name, size = size_field(expression), Size(extent(expression))
            self._sizes[expression] = self.k.param(name, size, ctype="int64_t")
            self.k.require(self._sizes[expression], "<=", Constant("MOST_SIZE", most, note))
        return self._sizes[expression]

    # -- words --------------------------------------------------------------------------------

    def _compute(self, writer: Writer) -> None:
        """The words of all results, and these from them. Where only one is joined, its words are computed
        where they are joined from; an int32 is computed where it is stored from."""
        outputs, pair = self._plan.outputs, self._halves_of_pair
        homes: dict[int, Slice] = {}
        for output, made in zip(outputs, self._made, strict=True):
            places = (whole(made),) if output.dtype == "int32" else pair if _is_joined(output) else ()
            if output.dtype == "int32" or self._joins == 1:
                words = zip(output.words, places, strict=False)
                homes |= {word.index: place for word, place in words if isinstance(word, Word)}
        writer.compute(self._problem.roots, homes)
        for output, made in zip(outputs, self._made, strict=True):
            self._store(writer, output, whole(made))

    def _leaf(self, word: Word, writer: Writer) -> Source:
        if word.op in ("size", "difference"):
            return Converted(self._size(word.detail), "int32_t")
        read = self._reads[word.detail]
        if not read.columns:
            value = self._numbers[read.name]
            return Converted(value >> _WORD_BITS if word.op == "high" else value, "int32_t")
        loaded = whole(self._loaded[read.name])
        if read.dtype == "int32":
            return loaded
        target = writer.own(word)
        if read.dtype == "int64":
            pick(writer, target, loaded, word.op)
            return target
        stage = whole(self._half) if read.dtype in _SHORT else read_as("float", target)
        writer.call("Cast", stage, loaded, rounding("NONE"))
        writer.call("Cast", target, stage, rounding("RINT"))
        return target

    def _store(self, writer: Writer, written: Written, made: Slice) -> None:
        """A result from its words."""
        if written.dtype == "int32":
            writer.put(written.words[0], made)
            return
        if _is_joined(written):
            for word, place in zip(written.words, self._halves_of_pair, strict=True):
                writer.put(word, place)
            self._places.gather(writer, read_as("int32_t", made), whole(self._pair), PAIR)
            return
        with writer.borrowed(written.words[0]) as (register,):
            if written.dtype in _SHORT:
                stage = whole(self._half)
                short = read_as("int16_t", stage)
                writer.call("Cast", short, register, rounding("NONE"))
                writer.call("Cast", stage, short, rounding("NONE"))
                writer.call("Cast", made, stage, rounding("RINT"))
            else:
                writer.call("Cast", made, register, rounding("NONE"))

    # -- integers of eight bytes --------------------------------------------------------------

    @property
    def _joins(self) -> int:
        """How many results are joined of two words."""
        return sum(map(_is_joined, self._plan.outputs))

    @property
    def _halves_of_pair(self) -> tuple[Slice, Slice]:
        return whole(self._pair), at(self._pair, self._tile)


def _is_joined(written: Written) -> bool:
    """Whether an integer of eight bytes is more than its low word with the sign of that."""
    if written.dtype != "int64":
        return False
    low, high = written.words
    if isinstance(high, int):
        return not (isinstance(low, int) and high == low >> BITS)
    return not (high.op == "sar" and high.args == (low, BITS - 1))


def build(problem: Integers, schedule: IntegerSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return Elementwise(problem, schedule).kernel()


def measured(plan: WordPlan, results: tuple[str, ...]) -> Integers:
    """The problem with what it takes."""
    tile = IntegerSchedule(LANES, 1)
    problem = Integers(plan, results)
    draft = Elementwise(problem, tile)
    kernel = draft.kernel()
    unused = 4 * (problem.registers - draft.taken) if draft.taken else 0
    count = sum(isinstance(node, Instruction) for node in kernel.nodes)
    return Integers(plan, results, draft.taken, bytes_of(kernel) // tile.tile - unused, count)
