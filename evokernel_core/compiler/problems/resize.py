"""What a resizing asks for: planes, and how each of their two dimensions is resized."""

from __future__ import annotations

import math

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, NEAREST, RESIZE, RESIZE_KINDS
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

IDENTITY = "identity"
_REACH = {"linear": 2, "cubic": 4}
SMOOTH = {"smooth_linear": 1, "smooth_cubic": 2}
"""Half the width of an antialiased kernel, in steps."""


@frozen
class ResizeAxis:
    """``sources`` elements resized to ``results``, each of which steps over ``step`` of them. ``kind``: one
    of RESIZE_KINDS, or IDENTITY."""

    sources: int
    results: int
    kind: str
    aligned: bool
    step: float

    @property
    def is_weighted(self) -> bool:
        return self.kind not in (*NEAREST, IDENTITY)

    @property
    def width(self) -> float:
        """Of a smooth kernel, how many sources make its unit."""
        return max(self.step, 1.0)

    @property
    def support(self) -> float:
        return SMOOTH[self.kind] * self.width

    @property
    def taps(self) -> int:
        """Sources that make a result."""
        if self.kind in SMOOTH:
            return math.ceil(self.support) * 2 + 1
        return _REACH.get(self.kind, 1)

    @property
    def shift(self) -> int:
        """What makes the first tap's number positive, which may lie in front of the source."""
        return 2 if self.kind == "cubic" else 0


@frozen
class Resize:
    """The input's name, its planes, and the two dimensions of each."""

    source: str
    dtype: str
    planes: Extent
    rows: ResizeAxis
    columns: ResizeAxis


def read_resize(task: KernelTask) -> Resize:
    """The one resizing of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {RESIZE.name}, Sentence("The kernel is not exactly one resizing."))
    call = RESIZE.call(node, task.graph.spec)
    spec, made = call.tensor("x"), node.outputs[0]
    kind, aligned = str(call["kind"]), bool(call["aligned"])
    if spec.dtype not in FLOATS or kind not in RESIZE_KINDS:
        raise PlanError(
            "Resizing {dtype} by {kind} is not covered; floating-point images are.",
            dtype=spec.dtype,
            kind=kind,
        )
    axes = []
    for dim, key in ((1, "row_step"), (2, "column_step")):
        sources, results, step = spec.shape[dim], made.shape[dim], call[key]
        if not isinstance(sources, int) or not isinstance(results, int):
            raise PlanError("Resized rows and columns must have sizes that are known beforehand.")
        assert isinstance(step, float)
        same = sources == results and step == 1.0
        axes.append(ResizeAxis(sources, results, IDENTITY if same else kind, aligned, step))
    (ref,) = node.operands()
    source = input_below(task.graph, ref, Sentence("a resizing"))
    return Resize(source, spec.dtype, extent(spec.shape[0]), *axes)
