"""Schedules of recurrences: tiles of hidden units and sequences, and what fits the memories."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from attrs import evolve

from evokernel_core.compiler.ops import GATES
from evokernel_core.compiler.problems.recurrent import Recurrence
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip, CoreMemories
from evokernel_core.hardware.ascend.isa import FRACTAL, RESERVED_BYTES
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_estimate import estimate_us
from evokernel_core.targets.ascendc.kernels.recurrent.recurrent_settings import MOST_BATCH, RecurrentSchedule

_FLOAT = 4
_REACHED = {2: 0.33, 4: 0.44}
"""The share of the cube cores' rate that a large product reaches, by bytes of an element (fitted)."""
_STATES_SHARE = 8
"""The part of L1 that states take at a time, twice."""


def best(problem: Recurrence, sizes: Mapping[str, int], chip: Chip) -> RecurrentSchedule:
    """The legal schedule of the lowest estimate."""
    legal = [start for start in _starts(problem, sizes, chip) if refusal(problem, start, chip) is None]
    if not legal:
        raise PlanError("The tiles of this recurrence do not fit the memories of a core.")
    return min(legal, key=lambda schedule: estimate_us(problem, schedule, sizes, chip))


@lru_cache(maxsize=256)
def layers_together(
    kind: str, layers: int, steps: int, batch: int, hidden: int, dtype: str, chip: Chip
) -> int:
    """How many of ``layers`` above each other one kernel best computes, by its estimate.
    What is the lowest one's input takes a product of all steps in front of the kernel."""
    size = ITEM_SIZE[dtype]
    macs_a_us = _REACHED[size] * chip.aic * FRACTAL**2 * chip.cube.depth_a_cycle(size) * chip.mhz
    product = chip.launch_us + steps * batch * GATES[kind] * hidden**2 / macs_a_us

    def cost(count: int) -> float:
        names = tuple(map(str, range(count)))
        lengths = (extent(steps), extent(batch), extent(hidden))
        problem = Recurrence(
            kind, ("x",), names, names, names, "h", "c", 0, False, *lengths, (0,), names[1:], dtype
        )
        return product + estimate_us(problem, best(problem, {}, chip), {}, chip)

    least = {count: cost(count) for count in range(1, layers + 1)}
    return min(
        least, key=lambda count: layers // count * least[count] + least.get(layers % count, 0.0)
    )  # fmt: skip


def refusal(problem: Recurrence, schedule: RecurrentSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    fractal = 32 // ITEM_SIZE[problem.dtype]
    if schedule.hidden % (2 * fractal):
        return "Each vector core turns whole fractals."
    if schedule.panel_k % schedule.base_k or schedule.states_k % schedule.panel_k:
        return "Panels are whole steps."
    if buffer_bytes(problem, schedule) > chip.ub_bytes:
        return "The gates of a unit do not fit the unified buffer."
    return _cube_refusal(schedule, problem.gates * schedule.hidden, ITEM_SIZE[problem.dtype], chip.memory)


def _cube_refusal(schedule: RecurrentSchedule, sums: int, size: int, memory: CoreMemories) -> str | None:
    """``sums``: rows of one product; ``size``: bytes of an element."""
    kept = schedule.kept * schedule.panel_k * sums * size
    if (
        max(2 * schedule.batch * schedule.base_k * size, 2 * sums * schedule.base_k * size + kept)
        > memory.l0_bytes
    ):
        return "Two steps of an operand do not fit L0."
    if schedule.batch * sums * _FLOAT > memory.l0c_bytes:
        return "The results do not fit L0C."
    if (
        2 * schedule.batch * schedule.states_k + schedule.panels * sums * schedule.panel_k
    ) * size > memory.l1_bytes - RESERVED_BYTES:
        return "The panels do not fit L1."
    return None


def buffer_bytes(problem: Recurrence, schedule: RecurrentSchedule) -> int:
    """Bytes of the unified buffer: rows and sums of both products, dividends, biases, states."""
    size = ITEM_SIZE[problem.dtype]
    wide = (4 if problem.stacked else 3) * problem.gates + problem.gates + 1 + 2
    narrow = 2 * problem.gates + 2
    return (
        wide * _FLOAT + narrow * size
    ) * schedule.batch * schedule.hidden // 2 + 16 * problem.gates * schedule.hidden


def _starts(problem: Recurrence, sizes: Mapping[str, int], chip: Chip) -> Iterator[RecurrentSchedule]:
    hidden, batch = problem.hidden.evaluate(sizes), problem.batch.evaluate(sizes)
    tiles = {-(-batch // count // 16) * 16 for count in range(1, -(-batch // 16) + 1)}
    wanted = sorted({size for size in tiles if size <= MOST_BATCH}, reverse=True)[:4]
    for rows in {*wanted, min(MOST_BATCH, max(tiles))}:
        for wide in (16, 32, 48, 64, 96, 128):
            for base_k in (128, 64, 32, 16):
                for factor in (4, 2, 1):
                    schedule = RecurrentSchedule(rows, wide, base_k, base_k * factor, 0, 0)
                    yield _filled(problem, schedule, hidden, chip.memory)


def _filled(
    problem: Recurrence, schedule: RecurrentSchedule, hidden: int, memory: CoreMemories
) -> RecurrentSchedule:
    """As deep panels of states as they are deep or fit, and as many panels of weights as L1 holds beside.
    Shallower ones, and a panel of weights in L0, where all weights then stay in the core."""
    size, sums = ITEM_SIZE[problem.dtype], problem.gates * schedule.hidden
    most = max(1, memory.l1_bytes // _STATES_SHARE // (schedule.batch * schedule.panel_k * size))
    deepest = min(math.ceil(hidden / schedule.panel_k), most)
    needed = math.ceil(hidden / schedule.panel_k) * (2 if problem.stacked else 1)
    kept = int((2 * schedule.base_k + schedule.panel_k) * sums * size <= memory.l0_bytes)

    def fit(depth: int) -> int:
        left = memory.l1_bytes - RESERVED_BYTES - 2 * schedule.batch * depth * schedule.panel_k * size
        return left // (sums * schedule.panel_k * size)

    whole = [depth for depth in range(deepest, 0, -1) if fit(depth) + kept >= needed]
    depth = whole[0] if whole else deepest
    panels = max(3, min(fit(depth), needed))
    kept = int(bool(whole) and panels < needed)
    return evolve(schedule, states_k=depth * schedule.panel_k, panels=panels, kept=kept)


def steps(
    problem: Recurrence, here: RecurrentSchedule, sizes: Mapping[str, int], memory: CoreMemories
) -> Iterator[tuple[str, RecurrentSchedule]]:
    """Named schedules one step away, legal or not."""
    unit = max(16, 64 // ITEM_SIZE[problem.dtype])
    hidden = problem.hidden.evaluate(sizes)

    def filled(schedule: RecurrentSchedule) -> RecurrentSchedule:
        is_open = min(schedule.batch, schedule.hidden, schedule.base_k, schedule.panel_k) > 0
        return _filled(problem, schedule, hidden, memory) if is_open else schedule

    yield "more hidden units a core", filled(evolve(here, hidden=here.hidden + unit))
    yield "fewer hidden units a core", filled(evolve(here, hidden=here.hidden - unit))
    for name, schedule in here.neighbours():
        yield name, filled(schedule)


def notes(problem: Recurrence, schedule: RecurrentSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield Sentence("Units of {hidden} hidden units and {batch} sequences; all cores meet once a step.")
    yield Sentence("Steps of {depth} in L0; L1 holds {panels} panel(s) of weights, {panel} deep.")
    if schedule.kept:
        yield Sentence("One panel of weights more stays in L0.")
    if problem.stacked:
        yield Sentence(
            "{chains} layers side by side, each two steps behind the one below.", chains=problem.chains
        )


def descriptor_of(problem: Recurrence, schedule: RecurrentSchedule) -> Descriptor:
    """Whether the weights stay in the core from step to step, and what a unit is."""
    hidden, batch = problem.hidden.constant, problem.batch.constant
    panels = math.ceil(hidden / schedule.panel_k) * (2 if problem.stacked else 1) if hidden else math.inf
    stay = schedule.panels + schedule.kept >= panels
    return Descriptor(
        Dataflow.WEIGHT_STATIONARY if stay else Dataflow.STREAMED,
        (memories.L0 if schedule.kept else memories.L1) if stay else memories.L2,
        Split.COLUMNS if batch is not None and batch <= schedule.batch else Split.TILES,
        Algorithm.RECURRENCE,
        Overlap.PIPELINED,
    )
