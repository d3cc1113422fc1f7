"""Family phases: images with a frame of zeros, their rows cut into phases, for convolutions.

Copies place the rows of an image in the unified buffer, where zeros surround them. Where a convolution
steps by several elements along a row, GatherMask picks each phase out of all rows of the tile at once.
Elements are moved as bits, whatever their type.
"""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.limits import WIDTH_UNIT
from evokernel_core.compiler.ops import SPACE_TO_DEPTH, categories
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Scaled, Schedule, Word
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Overlap, Reuse, Split
from evokernel_core.domain.graph import literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import Int, Size
from evokernel_core.targets.ascendc.ir.nodes import Kernel
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.rendering import parameter
from evokernel_core.targets.ascendc.kernels.space_to_depth.space_to_depth_kernel import (
    BITS,
    Frame,
    Framer,
    Origin,
    pieces_of,
)

_PARTS = ("Depth", "Height", "Width")


@frozen
class Framed:
    """``sizes`` of x and ``made`` of the result, ``before``: zeros in front, all (depth, height, width).

    ``images`` counts batch and channels; ``made``'s width is that of one phase.
    """

    x: str
    images: Extent
    sizes: tuple[Extent, ...]
    made: tuple[Extent, ...]
    before: tuple[int, ...]
    phases: int
    size: int


@frozen
class SpaceToDepthSchedule(Schedule):
    """Most bytes of a tile; two tiles are under way, in and (with several phases) out."""

    tile_bytes: Annotated[int, Word("bytes"), Scaled("larger tiles", "smaller tiles")]


def read_phases(task: KernelTask) -> Framed:
    """The one framing of a task. Raises PlanError where the task is anything else."""
    node = only_node(
        task, {SPACE_TO_DEPTH.name}, Sentence("The kernel is not exactly one image with a frame.")
    )
    ref = next(iter(node.operands()))
    read, made = task.graph.spec(ref).shape, node.outputs[0].shape
    before = node.args[1]
    phases = literal(node.args[2])
    assert isinstance(before, tuple)
    if phases > 1:
        made = (*made[:-2], made[-1])
    missing = 3 - len(before)
    return Framed(
        input_below(task.graph, ref, Sentence("an image with a frame")),
        product(map(extent, read[:2])),
        (ONE,) * missing + tuple(map(extent, read[2:])),
        (ONE,) * missing + tuple(map(extent, made[2:])),
        (0,) * missing + tuple(literal(item) for item in before),
        phases,
        ITEM_SIZE[node.outputs[0].dtype],
    )


def _why_illegal(problem: Framed, schedule: SpaceToDepthSchedule) -> str | None:
    if schedule.tile_bytes < problem.phases * WIDTH_UNIT * problem.size:
        return "A tile has at least one block of each phase."
    return None


def build(problem: Framed, schedule: SpaceToDepthSchedule) -> Kernel:
    """The kernel of a legal schedule: what convolutions need of their input before the cube cores read it."""
    phases, bits = problem.phases, BITS[problem.size]
    k = Builder("Images in a frame of zeros" + (", their rows cut into phases." if phases > 1 else "."))
    x = k.input("x", parameter(problem.x), bits, problem.size)
    y = k.output("y", "output", bits, problem.size)
    frame = Frame(problem.before, phases, problem.size, schedule.tile_bytes)
    sizes, made = (
        tuple(
            k.param(name + part, Size(item)) if not item.is_one else Int(1)
            for part, item in zip(_PARTS, items, strict=True)
        )
        for name, items in (("image", problem.sizes), ("made", problem.made))
    )
    for size in (*sizes, *made):
        k.require(size, ">=", 1)
    pieces = pieces_of(k, frame, sizes, made)
    tiles = k.param("tiles", Size(problem.images) * made[0] * pieces.down * pieces.across)
    k.require(tiles, ">=", 1)
    framer = Framer(k, frame, pieces, x, y)
    framer.prepare()
    with k.cores("index", tiles) as index:
        framer.tile(index, Origin(Int(0), Int(0), Int(0), Int(0)))
    return k.kernel()


FAMILY = SearchingFamily(
    variant=variant_of(build, _why_illegal),
    name="phases",
    ops=categories(SPACE_TO_DEPTH),
    read=on_any_chip(read_phases),
    schedule_of=SpaceToDepthSchedule.of,
    starts=among(SpaceToDepthSchedule(kib * 1024) for kib in (8, 16, 32, 40, 64, 88)),
    notes=always((Sentence("Tiles of at most {bytes} bytes, two under way."),)),
    cell=always(Descriptor(Dataflow.BLOCKS, Reuse.NONE, Split.TILES, Algorithm.POLYPHASE, Overlap.PIPELINED)),
)
