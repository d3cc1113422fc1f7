"""What writing by index asks for, read from a task."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import LAST, SCATTER, SCATTER_PARTS
from evokernel_core.compiler.problems.reading import index_dtype, input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

SUMMED = frozenset({"float32", "int32", "int64"})
"""What is combined with what is there; int64 only element by element."""
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
    def ordered(self) -> bool:
        """Whether the last one of two values for one place stays, while combined ones all count."""
        return self.kind == LAST


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
