"""Why a kernel of cube cores is illegal on a chip, by name of the rule and the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.targets.ascendc.ir import allocation
from evokernel_core.targets.ascendc.ir.cube import (
    ClearBlocks,
    CopyBlocks,
    Fetch,
    Fixpipe,
    Keep,
    LoadData,
    LoadFractals,
    Mmad,
    Nd2Nz,
    Nd2NzMatrices,
    Sum,
)
from evokernel_core.targets.ascendc.ir.expr import Expr
from evokernel_core.targets.ascendc.ir.handing_cube import L0, kept, of_memories, stream_of
from evokernel_core.targets.ascendc.ir.legality import Broken, beyond_limits, refused_sizes, wrong_types
from evokernel_core.targets.ascendc.ir.nodes import Buffer, Kernel, Memory, Node, accesses, flat
from evokernel_core.targets.ascendc.ir.tile import known_values, walk

_MOST_EVENTS = 8
"""Events of one kind, one for each stage of a buffer."""
_FRACTAL_BYTES = FRACTAL * BLOCK_BYTES


def broken_rules(kernel: Kernel, chip: Chip, sizes: Mapping[str, int]) -> Iterator[Broken]:
    """Every rule that the kernel breaks on a chip, for given sizes of the task's symbols: ``capacity``,
    ``stages``, ``alignment``, ``unwritten-buffer``, ``unread-buffer``, ``no-stream``, ``no-sum``, ``type``,
    ``overflow``, ``parameter-limit`` or ``tiling``."""
    yield from _memories(kernel, chip)
    yield from _buffers(kernel)
    yield from _structure(kernel)
    known, unmet = known_values(kernel, sizes, max(1, chip.aic))
    if unmet is not None:
        reason = refused_sizes(unmet.note)
        yield Broken("tiling", "ComputeTiling", reason)
        return
    broken: dict[Broken, None] = {}

    def visit(node: Node, times: float, values: Mapping[str, int], inside: bool) -> None:
        broken.update(dict.fromkeys(_figures(node, values)))

    for tile in dict.fromkeys((0, kernel.tiles.end.evaluate(known) - 1)):
        walk(kernel, known, visit, tile)
    yield from broken


def _memories(kernel: Kernel, chip: Chip) -> Iterator[Broken]:
    sizes = chip.memory
    room = {Memory.L1: sizes.l1_bytes, Memory.L0A: sizes.l0a_bytes, Memory.L0B: sizes.l0b_bytes,
            Memory.L0C: sizes.l0c_bytes}  # fmt: skip
    for memory, most in room.items():
        taken = sum(item.stages * item.bytes for item in of_memories(kernel, {memory}))
        if taken > most:
            yield Broken(
                "capacity",
                memory.value,
                Sentence("The buffers take {taken} bytes of {most}.", taken=taken, most=most),
            )
    fetches = [node for node in kernel.nodes if isinstance(node, Fetch)]
    if fetches:
        yield from _events(kernel, fetches)
    for memories in (L0,) if fetches else ({Memory.L1}, L0):
        handed = {item.stages for item in of_memories(kernel, memories) if item not in kept(kernel)}
        if len(handed) > 1:
            names = " and ".join(sorted(memory.value for memory in memories))
            yield Broken("stages", names, "Buffers that are handed over together have as many stages.")


def _events(kernel: Kernel, fetches: Sequence[Fetch]) -> Iterator[Broken]:
    """Cores that fetch by themselves have an event for each stage of each fetch and for what is kept, and one
    for each step of each operand in L0."""
    held = {node.buffer for node in kernel.nodes if isinstance(node, Keep)}
    taken = {"L1": sum(node.buffer.stages for node in fetches) + len(held),
             "L0A and L0B": sum(item.stages for item in of_memories(kernel, L0))}  # fmt: skip
    for place, count in taken.items():
        if count > _MOST_EVENTS:
            yield Broken(
                "stages",
                place,
                Sentence(
                    "{count} events between two units are more than {most}.", count=count, most=_MOST_EVENTS
                ),
            )


def _buffers(kernel: Kernel) -> Iterator[Broken]:
    written = allocation.written(kernel)
    read = {child.buffer for node in kernel.nodes for writes, child in accesses(node) if not writes}
    for buffer in kernel.buffers:
        unit = BLOCK_BYTES if buffer.memory is Memory.L1 else _FRACTAL_BYTES
        if not 1 <= buffer.stages <= _MOST_EVENTS:
            yield Broken(
                "stages",
                buffer.name,
                Sentence(
                    "{stages} stages are not from 1 to {most}.", stages=buffer.stages, most=_MOST_EVENTS
                ),
            )
        if buffer.bytes % unit or buffer.bytes < unit:
            yield Broken(
                "alignment",
                buffer.name,
                Sentence("{bytes} bytes are no multiple of {unit}.", bytes=buffer.bytes, unit=unit),
            )
        if buffer not in written:
            yield Broken("unwritten-buffer", buffer.name, "Nothing writes what is read.")
        if buffer not in read:
            yield Broken("unread-buffer", buffer.name, "Nothing reads what is written.")


def _structure(kernel: Kernel) -> Iterator[Broken]:
    fetches = any(isinstance(node, Fetch) for node in kernel.nodes)
    if fetches and not kernel.tiles.in_a_row:
        yield Broken("no-stream", "kernel", "Tiles of cores that fetch by themselves follow each other.")
    elif not fetches and stream_of(kernel) is None:
        yield Broken("no-stream", "kernel", "The loops are no run of panels for each of a core's tiles.")
    summed = [id(child) for node in kernel.nodes if isinstance(node, Sum) for child in flat((node,))]
    for node in kernel.nodes:
        if isinstance(node, (Mmad, Fixpipe)) and id(node) not in summed:
            yield Broken("no-sum", type(node).__name__, "It stands outside of a sum.")
        if isinstance(node, Mmad):
            types = tuple(child.ctype for _, child in node.slices)
            yield from (Broken("type", "Mmad", reason) for reason in wrong_types("Mmad", types))


def _figures(node: Node, values: Mapping[str, int]) -> Iterator[Broken]:
    """What an instruction is given against the limits of the API table and the size of its buffers."""

    def of(value: Expr) -> int:
        return value.evaluate(values)

    match node:
        case Nd2Nz():
            rows, columns = of(node.rows), of(node.columns)
            height = _whole(rows, FRACTAL)
            yield from beyond_limits(
                "DataCopyNd2Nz", {"nValue": rows, "dValue": columns, "dstNzC0Stride": height}
            )
            width = _whole(columns, _block(node.target.buffer))
            yield from _fits(node.target.buffer, of(node.target.offset) + height * width)
        case Nd2NzMatrices():
            yield from _matrices(node, [of(figure) for figure in node.figures], of(node.target.offset))
        case CopyBlocks():
            yield from beyond_limits("DataCopyBlocksToL1", _counts([of(figure) for figure in node.figures]))
            yield from _fits(node.target.buffer, _reach(node, of))
        case ClearBlocks():
            figures = {"repeatTimes": of(node.runs), "blockNum": of(node.blocks), "dstGap": of(node.gap)}
            yield from beyond_limits("Fill", figures)
            yield from _fits(node.target.buffer, _reach(node, of))
        case LoadFractals():
            fractals, step, gap = (of(figure) for figure in node.figures)
            yield from beyond_limits(
                "LoadData2D", {"repeatTimes": fractals, "srcStride": step, "dstGap": gap}
            )
            taken = (max(0, fractals - 1) * (gap + 1) + 1) * FRACTAL * _block(node.target.buffer)
            yield from _fits(node.target.buffer, of(node.target.offset) + taken)
        case LoadData():
            rows, columns = of(node.rows.count), of(node.columns.count)
            taken = _whole(rows, FRACTAL) * _whole(columns, _block(node.target.buffer))
            yield from _fits(node.target.buffer, of(node.target.offset) + taken)
            if not node.is_run:
                figures = {"l1W": _whole(of(node.rows.of), FRACTAL), "mStartPt": of(node.rows.start),
                           "kStartPt": of(node.columns.start), "mExtension": _whole(rows, FRACTAL),
                           "channelSize": of(node.columns.of), "kExtension": columns}  # fmt: skip
                yield from beyond_limits("LoadData3D", figures)
        case Mmad():
            rows, columns = _whole(of(node.rows), FRACTAL), of(node.columns)
            yield from beyond_limits("Mmad", {"m": rows, "n": columns, "k": of(node.depth)})
            yield from _fits(node.target.buffer, of(node.target.offset) + rows * _whole(columns, FRACTAL))
        case Fixpipe():
            figures = {"nSize": of(node.columns), "mSize of ND": of(node.rows), "ndNum": of(node.matrices)}
            height = _whole(of(node.height), FRACTAL) // FRACTAL
            figures |= {"srcNdStride": of(node.gap) // FRACTAL * height, "dstNdStride": of(node.apart)}
            yield from beyond_limits("Fixpipe", figures)


def _counts(figures: list[int]) -> dict[str, int]:
    return dict(zip(("blockCount", "blockLen", "srcGap", "dstGap"), figures, strict=True))


def _reach(node: CopyBlocks | ClearBlocks, of: Callable[[Expr], int]) -> int:
    """The end of what is written, in elements."""
    runs, blocks, gap = of(node.runs), of(node.blocks), of(node.gap)
    return of(node.target.offset) + ((runs - 1) * (blocks + gap) + blocks) * _block(node.target.buffer)


def _matrices(node: Nd2NzMatrices, figures: list[int], offset: int) -> Iterator[Broken]:
    matrices, rows, columns, _, _, height, row_step, matrix_step = figures
    names = ("ndNum", "nValue", "dValue", "srcNdMatrixStride", "srcDValue", "dstNzC0Stride", "dstNzNStride")
    yield from beyond_limits("DataCopyNd2Nz", dict(zip(names, figures, strict=False)))
    block = _block(node.target.buffer)
    yield from beyond_limits("DataCopyNd2Nz", {"dstNzMatrixStride": matrix_step * block})
    last = (-(-columns // block) - 1) * height + (rows - 1) * row_step + (matrices - 1) * matrix_step
    yield from _fits(node.target.buffer, offset + (last + 1) * block)


def _fits(buffer: Buffer, elements: int) -> Iterator[Broken]:
    room = buffer.elements.evaluate({}) * (buffer.stages if buffer.joined else 1)
    if elements > room:
        yield Broken(
            "overflow",
            buffer.name,
            Sentence("{elements} elements are more than {room}.", elements=elements, room=room),
        )


def _block(buffer: Buffer) -> int:
    """Elements of a block, which are the columns of a fractal."""
    return BLOCK_BYTES // buffer.item_bytes


def _whole(value: int, unit: int) -> int:
    return -(-value // unit) * unit
