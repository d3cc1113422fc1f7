"""What a take asks for, read from a task, and the schedules of its kernels."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.ops import GATHER
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, LANES
from evokernel_core.targets.ascendc.kernels.indexed import MOST_INDICES, index_dtype, more_or_fewer

_WORDS = "a read of what indices choose"


@frozen
class Take:
    """``places`` are the inputs with indices and what they count; see GATHER for the shapes."""

    source: str
    indices: tuple[tuple[str, str, Extent], ...]
    outer: Extent
    count: Extent
    lanes: Extent
    run: Extent
    shared: bool
    wraps: bool
    width: int


_PICKS = attrgetter("picks")


def _copies(schedule: GatherSchedule) -> bool:
    return not schedule.picks


def _through_l2(before: GatherSchedule, after: GatherSchedule) -> GatherSchedule:
    return evolve(after, bypass_l2=False)


@frozen
class GatherSchedule(Schedule):
    """Tiles of at most ``runs`` runs, each with its index, and ``bytes`` bytes. ``picks``: the vector unit
    picks ``runs`` elements at a time from ``bytes`` of rows in the unified buffer; otherwise every run is a
    copy. ``bypass_l2``: runs do not push results out of L2."""

    runs: Annotated[
        int,
        Range(16, MOST_INDICES, unit=16, when=_copies),
        Range(4 * LANES, 4096, unit=LANES, when=_PICKS),
        more_or_fewer(Sentence("runs")),
    ]
    bytes: Annotated[
        int,
        Range(4096, unit=BLOCK_BYTES),
        Range(4096, unit=512, when=_PICKS),
        Scaled("larger tile", "smaller tile"),
    ]
    picks: Annotated[bool, Named({True: "vector unit", False: "copies"}, also=_through_l2)] = False
    bypass_l2: Annotated[
        bool, Named(dict.fromkeys((True, False), Sentence("toggle L2 bypass")), when=_copies)
    ] = False


def read_take(task: KernelTask) -> Take:
    """The one take of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(task, {GATHER.name}, Sentence("The kernel does more than read what indices choose."))
    source, indices = node.args[0], node.args[1]
    assert isinstance(source, ValueRef) and isinstance(indices, tuple)
    spec, first = graph.spec(source), graph.spec(indices[0])
    shape = tuple(map(extent, spec.shape))
    outer = shape[0]
    return Take(
        source=input_below(graph, source, _WORDS),
        indices=tuple(
            (input_below(graph, ref, _WORDS), index_dtype(graph, ref), size)
            for ref, size in zip(indices, shape[1:-2], strict=True)
        ),
        outer=outer,
        count=extent(first.shape[1]),
        lanes=shape[-2],
        run=shape[-1],
        shared=extent(first.shape[0]).is_one and not outer.is_one,
        wraps=bool(node.args[2]),
        width=ITEM_SIZE[spec.dtype],
    )
