"""Family bag: sums, means and largest elements of rows that indices choose, as bags of embeddings have them.

A core takes some bags, row by row of theirs: copies bring rows side by side into the unified buffer, and
halves of them are combined until one is left, the same way each time. Where offsets say what belongs to a
bag, they are read as numbers by the scalar unit and bound the loop over its rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from evokernel_core.compiler.ops import EMBEDDING_BAG, categories
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.built import Design, family_of
from evokernel_core.targets.ascendc.kernels.embedding_bag.embedding_bag_kernel import build
from evokernel_core.targets.ascendc.kernels.embedding_bag.embedding_bag_problem import MOST_RUN, Bag, read_bag
from evokernel_core.targets.ascendc.kernels.indexed import IndexedSchedule, size_refusal

_CELL = Descriptor(Dataflow.BLOCKS, Reuse.NONE, Split.ROWS, Algorithm.SINGLE_PASS, Overlap.PIPELINED)


def _why_illegal(problem: Bag, schedule: IndexedSchedule) -> str | None:
    if schedule.bytes < MOST_RUN * 4:
        return "A tile has at least one row."
    return size_refusal(schedule, 512)


def _neighbours(problem: Bag, here: IndexedSchedule) -> Iterator[tuple[str, IndexedSchedule]]:
    yield "more indices", evolve(here, runs=here.runs * 2)
    yield "larger tile", evolve(here, bytes=here.bytes * 2)
    yield "smaller tile", evolve(here, bytes=here.bytes // 2)


def _strategy(problem: Bag, schedule: IndexedSchedule, move: str) -> Strategy:
    notes = (
        Sentence(
            "Tiles of {bytes} bytes of rows, {runs} indices at a time.",
            bytes=schedule.bytes,
            runs=schedule.runs,
        ),
        Sentence("Halves are combined."),
    )
    return Strategy("bag", schedule.settings(), notes, _CELL, move)


FAMILY = family_of(
    Design(
        name="bag",
        ops=categories(EMBEDDING_BAG),
        read=read_bag,
        schedule=IndexedSchedule,
        schedules=tuple(
            IndexedSchedule(runs, size)
            for runs, size in ((256, 8192), (256, 16384), (256, 32768), (1024, 32768))
        ),
        neighbours=_neighbours,
        why_illegal=_why_illegal,
        build=build,
        strategy_of=_strategy,
    )
)
