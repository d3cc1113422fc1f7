"""Programs that take their images in chunks, so that L2 keeps what lies between two kernels.

Cube cores compute one chunk while vector cores do what follows to the one before. A program can be cut so
where a symbol of the sizes is the first dimension of all that depends on it, and no operation mixes what
lies at different places of that dimension.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from evokernel_core.compiler.fusion.records import Place, Program, Slot, Stage
from evokernel_core.compiler.lowering.pointwise import POINTWISE
from evokernel_core.compiler.ops import CONVOLUTION, SPACE_TO_DEPTH
from evokernel_core.compiler.shapes.sizes import extent, names_in, product
from evokernel_core.compiler.shapes.views import BROADCASTS, SAME_ORDER
from evokernel_core.domain.graph import Arg, Graph, InputKind, Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim, TensorSpec
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.family import KernelFacts
from evokernel_core.targets.ascendc.kernels.pooling import pooling_family as windowed

CHUNK_SHARES = (8, 4)
"""The parts of L2 that a chunk may leave between kernels so that three chunks and what is read beside them
fit: with room to spare, and where kernels gain more by chunks that are long beside their first and last
tiles."""
LEAST_SHARE = 4
"""The part of L2 that has to lie between kernels for chunks to be long beside the barriers between them."""
MOST_CHUNKS = 256
_REDUCES = frozenset(
    f"aten.{name}"
    for name in (
        "amax.default", "amin.default", "logsumexp.default", "mean.dim", "sum.dim_IntList", "prod.dim_int",
        "linalg_vector_norm.default", "max.dim", "min.dim", "var.correction", "var_mean.correction",
        "std.correction",
    )
)  # fmt: skip
_SOFTMAXES = frozenset({"aten._softmax.default", "aten._log_softmax.default"})
_LAYER_NORM = "aten.native_layer_norm.default"
_OF_IMAGES = frozenset({CONVOLUTION.name, SPACE_TO_DEPTH.name, *windowed.FAMILY.ops})


@frozen
class Batch:
    """The symbol ``name`` with ``images`` in the user's file, number ``index`` of the sizes; ``kinds`` are
    those kernels of the program that take them in chunks, ``wholes`` those behind that take all."""

    name: str
    index: int
    images: int
    kinds: frozenset[int]
    wholes: frozenset[int]


def batch_of(task: KernelTask, planned: Program, count: int) -> Batch | None:
    """The symbol along which the first ``count`` stages that depend on it can be cut into chunks, None where
    there is none."""
    for index, symbol in enumerate(task.symbols):
        depends = [stage for stage in planned.stages if _depends(stage, symbol.name)]
        kinds, wholes = ({stage.kind for stage in part} for part in (depends[:count], depends[count:]))
        others = {stage.kind for stage in planned.stages if not _depends(stage, symbol.name)}
        if count < 2 or len(depends) < count or kinds & wholes or (kinds | wholes) & others:
            continue
        if all(_is_separable(stage, symbol.name) for stage in depends[:count]):
            return Batch(symbol.name, index, symbol.size, frozenset(kinds), frozenset(wholes))
    return None


def _depends(stage: Stage, name: str) -> bool:
    graph = stage.piece.task.graph
    shapes = [operand.spec.shape for operand in graph.inputs] + [spec.shape for spec in graph.output_specs()]
    return any(_mentions(shape, name) for shape in shapes)


def _is_separable(stage: Stage, name: str) -> bool:
    """Whether a stage computes what lies at one place of the first dimension from what lies there."""
    graph = stage.piece.task.graph
    if not _depends(stage, name):
        return True
    shapes = [spec.shape for spec in graph.output_specs()]
    if not all(_leads(shape, name) for shape in shapes):
        return False
    return all(_agrees(operand.spec.shape, name) for operand in graph.inputs) and all(
        _keeps_apart(node, graph, name) for node in graph.nodes
    )


def _keeps_apart(node: Node, graph: Graph, name: str) -> bool:
    read = [graph.spec(ref).shape for ref in node.operands()]
    made = [spec.shape for spec in node.outputs]
    if not any(_mentions(shape, name) for shape in (*read, *made)):
        return not _counts(node, name)
    fits = bool(made) and all(_leads(shape, name) for shape in made)
    return fits and all(_agrees(shape, name) for shape in read) and _maps_images(node, read, name)


def _maps_images(node: Node, read: list[tuple[Dim, ...]], name: str) -> bool:
    """Whether a node whose results have images first computes each from the same image of its operands."""
    if node.op in SAME_ORDER or node.op in BROADCASTS:
        return True
    if _counts(node, name):
        return False
    if node.op in _SOFTMAXES:
        return literal(node.args[1]) % len(read[0]) != 0
    if node.op == _LAYER_NORM:
        normalised = node.args[1]
        return isinstance(normalised, tuple) and len(normalised) < len(read[0])
    if node.op in _OF_IMAGES:
        return all(not _mentions(shape, name) for shape in read[1:])
    return node.op in POINTWISE or (node.op in _REDUCES and all(_leads(shape, name) for shape in read))


def _counts(node: Node, name: str) -> bool:
    """Whether a node computes with the number of images itself, which is another one in a chunk."""
    return _holds((*node.args, *(value for _, value in node.kwargs)), name)


def _holds(args: Iterable[Arg], name: str) -> bool:
    return any(
        (isinstance(arg, SymbolicInt) and name in names_in(arg.expression))
        or (isinstance(arg, tuple) and _holds(arg, name))
        for arg in args
    )


def _mentions(shape: Iterable[Dim], name: str) -> bool:
    return any(name in names_in(dim) for dim in shape)


def _leads(shape: tuple[Dim, ...], name: str) -> bool:
    return bool(shape) and shape[0] == name and not _mentions(shape[1:], name)


def _agrees(shape: tuple[Dim, ...], name: str) -> bool:
    return _leads(shape, name) or not _mentions(shape, name)


# -- sizes ----------------------------------------------------------------------------------------


def between_bytes(task: KernelTask, planned: Program, batch: Batch) -> int:
    """Bytes between the kernels that take chunks."""
    inside = [stage for stage in planned.stages if stage.kind in batch.kinds]
    made = {ref for stage in inside for ref in stage.piece.outputs}
    read = {ref for stage in inside for ref in stage.piece.inputs}
    return sum(task.graph.spec(ref).nbytes(task.sizes) for ref in made & read)


def chunks_worth(task: KernelTask, planned: Program, batch: Batch, chip: Chip) -> tuple[int, ...]:
    """How many chunks L2 asks for, each number with other chunks; none where it holds nearly all at once."""
    held = between_bytes(task, planned, batch)
    if held < chip.l2_bytes // LEAST_SHARE:
        return ()
    sizes = (chip.l2_bytes // share for share in CHUNK_SHARES)
    worth = (min(batch.images, MOST_CHUNKS, max(4, math.ceil(held / size))) for size in sizes)
    by_images = {math.ceil(batch.images / chunks): chunks for chunks in worth if chunks > 1}
    return tuple(by_images.values())


def of_chunk(part: KernelTask, batch: Batch, chunks: int) -> KernelTask:
    """A kernel's task with the sizes of one chunk."""
    symbols = (
        evolve(symbol, size=math.ceil(symbol.size / chunks)) if symbol.name == batch.name else symbol
        for symbol in part.symbols
    )
    return evolve(part, symbols=tuple(symbols))


def groups_of(planned: Program, batch: Batch, on_cube: Iterable[bool]) -> tuple[list[Stage], ...]:
    """Stages before the chunks; those of a chunk up to the last on cube cores; those of a chunk behind; those
    that take all images at once."""
    cubes = list(on_cube)
    inside = [stage for stage in planned.stages if stage.kind in batch.kinds]
    last = max((i for i, stage in enumerate(inside) if cubes[stage.kind]), default=len(inside) - 1)
    before = [stage for stage in planned.stages if stage.kind not in batch.kinds | batch.wholes]
    after = [stage for stage in planned.stages if stage.kind in batch.wholes]
    return before, inside[: last + 1], inside[last + 1 :], after


def unshared(task: KernelTask, planned: Program) -> Program:
    """The program with a slot for each value, since chunks come back to all of them."""
    places: dict[ValueRef, Place] = {}
    slots: list[Slot] = []
    for stage in planned.stages:
        for ref, place in zip(stage.piece.outputs, stage.outputs, strict=True):
            if place.in_workspace:
                spec = task.graph.spec(ref)
                places[ref] = Place(True, len(slots))
                size = product(map(extent, spec.shape))
                slots.append(Slot(((ref.name, ITEM_SIZE[spec.dtype], size),)))
    stages = [
        evolve(
            stage,
            inputs=_moved(stage.piece.inputs, stage.inputs, places),
            outputs=_moved(stage.piece.outputs, stage.outputs, places),
        )
        for stage in planned.stages
    ]
    return evolve(planned, stages=tuple(stages), slots=tuple(slots))


def _moved(
    refs: Iterable[ValueRef], old: Iterable[Place], places: Mapping[ValueRef, Place]
) -> tuple[Place, ...]:
    return tuple(places[ref] if place.in_workspace else place for ref, place in zip(refs, old, strict=True))


# -- a program in chunks ---------------------------------------------------------------------------


@frozen
class Chunked:
    """A program cut along a batch into about ``chunks``; each value between kernels has a slot of its own.
    ``facts`` has one entry a kind."""

    task: KernelTask
    planned: Program
    facts: tuple[KernelFacts, ...]
    batch: Batch
    chunks: int

    def groups(self) -> tuple[list[Stage], ...]:
        return groups_of(self.planned, self.batch, [facts.on_cube for facts in self.facts])

    def steps(self) -> Mapping[Place, TensorSpec]:
        """The tensors of the task that chunks are parts of."""
        names = {
            operand.name: operand.spec
            for operand in self.task.graph.inputs
            if operand.kind is not InputKind.SCALAR
        }
        specs = dict(enumerate(names.values()))
        result = {}
        for stage in self.planned.stages:
            if stage.kind not in self.batch.kinds:
                continue
            made = stage.piece.task.graph.output_specs()
            specs |= {
                place.index: spec
                for place, spec in zip(stage.outputs, made, strict=True)
                if not place.in_workspace
            }
            for place in (*stage.inputs, *stage.outputs):
                if not place.in_workspace and specs[place.index].shape[:1] == (self.batch.name,):
                    result[place] = specs[place.index]
        return dict(sorted(result.items(), key=lambda item: item[0].index))

    def cut_slots(self) -> frozenset[int]:
        """The slots that kernels write chunk by chunk."""
        inside = [stage for stage in self.planned.stages if stage.kind in self.batch.kinds]
        return frozenset(place.index for stage in inside for place in stage.outputs if place.in_workspace)

    def rings(self) -> frozenset[int]:
        """Those of them that are read chunk by chunk only, and hold two chunks in turn."""
        whole = [stage for stage in self.planned.stages if stage.kind in self.batch.wholes]
        return self.cut_slots() - {
            place.index for stage in whole for place in stage.inputs if place.in_workspace
        }
