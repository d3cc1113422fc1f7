"""What the steps of a recurrence cost: they follow each other, so that every latency counts in each."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.problems.recurrent import Recurrence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import FRACTAL, LANES
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_settings import RecurrentSchedule

LAG = 2
"""Steps that a layer is behind the one below: while one of them runs, the products of its inputs are made."""
_FLOAT = 4
_BURST = 5.0
"""Cycles of a row of weights that comes from L2, however short."""
_STORE_START = 60.0
"""Cycles of the smallest store of a product until it is in memory."""
_FLAGS = 130.0
"""Cycles of a step for flags, queues and the scalar unit, on both kinds of cores."""
_INSTRUCTIONS: Mapping[str, int] = {"lstm": 15, "gru": 15, "rnn_tanh": 6, "rnn_relu": 3}
_TRANSCENDENTAL: Mapping[str, int] = {"lstm": 10, "gru": 6, "rnn_tanh": 2, "rnn_relu": 0}
"""Exponentials and quotients of a hidden unit, of 32 a cycle."""
_EXACT: Mapping[str, int] = {"lstm": 28, "gru": 14, "rnn_tanh": 14, "rnn_relu": 0}
"""Instructions more in float32, for the digits of tanh near 0."""


@frozen
class _Tick:
    """Cycles of one unit: what waits for its states, what does not, and both on the vector cores."""

    product: float
    inputs: float
    gates: float
    beside: float


def estimate_us(
    problem: Recurrence, schedule: RecurrentSchedule, sizes: Mapping[str, int], chip: Chip
) -> float:
    """Modelled microseconds of a schedule."""
    length, batch, hidden = (size.evaluate(sizes) for size in (problem.steps, problem.batch, problem.hidden))
    units = problem.chains * math.ceil(batch / schedule.batch) * math.ceil(hidden / schedule.hidden)
    cores = min(units, chip.aic)
    rounds = math.ceil(units / cores)
    tick = _tick(problem, schedule, hidden, rounds, cores, chip)
    hop = chip.sync.cross_core_cycles
    waits = hop * (3 if cores > 1 else 2) + _FLAGS
    cube, vector = tick.product + tick.inputs, tick.gates + tick.beside
    first = waits + tick.product + tick.gates + (rounds - 1) * max(tick.product, vector)
    busy = rounds * cube + hop * (cores > 1), rounds * vector
    ticks = length + (LAG * (problem.chains - 1) if problem.stacked else 0)
    return ticks * max(first, *busy) / chip.mhz + chip.mixed_launch_of(cores)


def _tick(
    problem: Recurrence, schedule: RecurrentSchedule, hidden: int, rounds: int, cores: int, chip: Chip
) -> _Tick:
    size = ITEM_SIZE[problem.dtype]
    rows = problem.gates * min(schedule.hidden, -(-hidden // 16) * 16)
    panels = math.ceil(hidden / schedule.panel_k)
    needed = panels * (2 if problem.stacked else 1)
    resident = (
        0 if rounds > 1 else needed if needed <= schedule.panels + schedule.kept else schedule.panels - 2
    )
    share = min(chip.mte.cube_load_hit_bytes_per_cycle, chip.gm.l2_bytes_us / chip.mhz / cores)
    panel = rows * max(schedule.panel_k * size / share, _BURST)
    product = _product(schedule, rows, hidden, size, share, max(0, panels - resident) * panel, chip)
    inputs = 0.0
    if problem.stacked:
        inputs = _product(schedule, rows, hidden, size, share, min(panels, needed - resident) * panel, chip)
    tile = schedule.hidden * schedule.batch // 2
    slow = _TRANSCENDENTAL[problem.kind] / chip.vector.elements_per_cycle.transcendental
    instructions = _INSTRUCTIONS[problem.kind] + (_EXACT[problem.kind] if size == _FLOAT else 0)
    work = tile * (slow + (instructions + problem.gates) / LANES)
    start, hit = chip.vector.startup_cycles + 3, chip.mte.load_hit_latency_cycles
    gates = hit + problem.gates * tile * _FLOAT / chip.mte.load_hit_bytes_per_cycle
    gates += instructions * start
    gates += work + 40 + chip.mte.store_latency_cycles + tile * size / chip.mte.store_bytes_per_cycle
    if size < _FLOAT:
        gates += 4 * start
    beside = (
        4 * start + 3 * problem.gates * tile / LANES + problem.gates * schedule.batch / 16 * start + 2 * hit
    )
    return _Tick(product, inputs, gates, beside)


def _product(
    schedule: RecurrentSchedule, rows: int, hidden: int, size: int, share: float, streamed: float, chip: Chip
) -> float:
    """``streamed``: cycles to load weights that L1 does not hold."""
    columns, cube, hit = schedule.batch, chip.cube, chip.mte.load_hit_latency_cycles
    steps = math.ceil(hidden / schedule.base_k)
    small = rows // 16 * (columns // 16) < 10
    macs = rows * columns * hidden / FRACTAL**2 / cube.depth_a_cycle(size)
    macs += steps * (cube.mmad_latency_cycles if small else cube.mmad_overhead_cycles)
    fetched = min(steps, 2) * rows * schedule.base_k * size / cube.l1_l0a_bytes_per_cycle
    turned = rows / cube.l1_l0a_bytes_per_cycle + columns / cube.l1_l0b_bytes_per_cycle
    turned = hidden * size * turned + steps * 2 * cube.load_overhead_cycles - fetched
    states = columns * hidden * size / share
    stored = rows * columns * _FLOAT / cube.fixpipe_gm_bytes_per_cycle
    first = columns * schedule.base_k * size / cube.l1_l0b_bytes_per_cycle
    return (
        hit
        + max(macs + first + states, turned + states, streamed)
        + cube.mmad_latency_cycles
        + _STORE_START
        + stored
    )
