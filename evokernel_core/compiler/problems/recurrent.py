"""What a recurrence is asked to compute: a layer's hidden states, step by step, from projected inputs."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, GATES, RECURRENCE
from evokernel_core.compiler.problems.reading import below_views, input_below, one_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_READER = Sentence("a recurrence")


@frozen
class Recurrence:
    """One layer, or several above each other. Operands are names of inputs; ``hidden_input`` and
    ``cell_input`` are empty for zeros. ``results`` are the numbers of the node's results that the kernel's
    outputs are, in order."""

    kind: str
    projections: tuple[str, ...]
    weights: tuple[str, ...]
    input_biases: tuple[str, ...]
    hidden_biases: tuple[str, ...]
    hidden_input: str
    cell_input: str
    first: int
    batch_first: bool
    steps: Extent
    batch: Extent
    hidden: Extent
    results: tuple[int, ...]
    upper: tuple[str, ...] = ()
    dtype: str = "float32"

    @property
    def gates(self) -> int:
        return GATES[self.kind]

    @property
    def chains(self) -> int:
        return len(self.weights)

    @property
    def stacked(self) -> bool:
        """Whether the chains are layers above each other."""
        return bool(self.upper)

    @property
    def carries(self) -> bool:
        """Whether a unit's new state takes more of its old one than products."""
        return self.kind in ("lstm", "gru")


def read_recurrence(task: KernelTask) -> Recurrence:
    """The one recurrence of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = one_node(task, {RECURRENCE.name}, Sentence("The kernel has not exactly one recurrence."))
    bases = [below_views(graph, ref) for ref in graph.outputs]
    if any(base.name != node.name for base in bases):
        raise PlanError("The result is more than a recurrence.")
    kind, projections, weights, input_biases, hidden_biases, *states, first, batch_first, upper = node.args
    hidden, cell = states
    dtype = node.outputs[0].dtype
    if dtype not in FLOATS:
        raise PlanError(
            "A recurrent layer in {dtype} is not covered; use float32, float16 or bfloat16.", dtype=dtype
        )

    def names(arg: Arg) -> tuple[str, ...]:
        given = arg if isinstance(arg, tuple) else () if arg is None else (arg,)
        return tuple(
            input_below(graph, element, _READER) for element in given if isinstance(element, ValueRef)
        )

    shape = tuple(map(extent, node.outputs[0].shape))
    return Recurrence(
        str(kind),
        names(projections),
        names(weights),
        names(input_biases),
        names(hidden_biases),
        "".join(names(hidden)),
        "".join(names(cell)),
        literal(first),
        bool(batch_first),
        shape[1 if batch_first else 0],
        shape[0 if batch_first else 1],
        extent(node.outputs[1].shape[-1]),
        tuple(base.index for base in bases),
        names(upper),
        dtype,
    )
