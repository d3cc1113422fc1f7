"""What the upper or lower triangle of matrices computes."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.problems.products import TRIANGLES, Triangle
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.graph import literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask


@frozen
class TriangleOfMatrices:
    """``matrices`` of ``height`` rows and ``columns``, of which the elements beside the triangle are lost."""

    source: str
    triangle: Triangle
    matrices: Extent
    height: Extent
    columns: Extent
    dtype: str

    @property
    def rows(self) -> Extent:
        """Of all matrices."""
        return self.matrices.times(self.height)


def read_triangle(task: KernelTask) -> TriangleOfMatrices:
    """The one triangle of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, TRIANGLES, Sentence("The kernel is more than one triangle of matrices."))
    source = input_below(task.graph, next(iter(node.operands())), Sentence("a triangle of matrices"))
    given = node.args[1] if len(node.args) > 1 else dict(node.kwargs).get("diagonal", 0)
    spec = node.outputs[0]
    *outer, height, columns = map(extent, spec.shape)
    triangle = Triangle("triu" in node.op, literal(given))
    return TriangleOfMatrices(source, triangle, product(outer), height, columns, spec.dtype)
