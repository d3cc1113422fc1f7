"""Family grid_sample: images sampled where a grid says."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from evokernel_core.ascendc.kernels.built import form_of
from evokernel_core.ascendc.kernels.candidates import SearchingFamily, Sizes, on_any_chip
from evokernel_core.ascendc.kernels.grid_sample.kernel import SamplingSchedule, build
from evokernel_core.ascendc.kernels.grid_sample.problem import Sampling, read_sampling
from evokernel_core.ascendc.ops import GRID_SAMPLE, categories
from evokernel_core.domain.kernel import Descriptor, Strategy
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.twin.chip import Chip

_BAND_BYTES = (16384, 32768, 65536, 98304)


def _why_illegal(found: Sampling, item: SamplingSchedule) -> str | None:
    if item.places < 64 or item.places % 64:
        return "Places are taken in whole repeats."
    if min(item.elements, item.bands, item.channels) < 1:
        return "A plane has at least one band, and a band at least one element."
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
    rows, columns, channels = (part.evaluate(sizes) for part in (found.rows, found.columns, found.channels))
    width = ITEM_SIZE[found.dtype]
    is_open = found.rows.constant is None or found.columns.constant is None
    for size in _BAND_BYTES:
        high = min(rows, max(1, size // width // columns))
        # Of planes whose sizes the call says larger ones are to fit, too.
        bands = -(-rows // high) * (2 if is_open else 1)
        elements = size // width if is_open else high * columns
        for places in (64, 128, 256, 512, 1024, 2048):
            for share in sorted({channels, -(-channels // 4)}):
                yield from (SamplingSchedule(places, share, elements, bands, n) for n in (1, 2))


def _steps(
    found: Sampling, here: SamplingSchedule, sizes: Sizes, chip: Chip
) -> Iterator[tuple[str, SamplingSchedule]]:
    yield "more places", evolve(here, places=here.places * 2)
    yield "fewer places", evolve(here, places=here.places // 2)
    yield "larger bands", evolve(here, elements=here.elements * 2, bands=-(-here.bands // 2))
    yield "smaller bands", evolve(here, elements=here.elements // 2, bands=here.bands * 2)
    yield "more channels", evolve(here, channels=here.channels * 2)
    yield "fewer channels", evolve(here, channels=max(1, here.channels // 2))
    yield "one more band under way", evolve(here, buffers=here.buffers + 1)
    yield "one band less under way", evolve(here, buffers=here.buffers - 1)


def _strategy(found: Sampling, item: SamplingSchedule, move: str) -> Strategy:
    notes = (
        f"{item.places} places at a time, for {item.channels} channels one after another.",
        f"Bands of {item.elements} elements, {item.buffers} under way, from which elements are gathered.",
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
    too_large="A row of an image that is sampled does not fit the unified buffer.",
)
