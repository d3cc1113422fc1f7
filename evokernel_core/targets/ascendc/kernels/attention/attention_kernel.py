"""The kernel of an attention: both products of each step on cube cores, an online softmax on vector cores.

A step is some queries of one matrix against some of its keys. Its scores go to the vector cores, which make
weights of them; the weights times the values go to the vector cores again, or are the result where the
weights of all keys are there at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve, field, frozen

from evokernel_core.compiler.problems.attention import Tail
from evokernel_core.compiler.problems.products import QUANT, Side
from evokernel_core.compiler.problems.strided import NOWHERE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder, whole
from evokernel_core.targets.ascendc.ir.cube import Fixpipe, LoadData, Mmad, Nd2Nz
from evokernel_core.targets.ascendc.ir.expr import (
    Choice,
    Constant,
    CubeSpan,
    Expr,
    Function,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Memory, Region, Ring, Role, Tensor
from evokernel_core.targets.ascendc.kernels.attention.attention_settings import (
    AttentionSchedule,
    ChipAttention,
    widest_parts,
)
from evokernel_core.targets.ascendc.kernels.attention.softmax import Mask, Rings, Softmax
from evokernel_core.targets.ascendc.kernels.attention.steps import AttentionStep, sizes_of, walk
from evokernel_core.targets.ascendc.kernels.matmul.matmul_design import start_of
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.stage import KernelStage
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_SLOTS = Constant("SLOTS", 2, "one is filled while the other is used")


@frozen
class _Operand:
    """A tensor in device memory, elements from row to row, where its matrices begin, and at which column."""

    tensor: Tensor
    pitch: Param
    start: Function | None
    column: Expr = field(factory=lambda: Int(0))

    def place(self, matrix: Expr, row: Expr, column: Expr) -> Region:
        """Where an element of a matrix lies."""
        inside = row * self.pitch + self.column + column
        return Region(self.tensor, inside if self.start is None else self.start(matrix) + inside)


@frozen
class _Tail:
    """The last columns of queries and keys, and how many there are before."""

    query: _Operand
    key: _Operand
    begin: Param


@frozen
class _Bases:
    """The numbers of a schedule that cube cores alone have."""

    n: Constant
    k: Constant
    panel_k: Constant


class _Design:
    """An attention in a schedule, and what its kernel is built of."""

    def __init__(self, problem: ChipAttention, schedule: AttentionSchedule) -> None:
        note = "The cube core: scores of the next step, then weights times values."
        self.k, self.problem = Builder(note), problem
        self.bases = _Bases(
            Constant("BASE_N", schedule.base_n, "columns of one result in L0C"),
            Constant("BASE_K", schedule.base_k, "depth of one step in L0A and L0B"),
            Constant("PANEL_K", schedule.panel_k, "depth of one step in L1"),
        )
        self.tiling = sizes_of(self.k, problem, schedule)
        self.query, self.key, self.value = (
            self._operand(name, getattr(problem, name)) for name in ("query", "key", "value")
        )
        self.tail = None if problem.tail is None else self._tail(problem.tail)
        ctype, size, base = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype], self.bases
        queries = self.tiling.tile_queries
        self.output = self.k.output("output", "output", ctype, size)
        self.panels = [
            Buffer(f"{letter}Panel", ctype, size, rows * base.panel_k, 2, memory=Memory.L1)
            for letter, rows in (("a", queries), ("b", base.n))
        ]
        self.steps = [
            Buffer(f"{letter}Step", ctype, size, rows * base.k, 2, memory=memory)
            for letter, rows, memory in (("a", queries, Memory.L0A), ("b", base.n, Memory.L0B))
        ]
        slots = schedule.c_slots
        self.sum = Buffer("product", "float", 4, queries * base.n, slots, memory=Memory.L0C)
        scores = queries * self.tiling.tile_keys
        held = Choice(self.tiling.is_whole, "==", Int(1), Int(0), queries * self.tiling.width)
        note = "of a step in the ring, none where one step holds all keys"
        parts = self.k.param("resultElements", held, note)
        scores_ring = self._ring("scores", "float", 4, scores, Role.OUTPUT)
        weights = self._ring("weights", ctype, size, scores, Role.INPUT)
        self.rings = Rings(scores_ring, weights, self._ring("results", "float", 4, parts, Role.OUTPUT))

    def _operand(self, name: str, side: Side) -> _Operand:
        ctype, size = CPP_TYPE[self.problem.dtype], ITEM_SIZE[self.problem.dtype]
        tensor = self.k.input(name, parameter(side.name), ctype, size)
        return _Operand(tensor, *_place_of(self.k, name, side))

    def _tail(self, tail: Tail) -> _Tail:
        begin = self.k.param(
            "tailBegin", self.tiling.depth - Size(tail.depth), "columns in front of the tail"
        )
        follows = evolve(self.query, column=begin)
        query = follows if tail.query is None else self._operand("queryTail", tail.query)
        return _Tail(query, self._operand("keyTail", tail.key), begin)

    def _ring(self, name: str, ctype: str, size: int, elements: Expr, role: Role) -> Ring:
        return self.k.ring_of_turns(name, ctype, size, _SLOTS, elements, role)

    # -- what a step does -----------------------------------------------------------------------

    def scores_of(self, step: AttentionStep) -> None:
        """queries * keys^T, into the ring."""
        k = self.k
        tiles = k.pieces("column", (0, step.keys), self.bases.n)
        with k.section("Score", "scores = queries * keys^T"), tiles as (column, columns):
            with k.sum(), self._panels_of_depth(step, column, columns) as count:
                self._add_panels("AddScores", (step.queries, columns, count), turned=False)
            with k.stored():
                place = Region(self.rings.scores, column)
                self._store(place, (step.queries, columns), self.tiling.tile_keys)

    @contextmanager
    def _panels_of_depth(self, step: AttentionStep, column: Var, columns: Var) -> Iterator[Var]:
        """Panel by panel of queries and of keys from a ``column`` of scores on, and how deep each is."""
        k, depth, most, tail = self.k, self.tiling.depth, self.bases.panel_k, self.tail
        place = step, column, columns
        if tail is None:
            with k.pieces("start", (0, depth), most) as (start, count):
                self._load_panels((self.query, self.key), *place, start, count)
                yield count
            return
        before = ceil_div(tail.begin, most)
        with k.loop("startPiece", before + ceil_div(depth - tail.begin, most)) as piece:
            start = k.let("start", Choice(piece, "<", before, piece, piece - before) * most)
            length = Choice(piece, "<", before, tail.begin, depth - tail.begin)
            count = k.let("startCount", least(length - start, most))
            with k.when(piece, "<", before):
                self._load_panels((self.query, self.key), *place, start, count)
            with k.otherwise():
                self._load_panels((tail.query, tail.key), *place, start, count)
            yield count

    def _load_panels(
        self,
        sides: tuple[_Operand, _Operand],
        step: AttentionStep,
        column: Var,
        columns: Var,
        start: Var,
        count: Var,
    ) -> None:
        k, (query, key), shared = self.k, sides, step.matrix // self.tiling.sharing
        rows = query.place(step.matrix, step.query, start)
        k.do(Nd2Nz(whole(self.panels[0]), rows, step.queries, count, query.pitch))
        rows = key.place(shared, step.key + column, start)
        k.do(Nd2Nz(whole(self.panels[1]), rows, columns, count, key.pitch))

    def results_of(self, step: AttentionStep) -> None:
        """Weights times values: the output itself, or a part of it into the ring."""
        k, width, shared = self.k, self.tiling.width, step.matrix // self.tiling.sharing
        note = "Weights times values: the output where the weights of all keys are there, else a part of it."
        tiles = k.pieces("column", (0, width), self.bases.n)
        with k.section("Weigh", note), tiles as (column, columns):
            with k.sum(), k.pieces("start", (0, step.keys), self.bases.panel_k) as (start, count):
                rows = Region(self.rings.weights, start)
                k.do(Nd2Nz(whole(self.panels[0]), rows, step.queries, count, self.tiling.tile_keys))
                rows = self.value.place(shared, step.key + start, column)
                k.do(Nd2Nz(whole(self.panels[1]), rows, count, columns, self.value.pitch))
                self._add_panels("AddParts", (step.queries, columns, count), turned=True)
            with k.stored():
                shape = step.queries, columns
                with k.when(self.tiling.is_whole, "==", 1):
                    row = step.matrix * self.tiling.queries + step.query
                    self._store(Region(self.output, row * width + column), shape, width)
                with k.otherwise():
                    self._store(Region(self.rings.results, column), shape, width)

    def _add_panels(self, name: str, sizes: tuple[Var, Var, Var], *, turned: bool) -> None:
        """The panels in L1 are added to a sum; ``turned``: rows of the right one run along its columns."""
        k, (rows, columns, depth) = self.k, sizes
        (a, b), (left, right) = self.panels, self.steps
        note = "The panels, step by step, into one of the sums."
        with k.section(name, note), k.pieces("place", (0, depth), self.bases.k) as (place, count):
            along = CubeSpan(place, count, depth)
            down, across = (CubeSpan(Int(0), size, size) for size in (rows, columns))
            k.do(LoadData(whole(left), whole(a), down, along, turned=False))
            sides = (along, across) if turned else (across, along)
            k.do(LoadData(whole(right), whole(b), *sides, turned=turned))
            k.do(Mmad(whole(self.sum), whole(left), whole(right), rows, columns, count))

    def _store(self, target: Region, shape: tuple[Var, Var], pitch: Expr) -> None:
        rows, columns = shape
        quant = QUANT[self.problem.dtype] if target.tensor is self.output else ""
        self.k.do(Fixpipe(target, whole(self.sum), rows, columns, rows, pitch, quant))


def _mask(k: Builder, side: Side) -> Mask:
    tensor = Tensor("mask", parameter(side.name), "float", 4, Role.INPUT)
    return Mask(tensor, *_place_of(k, "mask", side), side.pitch == NOWHERE)


def _place_of(k: Builder, name: str, side: Side) -> tuple[Param, Function | None]:
    """Elements from row to row of an operand, and where its matrices begin."""
    pitch = k.param(f"{name}Pitch", Size(side.pitch), "elements from one row to the next")
    return pitch, start_of(k, side, name)


def build(problem: ChipAttention, schedule: AttentionSchedule) -> KernelStage:
    """The kernel of a legal schedule."""
    design = _Design(problem, schedule)
    k, sizes = design.k, design.tiling
    mask = None if problem.mask is None else _mask(k, problem.mask)
    widest = widest_parts(problem, schedule)
    kept = Choice(sizes.is_whole, "==", Int(1), Int(0), sizes.part_pitch)
    k.require(kept, "<=", widest, "parts of the output do not fit the unified buffer")
    with walk(k, sizes, causal=problem.causal) as step:
        design.scores_of(step)
        design.results_of(step)
    vectors = Softmax(problem, schedule, sizes, design.rings, mask, widest)
    return KernelStage(k.kernel(), vectors.kernel())
