"""Family grid_sample: images sampled where a grid says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from attrs import evolve

from evokernel_core.ascendc.kernels.built import form_of
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.grid_sample.kernel import SamplingSchedule, build
from evokernel_core.ascendc.kernels.grid_sample.places import LANES
from evokernel_core.ascendc.kernels.grid_sample.problem import Sampling, read_sampling
from evokernel_core.ascendc.ops import GRID_SAMPLE, categories
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

_BAND_BYTES = (32768, 65536, 98304, 131072)
_PLACES = (2048, 1536, 1024, 896, 768, 640, 512, 384, 256, 128, 64)
_PIECES = (256, 512)
_MOST_TRIED = 3
"""Numbers of places that are tried beside the least: the largest that fit."""


def _why_illegal(found: Sampling, item: SamplingSchedule) -> str | None:
    if item.piece < LANES or item.piece % LANES or item.places < item.piece or item.places % LANES:
        return "Places are taken in whole repeats, and pieces of them are no larger."
    if min(item.elements, item.channels) < 1:
        return "A band has at least one element, and a core a channel."
    return None


_FORM = form_of(build, _why_illegal)


def _cost_us(found: Sampling, item: SamplingSchedule, sizes: Sizes, chip: Chip) -> float:
    """Modelled microseconds; planes that every run of places loads again come from L2 where it holds them."""
    return _FORM.cost_us(found, item, sizes, _with_hits(found, item, sizes, chip))


def _with_hits(found: Sampling, item: SamplingSchedule, sizes: Sizes, chip: Chip) -> Chip:
    """The chip at the rates that loads have which reach L2 but for the first time."""
    images, channels, count = (part.evaluate(sizes) for part in (found.images, found.channels, found.count))
    area = found.rows.evaluate(sizes) * found.columns.evaluate(sizes)
    once = images * channels * area * ITEM_SIZE[found.dtype]
    runs = -(-count // item.places)
    if once > chip.l2_bytes // 2 or runs < 2:
        return chip

    def mean(miss: float, hit: float) -> float:
        return runs / (1 / miss + (runs - 1) / hit)

    mte, gm = chip.mte, chip.gm
    loads = mean(mte.load_bytes_per_cycle, mte.load_hit_bytes_per_cycle)
    memory = mean(gm.hbm_achieved_gbps, gm.l2_gbps)
    return evolve(
        chip,
        mte=evolve(mte, load_bytes_per_cycle=loads),
        gm=evolve(gm, hbm_achieved_gbps=memory),
    )


def _starts(found: Sampling, sizes: Sizes, chip: Chip) -> Iterator[SamplingSchedule]:
    channels, width = found.channels.evaluate(sizes), ITEM_SIZE[found.dtype]
    is_open = found.rows.constant is None or found.columns.constant is None
    area = found.rows.evaluate(sizes) * found.columns.evaluate(sizes)
    # Planes whose sizes the call says may be larger than any band.
    bands = {(size // width, False) for size in _BAND_BYTES if is_open or size // width < area}
    if not is_open and area * width <= max(_BAND_BYTES):
        bands = {(area, True)}
    shares = sorted({channels, -(-channels // 2), -(-channels // 4)})
    for (elements, whole), buffers in itertools.product(sorted(bands), (1, 2)):
        for places in _fitting(found, elements, buffers, sizes, chip):
            pieces = sorted({min(piece, places) for piece in _PIECES})
            for share, piece in itertools.product(shares, pieces):
                yield SamplingSchedule(places, share, elements, whole, buffers, piece)


def _fitting(found: Sampling, elements: int, buffers: int, sizes: Sizes, chip: Chip) -> Iterator[int]:
    """Places beside bands of so many elements: the largest numbers that fit, and small ones, which leave more
    cores something to do."""
    count = -(-found.count.evaluate(sizes) // LANES) * LANES
    fit = [n for n in _PLACES if _least_bytes(found, n, elements, buffers) <= chip.ub_bytes]
    useful = [n for n in fit if n < 2 * count] or fit[-1:]
    yield from dict.fromkeys((*useful[:_MOST_TRIED], *(n for n in useful if n in (64, 256))))


def _least_bytes(found: Sampling, places: int, elements: int, buffers: int) -> int:
    """Bytes of the buffers that are used at the same time, without any that are small."""
    width = ITEM_SIZE[found.dtype]
    return buffers * elements * width + places * (8 * found.taps**2 + 3 * width)


def _steps(
    found: Sampling, here: SamplingSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, SamplingSchedule]]:
    yield "more places", evolve(here, places=here.places * 2)
    yield "fewer places", evolve(here, places=here.places // 2, piece=min(here.piece, here.places // 2))
    yield "more places located at a time", evolve(here, piece=min(here.piece * 2, here.places))
    yield "fewer places located at a time", evolve(here, piece=here.piece // 2)
    if not here.whole:
        yield "larger bands", evolve(here, elements=here.elements * 2)
        yield "smaller bands", evolve(here, elements=here.elements // 2)
    yield "more channels", evolve(here, channels=here.channels * 2)
    yield "fewer channels", evolve(here, channels=max(1, here.channels // 2))
    yield "one more band under way", evolve(here, buffers=here.buffers + 1)
    yield "one band less under way", evolve(here, buffers=here.buffers - 1)


def _strategy(found: Sampling, item: SamplingSchedule, move: str) -> Strategy:
    band = "Whole planes" if item.whole else f"Bands of {item.elements} elements"
    notes = (
        f"{item.places} places at a time, located {item.piece} at a time, for {item.channels} channels.",
        f"{band}, {item.buffers} under way, from which elements are gathered.",
    )
    return Strategy("grid_sample", item.settings(), notes, Descriptor(2, item.buffers, 1), move)


FAMILY = SearchingFamily(
    name="grid_sample",
    ops=categories(GRID_SAMPLE),
    read=on_any_chip(read_sampling),
    starts=_starts,
    steps=_steps,
    refusal=_FORM.refusal,
    rough=_FORM.rough,
    cost_us=_cost_us,
    schedule_of=SamplingSchedule.of,
    strategy_of=_strategy,
    text_of=lambda found, schedule, task, name: _FORM.build(found, schedule),
    too_large="The places and bands of a sampling do not fit the unified buffer.",
)
