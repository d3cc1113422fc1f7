"""What writing by index asks for, read from a task, and the schedules of its kernels."""

from __future__ import annotations

import math
from operator import attrgetter
from typing import Annotated

from attrs import evolve, frozen

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Named, Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.kernels.indexed import MOST_INDICES, index_dtype, more_or_fewer

SUMMED = {"float32": "float", "int32": "int32_t", "int64": "int64_t"}
"""What is combined with what is there, and its C++ type; int64 only element by element."""
ATOMICS = {"add": "Add", "max": "Max", "min": "Min"}
"""What copies into device memory, and the vector unit, combine."""
NEUTRAL = {"add": 0.0, "max": -math.inf, "min": math.inf}
"""What changes nothing, of the kinds that parts have."""
LEAST_SEGMENT_BYTES = 512
"""Shorter pieces of a run are slow to write."""
MOST_RUN_BYTES = 2**32 - 1
"""Copies count the bytes between runs in 32 bits."""
_READER = "a write where indices say so"


@frozen
class Put:
    """See SCATTER and SCATTER_PARTS. ``source``, which parts have none of, ``places`` with what they count,
    and ``values`` are inputs of the task."""

    source: str | None
    places: tuple[tuple[str, str, Extent], ...]
    values: str
    dtype: str
    kind: str
    outer: Extent
    count: Extent
    run: Extent
    shared: bool
    wraps: bool
    parts: int = 0

    @property
    def elements(self) -> bool:
        """Whether single elements are put."""
        return self.run.is_one

    @property
    def size(self) -> Extent:
        return product(size for _, _, size in self.places)

    @property
    def copies(self) -> bool:
        """Whether copies into device memory can put the values: those combine only what atomics do."""
        return self.kind == LAST or (self.kind in ATOMICS and self.dtype != "int64")

    @property
    def waits(self) -> bool:
        """Whether a copy waits for the one before: of two values for one place the last one stays, while
        combined ones all count."""
        return self.kind == LAST


def _in_order(schedule: ScatterSchedule) -> bool:
    return not (schedule.held or schedule.owned or schedule.sums)


def _by_segments(before: ScatterSchedule, after: ScatterSchedule) -> ScatterSchedule:
    return evolve(after, owned=False, held=0, sums=0)


@frozen
class ScatterSchedule(Schedule):
    """Tiles of at most ``runs`` runs, each with its index, and ``bytes`` bytes, and how values come to their
    places. ``picks``: the scalar unit puts single elements into a tile of the unified buffer. ``held``,
    unless 0: the vector unit sorts so many of them at a time by their places in a tile, which has a float for
    every 4 ``bytes``. ``owned``: a core finds the runs that go to its own range of places, which is in
    ``sums`` bytes of the unified buffer where it combines them there. Otherwise every run is a copy, of which
    a core makes a segment."""

    runs: Annotated[
        int,
        Range(16, MOST_INDICES, unit=16, when=_in_order),
        more_or_fewer(Sentence("indices a tile")),
    ]
    bytes: Annotated[
        int, Range(4096, unit=512, when=lambda it: not it.held), Scaled("larger tile", "smaller tile")
    ]
    picks: Annotated[bool, Named({True: "scalar unit", False: "copies"}, also=_by_segments)] = False
    owned: bool = False
    held: Annotated[
        int,
        Scaled("more entries sorted at a time", "fewer entries sorted at a time", when=attrgetter("held")),
    ] = 0
    sums: int = 0


def read_put(task: KernelTask) -> Put:
    """The one put of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(
        task,
        {SCATTER.name, SCATTER_PARTS.name},
        Sentence("The kernel does more than write where indices say so."),
    )
    in_parts = node.op == SCATTER_PARTS.name
    source, indices, values, kind, wraps = node.args[:5]
    assert isinstance(indices, tuple) and isinstance(values, ValueRef)
    spec, places = graph.spec(values), graph.spec(indices[0])
    if kind != LAST and spec.dtype not in SUMMED:
        raise PlanError(
            "{dtype} combined at indices is not covered; float32, int32 and int64 are.", dtype=spec.dtype
        )
    outer, count, run = map(extent, spec.shape)
    if kind != LAST and not run.is_one and (kind == "mul" or spec.dtype == "int64"):
        raise PlanError("Runs of int64, and products of runs, are put element by element.")
    sizes = node.outputs[0].shape[2:-1] if in_parts else node.outputs[0].shape[1:-1]
    return Put(
        source=None if in_parts else _input(task, source),
        places=tuple(
            (_input(task, ref), index_dtype(graph, ref), extent(size))
            for ref, size in zip(indices, sizes, strict=True)
        ),
        values=_input(task, values),
        dtype=spec.dtype,
        kind=str(kind),
        outer=outer,
        count=count,
        run=run,
        shared=extent(places.shape[0]).is_one and not outer.is_one,
        wraps=bool(wraps),
        parts=literal(node.args[5]) if in_parts else 0,
    )


def _input(task: KernelTask, ref: object) -> str:
    assert isinstance(ref, ValueRef)
    return input_below(task.graph, ref, _READER)
