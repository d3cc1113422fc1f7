"""What a scan is: one operation that combines each element with all before it along one dimension."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, SCAN
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.device import SECTOR_BYTES

OPERATIONS = frozenset({"sum", "prod", "max", "min", "logaddexp"})


@frozen
class Scan:
    """Scans of ``length`` elements: ``outer`` groups of ``inner`` that lie side by side."""

    input: str
    mask: str
    op: str
    reverse: bool
    exclusive: bool
    outer: Extent
    length: Extent
    inner: Extent
    dtype: str

    @property
    def in_rows(self) -> bool:
        """Whether the elements of a scan are neighbours in memory."""
        return self.inner.is_one


def block_of(scan: Scan) -> int:
    """Elements of 32 bytes."""
    return SECTOR_BYTES // ITEM_SIZE[scan.dtype]


def row_block_of(scan: Scan) -> int:
    """Elements of which a row of a tile takes whole ones: truth values take whole blocks too."""
    return SECTOR_BYTES if scan.mask else block_of(scan)


def read_scan(task: KernelTask) -> Scan:
    """The one scan of a task. Raises PlanError where the task is anything else."""
    graph = task.graph
    node = only_node(task, {SCAN.name}, Sentence("The kernel is not exactly one scan with one result."))
    x, dim, op, reverse, exclusive, mask = node.args
    if not isinstance(x, ValueRef) or not isinstance(dim, int) or op not in OPERATIONS:
        raise PlanError("The scan has arguments that are not covered.")
    spec = graph.spec(x)
    if spec.dtype not in FLOATS or node.outputs[0].dtype != spec.dtype:
        raise PlanError(
            "A scan of {dtype} into {result} is not covered.", dtype=spec.dtype, result=node.outputs[0].dtype
        )
    if mask is not None and (spec.dtype == "bfloat16" or op != "sum"):
        raise PlanError("Only sums in float32 and float16 take a mask.")
    dim %= spec.rank
    return Scan(
        input_below(graph, x, Sentence("a scan")),
        input_below(graph, mask, Sentence("a scan")) if isinstance(mask, ValueRef) else "",
        str(op),
        bool(reverse),
        bool(exclusive),
        product(map(extent, spec.shape[:dim])),
        extent(spec.shape[dim]),
        product(map(extent, spec.shape[dim + 1 :])),
        spec.dtype,
    )
