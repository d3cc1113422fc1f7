"""What sorting asks for, read from a task."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.ops import SORT
from evokernel_core.compiler.problems.reading import input_below
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

RESULTS = ("values", "indices")
_READER = Sentence("sorting")
_FLOATS = frozenset({"float32", "float16", "bfloat16"})


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
    nodes = {node.name: node for node in graph.nodes}
    matches = [node for node in graph.nodes if node.op == SORT.name]
    if len(matches) != 1:
        raise PlanError("The kernel does not sort exactly once.")
    node = matches[0]
    x, indices, descending, parts = node.args
    assert isinstance(x, ValueRef) and isinstance(parts, int)
    dtype = graph.spec(x).dtype
    if dtype not in _FLOATS:
        raise PlanError(
            "Sorting {dtype} is not covered; floats of 16 and 32 bits and integers are.", dtype=dtype
        )
    results = tuple(_result(nodes, node, ref) for ref in graph.outputs)
    if len(set(results)) != len(results):
        raise PlanError("A result of sorting is read twice in ways of its own.")
    rows, columns = map(extent, graph.spec(x).shape)
    return Sort(
        input_below(graph, x, _READER),
        input_below(graph, indices, _READER) if isinstance(indices, ValueRef) else "",
        dtype, bool(descending), parts, rows, columns, extent(node.outputs[0].shape[1]), results,
    )  # fmt: skip


def _result(nodes: Mapping[str, Node], node: Node, ref: ValueRef) -> str:
    """Which result of ``node`` an output is, through views that keep the order."""
    while ref.name != node.name:
        below = nodes.get(ref.name)
        if below is None or below.op not in SAME_ORDER:
            raise PlanError("The result is more than sorted elements.")
        ref = next(iter(below.operands()))
    return "indices" if ref.index == 1 else "values"
