"""What a task asks of the family: images, places, and how elements around a place are weighted."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.ops import FLOATS, GRID_SAMPLE, SAMPLE_MODES, SAMPLE_PADDINGS
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask

_TAPS = {"bilinear": 2, "nearest": 1, "bicubic": 4}


@frozen
class Sampling:
    """The inputs' names; images of ``channels`` planes of rows and columns, of each of which ``count`` places
    are sampled."""

    source: str
    grid: str
    dtype: str
    images: Extent
    channels: Extent
    rows: Extent
    columns: Extent
    count: Extent
    mode: str
    padding: str
    aligned: bool

    @property
    def taps(self) -> int:
        """Rows, and columns, that a place takes elements of."""
        return _TAPS[self.mode]


def read_sampling(task: KernelTask) -> Sampling:
    """The one sampling of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {GRID_SAMPLE.name}, Sentence("The kernel is not exactly one sampling of images."))
    call = GRID_SAMPLE.call(node, task.graph.spec)
    x, grid = call.tensor("x"), call.tensor("grid")
    mode, padding = str(call["mode"]), str(call["padding"])
    if x.dtype not in FLOATS or mode not in SAMPLE_MODES or padding not in SAMPLE_PADDINGS:
        raise PlanError(
            "Sampling {dtype} images by {mode} with {padding} is not covered.",
            dtype=x.dtype,
            mode=mode,
            padding=padding,
        )
    source, places = (
        input_below(task.graph, ref, Sentence("a sampling of images")) for ref in node.operands()
    )
    return Sampling(
        source,
        places,
        x.dtype,
        extent(x.shape[0]),
        extent(x.shape[1]),
        extent(x.shape[2]),
        extent(x.shape[3]),
        extent(grid.shape[1]),
        mode,
        padding,
        bool(call["aligned"]),
    )
