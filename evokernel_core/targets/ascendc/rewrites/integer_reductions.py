"""Reductions of integers, whole and running, as those of rows; what float32 cannot hold stays exact."""

from __future__ import annotations

from evokernel_core.compiler.ops import REDUCE_INTEGERS, REDUCED_INTEGERS, SCAN_INTEGERS
from evokernel_core.compiler.rewrites.elementwise import cast
from evokernel_core.compiler.rewrites.picking import argument, numbers, others_are_read, view
from evokernel_core.compiler.rewrites.running_places import running_places
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.sizes import extent, product, times
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Node, ValueRef, literal
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.legalization.wide import WIDTHS

_FOLDS = {"sum": "sum", "prod": "prod", "amax": "max", "amin": "min"}
_PLACES = {"argmax": "max", "argmin": "min"}
_BOTH = {"max": "max", "min": "min"}
_EXTREMES = {"cummax": "max", "cummin": "min"}
_RUNNING = {"cumsum": "sum", "cumprod": "prod", **_EXTREMES}
_PACKETS = frozenset({*_FOLDS, *_PLACES, *_BOTH, *_RUNNING})
_COUNTED = 1 << 22
_OF_TWO = frozenset({"aten.max.other", "aten.min.other"})


def integer_reductions(task: KernelTask, chip: Chip) -> KernelTask:
    """The task with every reduction of integers written as one of rows."""
    graph = task.graph
    ops = {node.op for node in graph.nodes if node.op.split(".")[1] in _PACKETS} - _OF_TWO
    return rewritten(task, dict.fromkeys(ops, _rewrite), chip) if ops else task


def _rewrite(node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
    x, packet = node.args[0], node.op.split(".")[1]
    if not node.op.startswith("aten.") or not isinstance(x, ValueRef):
        return None
    dtype, result = writer.spec(x).dtype, node.outputs[0].dtype
    if dtype == "bool" and packet in _RUNNING.keys() - _EXTREMES.keys() and result in WIDTHS:
        return (_running(node, writer, x, _RUNNING[packet]),)
    if dtype == "bool" and packet == "sum" and result in WIDTHS and _is_long(node, writer, x):
        dtype, x = result, cast(writer, x, result)
    if dtype not in WIDTHS or (packet in (*_FOLDS, *_RUNNING) and result not in WIDTHS):
        return None
    if packet in _RUNNING:
        value = _running(node, writer, x, _RUNNING[packet])
        return (value,) if packet not in _EXTREMES else (value, _places(node, writer, x, value))
    if packet in _FOLDS:
        rows, shape = _rows(node, writer, _converted(writer, x, result))
        return (_shaped(node, writer, _fold(writer, rows, _FOLDS[packet]), shape),)
    kind = (_PLACES | _BOTH)[packet]
    rows, shape = _rows(node, writer, _converted(writer, x, dtype))
    best = _fold(writer, rows, kind)
    members = [_shaped(node, writer, best, shape)] if packet in _BOTH else []
    if packet in _PLACES or len(node.outputs) > 1:
        members.append(_shaped(node, writer, _place(writer, rows, best), shape, len(members)))
    return tuple(members)


def _is_long(node: Node, writer: GraphWriter, x: ValueRef) -> bool:
    """Whether float32, where shorter sums of truth values are counted, may not hold their number."""
    shape = writer.shape(x)
    gone = product(extent(shape[dim]) for dim in _dims(node, len(shape))) if shape else extent(1)
    return gone.evaluate(writer.sizes) > _COUNTED


def _converted(writer: GraphWriter, x: ValueRef, dtype: str) -> ValueRef:
    """The elements in the type in which they are reduced: shorter integers in four bytes."""
    wide = dtype if dtype in REDUCED_INTEGERS else "int32"
    return cast(writer, x, wide)


def _dims(node: Node, rank: int) -> list[int]:
    """The dimensions that are reduced; all of them where none is named."""
    dims = argument(node, 1, "dim")
    if dims is None or dims == ():
        return list(range(rank))
    result = dims if isinstance(dims, tuple) else (dims,)
    if not all(isinstance(dim, int) for dim in result):
        raise PlanError("{op} reduces a dimension that is not a literal.", op=node.op)
    return sorted({literal(dim) % max(rank, 1) for dim in result})


def _rows(node: Node, writer: GraphWriter, x: ValueRef) -> tuple[ValueRef, tuple[Dim, ...]]:
    """The elements as rows to be reduced, and the shape of what stays."""
    shape = writer.shape(x)
    gone = _dims(node, len(shape)) if shape else []
    kept = [dim for dim in range(len(shape)) if dim not in gone]
    rows = _permuted(writer, x, (*kept, *gone))
    stays = tuple(shape[dim] for dim in kept)
    return view(writer, rows, (times(stays), times([shape[dim] for dim in gone]))), stays


def _permuted(writer: GraphWriter, x: ValueRef, order: tuple[int, ...]) -> ValueRef:
    """Dimensions of one element may change places without a copy."""
    shape = writer.shape(x)
    long = [dim for dim in order if not extent(shape[dim]).is_one]
    turned = tuple(shape[dim] for dim in order)
    if long == sorted(long):
        return view(writer, x, turned)
    return writer.call("aten.permute.default", x, order, shape=turned, dtype=writer.spec(x).dtype)


def _fold(writer: GraphWriter, rows: ValueRef, kind: str) -> ValueRef:
    count, _ = writer.shape(rows)
    return writer.call(REDUCE_INTEGERS.name, rows, kind, shape=(count,), dtype=writer.spec(rows).dtype)


def _shaped(
    node: Node, writer: GraphWriter, value_ref: ValueRef, stays: tuple[Dim, ...], index: int = 0
) -> ValueRef:
    """A reduced value as the node's result."""
    spec = node.outputs[index]
    return cast(writer, view(writer, value_ref, spec.shape), spec.dtype)


def _place(writer: GraphWriter, rows: ValueRef, best: ValueRef) -> ValueRef:
    """The first place in each row of its best element."""
    count, columns = writer.shape(rows)
    wanted = view(writer, best, (count, 1))
    shape: tuple[Dim, ...] = (count, columns)
    result = writer.call("aten.eq.Tensor", rows, wanted, shape=shape, dtype="bool")
    places = view(writer, numbers(writer, columns, "int64"), (1, columns))
    behind = (1 << 62) - 1
    chosen = writer.call("aten.where.ScalarOther", result, places, behind, shape=shape, dtype="int64")
    return _fold(writer, chosen, "min")


def _places(node: Node, writer: GraphWriter, x: ValueRef, value: ValueRef) -> ValueRef:
    """Those of a running extreme, where something reads them."""
    if not others_are_read(node, writer):
        return ValueRef(value.name, 1)
    return running_places(writer, x, value, literal(node.args[1]))


def _running(node: Node, writer: GraphWriter, x: ValueRef, kind: str) -> ValueRef:
    spec, dim = node.outputs[0], node.args[1]
    wide = _converted(writer, x, spec.dtype)
    shape = writer.shape(wide)
    if not isinstance(dim, int):
        raise PlanError("{op} runs along a dimension that is not a literal.", op=node.op)
    if not shape:
        return cast(writer, wide, spec.dtype)
    order = (*(other for other in range(len(shape)) if other != dim % len(shape)), dim % len(shape))
    rows = _permuted(writer, wide, order)
    result = writer.call(
        SCAN_INTEGERS.name, rows, kind, shape=writer.shape(rows), dtype=writer.spec(rows).dtype
    )
    back = tuple(order.index(other) for other in range(len(shape)))
    return cast(writer, _permuted(writer, result, back), spec.dtype)
