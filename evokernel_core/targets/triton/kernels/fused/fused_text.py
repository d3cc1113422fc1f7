"""A ``Plan`` with the tile of a program as a jit function of Triton.

Programs are numbered along one dimension. A tile has two axes; where the first has one row, texts are those
of one dimension. What is reduced stays in the tile, or comes in steps of a loop, once for each level of
reductions that need one another and once more for outputs of every point.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from evokernel_core.compiler.lowering.plan import Plan, PlanInput, PlanOutput
from evokernel_core.compiler.lowering.values import Domain, Value, needed
from evokernel_core.compiler.shapes.sizes import ONE, Extent, product
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.function import JitFunction, expression
from evokernel_core.targets.triton.kernels.fused.accumulating import LoopPair, passes
from evokernel_core.targets.triton.kernels.fused.fused_schedule import TileSchedule, most_tile
from evokernel_core.targets.triton.kernels.text import TritonKernel
from evokernel_core.targets.triton.kernels.values import Statements, as_stored

_NEUTRAL = {"sum": "0.0", "prod": "1.0", "max": 'float("-inf")', "min": 'float("inf")'}
_STEP = {
    "sum": "{0} + {1}",
    "prod": "{0} * {1}",
    "max": "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
    "min": "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)",
}
_LOCALS = frozenset({"program", "programs", "first", "start", "rest"})
"""Names that no value may have."""
_EXTREME = {"max": "largest", "min": "smallest"}


def fused_kernel(plan: Plan, schedule: TileSchedule, name: str, gpu: Gpu) -> TritonKernel:
    """The kernel for a device, under an identifier in snake case. Raises PlanError for a value that
    is not written."""
    return _Printer(plan, schedule, name, most_tile(plan, gpu)).kernel()


@frozen
class _TileAxis:
    """One axis of the tile: the index along it, how many there are, and the constant of its block.
    ``reduced``: it is reduced; ``looped``: in steps of a loop."""

    index: str
    size: Extent
    block: str
    reduced: bool
    looped: bool


class _Printer:
    def __init__(self, plan: Plan, schedule: TileSchedule, name: str, most: int) -> None:
        """``most``: elements of a tile."""
        self.plan, self.schedule, self.function, self.most = plan, schedule, JitFunction(name), most
        self.inputs = {one.value.index: one for one in plan.inputs}
        names = [*(tensor for tensor, _ in plan.tensors), *(output.name for output in plan.outputs)]
        self.pointers = {tensor: self.function.tensor(tensor) for tensor in names}
        numbers = [self.function.scalar(scalar) for scalar in plan.scalars]
        taken = {*self.pointers.values(), *numbers, *plan.symbols, *_LOCALS, name}
        self.say = Statements(self._load, taken, self.function)
        self.axes = self._axes()
        self.flat = schedule.rows == 1 and not self.axes[0].reduced
        self._varying: dict[int, bool] = {}
        self.numbers = [self.say.reserve(f"outer_{number}") for number in range(len(plan.outer))]

    # -- the iteration space ------------------------------------------------------------------

    def _axes(self) -> tuple[_TileAxis, _TileAxis]:
        plan, looped = self.plan, self.schedule.looped
        family = plan.family
        rows = plan.leading.times(plan.mid) if family == "piecewise" else plan.mid
        if family in ("pointwise", "rowwise"):
            rows = plan.rows
        is_row_wise = family == "rowwise"
        first = {"columnwise": "step", "piecewise": "piece"}.get(family, "row")
        second = "lane" if family == "columnwise" else "column"
        steps = family in ("columnwise", "piecewise")
        return (
            _TileAxis(first, rows, "ROWS" if not steps else "STEPS", steps, steps and looped),
            _TileAxis(
                second,
                plan.inner,
                "COLUMNS",
                is_row_wise or family == "piecewise",
                looped and (is_row_wise or family == "piecewise"),
            ),
        )

    @property
    def shape(self) -> str:
        """That of the tile."""
        return "[COLUMNS]" if self.flat else f"[{self.axes[0].block}, COLUMNS]"

    def varies(self, value: Value) -> bool:
        """Whether it differs along what is reduced."""
        if value.index not in self._varying:
            self._varying[value.index] = self._varies(value)
        return self._varying[value.index]

    def _varies(self, value: Value) -> bool:
        if value.op.startswith("reduce_"):
            return False
        if value.op == "load":
            one = self.inputs[value.index]
            has = self._has(one)
            return any(there and axis.reduced for there, axis in zip(has, self.axes, strict=True))
        return any(map(self.varies, value.values()))

    def _has(self, one: PlanInput) -> tuple[bool, bool]:
        """Whether an input differs along each axis of the tile."""
        if self.plan.family in ("pointwise", "rowwise"):
            return one.mid or any(one.outer), one.inner
        return one.mid, one.inner

    # -- offsets ------------------------------------------------------------------------------

    def _load(self, value: Value) -> str:
        one = self.inputs[value.index]
        dims = (*one.outer, one.mid, one.inner)
        offset, mask = self._offset(dims), self._mask(self._has(one))
        mask = mask and f"{mask}, other=0.0"
        pointer = self.pointers[one.source]
        pointer = f"{pointer} + {offset}" if offset else pointer
        if one.dtype == "float32":
            return f"tl.load({pointer}{mask})"
        mask = mask.replace("other=0.0", "other=0") if "float" not in one.dtype else mask
        return f"tl.load({pointer}{mask}).to(tl.float32)"

    def _masks(self, has: tuple[bool, bool]) -> list[str]:
        """The conditions under which the points of these axes are there."""
        there = zip(has, self.axes, (self.flat, False), strict=True)
        axes = [axis for present, axis, scalar in there if present and not scalar]
        return [f"{axis.index} < {expression(axis.size)}" for axis in axes]

    def _offset(self, dims: tuple[bool, ...]) -> str:
        """Where a tensor with these dimensions of the iteration space (outer, mid, inner) has the tile's
        elements."""
        plan = self.plan
        column = [self.axes[1].index] if dims[-1] else []
        rows = (*plan.outer, plan.mid) if plan.family in ("pointwise", "rowwise") else plan.outer
        if plan.family in ("pointwise", "rowwise") and all(dims[:-1]) and not plan.rows.is_one:
            pitch = plan.inner if dims[-1] else ONE
            return " + ".join([_times("row", pitch), *column])
        return " + ".join([*self._row_terms(dims, rows), *column])

    def _row_terms(self, dims: tuple[bool, ...], rows: tuple[Extent, ...]) -> Iterator[str]:
        """One term for each dimension before the columns that a tensor has, the outermost last."""
        plan, pitch = self.plan, self.plan.inner if dims[-1] else ONE
        terms: list[str] = []
        if dims[-2] and not plan.mid.is_one:
            index = self._mid_index()
            terms.append(_times(index, pitch))
        if dims[-2]:
            pitch = pitch.times(plan.mid)
        for number in reversed(range(len(plan.outer))):
            if dims[number]:
                terms.append(_times(self.numbers[number], pitch))
                pitch = pitch.times(plan.outer[number])
        if plan.family == "piecewise" and dims[-2] and not plan.leading.is_one:
            leading = self.axes[0].index
            leading = leading if plan.mid.is_one else f"({leading} // {_factor(plan.mid)})"
            terms.append(_times(leading, pitch))
        return reversed(terms)

    def _mid_index(self) -> str:
        plan, index = self.plan, self.axes[0].index
        if plan.family == "piecewise":
            return index if plan.leading.is_one else f"({index} % {_factor(plan.mid)})"
        if plan.family == "columnwise" or not plan.outer:
            return index
        return f"({index} % {_factor(plan.mid)})"

    def _uses_outer(self) -> bool:
        plan = self.plan
        if plan.family not in ("pointwise", "rowwise"):
            return bool(plan.outer)
        return any(any(one.outer) and not (all(one.outer) and one.mid) for one in plan.inputs)

    # -- text ---------------------------------------------------------------------------------

    def kernel(self) -> TritonKernel:
        function = self.function
        function.add(*self._indices(), *self._body())
        words = function.words
        for symbol in self.plan.symbols:
            if symbol in words:
                function.computed(symbol, symbol)
        for name, text in self._constants().items():
            if name in words:
                function.constant(name, text)
        return TritonKernel(
            (function.jit_text(),),
            (function.launch(self._programs(), self.schedule.warps, 2),),
            frozenset(self.say.helpers),
            requires=tuple(self._requires()),
        )

    def _constants(self) -> dict[str, str]:
        constants = {}
        for axis, block in zip(self.axes, (self.schedule.rows, self.schedule.columns), strict=True):
            resident = axis.reduced and not axis.looped
            constants[axis.block] = f"next_power_of_2({expression(axis.size)})" if resident else str(block)
        return constants

    def _requires(self) -> Iterator[str]:
        """The sizes at which what stays in the tile fits registers."""
        for axis, other in zip(self.axes, (self.schedule.columns, self.schedule.rows), strict=True):
            if axis.reduced and not axis.looped and axis.size.symbols:
                yield f"{expression(axis.size)} <= {max(self.most // other, 1)}"

    def _programs(self) -> str:
        plan, schedule = self.plan, self.schedule
        columns = f"cdiv({expression(plan.inner)}, {schedule.columns})"
        if plan.family == "piecewise":
            return expression(plan.rows)
        outer = product(plan.outer)
        if plan.family == "columnwise":
            return columns if outer.is_one else f"{_factor(outer)} * {columns}"
        rows = (
            expression(plan.rows) if schedule.rows == 1 else f"cdiv({expression(plan.rows)}, {schedule.rows})"
        )
        if plan.family == "rowwise":
            return rows
        return columns if plan.rows.is_one else f"{_factor_text(rows)} * {columns}"

    def _indices(self) -> Iterator[str]:
        """What a program is, and the indices along the axes that it does not loop over."""
        plan = self.plan
        first, second = self.axes
        if plan.family in ("pointwise", "rowwise"):
            yield from self._row_indices()
        else:
            yield from self._outer_indices()
            if not first.looped:
                yield f"{first.index} = {self._range(first)}"
        if plan.family == "rowwise" and not second.looped:
            yield f"{second.index} = {self._range(second)}"
        if self._uses_outer() and plan.family in ("pointwise", "rowwise"):
            yield from self._split_rows("row")

    def _row_indices(self) -> Iterator[str]:
        plan = self.plan
        tiles = f"tl.cdiv({expression(plan.inner)}, COLUMNS)"
        if plan.family == "rowwise":
            start = "program"
        elif plan.rows.is_one:
            yield "column = program.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)"
            return
        else:
            start = f"(program // {tiles})"
        if self.flat:
            yield f"row = {start}.to(tl.int64)"
        else:
            yield f"row = {start}.to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]"
        if plan.family == "pointwise":
            spread = "" if self.flat else "[None, :]"
            yield f"column = program % {tiles} * COLUMNS + tl.arange(0, COLUMNS){spread}"

    def _outer_indices(self) -> Iterator[str]:
        plan = self.plan
        outer = product(plan.outer)
        if plan.family == "columnwise":
            spread = "" if self.flat else "[None, :]"
            if outer.is_one:
                yield f"lane = program * COLUMNS + tl.arange(0, COLUMNS){spread}"
                yield from (f"{name} = 0" for name in self.numbers)
                return
            tiles = f"tl.cdiv({expression(plan.inner)}, COLUMNS)"
            yield f"lane = program % {tiles} * COLUMNS + tl.arange(0, COLUMNS){spread}"
            yield f"row = (program // {tiles}).to(tl.int64)"
        else:
            yield "row = program.to(tl.int64)"
        yield from self._split_rows("row")

    def _split_rows(self, row: str) -> Iterator[str]:
        """The indices of the outer loops."""
        plan = self.plan
        has_mid = plan.family in ("pointwise", "rowwise")
        behind = plan.mid if has_mid else ONE
        for number in reversed(range(len(plan.outer))):
            within = row if behind.is_one else f"{row} // {_factor(behind)}"
            wraps = number > 0
            index = f"{within} % {_factor(plan.outer[number])}" if wraps else within
            yield f"{self.numbers[number]} = {index}"
            behind = behind.times(plan.outer[number])

    def _range(self, axis: _TileAxis, start: str = "") -> str:
        """The indices of a tile along an axis; those of its first are few and of 64 bits, as they are
        multiplied by what may be large."""
        first = f"{start} + " if start else ""
        if axis is self.axes[0]:
            return f"{first}tl.arange(0, {axis.block}).to(tl.int64)[:, None]"
        return f"{first}tl.arange(0, {axis.block}){'' if self.flat else '[None, :]'}"

    # -- values -------------------------------------------------------------------------------

    def _body(self) -> Iterator[str]:
        if self.plan.reductions and any(axis.looped for axis in self.axes):
            yield from self._passes()
            return
        yield from self._statements(self._results(self.plan.outputs))
        yield from self._stores(self.plan.outputs)

    @staticmethod
    def _results(outputs: Iterable[PlanOutput]) -> list[Value]:
        return [output.value for output in outputs if isinstance(output.value, Value)]

    def _statements(self, roots: Iterable[Value]) -> Iterator[str]:
        """What makes values that do not stand yet."""
        known = self.say.names
        for value in needed(roots, lambda value: value.index in known):
            if value.op.startswith("reduce_"):
                yield from self._reduced(value, self._within(value))
            else:
                yield self.say.line(value)

    def _within(self, value: Value) -> str:
        """The operand of a reduction, neutral where the tile has no point."""
        kind = value.op.removeprefix("reduce_")
        return f"tl.where({self._inside()}, {self.say.word(value.args[0])}, {_NEUTRAL[kind]})"

    def _inside(self) -> str:
        """The condition under which the tile has a point."""
        return _both(self._masks((True, True)))

    def _mask(self, has: tuple[bool, bool]) -> str:
        """As an argument of a load or a store."""
        masks = self._masks(has)
        return f", mask={_both(masks)}" if masks else ""

    def _reduced(self, value: Value, operand: str) -> Iterator[str]:
        """The reduction of a tile along its reduced axes."""
        kind = value.op.removeprefix("reduce_")
        axes = [number for number, axis in enumerate(self.axes) if axis.reduced]
        name = self.say.names.setdefault(value.index, self.say.reserve(value.origin or kind))
        axes = [0] if self.flat else axes
        for axis in reversed(axes):
            yield f"{name} = {self._call(kind, operand, axis)}"
            operand = name

    def _call(self, kind: str, operand: str, axis: int) -> str:
        keeps = not self.flat and not all(one.reduced for one in self.axes)
        if kind in _EXTREME:
            self.say.helpers.add(_EXTREME[kind])
            return f"{_EXTREME[kind]}({operand}, {axis}, {keeps})"
        kept = ", keep_dims=True" if keeps else ""
        if kind == "prod":
            self.say.helpers.add("multiplied")
            return f"tl.reduce({operand}, {axis}, multiplied{kept})"
        return f"tl.sum({operand}, {axis}{kept})"

    def _passes(self) -> Iterator[str]:
        """A loop for each level of reductions, and one for outputs of every point."""
        for alone, pairs in passes(self.plan):
            yield from self._outside([*alone, *(pair.first for pair in pairs)])
            yield from self._accumulated(alone, pairs)
        one_a_row = [one for one in self.plan.outputs if one.domain is not Domain.FULL]
        yield from self._statements(self._results(one_a_row))
        yield from self._stores(one_a_row)
        every = [one for one in self.plan.outputs if one.domain is Domain.FULL]
        if every:
            roots = self._results(every)
            yield from self._outside(roots)
            yield from self._loop([*self._in_loop(roots), *self._stores(every)])

    def _outside(self, roots: Iterable[Value]) -> Iterator[str]:
        """The statements of what roots need that is the same in every step, reductions apart."""
        known = self.say.names
        values = [value for value in needed(roots, lambda one: one.index in known) if not self.varies(value)]
        for value in values:
            if not value.op.startswith("reduce_"):
                yield self.say.line(value)

    def _accumulated(self, alone: list[Value], pairs: list[LoopPair]) -> Iterator[str]:
        """A loop over the steps, what stands before it, and the reductions that come of it."""
        kept = [_Kept(self, value) for value in alone]
        both = [_Rescaled(self, pair) if pair.mean is None else _Moments(self, pair) for pair in pairs]
        for one in (*kept, *both):
            yield from one.before()
        before = dict(self.say.names)
        roots = [value.args[0] for value in (*alone, *(pair.first for pair in pairs))]
        lines = self._in_loop([operand for operand in roots if isinstance(operand, Value)])
        lines += [line for one in (*kept, *both) for line in one.step()]
        yield from self._loop(lines)
        self.say.names = before
        for one in (*kept, *both):
            yield from one.behind()

    def _in_loop(self, roots: Iterable[Value]) -> list[str]:
        known = self.say.names
        return [self.say.line(value) for value in needed(roots, lambda one: one.index in known)]

    def _loop(self, lines: list[str]) -> Iterator[str]:
        """Lines in the loops over the axes that come in steps."""
        indent = ""
        for number, axis in enumerate(self.axes):
            if not axis.looped or (number == 0 and self.flat):
                continue
            start = "first" if number else "start"
            yield f"{indent}for {start} in range(0, {expression(axis.size)}, {axis.block}):"
            indent += "    "
            yield f"{indent}{axis.index} = {self._range(axis, start)}"
        yield from (indent + line for line in lines)

    def _stores(self, outputs: Iterable[PlanOutput]) -> Iterator[str]:
        for output in outputs:
            yield self._store(output)

    def _store(self, output: PlanOutput) -> str:
        plan, full = self.plan, output.domain is Domain.FULL
        mid = full or plan.family in ("pointwise", "rowwise")
        inner = full or plan.family == "columnwise"
        dims = (*(True for _ in plan.outer), mid, inner)
        offset, mask = self._offset(dims), self._mask((mid, inner))
        value = output.value
        word = as_stored(self.say.word(value), value, output.dtype)
        pointer = self.pointers[output.name]
        pointer = f"{pointer} + {offset}" if offset else pointer
        return f"tl.store({pointer}, {word}{mask})"


class _Kept:
    """A reduction whose lanes are reduced behind the loop."""

    def __init__(self, printer: _Printer, value: Value) -> None:
        self.printer, self.value = printer, value
        self.kind = value.op.removeprefix("reduce_")
        self.name = printer.say.reserve(f"{value.origin or self.kind}_so_far")

    def before(self) -> Iterator[str]:
        yield f"{self.name} = tl.full({self.printer.shape}, {_NEUTRAL[self.kind]}, tl.float32)"

    def step(self) -> Iterator[str]:
        yield f"{self.name} = {_STEP[self.kind].format(self.name, self.printer._within(self.value))}"

    def behind(self) -> Iterator[str]:
        yield from self.printer._reduced(self.value, self.name)


class _Rescaled:
    """A maximum for each lane, and the sum of exponentials below it, which is rescaled as it grows."""

    def __init__(self, printer: _Printer, pair: LoopPair) -> None:
        self.printer, self.pair = printer, pair
        reserve = printer.say.reserve
        self.largest, self.total, self.now, self.larger = map(
            reserve, ("largest_so_far", "sum_so_far", "now", "larger")
        )

    def before(self) -> Iterator[str]:
        yield f'{self.largest} = tl.full({self.printer.shape}, float("-inf"), tl.float32)'
        yield f"{self.total} = tl.zeros({self.printer.shape}, tl.float32)"

    def step(self) -> Iterator[str]:
        now, larger = self.now, self.larger
        yield f"{now} = {self.printer._within(self.pair.first)}"
        yield f"{larger} = tl.maximum({self.largest}, {now}, propagate_nan=tl.PropagateNan.ALL)"
        # equal infinities have no difference
        old = f"tl.where({self.largest} == {larger}, 1.0, tl.exp({self.largest} - {larger}))"
        new = f"tl.where({now} == {larger}, 1.0, tl.exp({now} - {larger}))"
        yield f"{self.total} = {self.total} * {old} + {new}"
        yield f"{self.largest} = {larger}"

    def behind(self) -> Iterator[str]:
        printer = self.printer
        yield from printer._reduced(self.pair.first, self.largest)
        largest = printer.say.word(self.pair.first)
        scaled = f"{self.total} * tl.exp({self.largest} - {largest})"
        yield from printer._reduced(self.pair.second, scaled)


class _Moments:
    """How many values each lane has, their mean, and the sum of squares about it."""

    def __init__(self, printer: _Printer, pair: LoopPair) -> None:
        self.printer, self.pair = printer, pair
        reserve = printer.say.reserve
        self.count, self.mean, self.squares, self.apart = map(
            reserve, ("count", "mean_so_far", "squares_so_far", "apart")
        )

    def before(self) -> Iterator[str]:
        for name in (self.count, self.mean, self.squares):
            yield f"{name} = tl.zeros({self.printer.shape}, tl.float32)"

    def step(self) -> Iterator[str]:
        inside, count, mean = self.printer._inside(), self.count, self.mean
        word = self.printer.say.word(self.pair.first.args[0])
        yield f"{count} = {count} + tl.where({inside}, 1.0, 0.0)"
        yield f"{self.apart} = tl.where({inside}, {word} - {mean}, 0.0)"
        yield f"{mean} = {mean} + {self.apart} / tl.maximum({count}, 1.0)"
        yield f"{self.squares} = {self.squares} + {self.apart} * tl.where({inside}, {word} - {mean}, 0.0)"

    def behind(self) -> Iterator[str]:
        printer, pair = self.printer, self.pair
        yield from printer._reduced(pair.first, f"{self.count} * {self.mean}")
        assert pair.mean is not None
        yield from printer._statements([pair.mean])
        apart = f"({self.mean} - {printer.say.word(pair.mean)})"
        yield from printer._reduced(pair.second, f"{self.squares} + {self.count} * {apart} * {apart}")


def _both(masks: list[str]) -> str:
    return masks[0] if len(masks) == 1 else " & ".join(f"({mask})" for mask in masks)


def _factor(size: Extent) -> str:
    """A size as a factor or divisor."""
    return _factor_text(expression(size))


def _factor_text(text: str) -> str:
    return text if text.isidentifier() or text.isdecimal() or text.startswith("cdiv(") else f"({text})"


def _times(index: str, pitch: Extent) -> str:
    return index if pitch.is_one else f"{index} * {_factor(pitch)}"
