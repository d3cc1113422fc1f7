"""Reductions of few long rows in two steps, so that every core has work and long rows are read once.

The first step reduces the innermost of the reduced dimensions, which gives many partial results; the
second reduces those. Means and variances of parts combine to those of the whole: the variance of the
whole is the mean of the parts' variances and the variance of their means.

Where the elements are read again with the result, as to normalise them, L2 keeps a row until then, and cores
can share one, the reduction stays whole: one kernel whose cores share rows reads them once.
"""

from __future__ import annotations

import math

from attrs import evolve, frozen

from evokernel_core.compiler.ops import SIZE
from evokernel_core.compiler.rewrites.merge import merged
from evokernel_core.compiler.rewrites.writer import GraphWriter, Rewrite, rewritten
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import ITEM_SIZE, Dim, TensorSpec, evaluate_dim
from evokernel_core.hardware.device import Device

_REACHED = 0.76
"""The share of its rate at which one core loads tiles of 8 KB, their latency included (fitted)."""
_UNEVEN = 1.1
"""The share of the cores' time that parts may take which are not equally many on every core."""
_LAUNCHES = 1.5
"""What the two kernels more cost, in launches: programs have most kernels in one (fitted)."""
_LEAST_PART = 4096
"""Bytes of a row of the first step."""
_SHORT_PART = 512
"""The same where the sizes leave nothing longer: several rows then share a tile."""


def split_reductions(task: KernelTask, device: Device) -> KernelTask:
    """The task with reductions of few long rows split; the same task where there are none."""
    if not any(node.op in _RULES for node in task.graph.nodes):
        return task
    result = rewritten(task, _RULES, device)
    return merged(result) if result is not task else task


@frozen
class _Split:
    """A reduction of ``x`` in two steps: of the dimensions ``inner`` first, then of ``outer``.

    ``dims`` are all of them, of the shape of ``x``, which may be a view of the node's operand.
    """

    writer: GraphWriter
    x: ValueRef
    outer: tuple[int, ...]
    inner: tuple[int, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(sorted((*self.outer, *self.inner)))

    def shape(self, dims: tuple[int, ...]) -> tuple[Dim, ...]:
        """That of ``x`` with these dimensions reduced and kept."""
        return tuple(1 if i in dims else dim for i, dim in enumerate(self.writer.shape(self.x)))

    def reduce(self, op: str, x: ValueRef, dims: tuple[int, ...], shape: tuple[Dim, ...]) -> ValueRef:
        return self.writer.call(f"aten.{op}", x, dims, True, shape=shape, dtype="float32")

    def both(self, op: str, x: ValueRef) -> ValueRef:
        """Both steps of a reduction whose partial results are reduced as the elements are."""
        part = self.reduce(op, x, self.inner, self.shape(self.inner))
        return self.reduce(op, part, self.outer, self.shape(self.dims))

    def length(self) -> ValueRef:
        """How many elements a row has, as a number."""
        shape = self.writer.shape(self.x)
        return size(self.writer, tuple(shape[dim] for dim in self.dims))

    def moments(self) -> tuple[ValueRef, ValueRef]:
        """Variance (over the length) and mean."""
        part, whole = self.shape(self.inner), self.shape(self.dims)
        specs = tuple(evolve(self.writer.spec(self.x), shape=part, dtype="float32") for _ in range(2))
        variance, mean = self.writer.call_many(
            "aten.var_mean.correction", self.x, self.inner, outputs=specs, correction=0, keepdim=True
        )
        middle = self.reduce("mean.dim", mean, self.outer, whole)
        apart = self.writer.call("aten.sub.Tensor", mean, middle, shape=part, dtype="float32")
        square = self.writer.call("aten.mul.Tensor", apart, apart, shape=part, dtype="float32")
        added = self.writer.call("aten.add.Tensor", variance, square, shape=part, dtype="float32")
        return self.reduce("mean.dim", added, self.outer, whole), middle


def size(writer: GraphWriter, dims: tuple[Dim, ...]) -> ValueRef:
    """The product of sizes as a number of the graph."""
    number = math.prod(dim for dim in dims if isinstance(dim, int))
    words = [dim if dim.isidentifier() else f"({dim})" for dim in dims if isinstance(dim, str)]
    argument: Arg = SymbolicInt(" * ".join([*words, str(number)])) if words else number
    return writer.call(SIZE.name, argument, shape=(), dtype="float32")


# -- when and where -------------------------------------------------------------------------------


def _planned(
    writer: GraphWriter, node: Node, x: ValueRef, dims: tuple[int, ...], passes: int
) -> _Split | None:
    """How to split a reduction, None where one kernel does as well. ``passes`` is how often a row is
    read where it does not stay in cache."""
    shape, device = writer.shape(x), writer.device
    lengths = [evaluate_dim(dim, writer.sizes) for dim in shape]
    width = ITEM_SIZE[writer.spec(x).dtype]
    row = math.prod(lengths[dim] for dim in dims) * width
    rows = math.prod(lengths) * width // max(row, 1)
    busy = min(rows, device.parallel)
    again = passes if row * busy > device.l2_bytes * 0.6 else 1
    one_core = _REACHED * device.worker_bytes_us
    all_cores = device.memory_bytes_us
    now = max(row * math.ceil(rows / device.parallel) / one_core, row * rows * again / all_cores)
    then = row * rows / all_cores + _LAUNCHES * device.launch_us
    is_kept = device.shares_rows and row <= device.l2_bytes // 2
    if now < 1.3 * then or (is_kept and _is_read_again(writer, node, x)):
        return None
    split: _Split | None = None
    short: _Split | None = None
    for count in range(1, len(dims)):
        outer, inner = dims[:count], dims[count:]
        parts = rows * math.prod(lengths[dim] for dim in outer)
        part = math.prod(lengths[dim] for dim in inner) * width
        if part >= _SHORT_PART and parts >= 2 * device.parallel:
            short = short or _Split(writer, x, outer, inner)
        if part >= _LEAST_PART and parts >= 2 * device.parallel:
            split = _Split(writer, x, outer, inner)
            stays = passes == 1 or part * device.parallel <= device.l2_bytes // 2  # a part that is read again
            if stays and math.ceil(parts / device.parallel) * device.parallel <= _UNEVEN * parts:
                return split
    return split or _cut(writer, x, dims, rows) or short


def _is_read_again(writer: GraphWriter, node: Node, x: ValueRef) -> bool:
    """Whether a node behind this reduction, or behind another of the same elements, reads them, or those that
    they are computed from, and no other reduction takes what comes of that."""
    if node.op == "aten.native_layer_norm.default":
        return True
    graph = writer.task.graph
    length = _length(writer.shape(x), writer)
    mine = next((other for other in graph.nodes if other.name == node.name), node)
    behind = {other.name for other in graph.nodes if other.args[:2] == mine.args[:2]}
    elements = set(mine.args[:1])
    for other in reversed(graph.nodes):
        if any(ValueRef(other.name, i) in elements for i in range(len(other.outputs))):
            elements |= {ref for ref in other.operands() if _length(graph.spec(ref).shape, writer) == length}
    result = False
    for other in graph.nodes:
        operands = set(other.operands())
        if other.name in behind or not any(ref.name in behind for ref in operands):
            continue
        result = result or bool(operands & elements)
        behind.add(other.name)
        lengths = (_length(graph.spec(ref).shape, writer) for ref in operands)
        if result and other.op in _RULES and length in lengths:
            return False  # which one kernel computes with what comes before it
    return result


def _length(shape: tuple[Dim, ...], writer: GraphWriter) -> int:
    return math.prod(evaluate_dim(dim, writer.sizes) for dim in shape)


def _cut(writer: GraphWriter, x: ValueRef, dims: tuple[int, ...], rows: int) -> _Split | None:
    """The last dimension of known length in two, so that there are enough parts."""
    shape, dim = writer.shape(x), dims[-1]
    length = shape[dim]
    if not isinstance(length, int) or len(dims) > 1:
        return None
    least = math.ceil(2 * writer.device.parallel / rows)
    width = ITEM_SIZE[writer.spec(x).dtype]
    fits = (n for n in range(least, 64 * least) if length % n == 0 and length // n * width >= _LEAST_PART)
    parts = next(fits, None)
    if parts is None:
        return None
    pieces = (*shape[:dim], parts, length // parts, *shape[dim + 1 :])
    sizes = tuple(piece if isinstance(piece, int) else SymbolicInt(piece) for piece in pieces)
    view = writer.call("aten.view.default", x, sizes, shape=pieces, dtype=writer.spec(x).dtype)
    return _Split(writer, view, (dim,), (dim + 1,))


def reduced_dims(node: Node, rank: int, position: int = 1) -> tuple[int, ...] | None:
    """The reduced dimensions, None where they are not literals."""
    value = node.args[position] if len(node.args) > position else dict(node.kwargs).get("dim")
    if value is None or value == () or not rank:
        return tuple(range(rank))
    value = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(dim, int) for dim in value):
        return None
    return tuple(sorted(literal(dim) % rank for dim in value))


def _split(node: Node, writer: GraphWriter, passes: int = 1, position: int = 1) -> _Split | None:
    x = node.args[0]
    if not isinstance(x, ValueRef) or writer.spec(x).dtype not in ("float32", "float16", "bfloat16"):
        return None
    rank = len(writer.shape(x))
    dims = reduced_dims(node, rank, position)
    return _planned(writer, node, x, dims, passes) if dims else None


def _shaped(node: Node, split: _Split, *values: ValueRef) -> tuple[ValueRef, ...]:
    """Values of kept dimensions in the shapes and types of the node's results."""
    return tuple(_as(split.writer, value, spec) for value, spec in zip(values, node.outputs, strict=False))


def _as(writer: GraphWriter, value: ValueRef, spec: TensorSpec) -> ValueRef:
    if spec.dtype != "float32":
        value = writer.call("aten._to_copy.default", value, shape=writer.shape(value), dtype=spec.dtype)
    if writer.shape(value) == spec.shape:
        return value
    sizes = tuple(dim if isinstance(dim, int) else SymbolicInt(dim) for dim in spec.shape)
    return writer.like(spec, "aten.view.default", value, sizes)


# -- rules ----------------------------------------------------------------------------------------


def _same(op: str) -> Rewrite:
    """A reduction that is its own combination of partial results."""

    def rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        if len(node.outputs) != 1 or node.outputs[0].dtype not in ("float32", "float16", "bfloat16"):
            return None
        split = _split(node, writer)
        return _shaped(node, split, split.both(op, split.x)) if split else None

    return rewrite


def _norm(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """The norms of order 1 and 2."""
    order = node.args[1] if len(node.args) > 1 else 2
    if order not in (1, 2):
        return None
    split = _split(node, writer, position=2)
    if split is None:
        return None
    shape, dtype = writer.shape(split.x), writer.spec(split.x).dtype
    if order == 1:
        terms = writer.call("aten.abs.default", split.x, shape=shape, dtype=dtype)
        return _shaped(node, split, split.both("sum.dim_IntList", terms))
    terms = writer.call("aten.mul.Tensor", split.x, split.x, shape=shape, dtype="float32")
    total = split.both("sum.dim_IntList", terms)
    root = writer.call("aten.sqrt.default", total, shape=writer.shape(total), dtype="float32")
    return _shaped(node, split, root)


def _variance(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Variance, standard deviation, or variance and mean."""
    split = _split(node, writer, passes=2)
    if split is None:
        return None
    given = dict(node.kwargs).get("correction", node.args[2] if len(node.args) > 2 else None)
    correction = 1 if given is None else given
    if not isinstance(correction, (int, float)):
        raise PlanError("{op} has a correction that is not a literal.", op=node.op)
    variance, mean = split.moments()
    if correction:
        whole = writer.shape(variance)
        length = split.length()
        less = writer.call("aten.sub.Tensor", length, correction, shape=(), dtype="float32")
        factor = writer.call("aten.div.Tensor", length, less, shape=(), dtype="float32")
        variance = writer.call("aten.mul.Tensor", variance, factor, shape=whole, dtype="float32")
    if node.op.startswith("aten.std"):
        variance = writer.call("aten.sqrt.default", variance, shape=writer.shape(variance), dtype="float32")
    return _shaped(node, split, variance, mean)


def _layer_norm(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    """Normalised rows, with the mean and the reciprocal of the deviation."""
    x, normalised = node.args[0], node.args[1]
    if not isinstance(x, ValueRef) or not isinstance(normalised, tuple):
        return None
    shape, dtype = writer.shape(x), writer.spec(x).dtype
    dims = tuple(range(len(shape) - len(normalised), len(shape)))
    split = _planned(writer, node, x, dims, 2)
    if split is None or split.x != x:
        return None
    variance, mean = split.moments()
    whole = writer.shape(mean)
    epsilon = node.args[4] if len(node.args) > 4 else 1e-5
    shifted = writer.call("aten.add.Tensor", variance, epsilon, shape=whole, dtype="float32")
    scale = writer.call("aten.rsqrt.default", shifted, shape=whole, dtype="float32")
    apart = writer.call("aten.sub.Tensor", x, mean, shape=shape, dtype="float32")
    value = writer.call("aten.mul.Tensor", apart, scale, shape=shape, dtype="float32")
    for op, operand in zip(("mul", "add"), node.args[2:4], strict=False):
        if isinstance(operand, ValueRef):
            value = writer.call(f"aten.{op}.Tensor", value, operand, shape=shape, dtype="float32")
    if dtype != "float32":
        value = writer.call("aten._to_copy.default", value, shape=shape, dtype=dtype)
    return value, *_shaped(evolve(node, outputs=node.outputs[1:]), split, mean, scale)


_RULES: dict[str, Rewrite] = {
    "aten.sum.dim_IntList": _same("sum.dim_IntList"),
    "aten.sum.default": _same("sum.dim_IntList"),
    "aten.mean.dim": _same("mean.dim"),
    "aten.mean.default": _same("mean.dim"),
    "aten.amax.default": _same("amax.default"),
    "aten.amin.default": _same("amin.default"),
    "aten.max.default": _same("amax.default"),
    "aten.min.default": _same("amin.default"),
    "aten.linalg_vector_norm.default": _norm,
    "aten.var.correction": _variance,
    "aten.std.correction": _variance,
    "aten.var_mean.correction": _variance,
    "aten.native_layer_norm.default": _layer_norm,
}
