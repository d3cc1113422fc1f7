"""What a bag of embeddings asks for, read from a task."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import EMBEDDING_BAG, FLOATS
from evokernel_core.compiler.problems.reading import index_dtype, input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_WORDS = "a bag of rows"


@frozen
class Bag:
    """See EMBEDDING_BAG; names are those of the task's inputs."""

    table: str
    indices: tuple[str, str]
    offsets: tuple[str, str] | None
    weights: str | None
    mode: str
    padding: int
    whole: bool
    dtype: str
    rows: Extent
    run: Extent
    bags: Extent
    count: Extent


def read_bag(task: KernelTask) -> Bag:
    """The one bag of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(
        task, {EMBEDDING_BAG.name}, Sentence("The kernel does more than combine rows that indices choose.")
    )
    table, indices, offsets, weights, mode, padding, whole = node.args
    assert isinstance(table, ValueRef) and isinstance(indices, ValueRef)
    spec, chosen = graph.spec(table), graph.spec(indices).shape
    if spec.dtype not in FLOATS:
        raise PlanError("Bags of {dtype} rows are not covered.", dtype=spec.dtype)
    starts = _index(graph, offsets) if isinstance(offsets, ValueRef) else None
    sizes = tuple(map(extent, chosen))
    return Bag(
        table=input_below(graph, table, _WORDS),
        indices=_index(graph, indices),
        offsets=starts,
        weights=input_below(graph, weights, _WORDS) if isinstance(weights, ValueRef) else None,
        mode=str(mode),
        padding=literal(padding),
        whole=bool(whole),
        dtype=spec.dtype,
        rows=extent(spec.shape[0]),
        run=extent(spec.shape[1]),
        bags=extent(node.outputs[0].shape[0]),
        count=sizes[0] if starts else sizes[0].times(sizes[1]),
    )


def _index(graph: Graph, ref: ValueRef) -> tuple[str, str]:
    return input_below(graph, ref, _WORDS), index_dtype(graph, ref)
