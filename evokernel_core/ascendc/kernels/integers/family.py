"""Family integers: element-wise arithmetic on integers and truth values, exact in every bit.

A word of 32 bits is computed at a time, as the vector unit does it; an integer of eight bytes is two words,
which are picked apart when they are loaded and joined when they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from attrs import evolve, frozen

from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes
from evokernel_core.ascendc.kernels.family import KernelFacts, StageText
from evokernel_core.ascendc.kernels.machine import tile_start
from evokernel_core.ascendc.kernels.rendering import kernel_text, parameter, parameters_of, sized
from evokernel_core.ascendc.kernels.settings import Settings
from evokernel_core.ascendc.kernels.text import CPP_TYPE
from evokernel_core.ascendc.legalization.division import MOST_BY_DIGITS
from evokernel_core.ascendc.legalization.graph import Read, WordPlan, plan_words, results_of
from evokernel_core.ascendc.legalization.limbs import BITS, SIGN
from evokernel_core.ascendc.legalization.long_division import division_step
from evokernel_core.ascendc.legalization.program import WordProgram, word_program
from evokernel_core.ascendc.legalization.rules import RULES
from evokernel_core.ascendc.lowering.program import camel, size_field
from evokernel_core.ascendc.shapes.views import VIEWS
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip
from evokernel_core.twin.isa import LANES, RESERVED_BYTES
from evokernel_core.twin.roofline import launch_us

_TILES = (256, 512, 1024, 2048, 4096, 8192)
_MOST_STEPS = 600
"""Instructions of a tile: more would not fit the instruction cache."""


@frozen
class Integers:
    """What a task asks for."""

    plan: WordPlan
    program: WordProgram
    results: tuple[str, ...]

    @property
    def step(self) -> WordProgram | None:
        """What is repeated for each bit of a quotient."""
        bits = self.program.divided_bits
        return division_step(bits) if bits else None

    @property
    def queued(self) -> tuple[Read, ...]:
        """Inputs of which a tile is loaded; the others are one number a row."""
        return tuple(item for item in self.plan.reads if item.columns)


@frozen
class IntegerSchedule(Settings):
    """``tile`` elements at a time, ``buffers`` for each tensor."""

    tile: int
    buffers: int = 2


def _read(task: KernelTask, chip: Chip) -> Integers:
    return _planned(ById(task), chip)


@lru_cache(maxsize=256)
def _planned(key: ById, chip: Chip) -> Integers:
    plan, results = plan_words(key.task), results_of(key.task)
    found = Integers(plan, word_program(plan, results), results)
    most = chip.memory.max_queue_buffers
    if max(len(found.queued), len(results)) > most:
        raise PlanError(f"The region reads or writes more than {most} tensors of integers.")
    if found.program.steps > _MOST_STEPS:
        raise PlanError(
            f"The region takes {found.program.steps} instructions on integers, more than {_MOST_STEPS}."
        )
    if _ub_bytes(found, IntegerSchedule(_TILES[0], 1)) > chip.ub_bytes - RESERVED_BYTES:
        raise PlanError("The integers of the region do not fit the unified buffer.")
    return found


def _ub_bytes(found: Integers, item: IntegerSchedule) -> int:
    """Bytes of all buffers."""
    moved = [read.dtype for read in found.queued] + [output.dtype for output in found.plan.outputs]
    each = item.buffers * sum(ITEM_SIZE[dtype] for dtype in moved)
    each += 4 * found.program.words + 2 * found.program.uses_half
    if found.step is not None:
        each += 4 * found.step.words + 4 * 2 * found.program.divided_bits // 32
    if found.program.joins:
        each += 2 * 8  # two words an element: those to join, and where each comes from
    return each * item.tile


def _refusal(found: Integers, item: IntegerSchedule, sizes: Sizes, chip: Chip) -> str | None:
    if item.tile not in _TILES or item.buffers not in (1, 2):
        return "The tile has another size."
    if item.buffers * max(len(found.queued), len(found.results)) > chip.memory.max_queue_buffers:
        return "The queues have more buffers than a position may have."
    if _ub_bytes(found, item) > chip.ub_bytes - RESERVED_BYTES:
        return "The buffers do not fit the unified buffer."
    return None


def _cost_us(found: Integers, item: IntegerSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds: the slower of the busiest core's copies and instructions."""
    start = chip.vector.startup_cycles
    rows, columns = found.plan.rows.evaluate(sizes), found.plan.columns.evaluate(sizes)
    wanted = math.ceil(chip.aiv / rows)
    length = min(item.tile, columns, max(math.ceil(math.ceil(columns / wanted) / LANES) * LANES, LANES))
    units = rows * math.ceil(columns / length)
    cores = min(units, chip.aiv)
    program = found.program
    vector = program.steps * start + (program.steps + program.picks * 3) * length / LANES
    vector += program.joins * 2 * length / chip.vector.elements_per_cycle.gather
    if found.step is not None:
        steps = program.divides * program.divided_bits * found.step.steps
        vector += steps * (start + length / LANES)
    moved = [read.dtype for read in found.queued] + [output.dtype for output in found.plan.outputs]
    traffic = tile_start(chip) * len(moved) / item.buffers
    traffic += length * sum(ITEM_SIZE[dtype] for dtype in moved) / chip.mte.load_bytes_per_cycle
    cycles = max(vector, traffic) if item.buffers == 2 else vector + traffic
    total = rows * columns * sum(ITEM_SIZE[dtype] for dtype in moved)
    rate = chip.gm.memory_bytes_us
    return max(math.ceil(units / cores) * cycles / chip.mhz, total / rate) + launch_us(chip, cores)


def _starts(found: Integers, sizes: Sizes, chip: Chip) -> Iterator[IntegerSchedule]:
    for tile in _TILES:
        yield IntegerSchedule(tile, 2)
        yield IntegerSchedule(tile, 1)


def _steps(
    found: Integers, here: IntegerSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, IntegerSchedule]]:
    yield "double tile", evolve(here, tile=here.tile * 2)
    yield "halve tile", evolve(here, tile=here.tile // 2)
    yield "double buffer" if here.buffers == 1 else "single buffer", evolve(here, buffers=3 - here.buffers)


def _strategy(found: Integers, item: IntegerSchedule, move: str) -> Strategy:
    notes = (
        f"Tiles of {item.tile} elements; {found.program.words} registers of 32-bit words.",
        f"{item.buffers} buffer(s) a tensor.",
    )
    return Strategy("integers", item.settings(), notes, Descriptor(1 + item.buffers, 0, 2), move)


def _row_index(found: Integers, item: Read) -> str:
    """Which row of an input belongs to the row ``row``, by the atoms of the rows that it has."""
    every = tuple(range(found.plan.row_atoms))
    if every and item.rows == every:
        return "row"
    index = ""
    for atom in item.rows:
        below = [f"tiling_.extent{other}" for other in every if other > atom]
        place = " / ".join(["row", *reversed(below)])
        place = place if atom == 0 else f"{place} % tiling_.extent{atom}"
        index = f"({index}) * tiling_.extent{atom} + {place}" if index else place
    return index or "0"


def _start_of(found: Integers, item: Read) -> str:
    index = _row_index(found, item)
    if not item.columns:
        return index
    if index == "0":
        return "column"
    return f"{index if index == 'row' else f'({index})'} * tiling_.columns + column"


def _text(found: Integers, item: IntegerSchedule, task: KernelTask, name: str) -> StageText:
    starts = {read.name: _start_of(found, read) for read in found.plan.reads}
    extents = {
        f"extent{atom}": found.plan.atoms[atom]
        for atom in range(found.plan.row_atoms)
        if any(f"extent{atom}" in start for start in starts.values())
    }
    sizes = {"rows": found.plan.rows, "columns": found.plan.columns}
    reads = [
        {"name": camel(read.name), "source": parameter(read.source, found.results),
         "type": CPP_TYPE[read.dtype], "start": starts[read.name], "tile": read.columns}
        for read in found.plan.reads
    ]  # fmt: skip
    outputs = [
        {"name": name, "type": CPP_TYPE[output.dtype]}
        for name, output in zip(found.results, found.plan.outputs, strict=True)
    ]
    numbers = any(not read["tile"] for read in reads)
    return kernel_text(
        "integers",
        name,
        KernelFacts(reads_numbers=numbers),
        s=item,
        reads=reads,
        sources=list(dict.fromkeys(read["source"] for read in reads)),
        outputs=outputs,
        program=found.program,
        step=found.step,
        helpers=found.program.helpers | (found.step.helpers if found.step is not None else set()),
        wide=found.program.divided_bits > BITS,
        extents={key: item.cpp() for key, item in extents.items()},
        most_size=MOST_BY_DIGITS if found.plan.divides_by_sizes else -1 - SIGN,
        divides_by_sizes=found.plan.divides_by_sizes,
        used_sizes={size_field(size): size for size in found.plan.sizes},
        nested=not found.plan.rows.is_one,
        numbers=numbers,
        ub_bytes=_ub_bytes(found, item),
        **sized(task, sizes, [*extents.values(), found.plan]),
        parameters=parameters_of(task, found.results),
    )


FAMILY = SearchingFamily(
    name="integers",
    ops=dict.fromkeys(sorted(RULES), "pointwise") | dict.fromkeys(sorted(VIEWS), "view"),
    read=_read,
    starts=_starts,
    steps=_steps,
    refusal=_refusal,
    cost_us=_cost_us,
    schedule_of=IntegerSchedule.of,
    strategy_of=_strategy,
    text_of=_text,
    too_large="No tile of the integers fits the unified buffer.",
)
