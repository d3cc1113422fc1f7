"""Schedules of convolutions on the cube cores: which are legal, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.problems.convolution import Convolution
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule, Shifted, Word
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.api import most_of
from evokernel_core.hardware.ascend.chip import Chip, CoreMemories
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL

MOST_SLOTS = 4
RING = 3
"""Chunks of framed images in L2: one is read while others are framed."""
_MOST_REPEATED_WEIGHTS = most_of("DataCopyNd2Nz", "srcDValue")
"""Depth of the largest matrix in L1 that one instruction addresses."""


IN_FRACTALS = Range(FRACTAL, unit=FRACTAL)
OUTPUT_CHANNELS = Scaled(
    "more output channels a tile", "fewer output channels a tile", unit=FRACTAL, rounds_up=True
)
PARTS = Named({2: "two parts a tile", 1: "one part a tile"})


@frozen
class ConvolutionSchedule(Schedule):
    """A tile of the result is ``base_m`` output channels by ``parts`` times ``part_n`` pixels; each part
    has its own result in L0C. ``base_k`` is the depth of a step in L0 and ``panel_k`` that of one of
    ``slots`` panels in L1. Weights ``stay`` in L1 or come in panels. ``flat``: rows are read in one run
    where they begin on fractals in memory. ``outputs_first``: neighbouring tiles are other output channels
    of the same pixels. ``chunk_kib``: what vector cores frame before cube cores read it, 0 where x is read
    as it lies in memory."""

    base_m: Annotated[int, Word("channels"), IN_FRACTALS, OUTPUT_CHANNELS]
    part_n: Annotated[int, IN_FRACTALS, Scaled("more pixels a part", "fewer pixels a part")]
    parts: Annotated[int, Range(), PARTS]
    base_k: Annotated[int, Word("depth"), IN_FRACTALS, Scaled("deeper step in L0", "shallower step in L0")]
    panel_k: Annotated[int, Range(FRACTAL, unit=FRACTAL)]
    slots: Annotated[int, Range(2, MOST_SLOTS), Shifted("one more panel in L1", "one panel less in L1")] = 2
    stay: Annotated[bool, Named({True: "weights stay in L1", False: "weights come in panels"})] = False
    flat: Annotated[bool, Named({True: "rows in one run", False: "rows one by one"})] = False
    outputs_first: Annotated[bool, Named(dict.fromkeys((True, False), "tiles in the other order"))] = False
    chunk_kib: Annotated[int, Scaled("larger chunks in L2", "smaller chunks in L2")] = 0

    @property
    def base_n(self) -> int:
        return self.parts * self.part_n


@frozen
class TileShape:
    """The size of a tile of the result: ``base_m`` output channels by ``parts`` times ``part_n`` pixels."""

    base_m: int
    part_n: int
    parts: int


def shapes(problem: Convolution) -> Iterator[TileShape]:
    """The tiles among which a draft chooses."""
    outputs = problem.outputs.constant
    widest = whole(min(outputs, 128)) if outputs else 128
    for base_m in sorted({widest, *(rows for rows in (16, 32, 64) if rows < widest)}):
        for part_n, parts in ((512, 1), (256, 2), (256, 1), (128, 2), (128, 1), (64, 2), (32, 2)):
            yield TileShape(base_m, part_n, parts)


def of_shape(problem: Convolution, shape: TileShape, chip: Chip) -> Iterator[ConvolutionSchedule]:
    """The schedules with tiles of a shape."""
    outputs, depth = problem.outputs.constant, depth_of(problem)
    panels = {32, 64, 96, 128, 192, 256}
    chunks = (0,) if problem.frame is None else (_most_chunk_kib(chip) // 4, _most_chunk_kib(chip))
    panels |= {whole(math.ceil(depth / count)) for count in (1, 2, 3, 4)} if depth else set()
    base_m, part_n, parts = shape.base_m, shape.part_n, shape.parts
    orders = (False, True) if outputs is None or outputs > base_m else (False,)
    flats = (False, True)[: 1 + has_rows(problem)]
    for panel_k, slots in product(sorted(panels), (2, 3, 4)):
        base_k = step_depth(problem, base_m, part_n, panel_k, chip)
        for stay, order, flat, chunk in product((False, True), orders, flats, chunks):
            yield ConvolutionSchedule(base_m, part_n, parts, base_k, panel_k, slots, stay, flat, order, chunk)


def step_depth(problem: Convolution, base_m: int, part_n: int, panel_k: int, chip: Chip) -> int:
    """The depth of equal steps through a panel, as deep as L0 holds two of."""
    deepest = chip.memory.l0_bytes // 2 // ITEM_SIZE[problem.dtype] // max(base_m, part_n)
    return whole(math.ceil(panel_k / math.ceil(panel_k / deepest)))


def is_product(problem: Convolution) -> bool:
    """Whether there is one tap, and images are one row: a product of weights and pixels as they lie."""
    return math.prod(problem.kernel) == 1 and problem.made[1].is_one


def has_rows(problem: Convolution) -> bool:
    """Whether neighbouring rows of the result can lie in one run of the input."""
    return problem.phases == 1 and problem.stride[1] == 1 and not problem.made[1].is_one


def depth_of(problem: Convolution) -> int:
    """Channels times taps, 0 where it is not known before the kernel runs."""
    return (problem.channels.constant or 0) * math.prod(problem.kernel)


def steps(
    problem: Convolution, here: ConvolutionSchedule, chip: Chip
) -> Iterator[tuple[str, ConvolutionSchedule]]:
    """What one named step away is, legal or not."""
    yield from here.neighbours("base_m", "part_n", "parts")
    yield "two parts of half the pixels", evolve(here, parts=2, part_n=here.part_n // 2)
    for name, panel_k in (
        (Sentence("deeper panels in L1"), here.panel_k * 2),
        (Sentence("shallower panels in L1"), whole(here.panel_k // 2)),
        (Sentence("the whole depth in one panel"), whole(depth_of(problem))),
    ):
        base_k = step_depth(problem, here.base_m, here.part_n, max(panel_k, 1), chip)
        yield name, evolve(here, panel_k=panel_k, base_k=base_k)
    yield from here.neighbours("slots", "base_k", "stay", "flat", "outputs_first", "chunk_kib")


def refusal(problem: Convolution, schedule: ConvolutionSchedule, chip: Chip) -> str | None:
    """Why a schedule breaks a rule of the hardware; None where it is legal."""
    if schedule.panel_k < schedule.base_k:
        return "Panels hold a step."
    if schedule.flat and not has_rows(problem):
        return "Rows of the result do not follow each other in the input."
    if (schedule.chunk_kib > 0) != (problem.frame is not None) or schedule.chunk_kib > _most_chunk_kib(chip):
        return "Chunks are for images that the kernel frames, and L2 holds several."
    return _too_large(problem, schedule, chip.memory)


def _most_chunk_kib(chip: Chip) -> int:
    """Half of L2 holds the ring of the largest chunks."""
    return chip.l2_bytes // 2 // RING // 1024


def _too_large(problem: Convolution, schedule: ConvolutionSchedule, memory: CoreMemories) -> str | None:
    size, depth = ITEM_SIZE[problem.dtype], depth_of(problem)
    if 2 * max(schedule.base_m, schedule.part_n) * schedule.base_k * size > memory.l0_bytes:
        return "Two steps of an operand do not fit L0."
    if schedule.parts * schedule.base_m * schedule.part_n * 4 > memory.l0c_bytes:
        return "The results do not fit L0C."
    if schedule.stay and not 0 < depth <= _MOST_REPEATED_WEIGHTS:
        return "Weights of a depth that is not known do not stay in L1."
    weights = schedule.base_m * (whole(depth) if schedule.stay else schedule.slots * schedule.panel_k)
    biases = schedule.slots * bias_bytes(problem, schedule.base_m)
    if (weights + schedule.slots * schedule.base_n * schedule.panel_k) * size + biases > memory.l1_bytes:
        return "The panels do not fit L1."
    return None


def bias_bytes(problem: Convolution, base_m: int) -> int:
    """Bytes in L1 of a column of biases, a block for each output channel."""
    return 0 if problem.bias is None else base_m * BLOCK_BYTES


def whole(length: int, unit: int = FRACTAL) -> int:
    return -(-length // unit) * unit
