"""Vector cores behind a cube core, in the IR: results are taken up region by region, and stored when the
steps of the epilogue are done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property, partial

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.plan import PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Int,
    State,
    VectorCore,
    ceil_div,
    greatest,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import Kernel as IRKernel
from evokernel_core.targets.ascendc.ir.nodes import Ring
from evokernel_core.targets.ascendc.kernels.fused import access
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.lanes_to_one import FLOATS
from evokernel_core.targets.ascendc.kernels.fused.packed import Packed
from evokernel_core.targets.ascendc.kernels.fused.places import MID, row_of
from evokernel_core.targets.ascendc.lowering.program import Instruction

_NOTE = (
    "A vector core: results of the cube core, part by part, and what follows them, before they are stored."
)
READY, TAKEN = "RESULT_READY", "RESULT_TAKEN"
"""The flags of a ring between a cube core and its vector cores."""


@frozen
class HandedRegion:
    """Part of the result as the cube core hands it over: where it begins, over all matrices, and how much it
    has. Each of its two vector cores takes half of the rows."""

    row: Expr
    column: Expr
    rows: Expr
    columns: Expr


@frozen
class HandedTile:
    """What a cube core computes at a time: ``count`` results with the same ``rows``, of at most ``widest``
    columns each; ``at`` gives one by its number. ``is_dense``: none has rows of several images."""

    count: Expr
    rows: Expr
    widest: Expr
    at: Callable[[Expr], HandedRegion]
    is_dense: bool = False


@frozen
class _Half:
    """The rows of a vector core among those of a tile, and how many parts of how many rows they are."""

    parts: Expr
    most: Expr
    first: Expr
    end: Expr


Walk = Callable[[Builder], AbstractContextManager[HandedTile]]
"""The loop over tiles of a cube core, for a builder of vector cores."""


class Regions(Packed):
    """The kernel of the vector cores. ``source``: the result that comes through ``ring``; ``width``: elements
    from row to row of tensors in device memory."""

    def __init__(self, kernel: Kernel, source: str, ring: Ring, width: Expr) -> None:
        super().__init__(kernel, _NOTE)
        self._ring, self._width, self._source = ring, width, source
        self._taken = State("takenCount", 0, "results of this core so far", U32)
        self._spot = (self._taken - 1) % ring.places * ring.elements

    def kernel_of(self, walk: Walk) -> IRKernel:
        """The kernel in the loops of ``walk``, whose fields are to be among those of the cube core."""
        k = self.k
        self.loops()
        self.define_lanes()
        self.read_numbers(lambda one: not access.varies(one), lambda _: Int(0))
        with walk(k) as tile:
            self._tiles(tile)
        made = k.kernel()
        handed = {self.tensors[one.name] for one in self.plan.inputs if one.source == self._source}
        others = tuple(tensor for tensor in made.tensors if tensor not in handed)
        return evolve(made, tensors=others, rings=(self._ring,))

    def _tiles(self, handed: HandedTile) -> None:
        """The results of a tile in equal parts; each vector core has those of its half of the rows."""
        k = self.k
        half = k.let("upperRows", ceil_div(handed.rows, 2))
        note = "of the narrowest type in 32 bytes"
        step = Constant("WIDEST_STEP", BLOCK_BYTES // min(self._widths), note)
        most = least(self.tile // round_up(handed.widest, step), self.storage.row_capacity)
        parts = k.let("ownParts", ceil_div(half, k.let("mostRows", most)))
        own = _Half(
            parts,
            k.let("rowsAtATime", ceil_div(half, parts)),
            k.let("ownFirst", Choice(VectorCore(), "==", Int(0), Int(0), half)),
            k.let("ownEnd", Choice(VectorCore(), "==", Int(0), half, handed.rows)),
        )
        if self.plan.outer and not handed.is_dense:
            self._by_runs(handed, own)
        else:
            self._ahead(handed, own)

    def _ahead(self, handed: HandedTile, own: _Half) -> None:
        """What a part is made of travels while the one before is computed, also where that is of another
        result."""
        k, parts = self.k, own.parts
        with k.loop("ownPart", handed.count * parts, preloaded=True) as part:
            region = handed.at(k.let("handedNumber", part // parts))
            place = k.let("ownPlace", own.first + part % parts * own.most)
            rows = k.let("ownRows", Choice(place, "<", own.end, least(own.end - place, own.most), Int(0)))
            row = k.let("ownRow", region.row + place, U64)
            self._shape(region)
            with k.when(part % parts, "==", 0):
                self._begin()
            with k.when(rows, ">", 0):
                self._load(region, place, row, rows)
            with k.when(part % parts, "==", parts - 1):
                k.give(TAKEN, "MTE2")
            with k.when(rows, ">", 0):
                self._compute(row, rows)
            with k.when(rows, ">", 0):
                self._store(region, row, rows)

    def _by_runs(self, handed: HandedTile, own: _Half) -> None:
        """Parts end where the rows end in which inputs are dense."""
        k = self.k
        with k.loop("handedNumber", handed.count) as number:
            region = handed.at(number)
            self._shape(region)
            begin = k.let("ownBegin", region.row + own.first, U64)
            end = k.let("ownLast", region.row + own.end, U64)
            first = k.let("firstRun", begin // MID, U64)
            self._begin()
            with k.loop("ownRun", ceil_div(end, MID) - first, U64) as run:
                start = k.let("runStart", greatest(begin, (first + run) * MID), U64)
                stop = k.let("runStop", least(end, (first + run + 1) * MID), U64)
                with k.loop("ownPart", ceil_div(stop - start, own.most), U64) as part:
                    row = k.let("ownRow", start + part * own.most, U64)
                    rows = k.let("ownRows", least(stop - row, own.most))
                    self._load(region, row - region.row, row, rows)
                    self._compute(row, rows)
                    self._store(region, row, rows)
            k.give(TAKEN, "MTE2")

    def _begin(self) -> None:
        """The next result is there."""
        self.k.take(READY)
        self.k.assign(self._taken, self._taken + 1)

    def _compute(self, row: Expr, rows: Expr) -> None:
        self.read_numbers(access.varies, lambda one: row_of(self.plan, one, row))
        count = self.k.let("count", rows * self._pitch)
        self.write(self._program.body, self._program, self._on_rows(rows, count))

    @cached_property
    def _widths(self) -> frozenset[int]:
        """Bytes of the elements that lie in rows of a tile."""
        widths = {ITEM_SIZE[tensor.dtype] for tensor in self.kernel.tensors}
        return frozenset(widths | ({2} if self.kernel.passes_bytes else set()))

    def _shape(self, region: HandedRegion) -> None:
        """How the rows of a region lie in a tile."""
        k = self.k
        self._columns = k.let("ownColumns", region.columns)
        self._pitch = k.let("ownPitch", round_up(self._columns, FLOATS))
        self._pitches = {4: self._pitch}
        for size in sorted(self._widths - {4}):
            pitch = round_up(self._columns, BLOCK_BYTES // size)
            self._pitches[size] = k.let(f"ownPitchOf{size}", pitch)

    def _is_hoisted(self, instruction: Instruction) -> bool:
        return False

    def _decided(self, holds: Callable[[int], bool]) -> bool | None:
        """Regions at the edge of a result have other columns."""
        return None

    def _load(self, region: HandedRegion, place: Expr, row: Expr, rows: Expr) -> None:
        """What ``rows`` from ``row`` on take, which are row ``place`` of the region."""
        for operand in self.kernel.queued:
            queue, tensor = self.storage.queues[operand.name], self.tensors[operand.name]
            index = row_of(self.plan, operand, row)
            start = index * self._width + region.column
            if operand.source == self._source:
                copy = partial(self.k.load, queue, self._ring, self._spot + place * self._columns)
                self._rows(operand, copy, rows, self._columns)
            elif operand.domain is Domain.ROW:
                self.load(operand, index, rows)
            elif operand.domain is Domain.COLUMN:
                self.load(operand, start, self._columns)
            else:
                self._rows(operand, partial(self.k.load, queue, tensor, start), rows, self._width)

    def _store(self, region: HandedRegion, row: Expr, rows: Expr) -> None:
        start = row * self._width + region.column
        for output in self.plan.outputs:

            def store(count: Expr, output: PlanOutput = output, **how: Expr) -> None:
                self.k.store(self.tensors[output.name], start, self.storage.queues[output.name], count, **how)

            self._rows(output, store, rows, self._width)

    def _rows(
        self, tensor: PlanInput | PlanOutput, copy: Callable[..., None], rows: Expr, apart: Expr
    ) -> None:
        """Whole rows of memory that fill their blocks travel as one run."""
        k, columns = self.k, self._columns
        rest = columns % (BLOCK_BYTES // ITEM_SIZE[tensor.dtype])
        if apart is not columns:
            rest = Choice(columns, "==", apart, rest, Int(1))
        with k.when(rest, "==", 0):
            copy(rows * columns)
        with k.otherwise():
            copy(columns, rows=rows, apart=apart)
