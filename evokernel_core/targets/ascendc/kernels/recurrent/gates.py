"""The vector cores of a recurrence: products of the cube cores become states, step by step.

Rows of sequences are turned into rows of hidden units, as products have them, and states back into fractals,
as the next products take them. The two vector cores of a cube core take half of a unit's hidden units each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from evokernel_core.compiler.problems.recurrent import Recurrence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.ir.builder import Builder, as_float, at, read_as, transpose, whole
from evokernel_core.targets.ascendc.ir.expr import (
    U64,
    Choice,
    Constant,
    Expr,
    Index,
    Int,
    State,
    TilingField,
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
    Kernel,
    Number,
    Slice,
    Tensor,
    TensorList,
)
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_estimate import LAG
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_settings import RecurrentSchedule
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_NOTE = "A vector core: products become states. For each 16 sequences a gate has a row for each hidden unit."
_SIDE = Constant("SIDE", 16, "sequences of a row, and rows that one instruction turns into columns")
_FLOATS = Constant("FLOAT_BLOCK", 8, "floats of 32 bytes")
_PLACES: Mapping[str, tuple[int, ...]] = {"lstm": (0, 1, 3, 2)}
"""Where gates lie among the rows of the weights: those of sigmoids are side by side in a tile."""
_PRODUCTS, _STATES, _INPUTS = "PRODUCTS_READY", "STATES_READY", "INPUTS_READY"
_ONCE = "The same bias for all sequences. A core that has one unit reads its biases once."
_ZERO = Number("ZERO", 0.0)
_ROUND, _WIDEN = Enumerator("RoundMode::CAST_RINT"), Enumerator("RoundMode::CAST_NONE")


_LARGEST = Number("LARGEST_EXPONENT", 40.0, "beyond which exp(x) - 1 is exp(x) + 1")
_REACH, _NEGATIVE_REACH = Number("REACH", 1 / 16), Number("NEGATIVE_REACH", -1 / 16)
_SERIES = (
    *(Number(f"SERIES_{n}", value) for n, value in ((3, 1 / 24), (2, 1 / 6), (1, 1 / 2))),
    Number("SERIES_0", 1.0),
)
"""Of (exp(r) - 1) / r, to 1.3e-7 in reach."""


def build(problem: Recurrence, schedule: RecurrentSchedule, addresses: Mapping[str, object]) -> Kernel:
    """The kernel of the vector cores. ``addresses``: the parameters of operands and results by their roles,
    empty where there are none."""
    return _Gates(problem, schedule, addresses).kernel()


@frozen
class _Share:
    """What a vector core computes of a unit: some hidden units from ``column`` on of some sequences from
    ``row`` on, of one chain."""

    index: Expr
    chain: Expr
    column: Expr
    row: Expr
    width: Expr
    rows: Expr
    is_part: Expr


class _Gates:
    """Fields of the tiling are those that the cube cores need, too."""

    def __init__(
        self, problem: Recurrence, schedule: RecurrentSchedule, addresses: Mapping[str, object]
    ) -> None:
        self._problem, self._given, self._k = problem, addresses, Builder(_NOTE)
        self._ctype, self._size = CPP_TYPE[problem.dtype], ITEM_SIZE[problem.dtype]
        self._gates, self._narrow = problem.gates, self._size < 4
        units = schedule.hidden // 2
        self._units = Constant("UNITS", units)
        self._tile = Constant("TILE", units * schedule.batch)
        self._all = self._tile * Constant("GATES", problem.gates)
        self._strip = Constant("STRIP", units * _SIDE.value)
        self._batch = Constant("TILE_BATCH", schedule.batch)
        self._hidden_tile = Constant("TILE_HIDDEN", schedule.hidden)
        self._c0 = Constant("C0", BLOCK_BYTES // self._size)
        self._squares = Int(units // self._c0.value)
        self._strips = Int(schedule.batch // _SIDE.value)
        self._steps, self._ticks = TilingField("steps"), TilingField("ticks")
        self._hidden, self._of_batch = TilingField("hidden"), TilingField("batch")
        self._many, self._row_pitch = TilingField("units"), TilingField("rowPitch")
        self._batch_tiles = TilingField("batchTiles", "uint32_t")
        self._per_signal = TilingField("unitsPerSignal", "uint32_t")
        self._buffers()
        self._tensors()

    def _buffers(self) -> None:
        problem, tile, every = self._problem, self._tile, self._all
        own, size = self._ctype, self._size
        self._taken = Buffer("taken", own, size, every)
        self._product = Buffer("product", "float", 4, every)
        self._incoming = Buffer("incoming", "float", 4, every)
        self._sums = Buffer("sums", "float", 4, every)
        self._state = Buffer("state", own, size, tile, 2 if self._given["last_cells"] else 1)
        self._before, self._after = (Buffer(name, "float", 4, tile) for name in ("before", "after"))
        self._narrowed = Buffer("narrow", own, size, every)
        self._numerators = Buffer("numerators", "float", 4, every)
        number = self._gates + (problem.kind == "gru")  # products of the new gate are weighed with their bias
        self._biases = Buffer("biases", "float", 4, tile * number)
        self._both = Buffer("both", "float", 4, self._units * (2 * self._gates))
        self._given_biases = Buffer("givenBiases", own, size, self._units * (2 * self._gates))
        # What instructions read and write lies in banks apart.
        self._k.lay_out(
            self._incoming, self._taken, self._product, self._state, self._sums, self._before, self._after,
            self._narrowed, self._given_biases, self._biases, self._numerators, self._both,
        )  # fmt: skip
        self._count = State("count", 0, "units of this tick so far")
        self._input_count = State("inputCount", 0, "of them those that take products of inputs")
        self._biased = State("biased", 0, "the number behind that of the unit whose biases are here")

    def _tensors(self) -> None:
        self._projected = self._several("projected", "projections")
        self._input_biases = self._several("inputBiases", "input_biases")
        self._hidden_biases = self._several("hiddenBiases", "hidden_biases")
        self._initial = self._tensor("initialStates", self._given["hidden_input"])
        self._initial_carried = self._tensor("initialCarried", self._given["carried_input"])
        self._outputs = self._tensor("outputs", self._given["outputs"])
        self._last_states = self._tensor("lastStates", self._given["last_states"])
        self._last_cells = self._tensor("lastCells", self._given["last_cells"])
        self._states = self._own("states", self._ctype, "statesOffset")
        self._products = self._own("products", "float")
        if self._problem.stacked:
            self._inputs = self._own("inputs", "float", "inputsOffset")
        if self._problem.carries:
            self._carried = self._own("carried", "float", "carriedOffset")

    def _several(self, name: str, role: str) -> TensorList | None:
        given = self._given[role]
        assert isinstance(given, Sequence)
        return self._k.inputs(name, given, self._ctype, self._size) if given else None

    def _tensor(self, name: str, address: object) -> Tensor | None:
        return self._k.output(name, str(address), self._ctype, self._size) if address else None

    def _own(self, name: str, ctype: str, place: str = "") -> Tensor:
        """A part of the workspace."""
        address = f"workspace + tiling.{place}" if place else "workspace"
        return self._k.output(name, address, ctype, 4 if ctype == "float" else self._size)

    # -- ticks ----------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        """All steps of all units."""
        k = self._k
        if self._problem.kind != "rnn_relu":  # ones for sigmoids, twos for tanh(x) = 2 * sigmoid(2 * x) - 1
            ones = self._tile * (self._gates - 1)
            if self._gates > 1:
                self._k.on("Duplicate", self._numerators, as_float(1), count=ones)
            self._k.on("Duplicate", at(self._numerators, ones), as_float(2), count=self._tile)
        with k.cores("index", self._many, with_cube=True) as index:
            share = self._share(index)
            with k.when(share.width, ">", 0), k.section("Begin", "The states before the first step."):
                self._begin(share)
        k.give(_STATES)
        with k.loop("tick", self._ticks, U64) as tick:
            if self._problem.carries:
                k.fence("MTE3_MTE2")  # reads what the tick before has written
            for state in (self._count, *([self._input_count] if self._problem.stacked else [])):
                k.assign(state, 0)
            with k.cores("index", self._many, with_cube=True) as index:
                self._unit(self._share(index), tick)
        return k.kernel()

    def _share(self, index: Expr) -> _Share:
        k, units = self._k, self._units
        place = k.let("place", index // self._batch_tiles, U64)
        tiles = TilingField("hiddenTiles", "uint32_t")
        column = k.let("column", place % tiles * self._hidden_tile + VectorCore() * units, U64)
        row = k.let("row", index % self._batch_tiles * self._batch, U64)
        width = k.let("width", Choice(column, "<", self._hidden, least(self._hidden - column, units), Int(0)))
        rows = k.let("rows", least(self._of_batch - row, self._batch))
        same_rows = Choice(rows, "==", self._batch, Int(0), Int(1))
        part = k.let("isPart", Choice(width, "==", units, same_rows, Int(1)))
        return _Share(index, k.let("chain", place // tiles, U64), column, row, width, rows, part)

    def _begin(self, share: _Share) -> None:
        k, state, taken = self._k, self._state, self._taken
        if self._initial is None:
            self._k.on("Duplicate", state, self._zero, count=self._tile)
        else:
            self._clear(taken, self._tile)
            with k.loop("block", ceil_div(share.width, self._c0)) as block:
                first = k.let("firstOfBlock", block * self._c0)
                columns = k.let("columns", least(share.width - first, self._c0))
                place = self._first_state_of(share) + first
                k.load(
                    at(taken, first * self._batch), self._initial, place, columns,
                    rows=share.rows, apart=self._hidden, zeros=self._c0 - columns,
                )  # fmt: skip
            # As 16-bit numbers: no instruction copies all types.
            halves = [read_as("int16_t", choice) for choice in (state, taken, taken)]
            count = self._tile * (self._size // 2)
            k.call("Or", *halves, count, repeats=ceil_div(count, 2 * LANES))
        self._store_states(share, Int(1))
        if not self._problem.carries:
            return
        if self._initial_carried is None:
            self._k.on("Duplicate", self._after, as_float(0), count=self._tile)
        else:
            self._clear_part(share, taken, self._tile)
            place = self._first_state_of(share)
            self._load_rows(share, whole(taken), self._initial_carried, place, self._hidden)
            self._turn_in(self._after, 1)
        self._store_carried(share)

    def _unit(self, share: _Share, tick: Expr) -> None:
        """One tick of a unit."""
        k = self._k
        start = share.chain * (LAG if self._problem.stacked else 0)
        step = k.let("step", tick - start, U64)
        running = Choice(step, "<", self._steps, Int(1), Int(0))
        if self._problem.stacked:
            running = Choice(tick, "<", start, Int(0), running)
        active = k.let("isActive", running)
        behind = share.index + TilingField("blockDim", "uint32_t")
        is_last = k.let("isLast", Choice(behind, "<", self._many, Int(0), Int(1)))
        with k.when(active, "!=", 0):
            if self._problem.stacked:
                with k.when(share.chain, ">", 0):
                    with k.when(self._input_count % self._per_signal, "==", 0):
                        k.take(_INPUTS)
                    k.assign(self._input_count, self._input_count + 1)
            is_first = Choice(self._count % self._per_signal, "==", Int(0), Int(1), Int(0))
            signalled = k.let("isSignalled", is_first)
            k.assign(self._count, self._count + 1)
            with k.when(share.width, ">", 0):
                self._prepare(share, tick, step)
                self._finish(share, tick, step, signalled, is_last)
            with k.otherwise(), k.when(signalled, "!=", 0):
                k.take(_PRODUCTS)
        # Where the last unit of a core has nothing to do, no states of its own say so.
        with k.when(is_last, ">", Choice(active, "!=", Int(0), share.width, Int(0))):
            self._tell(tick)

    def _tell(self, tick: Expr) -> None:
        with self._k.when(tick + 1, "<", self._ticks):
            self._k.give(_STATES)

    # -- what waits for no product --------------------------------------------------------------

    def _prepare(self, share: _Share, tick: Expr, step: Expr) -> None:
        """What does not depend on the states of the tick before is done while the cube core multiplies
        those."""
        k, problem, sums, tile = self._k, self._problem, self._sums, self._tile
        if self._input_biases is not None:
            with k.when(self._biased, "!=", share.index + 1), k.section("LoadBiases", _ONCE):
                k.assign(self._biased, share.index + 1)
                self._load_biases(share)
        if problem.stacked:
            with k.when(share.chain, ">", 0):
                place = (tick % 2 * self._many + share.index) * self._unit_elements + self._first_product
                self._load_products(share, self._incoming, self._inputs, place)
                self._add_biases(self._incoming)
            with k.otherwise():
                self._project(share, step)
        else:
            self._project(share, step)
        last = tile * (self._gates - 1)
        if problem.kind in ("lstm", "gru"):
            self._k.on("Muls", sums, sums, as_float(-1), count=last)
        if problem.kind in ("lstm", "rnn_tanh"):
            self._k.on("Muls", at(sums, last), at(sums, last), as_float(-2), count=tile)
        if problem.carries:
            k.load(self._before, self._carried, self._carried_of(share), tile)

    def _add_biases(self, source: Buffer) -> None:
        if self._input_biases is not None:
            self._k.on("Add", self._sums, source, self._biases, count=self._all)
        elif source is not self._sums:
            self._k.on("Adds", self._sums, source, as_float(0), count=self._all)

    def _project(self, share: _Share, step: Expr) -> None:
        """The inputs of a step times their weights, and biases."""
        k, gates = self._k, self._gates
        self._clear_part(share, self._taken, self._all)
        first = k.let("firstRow", self._row_of(share, step) * gates * self._hidden + share.column, U64)
        pitch = self._row_pitch * gates * self._hidden
        assert self._projected is not None
        chain = Int(0) if self._problem.stacked else share.chain
        for gate in range(gates):
            place = first + self._hidden * self._place(gate)
            target = at(self._taken, self._tile * gate)
            self._load_rows(share, target, self._projected, place, pitch, chain)
        self._turn_in(self._sums, gates)
        self._add_biases(self._sums)

    def _place(self, gate: int) -> int:
        return _PLACES.get(self._problem.kind, range(self._gates))[gate]

    def _load_biases(self, share: _Share) -> None:
        k, gates, units = self._k, self._gates, self._units
        given, both = self._given_biases, self._both
        assert self._input_biases is not None and self._hidden_biases is not None
        self._clear(given, units * (2 * gates))
        for side, tensors in enumerate((self._input_biases, self._hidden_biases)):
            for gate in range(gates):
                place = self._hidden * self._place(gate) + share.column
                padding = round_up(share.width, self._c0) - share.width
                target = at(given, units * (side * gates + gate))
                k.load(target, tensors, place, share.width, index=share.chain, zeros=padding)
        key, mode = ("Cast", (_WIDEN,)) if self._narrow else ("Adds", (as_float(0),))
        self._k.on(key, both, given, *mode, count=units * (2 * gates))
        apart = self._problem.kind == "gru"
        self._k.on("Add", both, both, at(both, units * gates), count=units * (gates - apart))
        for gate in range(gates + apart):
            source = at(both, units * (gate if gate < gates else 2 * gates - 1))
            self._spread(self._tile * gate, source)

    def _spread(self, target: Expr, source: Slice) -> None:
        """Each number over rows of sequences."""
        k, blocks = self._k, _SIDE.value // _FLOATS.value
        step = Fields("BrcbRepeatParams", {"dst": Int(blocks), "rep": _SIDE}, is_short=True)
        times = self._units // _FLOATS
        for lane in range(blocks):
            with k.loop("strip", self._strips) as strip:
                to = at(self._biases, target + strip * self._strip + _FLOATS * lane)
                k.call("Brcb", to, source, Converted(times, "uint8_t"), step, repeats=times)

    # -- what waits for products ----------------------------------------------------------------

    def _finish(self, share: _Share, tick: Expr, step: Expr, signalled: Expr, is_last: Expr) -> None:
        """Products of the states become new states, which the other cores wait for."""
        k, problem, product = self._k, self._problem, self._product
        place = share.index * self._unit_elements + self._first_product
        self._load_products(share, product, self._products, place, signalled)
        self._activate()
        source = {"lstm": at(self._sums, self._tile * (self._gates - 1)), "gru": whole(self._after)}
        self._turn_out(source.get(problem.kind, whole(self._sums)))
        if problem.kind == "gru" and self._narrow:  # the state is what was rounded
            self._k.on("Cast", self._after, self._narrowed, _WIDEN, count=self._tile)
        with k.when(tick + 1, "<", self._ticks):
            self._store_states(share, tick)
        with k.when(is_last, "!=", 0):
            self._tell(tick)
        if self._outputs is not None:
            self._store_outputs(share, step, self._outputs)
        ends = (step + 1, "==", self._steps)
        if self._last_states is not None:
            with k.when(*ends):
                self._store_rows(share, self._last_states, self._state_of(share), self._hidden)
        if self._last_cells is not None:
            with k.when(*ends):
                self._turn_out(whole(self._after))
                self._store_rows(share, self._last_cells, self._state_of(share), self._hidden)
        if problem.carries:
            self._store_carried(share)

    def _activate(self) -> None:
        made: Mapping[str, tuple[Callable[[], None], str]] = {
            "lstm": (self._lstm, "Sums are -x, of the cell gate -2 * x."),
            "gru": (self._gru, "Gates: reset, update, new. The sums of the first two are -x."),
            "rnn_tanh": (self._rnn_tanh, "Sums are -2 * x."),
            "rnn_relu": (self._rnn_relu, ""),
        }
        activate, note = made[self._problem.kind]
        with self._k.section("Activate", note):
            activate()

    def _lstm(self) -> None:
        sums, product, tile, after = self._sums, self._product, self._tile, self._after
        forget, output, cell = (at(sums, tile * place) for place in (1, 2, 3))
        self._k.on("Axpy", sums, product, as_float(-1), count=tile * 3)
        self._k.on("Axpy", cell, at(product, tile * 3), as_float(-2), count=tile)
        if self._narrow:
            self._sigmoids(4)
            self._k.on("Adds", cell, cell, as_float(-1), count=tile)
        else:
            self._sigmoids(3)
            self._end_tangent(cell)
        self._k.on("Mul", after, self._before, forget, count=tile)
        self._k.on("MulAddDst", after, sums, cell, count=tile)
        if self._narrow:  # cells are kept as narrow as the states are
            self._k.on("Cast", self._narrowed, after, _ROUND, count=tile)
            self._k.on("Cast", after, self._narrowed, _WIDEN, count=tile)
        self._k.on("Muls", cell, after, as_float(-2), count=tile)
        self._end_tangent(cell)
        self._k.on("Mul", cell, cell, output, count=tile)

    def _gru(self) -> None:
        sums, product, tile, after = self._sums, self._product, self._tile, self._after
        update, candidate = (at(sums, tile * place) for place in (1, 2))
        from_states = at(product, tile * 2)
        self._k.on("Axpy", sums, product, as_float(-1), count=tile * 2)
        self._sigmoids(2)
        if self._input_biases is not None:
            self._k.on("Add", from_states, from_states, at(self._biases, tile * 3), count=tile)
        self._k.on("MulAddDst", candidate, sums, from_states, count=tile)
        self._k.on("Muls", candidate, candidate, as_float(-2), count=tile)
        self._end_tangent(candidate)
        self._k.on("Sub", after, self._before, candidate, count=tile)
        self._k.on("Mul", after, after, update, count=tile)
        self._k.on("Add", after, after, candidate, count=tile)

    def _rnn_tanh(self) -> None:
        self._k.on("Axpy", self._sums, self._product, as_float(-2), count=self._tile)
        self._end_tangent(whole(self._sums))

    def _rnn_relu(self) -> None:
        self._k.on("Add", self._sums, self._sums, self._product, count=self._tile)
        self._k.on("Maxs", self._sums, self._sums, as_float(0), count=self._tile)

    def _sigmoids(self, gates: int) -> None:
        count = self._tile * gates
        self._k.on("Exp", self._sums, self._sums, count=count)
        self._k.on("Adds", self._sums, self._sums, as_float(1), count=count)
        self._k.on("Div", self._sums, self._numerators, self._sums, count=count)

    def _end_tangent(self, x: Slice) -> None:
        """tanh(x) of -2 * x. In float32 as -n / (n + 2) with n = exp(-2 * x) - 1, of which a series has the
        digits that cancel near 0; half types do not have them."""
        tile = self._tile
        if not self._narrow:
            self._less_one(x, at(self._product, 0), at(self._numerators, tile * (self._gates - 1)))
            self._k.on("Adds", at(self._product, 0), x, as_float(2), count=tile)
            self._k.on("Div", x, x, at(self._product, 0), count=tile)
            self._k.on("Muls", x, x, as_float(-1), count=tile)
            return
        self._k.on("Exp", x, x, count=tile)
        self._k.on("Adds", x, x, as_float(1), count=tile)
        self._k.on("Div", x, at(self._numerators, tile * (self._gates - 1)), x, count=tile)
        self._k.on("Adds", x, x, as_float(-1), count=tile)

    def _less_one(self, x: Slice, small: Slice, series: Slice) -> None:
        """exp(x) - 1, as exp(x - r) * (exp(r) - 1) + (exp(x - r) - 1) with r the part of x within reach."""
        tile = self._tile
        self._k.on("Mins", x, x, _LARGEST, count=tile)
        self._k.on("Maxs", small, x, _NEGATIVE_REACH, count=tile)
        self._k.on("Mins", small, small, _REACH, count=tile)
        first, *others = _SERIES
        self._k.on("Muls", series, small, first, count=tile)
        for number in others:
            self._k.on("Adds", series, series, number, count=tile)
            self._k.on("Mul", series, series, small, count=tile)
        self._k.on("Sub", x, x, small, count=tile)
        self._k.on("Exp", x, x, count=tile)
        self._k.on("Mul", series, series, x, count=tile)
        self._k.on("Adds", x, x, as_float(-1), count=tile)
        self._k.on("Add", x, x, series, count=tile)

    # -- copies ---------------------------------------------------------------------------------

    @property
    def _unit_elements(self) -> Expr:
        """Of the products of a unit."""
        return self._batch * (self._hidden_tile * self._gates)

    @property
    def _first_product(self) -> Expr:
        """Elements in front of a vector core's first row of products, of those of the unit."""
        return VectorCore() * self._strip

    def _state_of(self, share: _Share, chain: Index = 0) -> Expr:
        return ((share.chain + chain) * self._of_batch + share.row) * self._hidden + share.column

    def _first_state_of(self, share: _Share) -> Expr:
        return self._state_of(share, self._problem.first)

    def _carried_of(self, share: _Share) -> Expr:
        return (share.index * 2 + VectorCore()) * self._tile

    def _row_of(self, share: _Share, step: Expr) -> Expr:
        """The row of inputs and outputs that a step of the unit's first sequence is."""
        moment = Choice(share.chain, "==", Int(0), step, self._steps - 1 - step)
        return share.row * self._row_pitch + (step if self._problem.stacked else moment) * TilingField(
            "stepPitch"
        )

    @property
    def _zero(self) -> Converted:
        return Converted(_ZERO, self._ctype)

    def _clear(self, target: Buffer, count: Expr) -> None:
        self._k.clear(read_as("int16_t", target) if target.item_bytes == 2 else target, count)

    def _clear_part(self, share: _Share, target: Buffer, count: Expr) -> None:
        """Tiles at the ends of the layer are filled up with zeros."""
        with self._k.when(share.is_part, "!=", 0):
            self._clear(target, count)

    def _load_rows(
        self, share: _Share, target: Slice, source: Tensor | TensorList, place: Expr, apart: Expr,
        chain: Expr | None = None,
    ) -> None:  # fmt: skip
        """Rows of sequences; the last block of 32 bytes of each is filled up with zeros."""
        padding = round_up(share.width, self._c0) - share.width
        self._k.load(
            target, source, place, share.width,
            index=chain, rows=share.rows, apart=apart, zeros=padding, pitch=self._units,
        )  # fmt: skip

    def _load_products(
        self, share: _Share, target: Buffer, source: Tensor, place: Expr, signalled: Expr | None = None
    ) -> None:
        """The products of all gates; rows behind the layer's last hidden unit are left as they are."""
        k, gates = self._k, self._gates
        self._clear_part(share, target, self._all)
        if signalled is not None:
            with k.when(signalled, "!=", 0):
                k.take(_PRODUCTS)
        with k.loop("strip", self._strips) as strip:
            first = place + strip * (self._hidden_tile * _SIDE * gates)
            k.load(
                at(target, strip * self._strip), source, first, share.width * _SIDE,
                rows=gates, apart=self._hidden_tile * _SIDE, pitch=self._tile,
            )  # fmt: skip

    def _store_states(self, share: _Share, tick: Expr) -> None:
        """In fractals, where the next tick reads them; those of the tick before are still read."""
        tile = share.chain * self._batch_tiles + share.index % self._batch_tiles
        place = (tick % 2 * (self._batch_tiles * self._problem.chains) + tile) * TilingField("stateElements")
        count = round_up(share.width, self._c0) * self._batch
        self._k.store(self._states, place + share.column * self._batch, self._state, count)

    def _store_carried(self, share: _Share) -> None:
        self._k.store(self._carried, self._carried_of(share), self._after, self._tile)

    def _store_outputs(self, share: _Share, step: Expr, outputs: Tensor) -> None:
        k, chains = self._k, 1 if self._problem.stacked else self._problem.chains
        width = self._hidden * chains
        place = self._row_of(share, step) * width + share.column
        if not self._problem.stacked:
            self._store_rows(share, outputs, place + share.chain * self._hidden, self._row_pitch * width)
            return
        with k.when(share.chain, "==", self._problem.chains - 1):
            self._store_rows(share, outputs, place, self._row_pitch * width)

    def _store_rows(self, share: _Share, target: Tensor, place: Expr, apart: Expr) -> None:
        """Rows of sequences, block by block of the fractals."""
        k = self._k
        with k.loop("block", ceil_div(share.width, self._c0)) as block:
            first = k.let("firstOfBlock", block * self._c0)
            columns = k.let("columns", least(share.width - first, self._c0))
            source = at(self._state, first * self._batch)
            k.store(target, place + first, source, columns, rows=share.rows, apart=apart)

    # -- turns ----------------------------------------------------------------------------------

    def _turn_in(self, target: Buffer, gates: int) -> None:
        """Rows of sequences of so many gates into rows of hidden units."""
        k, i = self._k, Var("i")
        with k.loop("gate", gates) as gate, k.loop("strip", self._strips) as strip:
            base = gate * self._tile + strip * self._strip
            source = at(self._taken, base + i * self._units)
            if self._narrow:
                to = read_as("half", at(self._narrowed, base + i * _SIDE))
                transpose(k, (to, _SIDE), (read_as("half", source), 1), i, self._squares)
            else:
                to = at(target, base + i // 2 * _SIDE + i % 2 * _FLOATS)
                transpose(k, (to, _SIDE), (source, 1), i, self._squares)
        if self._narrow:
            self._k.on("Cast", target, self._narrowed, _WIDEN, count=self._tile * gates)

    def _turn_out(self, source: Slice) -> None:
        """Rows of hidden units into fractals: blocks of hidden units, a row for each sequence."""
        k, i = self._k, Var("i")
        if self._narrow:
            self._k.on("Cast", self._narrowed, source, _ROUND, count=self._tile)
        with k.loop("strip", self._strips) as strip:
            row = strip * _SIDE
            if self._narrow:
                taken = read_as("half", at(self._narrowed, strip * self._strip + i * _SIDE))
                to = read_as("half", at(self._state, (row + i) * self._c0))
            else:
                lane = i % 8 * _SIDE + i // 8 * _FLOATS
                taken = at(source.buffer, source.offset + strip * self._strip + lane)
                to = at(self._state, (row + i // 2 + i % 2 * _FLOATS) * self._c0)
            transpose(k, (to, self._batch), (taken, _SIDE), i, self._squares)
