"""The analytic estimate that picks the first schedule: cycles of one core's slowest pipe.

Rates are those of the chip file; the model of the twin is finer. What matters here is the order of
schedules, not the figure. All estimates are modelled, none is measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.ascendc.families.base import Kernel
from evokernel_core.ascendc.families.programs import TileProgram
from evokernel_core.ascendc.lowering import REDUCTIONS, Domain
from evokernel_core.ascendc.lowering_program import Instruction
from evokernel_core.ascendc.schedule_settings import Form
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.roofline import launch_us

_START = 22.0
"""Cycles that a vector instruction costs before its first repeat."""
_READ_START, _WRITE_START = 189.0, 39.0
_BYTES_PER_CYCLE = 32.0
_FLAGS = 40.0
"""Scalar cycles of one tile's queue operations."""
_NUMBER = 60.0
"""Scalar cycles to read one number from device memory through the data cache."""
_GET_VALUE = 40.0
"""Cycles that the vector pipe waits while the scalar unit reads one of its results."""
_SLOW = frozenset({"Exp", "Ln", "Sqrt", "Div"})
_L2_BYTES_PER_CYCLE = 58.0


@frozen
class Work:
    """The tiles that one core runs: how many, their elements, and the rows in each."""

    tiles: float
    elements: float
    rows: float
    cores: int


def estimate_us(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> float:
    """Modelled microseconds of a kernel at given sizes."""
    work = _work(kernel, sizes, chip)
    programs = kernel.programs
    loads = [_load(kernel, program, work, chip, again=program is not programs[0]) for program in programs]
    stores = _store(kernel, work, chip)
    copied = sum(load.bytes_cycles for load in loads) + stores.bytes_cycles
    vector = sum(_vector_cycles(kernel, program, work) for program in programs)
    scalar = work.tiles * (_FLAGS * len(programs) + _NUMBER * len(kernel.numbers))
    pipes = (max(copied, sum(load.cycles for load in loads), stores.cycles), vector, scalar)
    together = max(copied, sum(load.cycles for load in loads) + stores.cycles) + vector
    cycles = max(pipes) if kernel.schedule.buffers > 1 else together
    fill = (loads[0].cycles + stores.cycles) / max(work.tiles, 1.0)
    return (cycles + fill) / chip.mhz + launch_us(chip, work.cores)


def _work(kernel: Kernel, sizes: Mapping[str, int], chip: Chip) -> Work:
    plan, schedule = kernel.plan, kernel.schedule
    rows, columns = plan.rows.evaluate(sizes), plan.inner.evaluate(sizes)
    cores = min(schedule.cores or chip.aiv, chip.aiv)
    if schedule.form in (Form.FLAT, Form.SEGMENTS):
        share = max(rows * columns / cores, 1.0)
        tile = min(schedule.tile, share, columns if schedule.form is Form.SEGMENTS else share)
        return Work(
            math.ceil(share / tile), min(tile, share), 1.0, min(cores, math.ceil(rows * columns / 128))
        )
    if schedule.form is Form.LANES:
        steps = plan.mid.evaluate(sizes)
        tile = min(schedule.tile, max(128.0, rows // steps * columns / cores), columns)
        units = rows // steps * math.ceil(columns / tile)
        return Work(math.ceil(units / cores) * steps, tile, tile, min(cores, units))
    per_core = math.ceil(rows / cores)
    if schedule.form is Form.PIECES:
        tiles = math.ceil(columns / schedule.tile)
        pieces = plan.leading.evaluate(sizes) * plan.mid.evaluate(sizes)
        return Work(per_core * pieces * tiles, columns / tiles, 1.0, math.ceil(rows / per_core))
    used = math.ceil(rows / per_core)
    if schedule.form is Form.PACKED:
        per_tile = max(1, min(schedule.tile // max(columns, 1), schedule.rows, per_core))
        return Work(math.ceil(per_core / per_tile), per_tile * columns, per_tile, used)
    tiles = math.ceil(columns / schedule.tile)
    return Work(per_core * tiles, columns / tiles, 1.0, used)


@frozen
class Copies:
    """Copies of one core in one direction: cycles of its engine, and of its share of the chip's rate."""

    cycles: float
    bytes_cycles: float


def _share(chip: Chip, work: Work, cached: bool) -> float:
    """Bytes a cycle of the chip's rate that one of the busy cores gets."""
    rate = "gm.l2_gbps" if cached else "gm.hbm_achieved_gbps"
    return chip.constants.get(rate, chip.hbm_gbps) * 1e3 / chip.mhz / work.cores


def _bytes(domain: Domain, dtype: str, work: Work) -> float:
    elements = work.elements if domain in (Domain.FULL, Domain.COLUMN) else work.rows
    return elements * ITEM_SIZE[dtype]


def _fits_l2(kernel: Kernel, work: Work, chip: Chip) -> bool:
    total = sum(_bytes(item.domain, item.dtype, work) for item in kernel.tensors)
    return total * work.tiles * work.cores <= chip.l2_bytes


def _load(kernel: Kernel, program: TileProgram, work: Work, chip: Chip, again: bool) -> Copies:
    """``again``: the row has been read before, so that L2 holds it."""
    queued = {item.name for item in kernel.queued}
    items = [item for item in program.inputs if item.name in queued]
    total = sum(_bytes(item.domain, item.dtype, work) for item in items)
    rate = _L2_BYTES_PER_CYCLE if again else _BYTES_PER_CYCLE
    cycles = total / rate + len(items) * _READ_START / kernel.schedule.buffers
    return Copies(cycles * work.tiles, total * work.tiles / _share(chip, work, again))


def _store(kernel: Kernel, work: Work, chip: Chip) -> Copies:
    total = sum(_bytes(item.domain, item.dtype, work) for item in kernel.plan.outputs)
    cycles = total / _BYTES_PER_CYCLE + len(kernel.plan.outputs) * _WRITE_START
    return Copies(cycles * work.tiles, total * work.tiles / _share(chip, work, _fits_l2(kernel, work, chip)))


def _vector_cycles(kernel: Kernel, program: TileProgram, work: Work) -> float:
    return work.tiles * sum(_instruction_cycles(kernel, item, work) for item in program.body)


def _instruction_cycles(kernel: Kernel, item: Instruction, work: Work) -> float:
    repeats = work.elements / 64
    if item.op == "get_value":
        return _GET_VALUE
    if item.op == "expand_columns" and item.target is not None and item.target.name:
        return 0.0  # once for the whole kernel
    if item.domain is Domain.ROW:
        repeats, instructions = work.rows / 64, 1.0
    elif item.op in REDUCTIONS:
        return _reduction_cycles(kernel, work)
    elif item.op.startswith("expand_") or item.op.endswith(("Rows", "Columns")):
        instructions = _spread_instructions(kernel, work)
    else:
        instructions = 1.0
    rate = 2 if item.op in _SLOW or item.op == "rounded" else 1
    return repeats * rate + _START * instructions * (2 if item.op == "rounded" else 1)


def _spread_instructions(kernel: Kernel, work: Work) -> float:
    columns = work.elements / max(work.rows, 1.0)
    return 1 + (work.rows if kernel.schedule.spread == "rows" else math.ceil(columns / 64))


def _reduction_cycles(kernel: Kernel, work: Work) -> float:
    columns = work.elements / max(work.rows, 1.0)
    if columns <= 64:
        return _START + 7 * work.rows
    if kernel.folds_over_rows:
        return work.elements / 64 + _START * (1 + math.ceil(columns / 64)) + 7 * work.rows
    if kernel.schedule.packed and kernel.schedule.reduction == "tile":
        levels = math.ceil(math.log(columns / 64, 8))
        return work.elements / 64 * 1.15 + _START * (levels + 1) + 7 * work.rows
    levels = math.ceil(math.log(columns / 64, 8))
    return work.rows * (columns / 64 * 1.15 + _START * (levels + 1) + 7)
