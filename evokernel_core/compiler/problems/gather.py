"""What reading by indices asks for, read from a task."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import GATHER
from evokernel_core.compiler.problems.reading import index_dtype, input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE

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
