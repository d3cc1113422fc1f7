"""What a reduction of rows of integers asks for, and how two integers are combined."""

from __future__ import annotations

from functools import cache
from typing import Annotated

from attrs import evolve, field, frozen

from evokernel_core.compiler.ops import REDUCE_INTEGERS, REDUCED_INTEGERS, SCAN_INTEGERS
from evokernel_core.compiler.problems.reading import input_below, only_node
from evokernel_core.compiler.schedule import Named, OneOf, Range, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import Extent, extent, product
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.ascendc.kernels.settings import BUFFERS
from evokernel_core.targets.ascendc.legalization.limbs import BITS, Operand, Words, wrapped
from evokernel_core.targets.ascendc.legalization.wide import WIDTHS, Arithmetic, Whole

_METHODS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
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
    def is_wide(self) -> bool:
        """Whether an integer is two words."""
        return WIDTHS[self.dtype] > BITS

    @property
    def neutral(self) -> tuple[int, ...]:
        """The words of what changes nothing, the low one first."""
        least = -(1 << (WIDTHS[self.dtype] - 1))
        value = {"sum": 0, "prod": 1, "max": least, "min": -1 - least}[self.kind]
        return (wrapped(value), value >> BITS) if self.is_wide else (value,)


ROWS = (32, 64, 128, 256, 512)
"""Rows of a tile that are lanes."""
TILES = (256, 512, 1024, 2048, 4096, 8192)
"""The last one is for rows as lanes and for the scalar unit."""

_LANES = Named(
    {0: Sentence("elements are lanes")}
    | {count: Sentence("{count} rows are lanes", count=count) for count in ROWS}
)


def _without_rows(before: IntegerRowsSchedule, after: IntegerRowsSchedule) -> IntegerRowsSchedule:
    return evolve(after, rows=0)


@frozen
class IntegerRowsSchedule(Schedule):
    """``tile`` elements at a time, ``buffers`` of the input; ``scalar``: on the scalar unit, as running ones
    are and short rows may be; ``rows`` of a tile are lanes, where the elements of one are not."""

    tile: Annotated[int, OneOf(TILES), Scaled("double tile", "halve tile")]
    scalar: Annotated[bool, Named({True: "scalar unit", False: "lanes"}, also=_without_rows)] = False
    rows: Annotated[int, OneOf((0, *ROWS)), _LANES] = 0
    buffers: Annotated[int, BUFFERS, Range(1, 2), Named({2: "double buffer", 1: "single buffer"})] = 2


@cache
def combination(kind: str, dtype: str) -> tuple[Operand, ...]:
    """The words of two integers combined, the low one first. ``one low`` and ``other low`` are read, and
    ``high`` ones where integers have eight bytes."""
    words, bits = Words(), WIDTHS[dtype]
    limbs = ("low",) if bits == BITS else ("low", "high")
    a, b = (Whole(*(words.read("narrow", f"{name} {limb}") for limb in limbs)) for name in ("one", "other"))
    result: Whole = getattr(Arithmetic(words, bits), _METHODS[kind])(a, b)
    return (result.low,) if result.high is None else (result.low, result.high)


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
