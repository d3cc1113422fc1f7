"""Family iota: whole numbers in equal steps, which other kernels compare with indices."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.ops import IOTA, categories
from evokernel_core.compiler.problems.reading import only_node
from evokernel_core.compiler.schedule import OneOf, Scaled, Schedule
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Reuse, Split
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.expr import U64, Constant, Int, Size, ceil_div, least
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Converted, Enumerator, Kernel
from evokernel_core.targets.ascendc.kernels.built import always, among, variant_of
from evokernel_core.targets.ascendc.kernels.candidates import SearchingFamily, on_any_chip
from evokernel_core.targets.ascendc.kernels.text import CPP_TYPE

_MOST = (1 << 31) - 1
_TILES = (512, 1024, 2048, 4096, 8192)
_DTYPES = frozenset({"float32", "int32", "int64"})
_ROUNDING = {"float": "CAST_RINT", "int64_t": "CAST_NONE"}
_NUMBERS_PER_REPEAT = 64
"""int32 elements of one repeat of a vector instruction."""


@frozen
class IotaSchedule(Schedule):
    """``tile`` elements at a time."""

    tile: Annotated[int, OneOf(_TILES), Scaled("double tile", "halve tile")]


def _read(task: KernelTask) -> Node:
    """The one node of a task. Raises PlanError where the task is anything else."""
    node = only_node(task, {IOTA.name}, Sentence("The kernel makes more than whole numbers in equal steps."))
    spec = node.outputs[0]
    if spec.rank != 1 or spec.dtype not in _DTYPES:
        raise PlanError("Numbers in equal steps of dtype {dtype} are not covered.", dtype=spec.dtype)
    return node


def build(node: Node, schedule: IotaSchedule) -> Kernel:
    """The kernel of a legal schedule: one store for each tile, of numbers made in 32 bits."""
    spec = node.outputs[0]
    ctype, width = CPP_TYPE[spec.dtype], ITEM_SIZE[spec.dtype]
    start, step = (literal(argument) for argument in node.args[:2])
    most = literal(node.args[2]) if len(node.args) > 2 else _MOST
    tile = Constant("TILE_ELEMENTS", schedule.tile)
    k = Builder("Whole numbers in equal steps.")
    output = k.output("result", "output", ctype, width)
    count = k.param("count", Size(extent(spec.shape[0])))
    k.require(count, ">=", 1)
    k.require(count, "<=", _most_count(start, step, most), "beyond it numbers are not exact")
    made = Buffer("made", ctype, width, tile)
    numbers = made if ctype == "int32_t" else Buffer("numbers", "int32_t", 4, tile)
    with k.cores("tile", k.param("tiles", ceil_div(count, tile))) as index:
        first = k.let("first", index * tile, U64)
        left = k.let("left", count - first, U64)
        length = k.let("length", least(left, tile))
        repeats = ceil_div(length, _NUMBERS_PER_REPEAT)
        k.call("CreateVecIndex", numbers, Converted(first, "int32_t"), length, repeats=repeats)
        if step != 1:
            k.call("Muls", numbers, numbers, Converted(Int(step), "int32_t"), length, repeats=repeats)
        if start != 0:
            k.call("Adds", numbers, numbers, Converted(Int(start), "int32_t"), length, repeats=repeats)
        if numbers is not made:
            rounding = Enumerator(f"RoundMode::{_ROUNDING[ctype]}")
            k.call("Cast", made, numbers, rounding, length, repeats=repeats)
        k.store(output, first, made, length)
    return k.kernel()


def _most_count(start: int, step: int, most: int) -> int:
    """The most elements whose numbers, and the count itself, lie between -most and most."""
    if step == 0:
        return most
    room = most - start if step > 0 else most + start
    return min(most, max(0, room // abs(step)))


FAMILY = SearchingFamily(
    variant=variant_of(build),
    name="iota",
    ops=categories(IOTA),
    read=on_any_chip(_read),
    schedule_of=IotaSchedule.of,
    starts=among(map(IotaSchedule, _TILES)),
    notes=always((Sentence("Tiles round-robin."),)),
    cell=always(Descriptor(Dataflow.STREAMED, Reuse.NONE, Split.ELEMENTS, Algorithm.DIRECT)),
)
