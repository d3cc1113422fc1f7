"""Schedules as a search space: the analytic best to start from, and named moves from any point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from attrs import evolve

from evokernel_core.compiler.family import Move
from evokernel_core.compiler.lowering.decisions import rounding_decides
from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import LANES, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.fused import halves, steps
from evokernel_core.targets.ascendc.kernels.fused.access import invariant_columns
from evokernel_core.targets.ascendc.kernels.fused.base import Kernel
from evokernel_core.targets.ascendc.kernels.fused.buffers import layout
from evokernel_core.targets.ascendc.kernels.fused.fused_estimate import estimate_us
from evokernel_core.targets.ascendc.kernels.fused.pairs import online_pairs, passes, row_length
from evokernel_core.targets.ascendc.kernels.fused.settings import IN_LANES, IN_PIECES, METHODS, Form, Schedule
from evokernel_core.targets.ascendc.kernels.fused.shared import in_pieces, point_bytes
from evokernel_core.targets.ascendc.kernels.fused.tile import build, structure
from evokernel_core.targets.ascendc.lowering.queues import plan

_ROOM = 32
"""Sizes up to which those of the user's file may grow."""
_TILE_STEP = 256
"""Tiles are whole repeats, and their masks whole 32-byte blocks."""
_MOST_TILE = most_of("ReduceDataBlock", "repeatTime") * LANES // _TILE_STEP * _TILE_STEP
_MOST_STRIDED = most_of("Add", "src0RepStride") * 8
"""Columns that the repeat stride of a vector instruction can step over."""
_LEAST_LANES = 128
"""Whole lines of 512 bytes in float32."""

_IN_PASSES = IN_PIECES | {Form.STREAM, Form.STEPS}
"""The forms that read a row once more for each pass."""
_DATAFLOW = {
    Form.PACKED: Dataflow.PACKED_ROWS,
    Form.RESIDENT: Dataflow.RESIDENT_ROWS,
    Form.REGION: Dataflow.BLOCKS,
    Form.LANES: Dataflow.LANES,
    Form.CHANNELS: Dataflow.LANES,
    Form.STEPS: Dataflow.BLOCKS,
} | dict.fromkeys((Form.FLAT, Form.SEGMENTS, Form.PIECES, Form.SHARED, Form.STREAM), Dataflow.STREAMED)
_KEPT = frozenset({Form.PACKED, Form.RESIDENT, Form.REGION, Form.CHANNELS})
"""The forms that keep rows, or lanes, in the unified buffer from load to store."""
_READ_AGAIN = 0.02
_LEAST_DENSE = 1024
_LEAST_SHARED = 2**18
"""Bytes of a row that are worth sharing: less than it takes for the cores to meet."""


def initial(task: KernelTask, chip: Chip) -> Strategy:
    """The legal schedule of the lowest estimate. Raises PlanError where the task has none."""
    planned = plan(task, chip)
    best = _best(planned, task, chip)
    if best is None:
        raise PlanError(
            "The region needs more unified buffer than a vector core has, even for the smallest tile."
        )
    return strategy_of(planned, best, "")


def _best(planned: Plan, task: KernelTask, chip: Chip, *, half: bool = False) -> Schedule | None:
    """The legal schedule of the lowest estimate, None where there is none."""
    starts = _starts(planned, task, chip, half)
    legal = [start for start in starts if refusal(planned, start, task, chip) is None]

    def rank(schedule: Schedule) -> tuple[int, int, int, float]:
        """Estimates within 2 % of each other are equal: then longer runs of memory are better, and larger
        tiles. Lanes that are read again may have left L2 by then, however little the estimate makes of it."""
        again = (
            passes(planned, schedule.online) - 1 if schedule.form in IN_LANES and not schedule.whole else 0
        )
        estimate = estimate_us(build(planned, schedule), task.sizes, chip) * (1 + _READ_AGAIN * again)
        run = schedule.columns if schedule.form is Form.STEPS and not schedule.whole else schedule.tile
        return round(math.log(estimate) / 0.02), -run, -schedule.tile, estimate

    return min(legal, key=rank, default=None)


def moves(task: KernelTask, strategy: Strategy, chip: Chip) -> tuple[Move, ...]:
    """Every legal schedule that is one named step away and gives another source."""
    planned = plan(task, chip)
    here = Schedule.of(strategy)
    seen = {structure(planned, here)}
    problems: list[Move] = []
    for name, schedule in _steps(planned, here, task, chip):
        if (
            refusal(planned, schedule, task, chip) is None
            and (made := structure(planned, schedule)) not in seen
        ):
            seen.add(made)
            problems.append(Move(name, strategy_of(planned, schedule, name), planned.family))
    return tuple(problems)


def refusal(planned: Plan, schedule: Schedule, task: KernelTask, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware or of its family; None where it is legal."""
    columns = row_room(planned, task)
    if schedule.reduction not in METHODS or schedule.spread not in ("rows", "columns"):
        return Sentence(
            "There is no reduction {reduction}, or no spread {spread}.",
            reduction=repr(schedule.reduction),
            spread=repr(schedule.spread),
        )
    if schedule.tile < _TILE_STEP or schedule.tile % _TILE_STEP:
        return Sentence(
            "A tile of {tile} elements is not a whole number of {tile_step}.",
            tile=schedule.tile,
            tile_step=_TILE_STEP,
        )
    if planned.reductions and schedule.tile > _MOST_TILE:
        return Sentence("A reduced tile has at most {most} elements.", most=_MOST_TILE)
    if planned.has_stripes and schedule.form not in forms(planned, columns):
        return "Parts of rows are read where they lie by other tile forms."
    reason = None
    if schedule.packed:
        reason = _packed_refusal(schedule, columns)
    elif schedule.form is Form.STEPS:
        reason = _steps_refusal(planned, schedule, columns)
    elif schedule.form is Form.RESIDENT and columns > schedule.tile:
        reason = Sentence(
            "A row of {columns} elements does not fit a tile of {tile}.", columns=columns, tile=schedule.tile
        )
    if reason:
        return reason
    kernel = build(planned, schedule)
    return (halves.refusal(kernel) if schedule.half else None) or _buffer_refusal(kernel, chip)


def _dense_refusal(planned: Plan, schedule: Schedule, columns: int) -> str | None:
    group = steps.in_whole_blocks(columns)
    if columns > schedule.columns or group * columns > schedule.tile:
        return Sentence(
            "{group} steps of {columns} lanes do not fit a tile of {tile}.",
            group=group,
            columns=columns,
            tile=schedule.tile,
        )
    return steps.dense_refusal(planned)


def _steps_refusal(planned: Plan, schedule: Schedule, columns: int) -> str | None:
    if schedule.columns > schedule.tile:
        return Sentence(
            "A step of {columns} lanes does not fit a tile of {tile}.",
            columns=schedule.columns,
            tile=schedule.tile,
        )
    if schedule.dense:
        return _dense_refusal(planned, schedule, columns)
    if not schedule.whole:
        return None
    count = planned.mid.constant
    if count is None or count > steps.MOST_STEPS:
        return Sentence("Of a lane's steps, {mid}, not all are known to fit a tile.", mid=planned.mid)
    if schedule.tile < _least_whole_tile(planned):
        return Sentence(
            "All {count} steps of a few lanes do not fit a tile of {tile}.", count=count, tile=schedule.tile
        )
    return None


def _packed_refusal(schedule: Schedule, columns: int) -> str | None:
    if columns + 32 > schedule.tile or columns > schedule.columns:
        return Sentence(
            "A row of {columns} elements does not fit a tile of {tile}.", columns=columns, tile=schedule.tile
        )
    if schedule.reduction == "tile" and (columns % LANES or columns <= LANES):
        return Sentence("Rows of {columns} elements are not whole repeats.", columns=columns)
    if schedule.reduction == "standing" and columns > _MOST_TILE:
        return Sentence(
            "Rows of {columns} elements are more repeats than an instruction has.", columns=columns
        )
    strided = schedule.reduction == "fold" or schedule.spread == "columns"
    if strided and columns > _MOST_STRIDED:
        return Sentence(
            "Rows of {columns} elements are further apart than a repeat stride reaches.", columns=columns
        )
    return None


def _buffer_refusal(kernel: Kernel, chip: Chip) -> str | None:
    usable, total = chip.ub_bytes - RESERVED_BYTES, layout(kernel).total
    if total > usable:
        return Sentence("The buffers take {total} of {usable} bytes.", total=total, usable=usable)
    most = chip.memory.max_queue_buffers
    if sum(kernel.buffers_of(part) for part in (*kernel.queued, *kernel.invariants)) > most:
        return Sentence("The inputs need more than {most} queue buffers.", most=most)
    if sum(kernel.buffers_of(output) for output in kernel.plan.outputs) > most:
        return Sentence("The outputs need more than {most} queue buffers.", most=most)
    return None


# -- the space ------------------------------------------------------------------------------------


def row_room(planned: Plan, task: KernelTask) -> int:
    """Columns that a kernel of whole rows has room for: those of the file's sizes, of which small ones may
    grow, as a kernel that just fits them would decline the next call."""
    sizes = {name: max(size, _ROOM) for name, size in task.sizes.items()}
    return planned.inner.evaluate(sizes)


def dense_room(planned: Plan, task: KernelTask) -> int:
    """Lanes that a kernel of dense steps has room for, which takes all of a step: a few thousand bytes where
    calls may have more of them than those of the file."""
    columns = -(-row_room(planned, task) // LANES) * LANES
    return columns if planned.inner.constant is not None else max(columns, _LEAST_DENSE)


def forms(planned: Plan, columns: int) -> tuple[Form, ...]:
    """The tile forms that a plan may take."""
    if planned.family == "columnwise":
        return (Form.LANES, *((Form.STEPS,) if steps.refusal(planned) is None else ()))
    if planned.family == "piecewise":
        return (Form.PIECES, Form.SHARED)
    flat = planned.rows.is_one and not planned.has_stripes
    if planned.family == "pointwise":
        return (Form.FLAT,) if flat else (Form.PACKED, Form.SEGMENTS)
    whole = (Form.PACKED, Form.RESIDENT) if columns <= _MOST_TILE else ()
    return (*whole, Form.STREAM) if planned.has_stripes else (*whole, Form.STREAM, Form.SHARED)


def _starts(planned: Plan, task: KernelTask, chip: Chip, half: bool) -> Iterator[Schedule]:
    # Rounding less often than PyTorch takes less time, and is as right where results are continuous.
    rounded = planned.rounds and rounding_decides(task.graph)
    for form in forms(planned, row_room(planned, task)):
        if form is Form.SHARED and not _is_worth_sharing(planned, task, chip):
            continue
        for buffers in (2, 1):
            base = Schedule(form, 0, buffers, eager_rounding=rounded and not half, half=half)
            yield from _tiled(planned, base, task, chip)


def _is_worth_sharing(planned: Plan, task: KernelTask, chip: Chip) -> bool:
    """Whether cores would be idle, or rows of all cores together more than L2 keeps, if each took whole
    rows; and whether rows are long enough to divide."""
    plan = in_pieces(planned)
    rows, bytes_of_row = plan.rows.evaluate(task.sizes), _row_bytes(plan, task)
    few = rows < chip.aiv or min(rows, chip.aiv) * bytes_of_row > chip.l2_bytes
    return few and bytes_of_row >= _LEAST_SHARED


def _row_bytes(plan: Plan, task: KernelTask) -> int:
    return row_length(plan).evaluate(task.sizes) * point_bytes(plan)


def _at_once(chip: Chip) -> int:
    """Bytes read and written of rows that are worked on at a time, the latter of which need no place while
    the former are read for the first time."""
    return chip.l2_bytes // 4 * 3


def _tiled(planned: Plan, base: Schedule, task: KernelTask, chip: Chip) -> Iterator[Schedule]:
    """A form with the largest tile that fits and with halves of it."""
    for variant in _variants(planned, base, task, chip):
        most = largest_tile(planned, variant, chip)
        for tile in (most, most // 2, most // 4):
            if (tile := tile // _TILE_STEP * _TILE_STEP) >= _TILE_STEP:
                yield evolve(variant, tile=tile)


def _variants(planned: Plan, base: Schedule, task: KernelTask, chip: Chip) -> Iterator[Schedule]:
    if base.form is Form.LANES:
        yield base
        return
    if base.form is Form.STEPS:
        if _is_padded(planned, task, chip) and steps.dense_refusal(planned) is None:
            yield evolve(base, columns=dense_room(planned, task), dense=True)
        for lanes in _lane_runs(planned, task, chip):
            yield evolve(base, columns=lanes, spread="columns", online=bool(online_pairs(planned)))
            if planned.mid.constant is not None:
                yield evolve(base, columns=lanes, spread="columns", whole=True)
        return
    if base.form is not Form.PACKED:
        online = base.form in _IN_PASSES and online_pairs(planned)
        at_once = _at_once(chip) if base.form is Form.SHARED else 0
        yield evolve(base, online=bool(online), at_once=at_once)
        return
    columns = row_room(planned, task)
    capacity = -(-columns // LANES) * LANES
    rows = 64 if columns >= LANES * 2 else 192
    base = evolve(base, columns=capacity, rows=rows)
    methods = ("block", "fold", "tile", "standing") if planned.reductions else ("block",)
    keeps = (False, True) if invariant_columns(planned, Form.PACKED) else (False,)
    if base.half:  # whose instructions take no row in turn
        keeps = keeps[-1:]
    for reduction, spread, keep in product(methods, ("rows", "columns"), keeps):
        yield evolve(base, reduction=reduction, spread=spread, keep_columns=keep)


def _is_padded(planned: Plan, task: KernelTask, chip: Chip) -> bool:
    """Whether steps do not lie as in memory anyhow: whole blocks of all lanes do."""
    columns = planned.inner.evaluate(task.sizes)
    return columns % steps.lanes_per_block(planned) > 0 or columns > _lane_runs(planned, task, chip)[-1]


def _lane_runs(planned: Plan, task: KernelTask, chip: Chip) -> list[int]:
    """How many lanes of several steps a tile may take: those that a core has, or fewer."""
    lanes = planned.rows.evaluate(task.sizes) // planned.mid.evaluate(task.sizes)
    columns = planned.inner.evaluate(task.sizes)
    share = min(columns, max(_LEAST_LANES, lanes * columns // chip.aiv))
    most = min(-(-share // _LEAST_LANES) * _LEAST_LANES, _MOST_STRIDED // _LEAST_LANES * _LEAST_LANES)
    return sorted({min(most, size) for size in (_LEAST_LANES, 4 * _LEAST_LANES, most)})


def largest_tile(planned: Plan, schedule: Schedule, chip: Chip) -> int:
    """The largest tile whose buffers fit, 0 where none does."""
    usable = chip.ub_bytes - RESERVED_BYTES
    # Without a reduction, at most what fits where an element takes a byte.
    most = _MOST_TILE if planned.reductions else chip.ub_bytes // _TILE_STEP * _TILE_STEP

    def needed(tile: int) -> int:
        return layout(build(planned, evolve(schedule, tile=tile))).total

    # Bytes grow linearly with the tile but for the rounding of each buffer to a block.
    fixed = 2 * needed(_TILE_STEP) - needed(2 * _TILE_STEP)
    slope = max((needed(most) - fixed) / most, 1.0)
    tile = min(most, int((usable - fixed) / slope) // _TILE_STEP * _TILE_STEP + _TILE_STEP)
    while tile > 0 and needed(tile) > usable:
        tile -= _TILE_STEP
    return max(tile, 0)


def _steps(planned: Plan, here: Schedule, task: KernelTask, chip: Chip) -> Iterator[tuple[str, Schedule]]:
    most = largest_tile(planned, here, chip)
    yield "largest tile", evolve(here, tile=most)
    yield "double tile", evolve(here, tile=min(here.tile * 2, most))
    yield "halve tile", evolve(here, tile=here.tile // 2 // _TILE_STEP * _TILE_STEP)
    yield "three quarters of tile", evolve(here, tile=here.tile * 3 // 4 // _TILE_STEP * _TILE_STEP)
    yield from _buffer_steps(planned, here, chip)
    yield from _form_steps(planned, here, task, chip)
    if here.form is Form.STEPS and not here.dense:
        lanes = min(here.columns * 2, _MOST_STRIDED // _LEAST_LANES * _LEAST_LANES)
        yield "twice the lanes", _fitted(planned, evolve(here, columns=lanes), chip)
        half = max(here.columns // 2 // _LEAST_LANES * _LEAST_LANES, _LEAST_LANES)
        yield "half the lanes", _fitted(planned, evolve(here, columns=half), chip)
    if here.packed:
        yield from _packed_steps(planned, here, chip)
    if here.form is Form.STEPS:
        yield from _dense_steps(planned, here, task, chip)
    if here.form is Form.STEPS and planned.mid.constant is not None and not here.dense:
        yield _whole_step(planned, here, chip)
    if here.form in _IN_PASSES and not here.whole and online_pairs(planned):
        name = _A_PASS_EACH if here.online else Sentence("reductions in pairs, one pass a pair")
        yield name, _fitted(planned, evolve(here, online=not here.online), chip)
    if here.form is Form.SHARED:
        yield "twice the rows at once", evolve(here, at_once=min(here.at_once * 2, chip.l2_bytes))
        yield "half the rows at once", evolve(here, at_once=max(here.at_once // 2, _LEAST_SHARED))
    if planned.rounds and not here.half:
        exact = Sentence("float32 intermediates")
        name = exact if here.eager_rounding else Sentence("intermediates rounded like PyTorch's")
        yield name, _fitted(planned, evolve(here, eager_rounding=not here.eager_rounding), chip)
    yield "toggle L2 bypass", evolve(here, bypass_l2=not here.bypass_l2)
    yield "toggle bank stagger", _fitted(planned, evolve(here, stagger=not here.stagger), chip)
    if halves.applies(planned) and (other := _best(planned, task, chip, half=not here.half)):
        yield Sentence("arithmetic in float32") if here.half else Sentence("arithmetic in float16"), other


_A_PASS_EACH = Sentence("a pass for each reduction")


def _whole_step(planned: Plan, here: Schedule, chip: Chip) -> tuple[str, Schedule]:
    """All steps in a tile, which grows where it is too short; or back to a pass for each reduction."""
    if here.whole:
        return _A_PASS_EACH, _fitted(planned, evolve(here, whole=False, online=False), chip)
    needed = -(-_least_whole_tile(planned) // _TILE_STEP) * _TILE_STEP
    grown = evolve(here, whole=True, online=False, tile=max(here.tile, needed))
    return Sentence("all steps in a tile"), _fitted(planned, grown, chip)


def _dense_steps(
    planned: Plan, here: Schedule, task: KernelTask, chip: Chip
) -> Iterator[tuple[str, Schedule]]:
    if here.dense:
        apart = evolve(here, dense=False, columns=_lane_runs(planned, task, chip)[-1])
        yield Sentence("each step at a block"), _fitted(planned, apart, chip)
    elif steps.dense_refusal(planned) is None:
        dense = evolve(here, dense=True, whole=False, online=False, columns=dense_room(planned, task))
        yield Sentence("steps in one run of memory"), _fitted(planned, dense, chip)


def _least_whole_tile(planned: Plan) -> int:
    """Elements of a tile that has all steps, whose number is known, of a few lanes."""
    assert planned.mid.constant is not None
    return 4 * steps.lanes_per_block(planned) * planned.mid.constant


def _buffer_steps(planned: Plan, here: Schedule, chip: Chip) -> Iterator[tuple[str, Schedule]]:
    if here.buffers == 2:
        single = evolve(here, buffers=1)
        yield "single buffer, larger tile", evolve(single, tile=largest_tile(planned, single, chip))
    else:
        yield "double buffer", _fitted(planned, evolve(here, buffers=2), chip)


def _form_steps(
    planned: Plan, here: Schedule, task: KernelTask, chip: Chip
) -> Iterator[tuple[str, Schedule]]:
    for form in forms(planned, row_room(planned, task)):
        if form is not here.form:
            base = Schedule(form, 0, here.buffers, eager_rounding=here.eager_rounding)
            base = evolve(base, cores=here.cores, half=here.half)
            for schedule in _tiled(planned, base, task, chip):
                yield Sentence("{form} tiles", form=form), schedule
                break


def _packed_steps(planned: Plan, here: Schedule, chip: Chip) -> Iterator[tuple[str, Schedule]]:
    for method in ("block", "fold", "tile", "standing"):
        yield Sentence("reduce by {method}", method=method), evolve(here, reduction=method)
    anew = Sentence("columns repeated for each tile")
    name = anew if here.keep_columns else Sentence("columns repeated once")
    yield name, _fitted(planned, evolve(here, keep_columns=not here.keep_columns), chip)
    other = "columns" if here.spread == "rows" else "rows"
    yield Sentence("spread by {side}", side=other), evolve(here, spread=other)
    yield "twice the rows", evolve(here, rows=min(here.rows * 2, 192))
    yield "half the rows", evolve(here, rows=max(here.rows // 2 // 64 * 64, 64))


def _fitted(planned: Plan, schedule: Schedule, chip: Chip) -> Schedule:
    return evolve(schedule, tile=min(schedule.tile, largest_tile(planned, schedule, chip)))


# -- words ----------------------------------------------------------------------------------------

_FORM_NOTES = {
    Form.FLAT: Sentence("Equal runs of elements for every core."),
    Form.PACKED: Sentence(
        "Several whole rows a tile; values of a row are vectors, broadcast over the columns."
    ),
    Form.RESIDENT: Sentence("One whole row a tile, loaded once; values of a row are scalars."),
    Form.LANES: Sentence("Lanes cut into equal runs over all cores; steps one after another."),
    Form.PIECES: Sentence("Rows in strided segments: tiles of a segment, lane-wise partial results."),
    Form.STEPS: Sentence("Some lanes of many steps a tile, folded together when all steps have passed."),
    Form.SHARED: Sentence("Cores share rows, as many at a time as L2 keeps; partial results meet in memory."),
    Form.SEGMENTS: Sentence("Rows cut into equal segments over all cores."),
    Form.STREAM: Sentence("Rows longer than the unified buffer: tiles of a row, lane-wise partial results."),
}


def strategy_of(planned: Plan, schedule: Schedule, move: str) -> Strategy:
    """The strategy of a schedule: its settings, its words and its archive cell."""
    return Strategy(
        family=planned.family,
        settings=schedule.settings(),
        notes=_notes(planned, schedule),
        descriptor=descriptor_of(planned, schedule),
        move=move,
    )


def _notes(planned: Plan, schedule: Schedule) -> tuple[str, ...]:
    notes = [
        Sentence(
            "Tile of {tile} elements, {buffers} buffer(s) a queue.",
            tile=schedule.tile,
            buffers=schedule.buffers,
        ),
        _FORM_NOTES[schedule.form],
    ]
    if schedule.half:
        notes.append(Sentence("Computed in float16, whose error the review shows."))
    if schedule.form in _IN_PASSES and not schedule.whole:
        notes.append(Sentence("{passes} passes over a row.", passes=passes(planned, schedule.online)))
    if planned.family in ("rowwise", "piecewise") and schedule.form is not Form.SHARED:
        notes.append(Sentence("A row stays on one core; with fewer rows than cores some cores idle."))
    return tuple(notes)


def descriptor_of(planned: Plan, schedule: Schedule) -> Descriptor:
    form = schedule.form
    once = not planned.reductions or schedule.whole or form not in _IN_PASSES | IN_LANES
    count = 1 if once else passes(planned, schedule.online)
    reuse = memories.UB if form in _KEPT or schedule.whole else memories.L2 if count > 1 else Reuse.NONE
    return Descriptor(
        _DATAFLOW[form],
        reuse,
        _split(form),
        _algorithm(planned, schedule, count),
        Overlap.of(schedule.buffers),
    )


def _algorithm(planned: Plan, schedule: Schedule, count: int) -> Algorithm:
    """``count``: how often a row is read."""
    if not planned.reductions:
        return Algorithm.DIRECT
    if schedule.online:
        return Algorithm.ONLINE
    return {1: Algorithm.SINGLE_PASS, 2: Algorithm.TWO_PASS}.get(count, Algorithm.MULTI_PASS)


def _split(form: Form) -> Split:
    """What of the points of a plan the cores share out in a form."""
    if form in IN_LANES:
        return Split.COLUMNS
    others = {Form.FLAT: Split.ELEMENTS, Form.SEGMENTS: Split.SEGMENTS, Form.SHARED: Split.REDUCTION}
    return others.get(form, Split.ROWS)
