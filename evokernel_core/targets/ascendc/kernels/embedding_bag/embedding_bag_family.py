"""Family bag: sums, means and largest elements of rows that indices choose, as bags of embeddings have them.

A core takes some bags, row by row of theirs: copies bring rows side by side into the unified buffer, and
halves of them are combined until one is left, the same way each time. Where offsets say what belongs to a
bag, they are read as numbers by the scalar unit and bound the loop over its rows.
"""

from __future__ import annotations

from evokernel_core.compiler.ops import EMBEDDING_BAG, categories
from evokernel_core.compiler.problems.embedding_bag import read_bag
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.embedding_bag.embedding_bag_kernel import build
from evokernel_core.targets.ascendc.kernels.embedding_bag.embedding_bag_settings import EmbeddingBagSchedule

FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="bag",
    ops=categories(EMBEDDING_BAG),
    read=on_any_chip(read_bag),
    schedule_of=EmbeddingBagSchedule.of,
    starts=among(
        EmbeddingBagSchedule(runs, size)
        for runs, size in ((256, 8192), (256, 16384), (256, 32768), (1024, 32768))
    ),
    notes=always(
        (
            Sentence("Tiles of {bytes} bytes of rows, {runs} indices at a time."),
            Sentence("Halves are combined."),
        )
    ),
    cell=always(
        Descriptor(Dataflow.BLOCKS, Reuse.NONE, Split.ROWS, Algorithm.SINGLE_PASS, Overlap.PIPELINED)
    ),
)
