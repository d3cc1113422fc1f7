"""Which kernels torch_npu launches for an operation of eager PyTorch, and what each has to do.

By the names of kernels in published profiles of a 910B2, and by the public sources of torch_npu and of the
operator libraries. What a kernel costs follows from the chip file's section ``eager``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from evokernel_core.domain.graph import literal
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.ascend.calls import Operand, Operation
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.hardware.ascend.isa import BLOCK_BYTES, FRACTAL
from evokernel_core.hardware.ascend.launches import ANY, Launch
from evokernel_core.hardware.products import RECURRENT, scores_of_attention, steps_of_recurrent
from evokernel_core.hardware.roofline import op_name

Kernels = Callable[[Operation, Chip], Iterator[Launch]]

_CHANNELS = 16
"""Channels that lie together in the formats NC1HWC0 and NDC1HWC0."""
_TILE_COLUMNS = 128
_SHORT_ROW = 64
"""Elements of a row that is gathered from one by one."""
_FLOATS = frozenset(("float16", "bfloat16", "float32"))
_ROUNDED = ("round", "clamp")
_ARITHMETIC = frozenset(("add", "sub", "mul", "div", "maximum", "minimum"))


def _names(text: str, *more: str) -> frozenset[str]:
    return frozenset((*text.split(), *more))


TRANSCENDENTAL = _names("exp log sigmoid sqrt rsqrt reciprocal log2 log10 sin cos")
COMPOSED = _names("tanh gelu silu erf div expm1 log1p")
HEAVY = _names(
    "mish softplus clamp clamp_min clamp_max hardtanh hardswish elu selu celu pow logit where masked_fill "
    "tan asin acos atan"
)
"""Element-wise operations by how many instructions their kernels need, dearer ones last."""
SOFTMAX = _names("_softmax _log_softmax")
NORMS = _names("native_layer_norm native_group_norm _fused_rms_norm rms_norm")
BATCH_NORMS = _names("batch_norm native_batch_norm _native_batch_norm_legit")
SUMS = _names("sum mean amax amin prod any all")
POWER_NORMS = _names("linalg_vector_norm norm")
"""One kernel, which raises each element to the power and takes the root of the sum."""
DEVIATIONS = _names("var var_mean std std_mean")
EXTREMES = _names("max min argmax argmin")
REDUCTIONS = SUMS | POWER_NORMS | DEVIATIONS | EXTREMES
COPIES = _names(
    "clone copy cat tril triu roll constant_pad_nd repeat stack index_select embedding slice_scatter"
)
RESIZED = _names(
    "upsample_linear1d upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa "
    "_upsample_bicubic2d_aa upsample_nearest1d upsample_nearest2d upsample_nearest3d "
    "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d"
)
_SAMPLED_TAPS = (2, 1, 4)
"""Elements along each dimension around a place, by PyTorch's number of the mode."""
PRODUCTS = _names("mm bmm addmm baddbmm linear")
ATTENTION = "scaled_dot_product_attention"


def kernels(operation: Operation, chip: Chip) -> tuple[Launch, ...]:
    """The launches of one operation, in their order."""
    return tuple(_rule(operation)(operation, chip))


def _rule(op: Operation) -> Kernels:
    if op.node.op in RECURRENT:
        return _recurrent
    if op.name in EXTREMES and op.results[0].elements < op.elements and len(op.node.args) > 1:
        return _with_index
    if op.name in SUMS | POWER_NORMS | DEVIATIONS or (op.name in EXTREMES and len(op.operands) == 1):
        return _reduction
    if op.name in _RULES:
        return _RULES[op.name]
    if len(op.nodes) > 1 and op.results[0].elements == 1 < op.elements:
        return _loss
    return _elementwise


def cycles_of(op: Operation, chip: Chip) -> float:
    """Cycles of one vector core for an element."""
    costs = chip.eager
    if any(operand.dtype == "int64" for operand in op.operands) and op.name != "_to_copy":
        return costs.wide_cycles
    classes = (
        (HEAVY, costs.heavy_cycles), (COMPOSED, costs.composed_cycles),
        (TRANSCENDENTAL, costs.transcendental_cycles), (SOFTMAX, costs.softmax_cycles),
        (NORMS | BATCH_NORMS, costs.row_cycles), (POWER_NORMS, costs.heavy_cycles),
        (REDUCTIONS, costs.reduce_cycles),
    )  # fmt: skip
    return next((cycles for names, cycles in classes if op.name in names), costs.simple_cycles)


def instructions_of(op: Operation) -> int:
    """Vector instructions that a fused kernel spends on each element; an exponential or a quotient counts
    twice, as it takes twice as long."""
    if op.name == "pow" and op.node.args[1:2] == (2,):
        return 1
    if op.name in _ROUNDED and _is_converted(op):
        return 0
    return next((count for names, count in _INSTRUCTIONS if op.name in names), 1)


def _is_converted(op: Operation) -> bool:
    """Whether only the conversion to an integer follows, which rounds and saturates."""
    name = op.nodes[-1].name
    while True:
        readers = [node for node in op.graph.nodes if any(ref.name == name for ref in node.operands())]
        if len(readers) != 1 or op_name(readers[0].op) not in (*_ROUNDED, "_to_copy"):
            return False
        if op_name(readers[0].op) == "_to_copy":
            return readers[0].outputs[0].dtype not in _FLOATS
        name = readers[0].name


# --- vector kernels


def _elementwise(op: Operation, chip: Chip) -> Iterator[Launch]:
    read = op.read
    for x in _cast(op):
        made = x.elements * ITEM_SIZE[op.results[0].dtype]
        yield Launch("Cast", x.nbytes, made)
        read += made - x.nbytes
    cycles = op.elements * cycles_of(op, chip) + _repeated_rows(op) * chip.eager.row_start_cycles
    yield Launch(op.name, read, op.written, cycles)


def _cast(op: Operation) -> Iterator[Operand]:
    """Operands of another type than an arithmetic operation computes in."""
    if op.name in _ARITHMETIC and op.results[0].dtype in _FLOATS:
        yield from (x for x in op.operands if x.dtype not in _FLOATS and x.elements > 1)


def _repeated_rows(op: Operation) -> int:
    """Rows of an operand that is repeated along the last dimension; where rows are no whole blocks, each is
    filled by itself."""
    made = op.results[0]
    if not made.sizes or made.sizes[-1] * ITEM_SIZE[made.dtype] % BLOCK_BYTES == 0:
        return 0
    repeated = any(
        len(x.sizes) == len(made.sizes) and x.sizes[-1] == 1 < x.elements
        for x in op.operands
        if made.sizes[-1] > 1
    )
    return made.elements // made.sizes[-1] if repeated else 0


def _filled(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Into a copy, by a mask that is repeated to its size before."""
    made, masks = op.results[0], [x for x in op.operands if x.dtype == "bool"]
    yield Launch("TensorMove", made.nbytes, made.nbytes)
    if any(mask.elements < made.elements for mask in masks):
        cycles = made.elements * chip.eager.broadcast_cycles
        yield Launch("BroadcastTo", sum(mask.nbytes for mask in masks), made.elements, cycles)
    yield from _elementwise(op, chip)


def _loss(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Element by element, then the mean or the sum."""
    made = op.operands[0].nbytes
    yield Launch(op.name, op.read, made, op.elements * cycles_of(op, chip))
    cycles = op.elements * chip.eager.reduce_cycles
    yield Launch("ReduceMean", made, op.written, cycles, serial_us=chip.eager.reduce_us)


def _dropout(op: Operation, chip: Chip) -> Iterator[Launch]:
    yield Launch("DropoutGenMask", 0.0, op.elements / 8, op.elements * chip.eager.composed_cycles)
    yield Launch("DropoutDoMask", op.read, op.written, op.elements * chip.eager.simple_cycles)


def _copy(op: Operation, chip: Chip) -> Iterator[Launch]:
    yield Launch(op.name, op.read, op.written, op.results[0].elements * chip.eager.simple_cycles)


def _reverse(op: Operation, chip: Chip) -> Iterator[Launch]:
    yield Launch("ReverseV2", op.read, op.written, op.elements * chip.eager.scalar_cycles)


# --- reductions and norms


def reduced_dims(op: Operation) -> frozenset[int]:
    """The dimensions of the first operand that an operation reduces."""
    place = 2 if op.name in ("linalg_vector_norm", "norm") else 1
    dims = op.node.args[place] if len(op.node.args) > place else ()
    rank = max(len(op.operands[0].sizes), 1)
    given = dims if isinstance(dims, tuple) else () if dims is None or isinstance(dims, bool) else (dims,)
    return frozenset(literal(dim) % rank for dim in given) or frozenset(range(rank))


def _reduction(op: Operation, chip: Chip) -> Iterator[Launch]:
    yield from _reduced(op, reduced_dims(op), chip)
    if op.name in DEVIATIONS or (op.results[0].elements == 1 and op.name not in POWER_NORMS):
        yield Launch("Sqrt" if op.name in DEVIATIONS else "Muls", op.written, op.written)


def _reduced(op: Operation, dims: frozenset[int], chip: Chip) -> Iterator[Launch]:
    costs, sizes = chip.eager, op.operands[0].sizes
    in_rows = not sizes or len(sizes) - 1 in dims
    run = 1
    for dim in reversed(range(len(sizes))):
        if (dim in dims) != in_rows:
            break
        run *= sizes[dim]
    each = costs.heavy_cycles if op.name in POWER_NORMS else costs.reduce_cycles
    cycles = op.elements * each * (1.0 if in_rows else costs.strided_factor)
    cycles *= 1 + costs.short_elements / max(run, 1)
    yield Launch(op.name, op.read, op.written, cycles, serial_us=costs.reduce_us)


def _with_index(op: Operation, chip: Chip) -> Iterator[Launch]:
    """The largest or smallest with its place: rows side by side, other dimensions step by step."""
    costs, sizes = chip.eager, op.operands[0].sizes
    dim = max(reduced_dims(op))
    rows = math.prod(sizes[:dim])
    if op.operands[0].dtype == "int64":
        yield Launch(op.name, op.read, op.written, op.elements * costs.scalar_cycles)
    elif dim == len(sizes) - 1 or not sizes:
        cycles = op.operands[0].nbytes * costs.index_byte_cycles + rows * costs.index_row_cycles
        yield Launch(op.name, op.read, op.written, cycles, max(rows, 1))
    else:
        steps = sizes[dim] * math.ceil(rows / chip.aiv)
        yield Launch(op.name, op.read, op.written, serial_us=steps * costs.reduce_step_us)
    if op.name.startswith("arg"):
        yield Launch("Cast", op.written, op.written)


def _logsumexp(op: Operation, chip: Chip) -> Iterator[Launch]:
    """The largest, the differences, their exponentials, the sum and its logarithm, each a kernel."""
    dims, size = reduced_dims(op), op.operands[0].nbytes
    yield from _reduced(op, dims, chip)
    yield Launch("Sub", op.read, size, op.elements * chip.eager.simple_cycles)
    yield Launch("Exp", op.read, size, op.elements * chip.eager.transcendental_cycles)
    yield from _reduced(op, dims, chip)
    for kernel in ("Equal", "Select", "Log", "Add"):
        yield Launch(kernel, op.written, op.written)


def _softmax(op: Operation, chip: Chip) -> Iterator[Launch]:
    costs, sizes = chip.eager, op.operands[0].sizes
    dim = literal(op.node.args[1]) % max(len(sizes), 1)
    inner = math.prod(sizes[dim + 1 :])
    if inner > 1:
        cycles = op.elements * costs.strided_softmax_cycles
        yield Launch(op.name, op.read, op.written, cycles, serial_us=costs.softmax_us)
        return
    rows = max(op.elements // max(sizes[dim], 1), 1) if sizes else 1
    is_short = sizes and sizes[dim] * ITEM_SIZE[op.operands[0].dtype] < BLOCK_BYTES
    cycles = op.elements * (costs.gather_cycles if is_short else costs.softmax_cycles)
    cycles += 0.0 if is_short else rows * costs.piece_cycles
    yield Launch(op.name, op.read, op.written, cycles, rows, serial_us=costs.softmax_us)


def _norm(op: Operation, chip: Chip) -> Iterator[Launch]:
    costs, x = chip.eager, op.operands[0]
    if op.name == "native_group_norm":
        rows, pieces = x.sizes[0] * _groups(op), x.sizes[0] * x.sizes[1]
    else:
        axes = op.node.args[1] if len(op.node.args) > 1 else None
        rank = len(axes) if isinstance(axes, tuple) else 1
        rows = pieces = op.elements // max(math.prod(x.sizes[len(x.sizes) - rank :]), 1)
    # a row that no core can hold is read again, and so are weights, for each row
    fits = x.nbytes / max(rows, 1) <= chip.ub_bytes / 4
    read = op.read if fits else 2 * x.nbytes + rows * (op.read - x.nbytes)
    cycles = op.elements * costs.row_cycles + piece_cycles(pieces, x, chip)
    yield Launch(op.name, read, op.written, cycles, max(rows, 1), serial_us=costs.row_us)


def piece_cycles(pieces: int, x: Operand, chip: Chip) -> float:
    """Cycles before the work of rows or channels; those that are no whole blocks are copied one by one."""
    size = x.elements // max(pieces, 1)
    if size * ITEM_SIZE[x.dtype] < BLOCK_BYTES:  # several of them lie in a block
        return pieces * size * chip.eager.gather_cycles
    is_even = size * ITEM_SIZE[x.dtype] % BLOCK_BYTES == 0
    return pieces * (chip.eager.piece_cycles + (0.0 if is_even else chip.eager.uneven_cycles))


def _groups(op: Operation) -> int:
    """Groups of channels, which the first view of the channels apart tells."""
    view = next((node for node in op.nodes if node.op == "aten.view.default"), None)
    return 1 if view is None else view.outputs[0].sizes(op.sizes)[1]


def _batch_norm(op: Operation, chip: Chip) -> Iterator[Launch]:
    costs, sizes = chip.eager, op.operands[0].sizes
    pieces = (sizes[0] * sizes[1] if len(sizes) > 2 else 0) * costs.piece_cycles
    if any(node.op.startswith("aten.var") for node in op.nodes):
        cycles = op.elements * costs.reduce_cycles + pieces
        yield Launch("BNTrainingReduce", op.read, 0.0, cycles, serial_us=costs.reduce_us)
    cycles = op.elements * costs.row_cycles + pieces
    yield Launch(op.name, op.read, op.written, cycles, serial_us=costs.row_us)


# --- products and convolutions


def _product(op: Operation, chip: Chip) -> Iterator[Launch]:
    a, b = [operand for operand in op.operands if len(operand.sizes) >= 2][-2:]
    if op.name in ("addmm", "linear"):  # a bias is no matrix
        a, b = [operand for operand in op.operands if len(operand.sizes) >= 2][:2]
    us = product_us(math.prod(a.sizes[:-2]), a.sizes[-2], b.sizes[-1], a.sizes[-1], a.dtype, chip)
    us += op.written / chip.eager.fixpipe_gbps / 1e3
    rows, columns = a.sizes[-2], b.sizes[-1]
    cores = min(product_tiles(math.prod(a.sizes[:-2]), rows, columns, a.dtype), chip.aic)
    yield Launch("MatMulV3", op.read, op.written, 0.0, cores, us, chip.eager.cube_us)


def product_tiles(batch: int, m: int, n: int, dtype: str) -> int:
    """Tiles of the result of a product."""
    rows = 2 * _TILE_COLUMNS if ITEM_SIZE[dtype] < 4 else _TILE_COLUMNS
    return batch * math.ceil(m / rows) * math.ceil(n / _TILE_COLUMNS)


def product_us(batch: int, m: int, n: int, k: int, dtype: str, chip: Chip) -> float:
    """Microseconds of a product by tiles of the result, each computed by one cube core to its end."""
    width = min(ITEM_SIZE[dtype], 4)
    rows = 2 * _TILE_COLUMNS if width < 4 else _TILE_COLUMNS
    tiles = product_tiles(batch, m, n, dtype)
    area = min(rows, _up(m, FRACTAL)) * min(_TILE_COLUMNS, _up(n, FRACTAL))
    cycles = area * _up(k, FRACTAL) / FRACTAL**2 / chip.cube.depth_a_cycle(width)
    return math.ceil(tiles / chip.aic) * cycles / chip.eager.cube_share / chip.mhz


def attention_us(multiply_adds: float, dtype: str, chip: Chip) -> float:
    """Microseconds of both products of an attention, its softmax between them."""
    return chip.product_us(int(multiply_adds), dtype) / chip.eager.attention_share


def _attention(op: Operation, chip: Chip) -> Iterator[Launch]:
    query, value = op.operands[0], op.operands[2]
    scores = scores_of_attention(op.node, op.graph, op.sizes)
    us = attention_us(scores * (query.sizes[-1] + value.sizes[-1]), query.dtype, chip)
    cycles = scores * chip.eager.row_cycles
    yield Launch(
        "FusedInferAttentionScore", op.read, op.written, cycles, cube_us=us, serial_us=chip.eager.row_us
    )


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def _convolution(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Into the format of the cube cores and back, channels filled up."""
    x, weight, made = op.operands[0], op.operands[1], op.results[0]
    costs, is_volume = chip.eager, len(weight.sizes) > 4
    taken, given = _filled_up(x), _filled_up(made)
    yield _reformat(x.nbytes + taken, is_volume, chip)
    yield _reformat(2 * weight.nbytes, is_volume, chip)
    us = convolution_us(op, chip) + given / costs.fixpipe_gbps / 1e3
    yield Launch(
        "Conv3D" if is_volume else "Conv2D", taken, given, cube_us=us, serial_us=costs.convolution_us
    )
    yield _reformat(made.nbytes + given, is_volume, chip)


def _filled_up(image: Operand) -> float:
    """Bytes of an image whose channels are filled up."""
    return image.nbytes / max(image.sizes[1], 1) * _up(image.sizes[1], _CHANNELS)


def _reformat(moved: float, is_volume: bool, chip: Chip) -> Launch:
    costs = chip.eager
    rate = costs.volume_format_gbps if is_volume else costs.format_gbps
    return Launch("TransData", serial_us=costs.format_us + moved / rate / 1e3)


def convolution_us(op: Operation, chip: Chip) -> float:
    """Microseconds of a convolution's products: each place of the smaller image meets each tap."""
    x, weight, made = op.operands[0], op.operands[1], op.results[0]
    costs, is_transposed, groups = chip.eager, bool(op.node.args[6]), literal(op.node.args[8])
    few = x if is_transposed else made
    places = few.elements // max(few.sizes[1], 1)
    first, second = weight.sizes[:2]
    depth = _up(first // groups if is_transposed else second, _CHANNELS)
    columns = _up(second * groups if is_transposed else first, FRACTAL)
    is_volume = len(weight.sizes) > 4
    if is_volume:
        columns = max(columns, 2 * FRACTAL)
    work = places * math.prod(weight.sizes[2:]) * depth * columns / FRACTAL**2
    cores = min(chip.aic, math.ceil(places / 256) * math.ceil(columns / _TILE_COLUMNS))
    cycles = work / chip.cube.depth_a_cycle(ITEM_SIZE[x.dtype]) / max(cores, 1) / costs.convolution_share
    if is_transposed:
        cycles *= costs.volume_transposed_factor if is_volume else costs.transposed_factor
    return cycles / chip.mhz


def _planes(op: Operation, chip: Chip) -> Iterator[Launch]:
    x, made = op.operands[0], op.results[0]
    yield _reformat(2 * x.nbytes, False, chip)
    yield Launch(op.name, x.nbytes, made.nbytes, x.elements * chip.eager.pool_cycles)
    yield _reformat(2 * made.nbytes, False, chip)


def _volumes(op: Operation, chip: Chip) -> Iterator[Launch]:
    x, made = op.operands[0], op.results[0]
    yield transposed(x, chip)
    places = max(x.elements, 8 * made.elements)
    yield Launch(op.name, x.nbytes, made.nbytes, places * chip.eager.volume_pool_cycles)
    yield transposed(made, chip)


# --- what moves, scans, sorts and chooses


def rows_moved(x: Operand, chip: Chip) -> Launch:
    """Dimensions before the last exchanged: rows are copied as they are."""
    rows = x.elements // max(x.sizes[-1], 1)
    cycles = piece_cycles(rows, x, chip)
    return Launch("Transpose", x.nbytes, x.nbytes, cycles, serial_us=chip.eager.transpose_us)


def transposed(x: Operand, chip: Chip) -> Launch:
    """The last dimensions of a tensor exchanged; a tensor whose rows are no whole fractals takes longer."""
    costs = chip.eager
    is_aligned = all(size % FRACTAL == 0 for size in x.sizes[-2:])
    rate = costs.transpose_gbps if is_aligned else costs.unaligned_gbps
    return Launch("Transpose", serial_us=costs.transpose_us + 2 * x.nbytes / rate / 1e3)


def _dim(op: Operation, place: int = 1) -> int:
    rank = max(len(op.operands[0].sizes), 1)
    return (literal(op.node.args[place]) if len(op.node.args) > place else -1) % rank


def _scan(op: Operation, chip: Chip) -> Iterator[Launch]:
    steps = (op.operands[0].sizes or (1,))[_dim(op)]
    yield Launch(op.name, op.read, op.written, serial_us=steps * chip.eager.sum_step_us)


def _scan_with_index(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Step by step along the first dimension, where the scanned one is brought."""
    sizes = op.operands[0].sizes or (1,)
    if len(sizes) > 1 and _dim(op):
        for x in (op.operands[0], op.results[0], op.results[0]):
            yield transposed(x, chip)
    yield Launch(op.name, op.read, op.written, serial_us=sizes[_dim(op)] * chip.eager.scan_step_us)
    yield Launch("Cast", op.written, op.written)


def _sorted(op: Operation, chip: Chip) -> Iterator[Launch]:
    """On vector cores where the elements are floats, on the AI CPU where they are integers."""
    costs, x = chip.eager, op.operands[0]
    if x.dtype not in _FLOATS:
        us = costs.cpu_us + x.elements * costs.cpu_element_ns / 1e3
        yield Launch(op.name, op.read, op.written, serial_us=us)
        return
    if _dim(op, 2 if op.name == "topk" else 1) != len(x.sizes) - 1:
        yield from (transposed(operand, chip) for operand in (x, op.results[0], op.results[0]))
    yield Launch(op.name, op.read, op.written, x.elements * costs.sort_cycles, serial_us=costs.sort_us)


def _gather(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Along the last dimension, where another one is brought, and vector instructions take elements of two or
    four bytes from rows that are not short; else one by one."""
    costs, x, made = chip.eager, op.operands[0], op.results[0]
    dim, last = _dim(op), len(x.sizes) - 1
    if dim != last:
        yield from (transposed(operand, chip) for operand in (x, made, made))
    is_vector = (dim != last or last == 0) and x.elements > 1 and x.sizes[dim] > _SHORT_ROW
    is_vector = is_vector and ITEM_SIZE[x.dtype] in (2, 4)
    if is_vector:  # rows are read whole
        read = x.elements * ITEM_SIZE[x.dtype] + op.read - x.nbytes
        rows = x.elements // x.sizes[dim]
        yield Launch("GatherElementsV2", read, op.written, made.elements * costs.gather_cycles, rows)
        return
    rows = math.prod(x.sizes[:dim]) if dim else ANY
    yield Launch("GatherElements", op.read, op.written, made.elements * costs.scalar_cycles, rows)


def _scatter(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Into a copy, one element after another; which places they are is computed first."""
    base, places = op.operands[0], op.operands[min(1, len(op.operands) - 1)]
    yield Launch("TensorMove", base.nbytes, op.written)
    yield Launch("LinearIndex", places.nbytes, places.elements * ITEM_SIZE["int32"])
    cycles = places.elements * chip.eager.scalar_cycles
    yield Launch("ScatterElements", op.read - base.nbytes, op.read - base.nbytes, cycles)


def _sampled(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Channels last, then the elements around each place, gathered."""
    image, made = op.operands[0], op.results[0]
    taps = _SAMPLED_TAPS[literal(op.node.args[2])] ** (len(image.sizes) - 2)
    yield transposed(image, chip)
    yield Launch(op.name, op.read, op.written, taps * made.elements * chip.eager.gather_cycles)


def _resized(op: Operation, chip: Chip) -> Iterator[Launch]:
    x, made = op.operands[0], op.results[0]
    yield _reformat(2 * x.nbytes, len(x.sizes) > 4, chip)
    yield Launch(op.name, x.nbytes, made.nbytes, made.elements * chip.eager.pool_cycles)
    yield _reformat(2 * made.nbytes, len(x.sizes) > 4, chip)


def _recurrent(op: Operation, chip: Chip) -> Iterator[Launch]:
    """Steps follow each other, layer by layer and direction by direction; in each the cube cores wait for
    states and the vector cores for products."""
    steps = steps_of_recurrent(op.node, op.graph, op.sizes)
    serial = steps * 2 * chip.sync.cross_core_cycles / chip.mhz
    yield Launch("DynamicRNN", op.read, op.written, serial_us=serial)


_INSTRUCTIONS = (
    (_names("clamp hardtanh where masked_fill"), 2),
    (_names("exp log sqrt div reciprocal rsqrt"), 2),
    (_names("sigmoid silu hardswish"), 6),
    (HEAVY | COMPOSED | TRANSCENDENTAL, 12),
    (SOFTMAX | NORMS | BATCH_NORMS, 10),
)
_RULES: Mapping[str, Kernels] = {
    **dict.fromkeys(PRODUCTS, _product),
    ATTENTION: _attention,
    "convolution": _convolution,
    **dict.fromkeys(SOFTMAX, _softmax),
    **dict.fromkeys(NORMS, _norm),
    **dict.fromkeys(BATCH_NORMS, _batch_norm),
    "logsumexp": _logsumexp,
    **dict.fromkeys(("max_pool2d_with_indices", "avg_pool2d", "_adaptive_avg_pool2d"), _planes),
    **dict.fromkeys(("max_pool3d_with_indices", "avg_pool3d", "_adaptive_avg_pool3d"), _volumes),
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp"), _scan),
    **dict.fromkeys(("cummin", "cummax"), _scan_with_index),
    **dict.fromkeys(("topk", "sort", "kthvalue", "median"), _sorted),
    "gather": _gather,
    **dict.fromkeys(
        ("scatter", "scatter_add", "scatter_reduce", "index_put", "index_add", "index_copy"), _scatter
    ),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), _sampled),
    **dict.fromkeys(RESIZED, _resized),
    "flip": _reverse,
    "masked_fill": _filled,
    "dropout": _dropout,
    **dict.fromkeys(COPIES, _copy),
}
