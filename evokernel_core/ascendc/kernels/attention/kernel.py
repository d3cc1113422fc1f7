"""The kernel of an attention: both products of each step on cube cores, an online softmax on vector cores.

A step is some queries of one matrix against some of its keys. Its scores go to the vector cores, which make
weights of them; the weights times the values go to the vector cores again, or are the result where the
weights of all keys are there at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from attrs import frozen

from evokernel_core.ascendc.ir.builder import Builder, whole
from evokernel_core.ascendc.ir.cube import Fixpipe, Join, LoadData, Mmad, Nd2Nz, Span
from evokernel_core.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Function,
    Int,
    Param,
    Size,
    Var,
    ceil_div,
    least,
)
from evokernel_core.ascendc.ir.nodes import Buffer, Memory, Region, Ring, Role, Tensor
from evokernel_core.ascendc.kernels.attention.problem import Attention, AttentionSchedule, fixed_bytes
from evokernel_core.ascendc.kernels.cube import Beside, CubeKernel, VectorText
from evokernel_core.ascendc.kernels.matmul.design import start_of
from evokernel_core.ascendc.kernels.matmul.problem import QUANT, Side
from evokernel_core.ascendc.kernels.rendering import parameter, render
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.domain.tensor import ITEM_SIZE

_SLOTS = Constant("SLOTS", 2, "one is filled while the other is used")


@frozen
class _Operand:
    """A tensor in device memory, elements from row to row, and where its matrices begin."""

    tensor: Tensor
    pitch: Param
    start: Function | None

    def place(self, matrix: Expr, row: Expr, column: Expr) -> Region:
        """Where an element of a matrix lies."""
        inside = row * self.pitch + column
        return Region(self.tensor, inside if self.start is None else self.start(matrix) + inside)


@frozen
class _Tiling:
    """Sizes, tiles of queries in each matrix and in all, matrices that share their keys, and whether one step
    holds all keys."""

    queries: Param
    keys: Param
    depth: Param
    width: Param
    query_tiles: Param
    units: Param
    sharing: Param
    is_whole: Param


@frozen
class _Step:
    """Where a step begins, how much it holds, and which one it is of all steps of its queries."""

    matrix: Var
    query: Var
    key: Var
    queries: Var
    keys: Var
    tile: Var
    tiles: Var

    @property
    def told(self) -> tuple[Var, ...]:
        """What vector cores are told of it, in the order of their struct."""
        return (self.matrix, self.query, self.key, self.queries, self.keys, self.tile, self.tiles)


@frozen
class _Bases:
    """The numbers of a schedule."""

    queries: Constant
    keys: Constant
    n: Constant
    k: Constant
    panel_k: Constant


class _Design:
    """An attention in a schedule, and what its kernel is built of."""

    def __init__(self, found: Attention, schedule: AttentionSchedule) -> None:
        note = "The cube core: scores of the next step, then weights times values."
        self.k, self.found = Builder(note), found
        self.bases = _Bases(
            Constant("TILE_QUERIES", schedule.queries, "rows of one unit; each of two vector cores has half"),
            Constant("TILE_KEYS", schedule.keys, "keys of one step"),
            Constant("BASE_N", schedule.base_n, "columns of one result in L0C"),
            Constant("BASE_K", schedule.base_k, "depth of one step in L0A and L0B"),
            Constant("PANEL_K", schedule.panel_k, "depth of one step in L1"),
        )
        self.tiling = self._sizes()
        self.query, self.key, self.value = (
            self._operand(name, getattr(found, name)) for name in ("query", "key", "value")
        )
        ctype, size, base = CPP_TYPE[found.dtype], ITEM_SIZE[found.dtype], self.bases
        self.output = self.k.output("output", "output", ctype, size)
        self.panels = [
            Buffer(f"{letter}Panel", ctype, size, rows * base.panel_k, 2, memory=Memory.L1)
            for letter, rows in (("a", base.queries), ("b", base.n))
        ]
        self.steps = [
            Buffer(f"{letter}Step", ctype, size, rows * base.k, 2, memory=memory)
            for letter, rows, memory in (("a", base.queries, Memory.L0A), ("b", base.n, Memory.L0B))
        ]
        slots = schedule.c_slots
        self.sum = Buffer("product", "float", 4, base.queries * base.n, slots, memory=Memory.L0C)
        scores = base.queries * base.keys
        parts = Choice(self.tiling.is_whole, "==", Int(1), Int(0), base.queries * self.tiling.width)
        note = "of a step in the ring, none where one step holds all keys"
        parts = self.k.param("resultElements", parts, note)
        self.scores = self._ring("scores", "float", 4, scores, Role.OUTPUT)
        self.weights = self._ring("weights", ctype, size, scores, Role.INPUT)
        self.results = self._ring("results", "float", 4, parts, Role.OUTPUT)

    def _sizes(self) -> _Tiling:
        k, found = self.k, self.found
        names = ("matrices", "queries", "keys", "depth", "width")
        matrices, queries, keys, depth, width = (k.param(name, Size(getattr(found, name))) for name in names)
        for size in (matrices, queries, keys, depth, width):
            k.require(size, ">=", 1)
        note = "matrices of queries that share one of keys and values"
        sharing = k.param("sharing", Size(found.sharing), note)
        tiles = k.param("queryTiles", ceil_div(queries, self.bases.queries))
        units = k.param("units", matrices * tiles, "tiles of queries over all matrices")
        is_whole = Choice(keys, "<=", self.bases.keys, Int(1), Int(0))
        whole_step = k.param("isWhole", is_whole, "one step holds all keys", U32)
        return _Tiling(queries, keys, depth, width, tiles, units, sharing, whole_step)

    def _operand(self, name: str, side: Side) -> _Operand:
        ctype, size = CPP_TYPE[self.found.dtype], ITEM_SIZE[self.found.dtype]
        tensor = self.k.input(name, parameter(side.name), ctype, size)
        return _Operand(tensor, *place_of(self.k, name, side))

    def _ring(self, name: str, ctype: str, size: int, elements: Expr, role: Role) -> Ring:
        return self.k.ring_of_turns(name, ctype, size, _SLOTS, elements, role)

    # -- what a step does -----------------------------------------------------------------------

    def scores_of(self, step: _Step) -> None:
        """queries * keys^T, into the ring."""
        k, depth, shared = self.k, self.tiling.depth, step.matrix // self.tiling.sharing
        tiles = k.pieces("column", (0, step.keys), self.bases.n)
        with k.section("Score", "scores = queries * keys^T"), tiles as (column, columns):
            with k.sum(), k.pieces("start", (0, depth), self.bases.panel_k) as (start, count):
                rows = self.query.place(step.matrix, step.query, start)
                k.do(Nd2Nz(whole(self.panels[0]), rows, step.queries, count, self.query.pitch))
                rows = self.key.place(shared, step.key + column, start)
                k.do(Nd2Nz(whole(self.panels[1]), rows, columns, count, self.key.pitch))
                self._add_panels("AddScores", (step.queries, columns, count), turned=False)
            with k.stored():
                place = Region(self.scores, column)
                self._store(place, (step.queries, columns), self.bases.keys)

    def results_of(self, step: _Step) -> None:
        """Weights times values: the output itself, or a part of it into the ring."""
        k, width, shared = self.k, self.tiling.width, step.matrix // self.tiling.sharing
        note = "Weights times values: the output where the weights of all keys are there, else a part of it."
        tiles = k.pieces("column", (0, width), self.bases.n)
        with k.section("Weigh", note), tiles as (column, columns):
            with k.sum(), k.pieces("start", (0, step.keys), self.bases.panel_k) as (start, count):
                rows = Region(self.weights, start)
                k.do(Nd2Nz(whole(self.panels[0]), rows, step.queries, count, self.bases.keys))
                rows = self.value.place(shared, step.key + start, column)
                k.do(Nd2Nz(whole(self.panels[1]), rows, count, columns, self.value.pitch))
                self._add_panels("AddParts", (step.queries, columns, count), turned=True)
            with k.stored():
                shape = step.queries, columns
                with k.when(self.tiling.is_whole, "==", 1):
                    row = step.matrix * self.tiling.queries + step.query
                    self._store(Region(self.output, row * width + column), shape, width)
                with k.otherwise():
                    self._store(Region(self.results, column), shape, width)

    def _add_panels(self, name: str, sizes: tuple[Var, Var, Var], *, turned: bool) -> None:
        """The panels in L1 are added to a sum; ``turned``: rows of the right one run along its columns."""
        k, (rows, columns, depth) = self.k, sizes
        (a, b), (left, right) = self.panels, self.steps
        note = "The panels, step by step, into one of the sums."
        with k.section(name, note), k.pieces("place", (0, depth), self.bases.k) as (place, count):
            along = Span(place, count, depth)
            down, across = (Span(Int(0), size, size) for size in (rows, columns))
            k.do(LoadData(whole(left), whole(a), down, along, turned=False))
            sides = (along, across) if turned else (across, along)
            k.do(LoadData(whole(right), whole(b), *sides, turned=turned))
            k.do(Mmad(whole(self.sum), whole(left), whole(right), rows, columns, count))

    def _store(self, target: Region, shape: tuple[Var, Var], pitch: Expr) -> None:
        rows, columns = shape
        quant = QUANT[self.found.dtype] if target.tensor is self.output else ""
        self.k.do(Fixpipe(target, whole(self.sum), rows, columns, rows, pitch, quant))


def place_of(k: Builder, name: str, side: Side) -> tuple[Param, Function | None]:
    """Elements from row to row of an operand, and where its matrices begin."""
    pitch = k.param(f"{name}Pitch", Size(side.pitch), "elements from one row to the next")
    return pitch, start_of(k, side, name)


@contextmanager
def _walk(k: Builder, design: _Design) -> Iterator[_Step]:
    """The steps of a core, in the order in which its cube core and its vector cores take them. Late queries
    see more keys where attention is causal: the tiles of each next matrix are turned by one then, so that no
    core has the same tile of all its matrices; keys behind the last query of a unit weigh nothing."""
    sizes, bases, causal = design.tiling, design.bases, design.found.causal
    with k.cores("unit", sizes.units) as unit:
        matrix = k.let("matrix", unit // sizes.query_tiles, U64)
        turned = unit + matrix if causal else unit
        query = k.let("query", turned % sizes.query_tiles * bases.queries, U64)
        queries = k.let("queries", least(sizes.queries - query, bases.queries))
        seen = k.let("seen", least(query + queries, sizes.keys) if causal else sizes.keys, U64)
        tiles = k.let("keyTiles", ceil_div(seen, bases.keys))
        with k.loop("keyTile", tiles) as tile:
            key = k.let("key", tile * bases.keys, U64)
            left = k.let("left", seen - key, U64)
            keys = k.let("keys", least(left, bases.keys))
            yield _Step(matrix, query, key, queries, keys, tile, tiles)


def build(found: Attention, schedule: AttentionSchedule) -> CubeKernel:
    """The kernel of a legal schedule."""
    design = _Design(found, schedule)
    with _walk(design.k, design) as step:
        design.scores_of(step)
        design.results_of(step)
    mask = None if found.mask is None else place_of(design.k, "mask", found.mask)
    k = Builder("")
    with _walk(k, design) as step:
        k.do(Join(step.told))
    return CubeKernel(design.k.kernel(), k.kernel().body, beside=_softmax(found, schedule, mask))


def _softmax(
    found: Attention, schedule: AttentionSchedule, mask: tuple[Param, Function | None] | None
) -> Beside:
    """The vector cores; ``mask``: where it lies."""

    def written(class_name: str, process: Sequence[str]) -> VectorText:
        size = ITEM_SIZE[found.dtype]
        start = None if mask is None or mask[1] is None else mask[1].result.cpp()
        text = render(
            "attention/softmax",
            class_name=class_name,
            process=process,
            s=schedule,
            causal=found.causal,
            has_mask=found.mask is not None,
            mask_start=start or "0",
            type=CPP_TYPE[found.dtype],
            item_size=size,
        )
        addresses = [parameter(found.mask.name)] if found.mask is not None else []
        return VectorText("", text, class_name, ", ".join([*addresses, "output"]), _too_wide(found, schedule))

    scale = "1.0f / std::sqrt(static_cast<float>(tiling.depth))"
    given = scale if found.scale is None else f"{found.scale!r}f"
    return Beside(written, (("float scale", given),), ("cmath",) if found.scale is None else ())


def _too_wide(found: Attention, schedule: AttentionSchedule) -> str:
    """When values do not fit the unified buffer, on the host."""
    padded = "((tiling.width + 7) / 8 * 8)"
    parts = f"(tiling.isWhole ? 0 : TILE_QUERIES / 2 * {padded} * sizeof(float))"
    taken = fixed_bytes(found, schedule)
    return f"{taken} + {parts} > ubBytes || {padded} * 8 > {schedule.chunk * schedule.keys}"
