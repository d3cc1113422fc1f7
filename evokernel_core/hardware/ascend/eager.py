"""How long torch_npu takes for a graph op by op, a vendor for all of it in one kernel, and a kernel of ours
without any waste.

The first two follow from the kernels that are launched, whose costs were fitted to published measurements of
a 910B2 (docs/results/eager.md); the last from the rates of the time model of our own kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from attrs import evolve

from evokernel_core.domain.graph import Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.calls import Operand, Operation, is_view, operand_of, operations
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.hardware.ascend.launches import Launch, in_order, launch_us
from evokernel_core.hardware.ascend.vendor_kernels import (
    ATTENTION,
    PRODUCTS,
    REDUCTIONS,
    SOFTMAX,
    attention_us,
    convolution_us,
    instructions_of,
    kernels,
    piece_cycles,
    product_us,
    reduced_dims,
    rows_moved,
    transposed,
)
from evokernel_core.hardware.products import multiply_adds
from evokernel_core.hardware.roofline import op_name, roofline_parts, traffic

LINEAR = frozenset(
    """upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa cumsum""".split()  # noqa: SIM905
)
"""Ops of no products that products with a constant matrix compute, whose results are as large as operands."""

_RESHAPES = frozenset({"view", "_unsafe_view", "reshape"})
_EXCHANGES = frozenset({"permute", "transpose", "t"})
_SLICES = frozenset({"split", "split_with_sizes", "slice", "unbind", "select"})


def eager_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled microseconds of the same graph op by op, by the kernels that each operation launches."""
    return math.fsum(launch_us(launch, chip) for launch in eager_launches(task, chip, sizes))


def eager_launches(
    task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None
) -> tuple[Launch, ...]:
    """The kernels of the graph as eager PyTorch runs it: of its operations, then of the copies between."""
    bound = task.sizes if sizes is None else sizes
    calls = operations(task.graph, bound)
    made = (in_order(kernels(call, chip), call.given, chip) for call in calls)
    return (*chain.from_iterable(made), *_copies(task.graph, bound, chip))


def _copies(graph: Graph, sizes: Mapping[str, int], chip: Chip) -> Iterator[Launch]:
    """Launches that copy a value as it is: where the program asks for one, and reshapes that make rows
    without gaps of what has none."""
    known = graph.inputs_by_name.keys() | graph.nodes_by_name.keys()
    copied = [ref for ref in graph.copies if ref.name in known]  # parts of a graph have fewer
    copied += [next(node.operands()) for node in graph.nodes if _is_copied(node, graph)]
    return (_copy(ref, graph, sizes, chip) for ref in copied)


def _copy(ref: ValueRef, graph: Graph, sizes: Mapping[str, int], chip: Chip) -> Launch:
    """A value as it lies into one without gaps."""
    maker = graph.nodes_by_name.get(ref.name)
    operand = operand_of(graph, ref, sizes)
    if maker is not None and op_name(maker.op) in _EXCHANGES:
        return rows_moved(operand, chip) if _keeps_rows(maker) else transposed(operand, chip)
    return Launch("ViewCopy", operand.nbytes, graph.spec(ref).nbytes(sizes))


def _keeps_rows(maker: Node) -> bool:
    """Whether an exchange of dimensions leaves the last one where it is."""
    if op_name(maker.op) == "t":
        return False
    rank, dims = len(maker.outputs[0].shape), maker.args[1:]
    if op_name(maker.op) == "transpose":
        return all(literal(dim) % rank != rank - 1 for dim in dims[:2])
    order = dims[0]
    return isinstance(order, tuple) and literal(order[-1]) % rank == rank - 1


def _is_copied(node: Node, graph: Graph) -> bool:
    """Whether a reshape copies: its operand has gaps, and was not copied before. Elements of a view stay in
    the order in which they lie."""
    operand = next(node.operands(), None)
    if op_name(node.op) not in _RESHAPES or operand is None or operand in graph.copies:
        return False
    return not graph.spec(operand).contiguous and node.outputs[0].contiguous


def rival_us(task: KernelTask, chip: Chip) -> float:
    """The same as ``fused_us`` at its best: with no more before its work than a row-wise kernel has, and rows
    that are copied beside its work, so that no kernel claims to be ahead of a function of the vendor for what
    other functions do worse."""
    return fused_us(task, chip, at_best=True)


def fused_us(
    task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None, at_best: bool = False
) -> float:
    """Modelled microseconds of the graph as one call of a vendor: what eager PyTorch launches for a single
    operation, else one kernel that reads the inputs and writes the outputs once. ``at_best``: as
    ``rival_us`` says."""
    bound = task.sizes if sizes is None else sizes
    calls = operations(task.graph, bound)
    computing = [call for call in calls if call.name != "_to_copy"]
    if len(computing) == 1:
        return eager_us(task, chip, bound)
    if not calls:  # a view counts as its contiguous copy
        outputs = (_copy(ref, task.graph, bound, chip) for ref in task.graph.outputs)
        return math.fsum(launch_us(launch, chip) for launch in outputs)
    read, written = traffic(task, bound)
    is_attention = any(call.name in (*SOFTMAX, "exp", ATTENTION) for call in calls)
    cube = math.fsum(_products_us(call, is_attention, chip) for call in calls)
    rest = [call for call in computing if not _is_product(call)]
    cycles = math.fsum(call.elements * instructions_of(call) for call in rest) * chip.eager.instruction_cycles
    cycles += _cut_rows(task.graph, bound) * chip.eager.cut_row_cycles
    rows, x = _reduced_rows(computing)
    cycles += rows * _on_whole_rows(computing) * chip.eager.fused_row_cycles
    start_us = chip.eager.fused_us + len(computing) * chip.eager.fused_operation_us
    start_us = chip.eager.row_us if at_best or (rows and not cube) else start_us
    before = math.fsum(launch_us(launch, chip) for launch in _sliced(task.graph, bound, chip))
    if x is None or cube:
        launch = Launch("", read, written, cycles, cube_us=cube, serial_us=start_us)
        return before + launch_us(launch, chip)
    cycles += (
        piece_cycles(rows, x, chip) + _numbers_of_rows(task.graph, bound, rows) * chip.eager.uneven_cycles
    )
    read *= _passes(task.graph, bound, x, chip)
    if at_best:
        return before + launch_us(Launch("", read, written, cycles, rows, serial_us=start_us), chip)
    copied = launch_us(Launch("", read, written, serial_us=start_us), chip)
    # a row is read, reduced and written one after the other
    return before + copied + cycles * math.ceil(rows / chip.aiv) / rows / chip.mhz


def _reduced_rows(calls: Iterable[Operation]) -> tuple[int, Operand | None]:
    """The rows that a kernel of these calls reduces and what they are rows of; 0 where it reduces none."""
    for call in calls:
        sizes = call.operands[0].sizes if call.operands else ()
        if call.name in REDUCTIONS and sizes and len(sizes) - 1 in reduced_dims(call):
            return math.prod(sizes[:-1]), call.operands[0]
    return 0, None


def _passes(graph: Graph, sizes: Mapping[str, int], x: Operand, chip: Chip) -> int:
    """How often rows like those of ``x`` are read: twice, where no core can hold them all as floats."""
    specs = [operand.spec for operand in graph.inputs] + [graph.spec(ref) for ref in graph.outputs]
    count = sum(math.prod(spec.sizes(sizes)) == x.elements for spec in specs)
    return 1 if count * x.sizes[-1] * ITEM_SIZE["float32"] <= chip.ub_bytes else 2


def _numbers_of_rows(graph: Graph, sizes: Mapping[str, int], rows: int) -> int:
    """Numbers that are read for a row each."""
    operands = (math.prod(operand.spec.sizes(sizes)) for operand in graph.inputs)
    return sum(count for count in operands if count == rows > 1)


def _on_whole_rows(calls: Iterable[Operation]) -> int:
    """How many of the calls read or make the most elements."""
    counts = [call.elements for call in calls]
    return counts.count(max(counts, default=0))


def _is_product(call: Operation) -> bool:
    return call.name in PRODUCTS or call.name in ("convolution", ATTENTION)


def _products_us(call: Operation, is_attention: bool, chip: Chip) -> float:
    if not _is_product(call):
        return 0.0
    if call.name == "convolution":
        return convolution_us(call, chip)
    dtype = _stored_dtype(call)
    if is_attention:
        count = sum(multiply_adds(node, call.graph, call.sizes) for node in call.nodes)
        return attention_us(count, dtype, chip)
    a, b = [operand for operand in call.operands if len(operand.sizes) >= 2][:2]
    return product_us(math.prod(a.sizes[:-2]), a.sizes[-2], b.sizes[-1], a.sizes[-1], dtype, chip)


def _stored_dtype(call: Operation) -> str:
    """The type that matrices have in memory, where a reference computes in float64 for exactness alone."""
    dtype = call.operands[0].dtype
    if dtype != "float64":
        return dtype
    matrices = [operand.spec for operand in call.graph.inputs if len(operand.spec.shape) > 1]
    return min((spec.dtype for spec in matrices), key=lambda name: ITEM_SIZE[name], default=dtype)


def _cut_rows(graph: Graph, sizes: Mapping[str, int]) -> int:
    """Rows of which parts are taken: each part is copied by itself."""
    for node in graph.nodes:
        if is_view(node) and op_name(node.op) in _SLICES and (viewed := next(node.operands(), None)):
            before, after = graph.spec(viewed).sizes(sizes), node.outputs[0].sizes(sizes)
            if before and len(before) == len(after) and before[-1] != after[-1]:
                return math.prod(before[:-1])
    return 0


def _sliced(graph: Graph, sizes: Mapping[str, int], chip: Chip) -> Iterator[Launch]:
    """Copies of the parts of an operand that begin within a block of memory."""
    given = {operand.name: operand.spec for operand in graph.inputs}
    for node in graph.nodes:
        ref = next(node.operands(), None)
        while ref is not None and ref.name not in given:
            maker = next(maker for maker in graph.nodes if maker.name == ref.name)
            ref = next(maker.operands(), None) if op_name(maker.op) == "_to_copy" else None
        if op_name(node.op) not in ("split", "split_with_sizes") or ref is None:
            continue
        for part in node.outputs[1:]:
            spec = evolve(part, dtype=given[ref.name].dtype)
            made = Operand(spec.sizes(sizes), spec.dtype, spec.nbytes(sizes))
            is_cut = made.sizes[-1] != given[ref.name].sizes(sizes)[-1]
            if not is_cut and made.sizes[-1] * ITEM_SIZE[made.dtype] % BLOCK_BYTES:
                rows = made.elements // made.sizes[-1]
                yield Launch("Slice", made.nbytes, made.nbytes, piece_cycles(rows, made, chip))


def reachable_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Microseconds that the time model gives a kernel without any waste: what refining can reach.

    Unlike ``roofline_us`` no bound of the hardware: it takes the rates that copies achieve in the
    model, and the launch, with as many vector cores as pay.
    """
    bound = task.sizes if sizes is None else sizes
    read, written = traffic(task, bound)
    vector = roofline_parts(task, chip, bound)["vector"]
    moved = _copied_us(read, read, written, chip)
    one_core = read / (chip.mte.load_bytes_per_cycle * chip.mhz)
    if not any(_on_cubes(node, task.graph, bound) for node in task.graph.nodes):
        one_core = max(one_core, written / (chip.mte.store_bytes_per_cycle * chip.mhz))
    return min(
        chip.launch_of(cores) + max(moved, one_core / cores, vector * chip.aiv / cores)
        for cores in range(1, chip.aiv + 1)
    )


def _copied_us(from_memory: int, read: int, written: int, chip: Chip) -> float:
    """Microseconds of copies at the rates that well-written kernels reach.

    L2 absorbs writes while everything fits; beyond that they push each other back to memory.
    """
    touched = read + written
    back = max(0.0, touched - chip.l2_bytes) * written / max(touched, 1)
    return max(
        (from_memory + back * chip.gm.write_back_cost) / chip.gm.memory_bytes_us,
        touched / chip.gm.l2_bytes_us,
    )


def _on_cubes(node: Node, graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Whether cube cores may compute a node, and store its results."""
    return op_name(node.op) in LINEAR or multiply_adds(node, graph, sizes) > 0
