"""Passes over a row: one for each level of reductions, and one that writes.

A pass keeps one partial result in every lane of an accumulator tile, so that the slow reduction
runs once a row and long sums lose no precision. Two reductions that belong together may share one
pass, see pairs.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attrs import define, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain, Operand, Value, needed
from evokernel_core.targets.ascendc.ir.floats import Literal
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.pairs import Levels, Pair, online_pairs
from evokernel_core.targets.ascendc.kernels.fused.programs import TileProgram, finish
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.lowering.program import Lowerer, used_inputs

IDENTITY = {
    "reduce_sum": Literal(0.0),
    "reduce_prod": Literal(1.0),
    "reduce_max": Literal(-math.inf),
    "reduce_min": Literal(math.inf),
}
COMBINE = {"reduce_sum": "Add", "reduce_prod": "Mul", "reduce_max": "Max", "reduce_min": "Min"}
LOWEST = Literal(-3.40282347e38)
"""The start of an online maximum, or the least that is subtracted where others read the maximum as well:
finite, because infinity less infinity is not a number."""


@frozen
class Accumulation:
    """One reduction of a pass: its row tensor, its accumulator and the pair it belongs to."""

    value: Value
    row: str
    accumulator: str


@define
class Pass:
    program: TileProgram
    accumulations: tuple[Accumulation, ...]
    pairs: tuple[Pair, ...]
    number: int

    def pair_of(self, accumulation: Accumulation) -> Pair | None:
        """The pair whose second reduction this is."""
        return next((pair for pair in self.pairs if pair.total is accumulation.value), None)

    def start_of(self, accumulation: Accumulation) -> Literal:
        """What an accumulator holds before the first tile."""
        pair = next((pair for pair in self.pairs if pair.first is accumulation.value), None)
        is_finite = pair is not None and not pair.is_moments and not pair.is_exposed
        return LOWEST if is_finite else IDENTITY[accumulation.value.op]

    def first_of(self, pair: Pair) -> Accumulation:
        return next(accumulation for accumulation in self.accumulations if accumulation.value is pair.first)


def in_passes(plan: Plan, schedule: Schedule, lowerer: Lowerer) -> tuple[Kernel, list[Pass], TileProgram]:
    """A kernel without text, the passes that reduce, and the program that writes the outputs."""
    pairs = online_pairs(plan) if schedule.online else ()
    levels = Levels(pairs)
    depth = max(levels.of(value) for value in plan.reductions)
    steps = [reducing_pass(plan, lowerer, levels, pairs, level) for level in range(1, depth + 1)]
    final = final_pass(plan, lowerer)
    programs = (*(step.program for step in steps), final)
    accumulators = max(len(step.accumulations) for step in steps)
    return Kernel(plan, schedule, programs, accumulators), steps, final


def reducing_pass(plan: Plan, lowerer: Lowerer, levels: Levels, pairs: tuple[Pair, ...], level: int) -> Pass:
    lowerer.forget_tile()
    here = [value for value in plan.reductions if levels.of(value) == level]
    mine = tuple(pair for pair in pairs if pair.total in here)
    paired = {pair.first.index for pair in mine} | {pair.total.index for pair in mine}
    plain = [value for value in here if value.index not in paired]
    roots = [value.args[0] for value in plain] + [pair.source for pair in mine]
    lowerer.lower(roots)
    accumulations: list[Accumulation] = []
    for value in plain:
        _accumulate(lowerer, value, accumulations)
    for pair in mine:
        accumulate = _accumulate_moments if pair.is_moments else _accumulate_online
        accumulate(lowerer, pair, accumulations)
    program = finish(lowerer, used_inputs(plan, needed_now(roots)), (), split=True)
    return Pass(program, tuple(accumulations), mine, level)


def _accumulate(lowerer: Lowerer, value: Value, accumulations: list[Accumulation]) -> None:
    source = lowerer.at(value.args[0], Domain.FULL)
    name = f"accumulator{len(accumulations)}"
    accumulator = lowerer.virtual(Domain.FULL, name=name)
    lowerer.origin = value.origin
    lowerer.emit(COMBINE[value.op], accumulator, accumulator, source)
    accumulations.append(Accumulation(value, lowerer.hold(value).name, name))


def _accumulate_online(lowerer: Lowerer, pair: Pair, accumulations: list[Accumulation]) -> None:
    source = lowerer.at(pair.source, Domain.FULL)
    names = [f"accumulator{len(accumulations) + i}" for i in range(2)]
    largest, total = (lowerer.virtual(Domain.FULL, name=name) for name in names)
    lowerer.origin = pair.total.origin
    grown = lowerer.emit("Max", lowerer.virtual(Domain.FULL), largest, source)
    finite = grown
    if pair.is_exposed:
        finite = lowerer.emit("Maxs", lowerer.virtual(Domain.FULL), grown, scalar=LOWEST)
    lowerer.emit("Sub", largest, largest, finite)
    lowerer.emit("Exp", largest, largest)
    lowerer.emit("Mul", total, total, largest)
    shifted = lowerer.emit("Sub", lowerer.virtual(Domain.FULL), source, finite)
    term = lowerer.emit("Exp", lowerer.virtual(Domain.FULL), shifted)
    lowerer.emit("Add", total, total, term)
    lowerer.emit("Adds", largest, grown, scalar=Literal(0.0))
    accumulations.append(Accumulation(pair.first, lowerer.hold(pair.first).name, names[0]))
    accumulations.append(Accumulation(pair.total, lowerer.hold(pair.total).name, names[1]))


def _accumulate_moments(lowerer: Lowerer, pair: Pair, accumulations: list[Accumulation]) -> None:
    """Sums of the source less a number that the row's first tile gives, and of its squares."""
    source = lowerer.at(pair.source, Domain.FULL)
    lowerer.origin = pair.total.origin
    rows = [lowerer.hold(value) for value in (pair.first, pair.total)]
    names = [f"accumulator{len(accumulations) + i}" for i in range(2)]
    running, squares = (lowerer.virtual(Domain.FULL, name=name) for name in names)
    apart = lowerer.shifted(source, rows, running)
    lowerer.emit("Add", running, running, apart)
    square = lowerer.emit("Mul", lowerer.virtual(Domain.FULL), apart, apart)
    lowerer.emit("Add", squares, squares, square)
    for value, row, name in zip((pair.first, pair.total), rows, names, strict=True):
        accumulations.append(Accumulation(value, row.name, name))


def final_pass(plan: Plan, lowerer: Lowerer) -> TileProgram:
    lowerer.forget_tile()
    full = [output.value for output in plan.outputs if output.domain is Domain.FULL]
    lowerer.lower([output.value for output in plan.outputs])
    return finish(lowerer, used_inputs(plan, needed_now(full)), plan.outputs, split=True)


def needed_now(roots: Sequence[Operand]) -> tuple[Value, ...]:
    """The values that the roots need without going through a reduction."""
    return needed(roots, lambda value: value.domain is Domain.ROW)
