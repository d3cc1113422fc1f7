"""What the index of a largest or smallest element asks for, read from a task."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS
from evokernel_core.compiler.problems.reading import below_views, input_below, one_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_LARGEST = frozenset({"aten.argmax.default", "aten.max.dim"})
_SMALLEST = frozenset({"aten.argmin.default", "aten.min.dim"})
_WITH_VALUES = frozenset({"aten.max.dim", "aten.min.dim"})
ARG_REDUCTIONS = _LARGEST | _SMALLEST


@frozen
class ArgReduction:
    """For each of ``outer`` x ``lanes`` positions the first of ``steps`` elements that is best.

    ``results`` names what each output of the task is, in order: ``values`` or ``indices``.
    """

    source: str
    dtype: str
    largest: bool
    outer: Extent
    steps: Extent
    lanes: Extent
    results: tuple[str, ...]

    @property
    def values(self) -> bool:
        return "values" in self.results


def read_arg_reduction(task: KernelTask) -> ArgReduction:
    """The one reduction of a task to indices. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = one_node(
        task, ARG_REDUCTIONS, Sentence("The kernel has not exactly one search for the index of an element.")
    )
    operand = next(iter(node.operands()))
    source = input_below(graph, operand, Sentence("a search for the index of an element"))
    dtype = graph.spec(operand).dtype
    results = tuple(_result(graph, node, ref) for ref in graph.outputs)
    if "indices" not in results or len(set(results)) != len(results):
        raise PlanError(
            "{op} is read in another way than its indices, once, with or without values.", op=node.op
        )
    if dtype not in FLOATS:
        raise PlanError("{op} of {dtype} is not covered.", op=node.op, dtype=dtype)
    shape = tuple(map(extent, graph.spec(operand).shape))
    first, last = _reduced(node, len(shape))
    return ArgReduction(
        source, dtype, node.op in _LARGEST, product(shape[:first]), product(shape[first:last]),
        product(shape[last:]), results,
    )  # fmt: skip


def _result(graph: Graph, node: Node, ref: ValueRef) -> str:
    """Which result of ``node`` an output is, through views that keep the order."""
    ref = below_views(graph, ref)
    if ref.name != node.name:
        raise PlanError("The result is more than {op}.", op=node.op)
    return "values" if node.op in _WITH_VALUES and ref.index == 0 else "indices"


def _reduced(node: Node, rank: int) -> tuple[int, int]:
    """The first reduced dimension and the first behind them; without a dimension all are reduced."""
    dim = node.args[1] if len(node.args) > 1 else dict(node.kwargs).get("dim")
    if dim is None:
        return 0, rank
    if not isinstance(dim, int):
        raise PlanError("{op} searches a dimension that is not a literal.", op=node.op)
    first = dim % rank if rank else 0
    return (first, first + 1) if rank else (0, 0)
