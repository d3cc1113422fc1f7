"""What sorting asks for, read from a task."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, SORT
from evokernel_core.compiler.problems.reading import below_views, input_below, one_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

RESULTS = ("values", "indices")
_READER = Sentence("sorting")


@frozen
class Sort:
    """``rows`` of ``columns`` elements, of which ``keep`` stay; ``numbers`` is the input of given indices or
    empty. ``results`` names what each output of the task is, in order: ``values`` or ``indices``."""

    source: str
    numbers: str
    dtype: str
    descending: bool
    parts: int
    rows: Extent
    columns: Extent
    keep: Extent
    results: tuple[str, ...]


def read_sort(task: KernelTask) -> Sort:
    """The one sorting of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = one_node(task, {SORT.name}, Sentence("The kernel does not sort exactly once."))
    x, indices, descending, parts = node.args
    assert isinstance(x, ValueRef) and isinstance(parts, int)
    dtype = graph.spec(x).dtype
    if dtype not in FLOATS:
        raise PlanError(
            "Sorting {dtype} is not covered; floats of 16 and 32 bits and integers are.", dtype=dtype
        )
    results = tuple(_result(graph, node, ref) for ref in graph.outputs)
    if len(set(results)) != len(results):
        raise PlanError("A result of sorting is read twice in ways of its own.")
    rows, columns = map(extent, graph.spec(x).shape)
    return Sort(
        input_below(graph, x, _READER),
        input_below(graph, indices, _READER) if isinstance(indices, ValueRef) else "",
        dtype, bool(descending), parts, rows, columns, extent(node.outputs[0].shape[1]), results,
    )  # fmt: skip


def _result(graph: Graph, node: Node, ref: ValueRef) -> str:
    """Which result of ``node`` an output is, through views that keep the order."""
    ref = below_views(graph, ref)
    if ref.name != node.name:
        raise PlanError("The result is more than sorted elements.")
    return "indices" if ref.index == 1 else "values"
