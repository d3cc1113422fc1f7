"""Long rows shared by several cores, which tell each other their partial results through device memory.

As many rows are worked on at a time as L2 keeps: a row is read from device memory once, by the first pass,
and by later passes from L2. Cores that have no row of their own take part of another's. All cores meet
after each pass that reduces; the two places where they leave their numbers alternate, so that a core that
is ahead overwrites nothing that another still reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain
from evokernel_core.compiler.shapes.sizes import ONE
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.kernels.fused import piecewise
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.copies import method
from evokernel_core.targets.ascendc.kernels.fused.passes import Accumulation, Pass, combine_lines, in_passes
from evokernel_core.targets.ascendc.kernels.fused.settings import Schedule
from evokernel_core.targets.ascendc.kernels.text import REDUCTION_NAMES

MOST_SHARERS = 64
"""Numbers of a row lie in the lanes of one repeat."""

_EXCHANGE = """\
// Every core leaves its numbers of a row beside those of the row's other cores, and takes them all.
__aicore__ inline void Exchange(uint16_t numbers, bool isBusy)
{
    const uint64_t slot = exchanges % 2 * tiling_.rowsAtOnce + member;
    const uint64_t place = slot * MOST_EXCHANGED * MOST_SHARERS;
    ++exchanges;
    PipeBarrier<PIPE_ALL>();
    for (uint16_t i = 0; isBusy && i < numbers; ++i) {
        DataCopyPad(exchangeGlobal[place + i * MOST_SHARERS + share], exchanged[i * MOST_SHARERS],
            DataCopyExtParams{1, sizeof(float), 0, 0, 0});
    }
    PipeBarrier<PIPE_ALL>();
    SyncAll();
    if (isBusy) {
        const uint32_t bytes = tiling_.sharers * sizeof(float);
        const uint32_t pitch = MOST_SHARERS * sizeof(float);
        DataCopyPad(exchanged, exchangeGlobal[place],
            DataCopyExtParams{numbers, bytes, pitch - bytes, (pitch - bytes) / BLOCK_BYTES, 0},
            DataCopyPadExtParams<float>{false, 0, 0, 0});
    }
    PipeBarrier<PIPE_ALL>();
}
"""

_ELEMENTS = """\
// Elements of a row in front of a tile.
__aicore__ inline uint64_t ElementsBefore(uint64_t tile)
{
    const uint64_t tilesPerPiece = tiling_.tiles / tiling_.pieces;
    return tile / tilesPerPiece * tiling_.columns + tile % tilesPerPiece * tiling_.tileElements;
}
"""


@frozen
class Shares:
    """How rows are divided: ``rows`` at a time, each by ``sharers`` cores that take ``tiles`` tiles of it,
    ``turns`` times."""

    rows: int
    sharers: int
    tiles: int
    turns: int


def shares(plan: Plan, schedule: Schedule, sizes: Mapping[str, int], cores: int) -> Shares:
    """What ComputeTiling divides at these sizes; ``plan`` is one in pieces."""
    rows, columns = plan.rows.evaluate(sizes), plan.inner.evaluate(sizes)
    pieces = plan.leading.evaluate(sizes) * plan.mid.evaluate(sizes)
    tiles = pieces * math.ceil(columns / schedule.tile)
    kept = max(1, schedule.at_once // (pieces * columns * point_bytes(plan)))
    turns = math.ceil(rows / min(rows, cores, kept))
    at_once = math.ceil(rows / turns)
    per_share = math.ceil(tiles / min(cores // at_once, tiles, MOST_SHARERS))
    return Shares(at_once, math.ceil(tiles / per_share), per_share, turns)


def point_bytes(plan: Plan) -> int:
    """Bytes that L2 holds for each element of a row: of inputs and results that have them all."""
    read = (ITEM_SIZE[operand.dtype] for operand in plan.inputs if operand.domain is Domain.FULL)
    return sum(read) + sum(ITEM_SIZE[output.dtype] for output in plan.outputs if output.domain is Domain.FULL)


def in_pieces(plan: Plan) -> Plan:
    """A plan of rows as one of rows of a single piece."""
    if plan.family == "piecewise":
        return plan
    inputs = tuple(evolve(operand, outer=(*operand.outer, operand.mid), mid=False) for operand in plan.inputs)
    return evolve(
        plan, family="piecewise", outer=(*plan.outer, plan.mid), mid=ONE, leading=ONE, inputs=inputs
    )


def build(planned: Plan, schedule: Schedule) -> Kernel:
    """The kernel in which cores share rows."""
    plan = in_pieces(planned)
    lowerer = piecewise.PieceLowerer(plan, packed=False, eager=schedule.eager_rounding)
    kernel, steps, final = in_passes(plan, schedule, lowerer)
    once, row, piece = piecewise.numbers(kernel)
    kernel.methods += [_EXCHANGE]
    if any(pair.is_moments for step in steps for pair in step.pairs):
        kernel.methods.append(_ELEMENTS)
    turn: list[str] = []
    before = row
    for step in steps:
        piecewise.reducing_methods(kernel, step, piece, _leaving_lines(step))
        kernel.methods.append(method(f"Combine{step.number}", "", _taking_lines(step)))
        turn += [*_when_busy([*before, f"Reduce{step.number}(row);"])]
        turn.append(f"Exchange({_numbers_of(step)}, isBusy);")
        before = [f"Combine{step.number}();"]
    turn += _when_busy([*before, *piecewise.final_methods(kernel, final, piece)])
    kernel.process += [*_position(), *once, *_turns(turn)]
    return kernel


def _when_busy(lines: list[str]) -> list[str]:
    return ["if (isBusy) {", *(f"    {line}" for line in lines), "}"]


def _position() -> list[str]:
    """What this core does in every turn."""
    return [
        "member = GetBlockIdx() / tiling_.sharers;",
        "share = GetBlockIdx() % tiling_.sharers;",
        "firstTile = share * tiling_.tilesPerShare;",
        "const uint64_t run = firstTile + tiling_.tilesPerShare;",
        "endTile = run < tiling_.tiles ? run : tiling_.tiles;",
        "exchanges = 0;",
    ]


def _turns(lines: list[str]) -> list[str]:
    return [
        "for (uint64_t turn = 0; turn < tiling_.turns; ++turn) {",
        "    const uint64_t row = turn * tiling_.rowsAtOnce + member;",
        "    const bool isBusy = row < tiling_.rows; // the last turn may have fewer rows",
        *(f"    {line}" for line in lines),
        "}",
    ]


def _places(step: Pass) -> dict[int, str]:
    """Where the numbers of each accumulation lie among those that are exchanged."""
    return {
        accumulation.value.index: f"exchanged[{number} * MOST_SHARERS]" if number else "exchanged"
        for number, accumulation in enumerate(step.accumulations)
    }


def _counts(step: Pass) -> dict[int, str]:
    """The same for the elements that each core took, by the sum of squares that needs them."""
    moments = [pair.total.index for pair in step.pairs if pair.is_moments]
    first = len(step.accumulations)
    return {index: f"exchanged[{first + number} * MOST_SHARERS]" for number, index in enumerate(moments)}


def _numbers_of(step: Pass) -> int:
    return len(step.accumulations) + len(_counts(step))


def _leaving_lines(step: Pass) -> list[str]:
    """Lanes of this core to one number each, and how many elements they stand for."""
    places, counts = _places(step), _counts(step)
    lines = piecewise.lanes()
    if counts:
        lines.append("const uint64_t taken = ElementsBefore(endTile) - ElementsBefore(firstTile);")
    lines += combine_lines(step, "taken", lambda item: places[item.value.index], is_part=True)
    return [*lines, *(f"Duplicate({place}, static_cast<float>(taken), 1);" for place in counts.values())]


def _taking_lines(step: Pass) -> list[str]:
    """The numbers of all cores of a row to those of the row."""
    lines: list[str] = []
    places, counts = _places(step), _counts(step)
    for accumulation in step.accumulations:
        here, pair = places[accumulation.value.index], step.pair_of(accumulation)
        if pair is not None:
            first = step.first_of(pair)
            there = places[first.value.index]
            lines += (
                _squares(accumulation, first, here, there, counts[accumulation.value.index])
                if pair.is_moments
                else _rescaled(first, here, there)
            )
        lines.append(
            f"{REDUCTION_NAMES[accumulation.value.op]}Row({accumulation.row}, {here}, tiling_.sharers);"
        )
    return lines


def _rescaled(first: Accumulation, here: str, there: str) -> list[str]:
    return [
        "// Bring the cores' sums to the common maximum.",
        f"Adds({there}, {there}, -{first.row}.GetValue(0), tiling_.sharers);",
        f"Exp({there}, {there}, tiling_.sharers);",
        f"Mul({here}, {here}, {there}, tiling_.sharers);",
    ]


def _squares(accumulation: Accumulation, first: Accumulation, here: str, there: str, count: str) -> list[str]:
    """Squares around each core's mean become squares around the row's: more by the count times the
    square of the means' difference."""
    mean, apart = f"{accumulation.row}Mean", f"{accumulation.row}Apart"
    return [
        "// Each core's squares are around its own mean.",
        f"const float {mean} = {first.row}.GetValue(0) / static_cast<float>(ElementsBefore(tiling_.tiles));",
        f"const LocalTensor<float> {apart} = {accumulation.row};",
        f"Muls({apart}, {count}, -{mean}, tiling_.sharers);",
        f"Add({apart}, {apart}, {there}, tiling_.sharers);",
        f"Mul({apart}, {apart}, {apart}, tiling_.sharers);",
        f"Div({apart}, {apart}, {count}, tiling_.sharers);",
        f"Add({here}, {here}, {apart}, tiling_.sharers);",
    ]
