"""Family grid_sample: images sampled where a grid says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from evokernel_core.compiler.ops import GRID_SAMPLE, categories
from evokernel_core.compiler.problems.grid_sample import Sampling, read_sampling
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend import memories
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import Sizes, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.grid_sample.bordered import Bordered, elements_of, why_unbordered
from evokernel_core.targets.ascendc.kernels.grid_sample.grid_sample_kernel import Sampler, SamplingSchedule
from evokernel_core.targets.ascendc.kernels.grid_sample.places import LANES
from evokernel_core.targets.ascendc.kernels.reloads import with_hits

_BAND_BYTES = (32768, 65536, 98304, 131072)
_PLACES = (2048, 1536, 1024, 896, 768, 640, 512, 384, 256, 128, 64)
_PIECES = (256, 512)
_BANDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_RUNS = (1, 2, 3, 4)
"""Runs in which places are gathered."""
_LOCATED = (128, 256, 512)
_LOCATING = 48
"""Bytes for each place that is located, beside its pair of numbers."""
_INSTRUCTIONS_LOCATING = 30
_MOST_BORDERED = 10
_TURN = 128
_MOST_TRIED = 3
"""Numbers of places that are tried beside the least: the largest that fit."""


def _why_illegal(problem: Sampling, schedule: SamplingSchedule) -> str | None:
    if schedule.places < schedule.piece:
        return "Pieces of the places are no larger than all of them."
    if not schedule.run:
        return None
    block = BLOCK_BYTES // ITEM_SIZE[problem.dtype]
    return why_unbordered(problem, schedule.elements, block, whole=schedule.whole)


def build(problem: Sampling, schedule: SamplingSchedule) -> Kernel:
    """The kernel of a legal schedule."""
    return (Bordered if schedule.run else Sampler)(problem, schedule).build()


_VARIANT = variant_of(build, _why_illegal)


def _cost_us(problem: Sampling, schedule: SamplingSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds; planes that every run of places loads again come from L2 where it holds them."""
    return _VARIANT.cost_us(problem, schedule, sizes, _with_hits(problem, schedule, sizes, chip))


def _with_hits(problem: Sampling, schedule: SamplingSchedule, sizes: Sizes, chip: Chip) -> Chip:
    """The chip at the rates that loads have which reach L2 but for the first time."""
    images, channels, count = (
        part.evaluate(sizes) for part in (problem.images, problem.channels, problem.count)
    )
    area = problem.rows.evaluate(sizes) * problem.columns.evaluate(sizes)
    once = images * channels * area * ITEM_SIZE[problem.dtype]
    return with_hits(chip, once, -(-count // schedule.places))


def _starts(problem: Sampling, sizes: Sizes, chip: Chip) -> Iterator[SamplingSchedule]:
    bordered = list(_bordered_starts(problem, sizes, chip))
    yield from bordered or _plain_starts(problem, sizes, chip)


def _bordered_starts(problem: Sampling, sizes: Sizes, chip: Chip) -> Iterator[SamplingSchedule]:
    """Bands of all rows, and of parts of them, with as many places as fit beside: those that seem fast."""
    rows, columns, width = problem.rows.constant, problem.columns.constant, ITEM_SIZE[problem.dtype]
    if problem.mode != "bilinear" or rows is None or columns is None:
        return
    block, count = BLOCK_BYTES // width, problem.count.evaluate(sizes)
    images, channels = problem.images.evaluate(sizes), problem.channels.evaluate(sizes)
    shares = sorted({channels, -(-channels // 2), -(-channels // 4)})
    known: dict[SamplingSchedule, float] = {}
    for bands, buffers, share, piece in itertools.product(_BANDS, (1, 2), shares, _LOCATED):
        elements = elements_of(columns, -(-(rows + 1) // bands), block)
        left = chip.ub_bytes - buffers * elements * width - piece * (_LOCATING + 8 * buffers)
        others = images * -(-channels // share)
        for runs in _RUNS if bands <= rows + 1 else ():
            # Each place has an address and four weights, and sums if bands add up; each of a run what is
            # gathered, what is stored, an address if bands differ, and float32 forms of the half types.
            each = (24 if bands > 1 else 20) + (
                3 * width + (4 if bands > 1 else 0) + (8 if width < 4 else 0)
            ) / runs
            places = _even(int((left - _TURN * 8) / each) // LANES * LANES, count, others, chip)
            run = min(-(-places // runs // _TURN) * _TURN, places)
            if run >= LANES:
                schedule = SamplingSchedule(
                    places, share, elements, bands == 1, buffers, min(piece, places), run
                )
                known[schedule] = _rough_cycles(schedule, bands, -(-count // places) * others, chip)
    yield from sorted(known, key=known.__getitem__)[:_MOST_BORDERED]


def _rough_cycles(schedule: SamplingSchedule, bands: int, units: int, chip: Chip) -> float:
    """About what the busiest core takes for its share of so many runs of places."""
    vector, startup = chip.vector, chip.vector.startup("simple")
    instructions = _INSTRUCTIONS_LOCATING * (
        -(-schedule.places // schedule.piece) * startup + schedule.places / LANES
    )
    gathers = 4 * bands * schedule.places / vector.elements_per_cycle.gather
    starts = 8 * bands * -(-schedule.places // schedule.run) * startup
    loads = bands * schedule.elements * 4 / chip.mte.load_hit_bytes_per_cycle
    sampled = gathers + starts
    plane = max(loads, sampled) if schedule.buffers > 1 else loads + sampled
    return -(-units // chip.aiv) * (instructions + schedule.channels * plane)


def _even(most: int, count: int, others: int, chip: Chip) -> int:
    """At most so many places at a time, so that cores have equal numbers of such tiles for each of ``others``
    images and parts of channels."""
    if most < LANES:
        return 0
    least = -(-count // most)
    tiles = min(range(least, 2 * least + chip.aiv), key=lambda n: (-(-n * others // chip.aiv) / n, n))
    each = -(-count // tiles)
    return min(most, -(-each // LANES) * LANES)


def _plain_starts(problem: Sampling, sizes: Sizes, chip: Chip) -> Iterator[SamplingSchedule]:
    channels, width = problem.channels.evaluate(sizes), ITEM_SIZE[problem.dtype]
    is_open = problem.rows.constant is None or problem.columns.constant is None
    area = problem.rows.evaluate(sizes) * problem.columns.evaluate(sizes)
    # Planes whose sizes the call says may be larger than any band.
    bands = {(size // width, False) for size in _BAND_BYTES if is_open or size // width < area}
    if not is_open and area * width <= max(_BAND_BYTES):
        bands = {(area, True)}
    shares = sorted({channels, -(-channels // 2), -(-channels // 4)})
    for (elements, whole), buffers in itertools.product(sorted(bands), (1, 2)):
        for places in _fitting(problem, elements, buffers, sizes, chip):
            pieces = sorted({min(piece, places) for piece in _PIECES})
            for share, piece in itertools.product(shares, pieces):
                yield SamplingSchedule(places, share, elements, whole, buffers, piece)


def _fitting(problem: Sampling, elements: int, buffers: int, sizes: Sizes, chip: Chip) -> Iterator[int]:
    """Places beside bands of so many elements: the largest numbers that fit, and small ones, which leave more
    cores something to do."""
    count = -(-problem.count.evaluate(sizes) // LANES) * LANES
    fit = [n for n in _PLACES if _least_bytes(problem, n, elements, buffers) <= chip.ub_bytes]
    useful = [n for n in fit if n < 2 * count] or fit[-1:]
    yield from dict.fromkeys((*useful[:_MOST_TRIED], *(n for n in useful if n in (64, 256))))


def _least_bytes(problem: Sampling, places: int, elements: int, buffers: int) -> int:
    """Bytes of the buffers that are used at the same time, without any that are small."""
    width = ITEM_SIZE[problem.dtype]
    return buffers * elements * width + places * (8 * problem.taps**2 + 3 * width)


def _steps(
    problem: Sampling, here: SamplingSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, SamplingSchedule]]:
    yield from here.neighbours("places", "piece", "elements", "run", "channels", "buffers")


def _notes(problem: Sampling, schedule: SamplingSchedule) -> Iterator[str]:
    yield Sentence("{places} places at a time, located {piece} at a time, for {channels} channels.")
    band = Sentence("Whole planes")
    if not schedule.whole:
        band = Sentence("Bands of {count} elements", count=schedule.elements)
    yield Sentence(
        "{band}, {buffers} under way, from which elements are gathered.", band=band, buffers=schedule.buffers
    )


def _cell(problem: Sampling, schedule: SamplingSchedule) -> Descriptor:
    """Whether whole planes or bands of them are there, and how the elements around a place are addressed."""
    dataflow = Dataflow.PICKED if schedule.whole else Dataflow.STREAMED
    way = Algorithm.TABLE if schedule.run else Algorithm.DIRECT
    return Descriptor(dataflow, memories.UB, Split.CHANNELS if schedule.channels > 1 else Split.TILES, way)


FAMILY = SearchingFamily(
    variant=_VARIANT,
    name="grid_sample",
    ops=categories(GRID_SAMPLE),
    read=on_any_chip(read_sampling),
    schedule_of=SamplingSchedule.of,
    starts=_starts,
    notes=_notes,
    cell=_cell,
    steps=_steps,
    cost_us=_cost_us,
    too_large=Sentence("The places and bands of a sampling do not fit the unified buffer."),
)
