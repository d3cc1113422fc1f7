"""How long torch_npu takes for a graph op by op, and one well-written kernel for all of it.

Both are modelled from the chip file: bytes at the rates that copies reach, vector work by an instruction's
class. Neither has been measured on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve

from evokernel_core.domain.graph import Graph, Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, TensorSpec
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES
from evokernel_core.hardware.indexed import chosen_bytes
from evokernel_core.hardware.products import RECURRENT, multiply_adds, scores_of_attention, steps_of_recurrent
from evokernel_core.hardware.roofline import (
    ATTENTION,
    FREE_OPS,
    elements,
    op_name,
    product_us,
    roofline_parts,
    traffic,
    widest,
)

WORK: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("exp", "log", "sqrt", "rsqrt", "div", "reciprocal", "log2", "log10"), (1, 0)),
    **dict.fromkeys(("expm1", "log1p", "pow"), (2, 1)),
    **dict.fromkeys(("sigmoid", "silu", "tanh", "softplus", "elu", "logit"), (2, 3)),
    **dict.fromkeys(("gelu", "erf", "mish", "sin", "cos", "tan"), (2, 10)),
    **dict.fromkeys(("_softmax", "_log_softmax", "logsumexp"), (1, 5)),
    # sorting instructions take two elements a cycle, a sixteenth of the rate: runs of 32, then merges
    **dict.fromkeys(("topk", "kthvalue"), (32, 4)),
    **dict.fromkeys(("sort", "median"), (64, 4)),
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "_fused_rms_norm", "var"), (0, 8)),
}
"""Vector instructions for each element: (of the transcendental class, of the simple class).

Estimates of what a vendor's kernel needs at least; any other op counts as one simple instruction.
"""

LINEAR = frozenset(
    """upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa
    _upsample_bicubic2d_aa cumsum""".split()  # noqa: SIM905
)
"""Ops of no products that products with a constant matrix compute, whose results are as large as operands."""

_SAMPLED_TAPS = (2, 1, 4)
"""Elements along each dimension around a place, by PyTorch's number of the mode."""

_RESHAPES = frozenset({"view", "_unsafe_view", "reshape"})


def eager_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled microseconds of the same graph op by op, one launch for each op that computes or copies."""
    bound, graph = task.sizes if sizes is None else sizes, task.graph
    known = {operand.name for operand in graph.inputs} | {
        node.name for node in graph.nodes
    }  # of parts, fewer
    copies = [ref for ref in graph.copies if ref.name in known]
    return math.fsum(
        (
            *(_eager_node_us(node, graph, chip, bound) for node in graph.nodes),
            *(_copy_us(ref, graph, chip, bound) for ref in copies),
        )
    )


def _is_free(node: Node, graph: Graph) -> bool:
    """Whether eager PyTorch answers a node with a view. A reshape that makes rows without gaps of what has
    none copies, unless that was copied before: elements of a view stay in the order in which they lie."""
    if op_name(node.op) not in _RESHAPES:
        return op_name(node.op) in FREE_OPS
    operand = next(node.operands(), None)
    if operand is None or operand in graph.copies:
        return True
    return graph.spec(operand).contiguous or not node.outputs[0].contiguous


def _copy_us(ref: ValueRef, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    """Microseconds of a launch that copies a value as it is."""
    read, written = _read_bytes(ref, graph, sizes), graph.spec(ref).nbytes(sizes)
    from_memory = 0 if _left_in_l2(ref, read, graph, chip) else read
    stored = written / (chip.aiv * chip.mte.store_bytes_per_cycle) / chip.mhz
    return chip.launch_us + max(_copied_us(from_memory, read, written, chip), stored)


def _eager_node_us(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    if _is_free(node, graph):
        return 0.0
    if op_name(node.op) in _RESHAPES:
        return _copy_us(next(node.operands()), graph, chip, sizes)
    read = {}
    for ref in node.operands():
        chosen = chosen_bytes(node, ref, graph, sizes, BLOCK_BYTES)  # no copy moves less
        read[ref] = _read_bytes(ref, graph, sizes) if chosen is None else chosen
    written = sum(spec.nbytes(sizes) for spec in node.outputs)
    from_memory = sum(size for ref, size in read.items() if not _left_in_l2(ref, size, graph, chip))
    moved = _copied_us(from_memory, sum(read.values()), written, chip)
    products = product_us(node, graph, chip, sizes)
    if not products or op_name(node.op) == ATTENTION:
        moved = max(moved, _stored_us(node, written, chip))
    vector = 0.0 if products and op_name(node.op) != ATTENTION else _usual_cycles(node, graph, chip, sizes)
    return chip.launch_us + max(
        moved, products, _cycles_us(vector, chip), _steps_us(node, graph, chip, sizes)
    )


def fused_us(task: KernelTask, chip: Chip, sizes: Mapping[str, int] | None = None) -> float:
    """Modelled microseconds of the graph as one operator, by the figures of ``eager_us`` for one op: a
    launch, and the longest of its copies, its products and the vector work of its nodes. What is between
    the nodes stays on the cores."""
    bound = task.sizes if sizes is None else sizes
    read, written = traffic(task, bound)
    computing = [node for node in task.graph.nodes if op_name(node.op) not in FREE_OPS]
    products = {node.name: product_us(node, task.graph, chip, bound) for node in computing}
    cycles = math.fsum(
        _usual_cycles(node, task.graph, chip, bound)
        for node in computing
        if not products[node.name] or op_name(node.op) == ATTENTION
    )
    moved = _copied_us(read, read, written, chip)
    if not any(products.values()):
        # The fastest way that one of the nodes has.
        moved = max(moved, min((_stored_us(node, written, chip) for node in computing), default=0.0))
    return chip.launch_us + max(moved, math.fsum(products.values()), _cycles_us(cycles, chip))


def _steps_us(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    """Microseconds that the steps of recurrent layers wait: they follow each other, layer by layer and
    direction by direction, and in each the cube cores wait for states and the vector cores for products."""
    if node.op not in RECURRENT:
        return 0.0
    return steps_of_recurrent(node, graph, sizes) * 2 * chip.sync.cross_core_cycles / chip.mhz


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


def _stored_us(node: Node, written: int, chip: Chip) -> float:
    """Microseconds that results take through the ports of the cores that compute them.

    Each vector core stores ``mte.store_bytes_per_cycle``, which for all of them is less than L2 takes. What
    is linear may be products on cube cores, which store through Fixpipe.
    """
    ports = chip.aiv * chip.mte.store_bytes_per_cycle
    if op_name(node.op) in LINEAR:
        ports = max(ports, chip.aic * chip.cube.fixpipe_gm_bytes_per_cycle)
    return written / ports / chip.mhz


def _left_in_l2(ref: ValueRef, size: int, graph: Graph, chip: Chip) -> bool:
    """Whether an earlier op has left the operand in L2; a view of an input is where the input is."""
    makers = {node.name: node for node in graph.nodes}
    maker = makers.get(ref.name)
    while maker is not None and _is_free(maker, graph):
        viewed = next(maker.operands(), None)
        maker = makers.get(viewed.name) if viewed else None
    return maker is not None and size <= chip.l2_bytes // 2


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


def _read_bytes(ref: ValueRef, graph: Graph, sizes: Mapping[str, int]) -> int:
    """Bytes that reading a value takes: a broadcast view is read at the size of what it views."""
    producer = next((node for node in graph.nodes if node.name == ref.name), None)
    if producer is not None and op_name(producer.op) == "expand":
        return min((_read_bytes(inner, graph, sizes) for inner in producer.operands()), default=0)
    return graph.spec(ref).nbytes(sizes)


def _usual_cycles(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    """Vector cycles that a usual kernel of this op takes; attention has a float32 softmax."""
    if op_name(node.op) == ATTENTION:
        scores = TensorSpec((scores_of_attention(node, graph, sizes),), "float32")
        return _cycles_of("_softmax", scores, chip, sizes)
    if op_name(node.op).startswith("scatter"):
        # No instruction writes elements to places of their own: what is put is sorted by its places.
        places = node.args[2]
        assert isinstance(places, ValueRef)
        return _cycles_of("sort", evolve(graph.spec(places), dtype="float32"), chip, sizes)
    if op_name(node.op).startswith("grid_sampler"):
        return _sampled_cycles(node, graph, chip, sizes)
    return _cycles_of(op_name(node.op), widest(node, graph, sizes), chip, sizes)


def _sampled_cycles(node: Node, graph: Graph, chip: Chip, sizes: Mapping[str, int]) -> float:
    """Cycles in which the elements around places are gathered: one by one, or blocks of several channels."""
    image, made, rates = graph.spec(next(node.operands())), node.outputs[0], chip.vector.elements_per_cycle
    width = ITEM_SIZE[image.dtype]
    is_block = image.sizes(sizes)[1] * width >= BLOCK_BYTES
    rate = rates.of("gather_block", 8 * width) if is_block else rates.gather
    taps: int = _SAMPLED_TAPS[literal(node.args[2])] ** (len(image.shape) - 2)
    return taps * elements(made, sizes) / rate


def _cycles_of(name: str, widest: TensorSpec, chip: Chip, sizes: Mapping[str, int]) -> float:
    slow, simple = WORK.get(name, (0, 1))
    rate = chip.vector.elements_per_cycle.transcendental
    per_element = slow / rate + simple / chip.simple_rate(widest.dtype)
    return elements(widest, sizes) * per_element


def _cycles_us(cycles: float, chip: Chip) -> float:
    return cycles / chip.aiv / chip.mhz
