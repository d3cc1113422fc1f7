"""The vector cores of an attention: scores become weights by an online softmax, and parts of the output are
summed.

Both cores beside a cube core have half of the rows of each step. What a step gives is collected behind the
scores of the next one, so that the cube core multiplies in the meantime.
"""

from __future__ import annotations

from attrs import evolve, frozen

from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.builder import Builder, Place, as_float, at, strides, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U32,
    U64,
    Choice,
    Constant,
    Expr,
    Function,
    Int,
    Param,
    State,
    Var,
    VectorCore,
    ceil_div,
    least,
    round_up,
)
from evokernel_core.targets.ascendc.ir.nodes import (
    Buffer,
    Converted,
    Enumerator,
    Fields,
    InverseRoot,
    Kernel,
    Number,
    Ring,
    Section,
    Slice,
    Tensor,
)
from evokernel_core.targets.ascendc.kernels.attention.attention_settings import (
    AttentionSchedule,
    ChipAttention,
)
from evokernel_core.targets.ascendc.kernels.attention.steps import FLOATS, AttentionSizes, AttentionStep, walk
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_LANES = Constant("LANES", 64)
_LOWEST = Number("LOWEST", -3.0e38, "below every score: rows that see no key stay finite")
_HIDDEN = Number("HIDDEN", -3.4e38, "so far below that a row of such scores weighs nothing")
_LEAST = Number("LEAST_TOTAL", 1.0e-37)


@frozen
class Mask:
    """Where a mask lies: its tensor, elements from row to row (none: all queries have one), and where its
    matrices begin."""

    tensor: Tensor
    pitch: Param
    start: Function | None
    is_row: bool


@frozen
class Rings:
    """What passes between a cube core and its vector cores."""

    scores: Ring
    weights: Ring
    results: Ring


@frozen
class _Before:
    """What is collected of the step before: its first row in the output and in the rings, how many there are,
    where their totals lie, and whether the step was the first or the last of its queries."""

    row: State
    first: State
    rows: State
    totals: State
    begins: State
    ends: State


_BEFORE = _Before(
    State("rowBefore", 0, "of the step before: its first row in the output"),
    State("firstBefore", 0, "its first row in the rings", U32),
    State("rowsBefore", 0, "how many there are", U32),
    State("totalsBefore", 0, "where they lie", U32),
    State("beginsBefore", 0, "whether it is the first of its queries", U32),
    State("endsBefore", 0, "whether it is the last", U32),
)


class Softmax:
    """The kernel of the vector cores. ``widest``: how many columns the parts of the output may have that stay
    in the unified buffer; 0 where one step holds all keys, since cube cores write the output then."""

    def __init__(
        self,
        problem: ChipAttention,
        schedule: AttentionSchedule,
        sizes: AttentionSizes,
        rings: Rings,
        mask: Mask | None,
        widest: int,
    ) -> None:
        self.k = Builder(
            "A vector core: scores become weights by an online softmax, and parts of the output are summed."
        )
        self.problem, self.sizes, self.rings, self.mask, self.widest = problem, sizes, rings, mask, widest
        self.ctype, self.width = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self.block = Constant("C0_ROW", BLOCK_BYTES // self.width, "elements of a block of results")
        self.half, self.chunk = sizes.half, sizes.chunk
        elements = self.chunk * sizes.tile_keys
        stages = schedule.buffers
        self.incoming = Buffer("incoming", "float", 4, elements, stages)
        self.masking = Buffer("masking", "float", 4, elements)
        self.outgoing = Buffer("outgoing", self.ctype, self.width, elements, stages)
        self.fold = Buffer("fold", "float", 4, self.chunk * _LANES)
        self.spread = Buffer("spread", "float", 4, self.half * FLOATS)
        self.highest, self.higher = (self._numbers(name, 1) for name in ("highest", "higher"))
        self.totals, self.fading = (self._numbers(name, 2) for name in ("totals", "fading"))
        self.part = Buffer("part", "float", 4, self.half * max(widest, 1))
        self.columns = Buffer("columnNumbers", "float", 4, sizes.tile_keys)
        self.seen = Buffer("seen", "uint8_t", 1, ceil_div(sizes.tile_keys, 8 * BLOCK_BYTES) * BLOCK_BYTES)
        self.turn = State("turnCount", 0, "steps of this core so far", U32)
        self.unit = State("unitCount", 0, "units of this core so far", U32)

    def _numbers(self, name: str, slots: int) -> Buffer:
        return Buffer(name, "float", 4, self.half * slots, cleared=True)

    def kernel(self) -> Kernel:
        """The loops of a cube core, with what its vector cores do in each step."""
        k, problem = self.k, self.problem
        output = k.output("output", "output", self.ctype, self.width)
        numbers = (self.highest, self.higher, self.totals, self.fading)
        # What instructions read and write at a time lies in banks apart so.
        k.lay_out(self.incoming, self.outgoing, self.fold, self.spread, *numbers, self.part, self.masking)
        if problem.causal:
            k.call("CreateVecIndex", self.columns, as_float(0), self.sizes.tile_keys, repeats=1)
        with walk(k, self.sizes, causal=problem.causal, with_cube=True) as step:
            half = k.let("upper", ceil_div(step.queries, 2))
            first = k.let("first", Choice(VectorCore(), "==", Int(0), Int(0), half))
            rows = k.let("rows", Choice(VectorCore(), "==", Int(0), half, step.queries - half))
            slot = k.let("slot", self.turn % self.rings.scores.places)
            totals = k.let("unitTotals", self.unit % 2 * self.half)
            k.take(self.rings.scores)
            with k.section("Soften"):
                self._soften(step, first, rows, slot, totals)
            k.give(self.rings.weights)
            with k.when(self.turn, ">", 0):
                if self.widest:
                    with k.section("Collect", "The parts of the step before."):
                        k.take(self.rings.results)
                        with k.when(self.sizes.is_whole, "==", 0):
                            self._collect(output)
                    collected = k.last
                else:
                    k.take(self.rings.results)
            self._remember(step, first, rows, totals)
        if self.widest:
            assert isinstance(collected, Section)
            k.again(collected)
        else:
            k.take(self.rings.results)
        tensors = (*((self.mask.tensor,) if self.mask else ()), output)
        rings = (self.rings.scores, self.rings.weights, self.rings.results)
        return evolve(k.kernel(), tensors=tensors, rings=rings)

    def _remember(self, step: AttentionStep, first: Var, rows: Var, totals: Var) -> None:
        k, is_last = self.k, Choice(step.tile + 1, "==", step.tiles, Int(1), Int(0))
        if self.widest:
            k.assign(_BEFORE.row, step.matrix * self.sizes.queries + step.query + first)
            k.assign(_BEFORE.first, first)
            k.assign(_BEFORE.rows, rows)
            k.assign(_BEFORE.totals, totals)
            k.assign(_BEFORE.begins, Choice(step.tile, "==", Int(0), Int(1), Int(0)))
            k.assign(_BEFORE.ends, is_last)
        k.assign(self.turn, self.turn + 1)
        k.assign(self.unit, self.unit + is_last)

    # -- scores to weights ----------------------------------------------------------------------

    def _soften(self, step: AttentionStep, first: Var, rows: Var, slot: Var, totals: Var) -> None:
        k, ring = self.k, self.rings
        with k.pieces("row", (0, rows), self.chunk) as (row, count):
            pitch = k.let("pitch", round_up(step.keys, FLOATS))
            place = k.let("place", (slot * self.sizes.tile_queries + first + row) * self.sizes.tile_keys, U64)
            behind = pitch - step.keys
            apart = self.sizes.tile_keys
            self._load(self.incoming, (ring.scores, place), (count, step.keys), apart, behind)
            if self.mask is not None:
                self._load_mask(self.mask, step, first + row, count, behind)
            self._soften_chunk(step, (first, row, count, pitch), at(self.totals, totals + row), slot)
            k.store(ring.weights, place, self.outgoing, step.keys, rows=count, apart=apart)

    def _load_mask(self, mask: Mask, step: AttentionStep, row: Expr, count: Var, behind: Expr) -> None:
        place = (step.query + row) * mask.pitch + step.key
        if mask.start is not None:
            place = mask.start(step.matrix) + place
        rows, apart = (Int(1), step.keys) if mask.is_row else (count, mask.pitch)
        self._load(self.masking, (mask.tensor, place), (rows, step.keys), apart, behind)

    def _load(
        self,
        to: Buffer,
        source: tuple[Tensor | Ring, Expr],
        shape: tuple[Expr, Expr],
        apart: Expr,
        behind: Expr,
    ) -> None:
        """Rows of floats, each on blocks of its own; what is left of a row's last block weighs nothing."""
        (tensor, place), (rows, columns) = source, shape
        self.k.load(to, tensor, place, columns, rows=rows, apart=apart, zeros=behind, filler=_LOWEST)

    def _soften_chunk(
        self, step: AttentionStep, rows: tuple[Var, Var, Var, Var], total: Slice, slot: Var
    ) -> None:
        k, (first, row, count, pitch) = self.k, rows
        score = self.incoming
        elements = count * pitch
        scale = (
            Number("SCALE", self.problem.scale)
            if self.problem.scale
            else InverseRoot("scale", self.sizes.depth)
        )
        self.k.on("Muls", score, score, scale, count=elements)
        if self.mask is not None:
            self._add_mask(self.mask, count, pitch)
        if self.problem.causal:
            self._hide(step, first + row, count, pitch)
        higher, highest, fade = (
            whole(self.higher),
            at(self.highest, row),
            at(self.fading, slot * self.half + row),
        )
        self._reduce("Max", higher, score, (count, step.keys, pitch))
        self.k.on("Maxs", higher, higher, _LOWEST, count=count)
        with k.when(step.tile, ">", 0):
            self.k.on("Max", higher, higher, highest, count=count)
            self.k.on("Sub", fade, highest, higher, count=count)
            self.k.on("Exp", fade, fade, count=count)
            self.k.on("Mul", total, total, fade, count=count)
        self.k.on("Adds", highest, higher, as_float(0), count=count)
        self._rows("Sub", whole(score), higher, count, pitch)
        power = whole(self.outgoing if self.width == 4 else score)
        self.k.on("Exp", power, score, count=elements)
        self._reduce("Sum", higher, power, (count, step.keys, pitch))
        with k.when(step.tile, "==", 0):
            self.k.on("Adds", total, higher, as_float(0), count=count)
        with k.otherwise():
            self.k.on("Add", total, total, higher, count=count)
        with k.when(self.sizes.is_whole, "==", 1):
            self.k.on("Maxs", higher, total, _LEAST, count=count)
            self._rows("Div", power, higher, count, pitch)
        if self.width != 4:
            self._cast(power, count, step.keys, pitch)

    def _add_mask(self, mask: Mask, count: Var, pitch: Var) -> None:
        k, score = self.k, self.incoming
        if not mask.is_row:
            self.k.on("Add", score, score, self.masking, count=count * pitch)
            return
        with k.pieces("lane", (0, pitch), _LANES) as (lane, some):
            steps = strides("BinaryRepeatParams", 1, 1, 1, pitch // FLOATS, pitch // FLOATS, 0)
            places = at(score, lane), at(score, lane), at(self.masking, lane)
            k.call("Add", *places, some, Converted(count, "uint8_t"), steps, repeats=count)

    def _hide(self, step: AttentionStep, row: Expr, count: Var, pitch: Var) -> None:
        """The keys that each query sees are the first ones."""
        k, sizes = self.k, self.sizes
        first = step.query + row
        # Those in front of the last one of a head's first query, or of the first row, stay in every row.
        fewest = k.let("fewest", sizes.seen_by(first if sizes.head_queries is None else Int(0)), U64)
        with k.when(step.key + step.keys, ">", fewest):
            begin = k.let(
                "begin", Choice(fewest, ">", step.key, (fewest - step.key) // _LANES * _LANES, Int(0))
            )
            with k.loop("line", count) as line:
                visible = k.let("visible", sizes.seen_by(first + line), U64)
                shown = k.let("shown", Choice(visible, ">", step.key, visible - step.key, Int(0)))
                with k.when(shown, "<", step.keys):
                    hidden = k.let("hidden", pitch - begin)
                    bits, tail = round_up(hidden, _LANES), at(self.incoming, line * pitch + begin)
                    numbers = at(self.columns, begin)
                    given = Converted(shown, "float"), Enumerator("CMPMODE::LT")
                    self.k.on("Compares", self.seen, numbers, *given, count=bits, former="CompareScalar")
                    mode = Enumerator("SELMODE::VSEL_TENSOR_SCALAR_MODE")
                    self.k.on("Select", tail, self.seen, tail, _HIDDEN, mode, count=hidden)

    # -- parts of the output --------------------------------------------------------------------

    def _collect(self, output: Tensor) -> None:
        """What was there before fades by what its weights were too large."""
        k, sizes = self.k, self.sizes
        slot = k.let("slotBefore", (self.turn + 1) % self.rings.results.places)
        width, pitch = sizes.width, sizes.part_pitch
        with k.pieces("row", (0, _BEFORE.rows), sizes.part_rows) as (row, count):
            place = (slot * sizes.tile_queries + _BEFORE.first + row) * width
            self._load(self.incoming, (self.rings.results, place), (count, width), width, pitch - width)
            sum_ = at(self.part, row * pitch)
            with k.section("AddPart"):
                with k.when(_BEFORE.begins, "==", 1):
                    self.k.on("Adds", sum_, self.incoming, as_float(0), count=count * pitch)
                with k.otherwise():
                    self._rows("Mul", sum_, at(self.fading, slot * self.half + row), count, pitch)
                    self.k.on("Add", sum_, sum_, self.incoming, count=count * pitch)
            with k.when(_BEFORE.ends, "==", 1):
                with k.section("Finish"):
                    self.k.on("Maxs", self.higher, at(self.totals, _BEFORE.totals + row), _LEAST, count=count)
                    self._rows("Div", sum_, whole(self.higher), count, pitch)
                    if self.width == 4:
                        self.k.on("Adds", self.outgoing, sum_, as_float(0), count=count * pitch)
                    else:
                        self._cast(sum_, count, width, pitch)
                k.store(output, (_BEFORE.row + row) * width, self.outgoing, width, rows=count, apart=width)

    # -- instructions on rows -------------------------------------------------------------------

    def _reduce(self, name: str, to: Slice, source: Place, sizes: tuple[Var, Var, Var]) -> None:
        """Columns of all rows fold onto the lanes of one repeat, so that the slow part runs once a row."""
        k, (rows, columns, pitch), fold = self.k, sizes, self.fold
        times, blocks, item = Converted(rows, "uint8_t"), pitch // FLOATS, whole(source)
        first = least(columns, _LANES)
        alone = strides("UnaryRepeatParams", 1, 1, FLOATS, blocks)
        k.call("Adds", fold, item, as_float(0), first, times, alone, repeats=rows)
        with k.pieces("lane", (first, columns), _LANES) as (lane, some):
            both = strides("BinaryRepeatParams", 1, 1, 1, FLOATS, FLOATS, blocks)
            key = {"Max": "Max", "Sum": "Add"}[name]
            k.call(key, fold, fold, item.behind(lane), some, times, both, repeats=rows)
        order = (Enumerator("ReduceOrder::ORDER_ONLY_VALUE"),) if name == "Max" else ()
        k.call(
            "ReduceRepeat",
            to,
            fold,
            first,
            times,
            1,
            1,
            FLOATS,
            *order,
            repeats=rows,
            former=f"WholeReduce{name}",
        )

    def _rows(self, key: str, matrix: Slice, numbers: Slice, rows: Var, pitch: Expr) -> None:
        """Each row and its number: a block of it is used for all blocks of the row."""
        k, groups, blocks = self.k, ceil_div(rows, FLOATS), pitch // FLOATS
        steps = Fields("BrcbRepeatParams", {"dstBlkStride": Int(1), "dstRepStride": FLOATS}, is_short=True)
        k.call("Brcb", self.spread, numbers, Converted(groups, "uint8_t"), steps, repeats=groups)
        with k.pieces("lane", (0, pitch), _LANES) as (lane, some):
            place = matrix.behind(lane)
            step = strides("BinaryRepeatParams", 1, 1, 0, blocks, blocks, 1)
            k.call(key, place, place, self.spread, some, Converted(rows, "uint8_t"), step, repeats=rows)

    def _cast(self, source: Slice, rows: Var, columns: Expr, pitch: Expr) -> None:
        """Rows of the narrow type start on blocks of their own."""
        k, to = self.k, self.outgoing
        narrow, rounding = ceil_div(columns, self.block), Enumerator("RoundMode::CAST_RINT")
        with k.when(pitch, "==", narrow * self.block):
            self.k.on("Cast", to, source, rounding, count=rows * pitch)
        with k.otherwise(), k.pieces("lane", (0, columns), _LANES) as (lane, some):
            steps = strides("UnaryRepeatParams", 1, 1, narrow, pitch // FLOATS)
            place = source.behind(lane)
            k.call(
                "Cast", at(to, lane), place, rounding, some, Converted(rows, "uint8_t"), steps, repeats=rows
            )
