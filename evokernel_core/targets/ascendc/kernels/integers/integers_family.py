"""Family integers: element-wise arithmetic on integers and truth values, exact in every bit.

A word of 32 bits is computed at a time, as the vector unit does it; an integer of eight bytes is two words,
which are picked apart when they are loaded and joined when they are stored.
"""

from __future__ import annotations

from functools import lru_cache

from evokernel_core.compiler.shapes.views import VIEWS
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.built import Sizes, always, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily
from evokernel_core.targets.ascendc.kernels.integers.elementwise import (
    TILES,
    Integers,
    IntegerSchedule,
    build,
    measured,
)
from evokernel_core.targets.ascendc.legalization.graph import plan_words, results_of
from evokernel_core.targets.ascendc.legalization.rules import RULES

_MOST_STEPS = 600
"""Instructions of a tile: more would not fit the instruction cache."""

_ALIKE = 1.01
"""Estimates that differ by less say nothing, and shorter tiles begin earlier."""


def _read(task: KernelTask, chip: Chip) -> Integers:
    return _planned(ById(task), chip)


@lru_cache(maxsize=256)
def _planned(key: ById, chip: Chip) -> Integers:
    problem = measured(plan_words(key.task), results_of(key.task))
    most, steps = chip.memory.max_queue_buffers, problem.instructions
    if problem.queues > most:
        raise PlanError("The region reads or writes more than {most} tensors of integers.", most=most)
    if steps > _MOST_STEPS:
        raise PlanError(
            "The region takes {steps} instructions on integers, more than {most}.",
            steps=steps,
            most=_MOST_STEPS,
        )
    if TILES[0] * problem.element_bytes > chip.ub_bytes:
        raise PlanError("The integers of the region do not fit the unified buffer.")
    return problem


def _starts(problem: Integers, sizes: Sizes, chip: Chip) -> tuple[IntegerSchedule, ...]:
    """Two buffers for each tensor where they fit, else one; the shortest tiles where no others fit."""
    most = 2 if 2 * problem.queues <= chip.memory.max_queue_buffers else 1
    result = {
        tile: IntegerSchedule(tile, buffers)
        for buffers in range(1, most + 1)
        for tile in TILES
        if tile * (problem.element_bytes + (buffers - 1) * problem.moved_bytes) <= chip.ub_bytes
    }
    return tuple(result.values())[-max(len(result) - 1, 1) :]


FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="integers",
    ops=dict.fromkeys(sorted(RULES), "pointwise") | dict.fromkeys(sorted(VIEWS), "view"),
    read=_read,
    starts=_starts,
    schedule_of=IntegerSchedule.of,
    notes=lambda problem, schedule: (
        Sentence(
            "Tiles of {tile} elements; {registers} registers of 32-bit words.",
            tile=schedule.tile,
            registers=problem.registers,
        ),
        Sentence("{buffers} buffer(s) a tensor."),
    ),
    cell=always(Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.ELEMENTS, Algorithm.DIRECT)),
    alike=_ALIKE,
    too_large=Sentence("No tile of the integers fits the unified buffer."),
)
