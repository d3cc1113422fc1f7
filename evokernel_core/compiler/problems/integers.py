"""What a reduction of rows of integers asks for, read from a task."""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.compiler.ops import REDUCE_INTEGERS, REDUCED_INTEGERS, SCAN_INTEGERS
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE

_WORDS = {"sum": "sum", "prod": "product", "max": "maximum", "min": "minimum"}


@frozen
class IntegerRows:
    """``columns`` elements of each of ``rows``."""

    source: str
    kind: str
    running: bool
    dtype: str
    rows: Extent = field(factory=Extent)
    columns: Extent = field(factory=Extent)

    @property
    def what(self) -> str:
        """The result in words."""
        return _WORDS[self.kind]

    @property
    def neutral(self) -> int:
        """What changes nothing."""
        least = -(1 << (8 * ITEM_SIZE[self.dtype] - 1))
        return {"sum": 0, "prod": 1, "max": least, "min": -1 - least}[self.kind]


def read_rows(task: KernelTask) -> IntegerRows:
    """The one reduction of a task. Raises PlanError where the task is anything else."""
    node = only_node(
        task,
        (REDUCE_INTEGERS.name, SCAN_INTEGERS.name),
        Sentence("The kernel is more than one reduction of integers."),
    )
    ref = next(iter(node.operands()))
    source, spec = input_below(task.graph, ref, Sentence("a reduction of integers")), task.graph.spec(ref)
    if spec.dtype not in REDUCED_INTEGERS or spec.dtype != node.outputs[0].dtype:
        raise PlanError(
            "Reductions of {dtype} to {result} are not covered.",
            dtype=spec.dtype,
            result=node.outputs[0].dtype,
        )
    sizes = tuple(map(extent, spec.shape))
    running = node.op == SCAN_INTEGERS.name
    return IntegerRows(source, str(node.args[1]), running, spec.dtype, product(sizes[:-1]), sizes[-1])
