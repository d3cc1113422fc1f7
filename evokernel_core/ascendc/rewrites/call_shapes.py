"""What shapes the operations of ATen take and give, at the sizes of the user's file.

A task may come from elsewhere: what rewrites and families read of a node, they may rely on once every call
fits these rules. An operation without a rule of its own works element by element on operands that are
broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from attrs import frozen

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Arg, Graph, Node, SymbolicInt, ValueRef
from evokernel_core.domain.operations import Operation, operations
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec, evaluate_dim

Shape = tuple[int, ...]
Shapes = Sequence[Shape] | None
"""The shapes of a node's results, None where they are not known."""


class _Unfit(Exception):
    """A call that is none: its operands do not go together. Its text may say what is wrong with it."""


def _need(condition: bool) -> None:
    if not condition:
        raise _Unfit


@frozen
class _Call:
    """A node with numbers for sizes."""

    node: Node
    operation: Operation
    shapes: Mapping[ValueRef, Shape]
    masks: frozenset[ValueRef]
    sizes: Mapping[str, int]

    def given(self, name: str) -> Arg:
        """An argument by its parameter's name, None where the call has none."""
        for parameter, value in zip(self.operation.positional, self.node.args, strict=False):
            if parameter.name == name:
                return value
        return dict(self.node.kwargs).get(name)

    def at(self, place: int) -> Arg:
        return self.node.args[place] if place < len(self.node.args) else None

    def shape(self, place: int = 0) -> Shape:
        """The shape of an operand; a number has none."""
        value = self.at(place)
        return self.shapes[value] if isinstance(value, ValueRef) else ()

    def listed(self, place: int) -> list[Shape]:
        """The shapes of a list of operands."""
        value = self.at(place)
        _need(isinstance(value, tuple))
        assert isinstance(value, tuple)
        return [self.shapes[item] if isinstance(item, ValueRef) else () for item in value]

    def number(self, place: int, default: int) -> int:
        return self.whole(self.at(place), default)

    def whole(self, value: Arg, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, SymbolicInt | str):
            return evaluate_dim(value if isinstance(value, str) else value.expression, self.sizes)
        _need(isinstance(value, int))
        assert isinstance(value, int)
        return value

    def numbers(self, place: int, default: Sequence[int] = ()) -> Shape:
        """A list of integers."""
        value = self.at(place)
        if value is None:
            return tuple(default)
        items = value if isinstance(value, tuple) else (value,)
        return tuple(self.whole(item, 0) for item in items)

    def each(self, place: int, rank: int, default: int) -> Shape:
        """An integer for each dimension, of which one stands for all."""
        found = self.numbers(place) or (default,)
        found = found * rank if len(found) == 1 else found
        _need(len(found) == rank)
        return found

    def dim(self, place: int, rank: int, default: int = 0) -> int:
        return _inside(self.number(place, default), rank)


Rule = Callable[[_Call], Shapes]


def _inside(dim: int, rank: int) -> int:
    if not -max(1, rank) <= dim < max(1, rank):
        raise _Unfit(f"names dimension {dim} of a tensor that has {rank}")
    return dim % max(1, rank)


def check_calls(task: KernelTask) -> None:
    """Raises PlanError for the first node whose operands do not go together, or do not give what it says it
    gives, or have no elements."""
    specs = dict(_values(task))
    shapes = {ref: spec.sizes(task.sizes) for ref, spec in specs.items()}
    masks = frozenset(ref for ref, spec in specs.items() if spec.dtype in ("bool", "uint8"))
    _check_elements(task.graph, shapes)
    for node in task.graph.nodes:
        operation = operations().get(node.op)
        if operation is not None:
            _check(_Call(node, operation, shapes, masks, task.sizes))


def _values(task: KernelTask) -> Iterator[tuple[ValueRef, TensorSpec]]:
    for item in task.graph.inputs:
        yield ValueRef(item.name), item.spec
    for node in task.graph.nodes:
        yield from ((ValueRef(node.name, index), spec) for index, spec in enumerate(node.outputs))


def _check_elements(graph: Graph, shapes: Mapping[ValueRef, Shape]) -> None:
    """A result that nobody reads may be empty, as a bag's own figures are where no gradient is asked for."""
    ops = {node.name: node.op for node in graph.nodes}
    read = [(ref, node.op) for node in graph.nodes for ref in node.operands()]
    for ref, op in [*read, *((ref, ops.get(ref.name, "The task")) for ref in graph.outputs)]:
        if 0 in shapes[ref]:
            raise PlanError(
                f"{op} of tensors without elements is not covered: {ref.name} has the shape "
                f"{list(shapes[ref])}."
            )


def _check(call: _Call) -> None:
    node = call.node
    try:
        expected = _rule(node.op, call.operation)(call)
    except (_Unfit, ValueError, ZeroDivisionError, IndexError) as error:
        shapes = ", ".join(str(list(call.shapes[ref])) for ref in node.operands())
        reason = str(error) if isinstance(error, _Unfit) and error.args else ""
        reason = reason or f"does not take tensors of the shapes {shapes} with its arguments"
        raise PlanError(f"{node.op} {reason}.") from error
    if expected is None:
        return
    given = [call.shapes[ValueRef(node.name, index)] for index in range(len(node.outputs))]
    least = 2 if _named_in(_PAIRS, node.op) else len(expected)
    if len(given) < least:
        raise PlanError(f"{node.op} gives {least} results, not {len(given)}.")
    for found, shape in zip(given, expected, strict=False):
        if tuple(found) != tuple(shape):
            raise PlanError(f"{node.op} gives the shape {list(shape)}, not {list(found)}.")


def _named_in(table: Container[str], op: str) -> str:
    """The operation's name in a table, with its overload or without it; "" where it is not there."""
    name = op.removeprefix("aten.")
    return next((key for key in (name, name.split(".", maxsplit=1)[0]) if key in table), "")


def _rule(op: str, operation: Operation) -> Rule:
    key = _named_in(_RULES, op)
    if key:
        return _RULES[key]
    return _reduced if operation.parameter("keepdim") is not None else _elementwise


# -- element by element, and along dimensions -----------------------------------------------------


def _broadcast(shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes), default=0)
    found = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            _need(size in (1, found[axis]) or found[axis] == 1)
            found[axis] = max(found[axis], size)
    return tuple(found)


def _elementwise(call: _Call) -> Shapes:
    shape = _broadcast([call.shapes[ref] for ref in call.node.operands()])
    return [shape] * len(call.node.outputs)


def _reduced(call: _Call) -> Shapes:
    shape, dims = call.shape(), call.given("dim")
    keep, rank = bool(call.given("keepdim")), len(shape)
    listed = dims if isinstance(dims, tuple) else () if dims is None else (dims,)
    if not listed and call.operation.name == "aten.kthvalue.default":
        listed = (-1,)
    axes = [_inside(call.whole(dim, 0), rank) for dim in listed]
    _need(len(set(axes)) == len(axes))
    over = set(axes or range(rank))
    kept = tuple(1 if axis in over else size for axis, size in enumerate(shape))
    result = kept if keep else tuple(size for axis, size in enumerate(shape) if axis not in over)
    return [result] * len(call.node.outputs)


def _counted(call: _Call) -> Shapes:
    return [(call.number(1, 100),)]


def _number(call: _Call) -> Shapes:
    return [()]


def _same(call: _Call) -> Shapes:
    return [call.shape()] * len(call.node.outputs)


def _along(call: _Call) -> Shapes:
    """A result as large as the operand, along a dimension that it has."""
    _inside(call.whole(call.given("dim"), -1), len(call.shape()))
    return _same(call)


def _rolled(call: _Call) -> Shapes:
    shifts, dims = call.numbers(1), call.numbers(2)
    _need(len(shifts) == (len(dims) or 1))
    return _flipped(call, dims)


def _flipped(call: _Call, dims: Shape | None = None) -> Shapes:
    axes = [_inside(dim, len(call.shape())) for dim in (call.numbers(1) if dims is None else dims)]
    _need(dims is not None or len(set(axes)) == len(axes))
    return _same(call)


def _triangle(call: _Call) -> Shapes:
    _need(len(call.shape()) >= 2)
    return _same(call)


# -- views ----------------------------------------------------------------------------------------


def _viewed(call: _Call) -> Shapes:
    """As many elements as before; which shape it is, the result says."""
    _need(math.prod(call.shape()) == math.prod(call.shapes[ValueRef(call.node.name)]))
    return None


def _permuted(call: _Call) -> Shapes:
    shape = call.shape()
    order = [_inside(dim, len(shape)) for dim in call.numbers(1)]
    _need(sorted(order) == list(range(len(shape))))
    return [tuple(shape[axis] for axis in order)]


def _transposed(call: _Call) -> Shapes:
    found, rank = list(call.shape()), len(call.shape())
    first, second = call.dim(1, rank), call.dim(2, rank)
    if rank:
        found[first], found[second] = found[second], found[first]
    return [tuple(found)]


def _t(call: _Call) -> Shapes:
    _need(len(call.shape()) <= 2)
    return [call.shape()[::-1]]


def _expanded(call: _Call) -> Shapes:
    shape, wanted = call.shape(), call.numbers(1)
    _need(len(wanted) >= len(shape))
    padded = (*[1] * (len(wanted) - len(shape)), *shape)
    found = tuple(old if size == -1 else size for old, size in zip(padded, wanted, strict=True))
    _need(all(old in (1, size) for old, size in zip(padded, found, strict=True)))
    return [found]


def _squeezed(call: _Call) -> Shapes:
    shape = call.shape()
    named = call.given("dim")
    dims = [_inside(dim, len(shape)) for dim in call.numbers(1)] if named is not None else range(len(shape))
    gone = {axis for axis in dims if shape and shape[axis] == 1}
    return [tuple(size for axis, size in enumerate(shape) if axis not in gone)]


def _unsqueezed(call: _Call) -> Shapes:
    shape = call.shape()
    at = call.dim(1, len(shape) + 1)
    return [(*shape[:at], 1, *shape[at:])]


def _selected(call: _Call) -> Shapes:
    shape = call.shape()
    dim, place = call.dim(1, len(shape)), call.number(2, 0)
    _need(bool(shape) and -shape[dim] <= place < shape[dim])
    return [(*shape[:dim], *shape[dim + 1 :])]


def _length(call: _Call, dim: int, first: int) -> int:
    """Elements of a slice whose bounds and step are the arguments from ``first`` on."""
    bounds = [None if call.at(place) is None else call.number(place, 0) for place in (first, first + 1)]
    step = call.number(first + 2, 1)
    _need(step > 0)
    return len(range(call.shape()[dim])[bounds[0] : bounds[1] : step])


def _sliced(call: _Call) -> Shapes:
    shape = call.shape()
    dim = call.dim(1, len(shape))
    return [(*shape[:dim], _length(call, dim, 2), *shape[dim + 1 :])]


def _slice_replaced(call: _Call) -> Shapes:
    shape = call.shape()
    dim = call.dim(2, len(shape))
    _need(call.shape(1) == (*shape[:dim], _length(call, dim, 3), *shape[dim + 1 :]))
    return _same(call)


def _place_replaced(call: _Call) -> Shapes:
    shape = call.shape()
    dim, place = call.dim(2, len(shape)), call.number(3, 0)
    _need(call.shape(1) == (*shape[:dim], *shape[dim + 1 :]) and -shape[dim] <= place < shape[dim])
    return _same(call)


def _diagonal(call: _Call) -> Shapes:
    shape, offset = call.shape(), call.number(1, 0)
    first, second = call.dim(2, len(shape)), call.dim(3, len(shape), 1)
    _need(first != second)
    rows, columns = shape[first] - max(-offset, 0), shape[second] - max(offset, 0)
    left = (size for axis, size in enumerate(shape) if axis not in (first, second))
    return [(*left, max(0, min(rows, columns)))]


def _unfolded(call: _Call) -> Shapes:
    shape = call.shape()
    dim, size, step = call.dim(1, len(shape)), call.number(2, 0), call.number(3, 1)
    _need(bool(shape) and step > 0 and 0 <= size <= shape[dim])
    return [(*shape[:dim], (shape[dim] - size) // step + 1, *shape[dim + 1 :], size)]


def _unbound(call: _Call) -> Shapes:
    shape = call.shape()
    dim = call.dim(1, len(shape))
    _need(shape[dim] == len(call.node.outputs))
    return [(*shape[:dim], *shape[dim + 1 :])] * shape[dim]


def _split(call: _Call) -> Shapes:
    shape = call.shape()
    dim = call.dim(2, len(shape))
    if call.operation.name == "aten.split.Tensor":
        each = call.number(1, 0)
        parts = [min(each, shape[dim] - first) for first in range(0, shape[dim], each)]
    else:
        parts = list(call.numbers(1))
    _need(sum(parts) == shape[dim] and len(parts) == len(call.node.outputs) and min(parts) >= 0)
    return [(*shape[:dim], part, *shape[dim + 1 :]) for part in parts]


def _flattened(call: _Call) -> Shapes:
    shape = call.shape()
    first, last = call.dim(1, len(shape)), call.dim(2, len(shape), -1)
    _need(first <= last)
    return [(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])]


def _unflattened(call: _Call) -> Shapes:
    shape, sizes = call.shape(), call.numbers(2)
    dim = call.dim(1, len(shape))
    known = math.prod(size for size in sizes if size != -1)
    found = tuple(shape[dim] // known if size == -1 else size for size in sizes)
    _need(bool(found) and math.prod(found) == shape[dim])
    return [(*shape[:dim], *found, *shape[dim + 1 :])]


def _repeated(call: _Call) -> Shapes:
    shape, times = call.shape(), call.numbers(1)
    _need(len(times) >= len(shape) and all(count >= 0 for count in times))
    padded = (*[1] * (len(times) - len(shape)), *shape)
    return [tuple(count * size for count, size in zip(times, padded, strict=True))]


def _strided(call: _Call) -> Shapes:
    _need(len(call.numbers(1)) == len(call.numbers(2)))
    return [call.numbers(1)]


def _joined(call: _Call) -> Shapes:
    parts = call.listed(0)
    rank = len(parts[0])
    dim = call.dim(1, rank)
    _need(rank > 0 and all(len(part) == rank for part in parts))
    others = {(*part[:dim], *part[dim + 1 :]) for part in parts}
    _need(len(others) == 1)
    return [(*parts[0][:dim], sum(part[dim] for part in parts), *parts[0][dim + 1 :])]


def _stacked(call: _Call) -> Shapes:
    parts = call.listed(0)
    at = call.dim(1, len(parts[0]) + 1)
    _need(len(set(parts)) == 1)
    return [(*parts[0][:at], len(parts), *parts[0][at:])]


def _padded(dims: int, reaches: bool) -> Rule:
    """Pads of the last dimensions; those that mirror reach no further than the operand does."""

    def rule(call: _Call) -> Shapes:
        found, pads = list(call.shape()), call.numbers(1)
        _need(len(pads) % 2 == 0 and len(pads) // 2 <= len(found))
        _need(not dims or (len(pads) == 2 * dims and len(found) in (dims + 1, dims + 2)))
        for place in range(0, len(pads), 2):
            axis = -1 - place // 2
            _need(not reaches or max(pads[place : place + 2]) < found[axis])
            _need(-min(pads[place], 0) - min(pads[place + 1], 0) <= found[axis])
            found[axis] += pads[place] + pads[place + 1]
        return [tuple(found)]

    return rule


def _made(call: _Call) -> Shapes:
    return [call.numbers(0)]


def _unknown(call: _Call) -> Shapes:
    return None


# -- products, windows, images --------------------------------------------------------------------


def _mm(call: _Call) -> Shapes:
    (m, k), (depth, n) = call.shape(), call.shape(1)
    _need(k == depth)
    return [(m, n)]


def _bmm(call: _Call) -> Shapes:
    (b, m, k), (batch, depth, n) = call.shape(), call.shape(1)
    _need((b, k) == (batch, depth))
    return [(b, m, n)]


def _linear(call: _Call) -> Shapes:
    x, weight, bias = call.shape(), call.shape(1), call.shape(2)
    _need(len(weight) in (1, 2) and bool(x) and x[-1] == weight[-1])
    result = (*x[:-1], *weight[:-1])
    _broadcast([result, bias])
    _need(len(bias) <= 1)
    return [result]


def _convolved(call: _Call) -> Shapes:
    x, weight, rank = call.shape(), call.shape(1), len(call.shape(1)) - 2
    _need(rank in (1, 2, 3) and len(x) == rank + 2)
    stride, padding, dilation = call.each(3, rank, 1), call.each(4, rank, 0), call.each(5, rank, 1)
    extra, groups, turned = call.each(7, rank, 0), call.number(8, 1), bool(call.at(6))
    _need(min(stride) > 0 and min(dilation) > 0 and min(padding) >= 0 and groups > 0)
    _need(x[1] == (weight[0] if turned else weight[1] * groups))
    _need(weight[0] % groups == 0)
    results = weight[1] * groups if turned else weight[0]
    _need(call.at(2) is None or call.shape(2) == (results,))
    found = []
    for axis in range(rank):
        size, span = x[2 + axis], dilation[axis] * (weight[2 + axis] - 1) + 1
        if turned:
            _need(0 <= extra[axis] < max(stride[axis], dilation[axis]))
            found.append((size - 1) * stride[axis] - 2 * padding[axis] + span + extra[axis])
        else:
            found.append((size + 2 * padding[axis] - span) // stride[axis] + 1)
    _need(min(found) > 0)
    return [(x[0], results, *found)]


def _pooled(rank: int, dilates: bool) -> Rule:
    def rule(call: _Call) -> Shapes:
        shape = call.shape()
        _need(len(shape) in (rank + 1, rank + 2))
        taps = call.each(1, rank, 1)
        stride = call.each(2, rank, 1) if call.numbers(2) else taps
        padding = call.each(3, rank, 0)
        dilation = call.each(4, rank, 1) if dilates else (1,) * rank
        up = bool(call.at(5 if dilates else 4))
        _need(min(taps) > 0 and min(stride) > 0 and min(dilation) > 0)
        found = []
        for axis, size in enumerate(shape[-rank:]):
            _need(0 <= padding[axis] <= taps[axis] // 2)
            found.append(_windows(size, taps[axis], stride[axis], padding[axis], dilation[axis], up))
        _need(min(found) > 0)
        return [(*shape[:-rank], *found)] * len(call.node.outputs)

    return rule


def _windows(size: int, taps: int, stride: int, padding: int, dilation: int, up: bool) -> int:
    room = size + 2 * padding - dilation * (taps - 1) - 1
    count = (room + (stride - 1 if up else 0)) // stride + 1
    return count - (up and (count - 1) * stride >= size + padding)


def _resized(rank: int, batched: bool) -> Rule:
    def rule(call: _Call) -> Shapes:
        shape, wanted = call.shape(), call.numbers(1)
        _need(len(wanted) == rank and min(wanted) > 0)
        _need(len(shape) == rank + 2 or (not batched and len(shape) == rank + 1))
        return [(*shape[:-rank], *wanted)] * len(call.node.outputs)

    return rule


def _sampled(call: _Call) -> Shapes:
    x, grid = call.shape(), call.shape(1)
    _need(len(x) == len(grid) and grid[-1] == len(x) - 2 and x[0] == grid[0])
    return [(*x[:2], *grid[1:-1])]


def _grid(call: _Call) -> Shapes:
    theta, size = call.shape(), call.numbers(1)
    _need(len(size) in (4, 5) and theta == (size[0], len(size) - 2, len(size) - 1))
    return [(size[0], *size[2:], len(size) - 2)]


# -- indices --------------------------------------------------------------------------------------


def _gathered(call: _Call) -> Shapes:
    shape, chosen = call.shape(), call.shape(2)
    dim = call.dim(1, len(shape))
    _need(max(1, len(shape)) == max(1, len(chosen)))
    _need(all(axis == dim or size <= shape[axis] for axis, size in enumerate(chosen) if shape))
    return [chosen]


def _scattered(call: _Call) -> Shapes:
    shape, chosen = call.shape(), call.shape(2)
    dim = call.dim(1, len(shape))
    _need(max(1, len(shape)) == max(1, len(chosen)))
    _need(all(axis == dim or size <= shape[axis] for axis, size in enumerate(chosen) if shape))
    if isinstance(call.at(3), ValueRef) and ".value" not in call.operation.name:
        source = call.shape(3)
        _need(max(1, len(source)) == max(1, len(chosen)))
        _need(all(size <= have for size, have in zip(chosen, source, strict=False)))
    return _same(call)


def _index_selected(call: _Call) -> Shapes:
    shape, chosen = call.shape(), call.shape(2)
    _need(len(chosen) <= 1)
    dim = call.dim(1, len(shape))
    return [(*shape[:dim], math.prod(chosen), *shape[dim + 1 :])] if shape else [()]


def _embedded(call: _Call) -> Shapes:
    rows = call.shape()
    _need(len(rows) == 2)
    return [(*call.shape(1), rows[1])]


def _embedding_gradient(call: _Call) -> Shapes:
    gradient, chosen = call.shape(), call.shape(1)
    _need(gradient[:-1] == chosen)
    return [(call.number(2, 0), gradient[-1])]


def _bagged(call: _Call) -> Shapes:
    rows, bags = call.shape(), call.shape(2)
    _need((len(rows), len(call.shape(1)), len(bags)) == (2, 1, 1))
    _need(call.at(6) is None or call.shape(6) == call.shape(1))
    return [(bags[0] - bool(call.at(7)), rows[1])]


def _indexed(call: _Call) -> Shapes:
    shape, given = call.shape(), call.at(1)
    _need(isinstance(given, tuple) and len(given) <= len(shape))
    assert isinstance(given, tuple)
    if any(item is not None and (not isinstance(item, ValueRef) or _is_mask(call, item)) for item in given):
        return None  # as many as are set, or places that are numbers
    places = [axis for axis, item in enumerate(given) if item is not None]
    chosen = _broadcast([call.shapes[item] if isinstance(item, ValueRef) else () for item in given])
    if not places:
        return [shape]
    at = places[0] if places == list(range(places[0], places[-1] + 1)) else 0
    left = [size for axis, size in enumerate(shape) if axis not in places]
    return [(*left[:at], *chosen, *left[at:])]


def _is_mask(call: _Call, item: ValueRef) -> bool:
    return call.node.op != "aten._unsafe_index.Tensor" and item in call.masks


def _index_put(call: _Call) -> Shapes:
    found = _indexed(call)
    if found is not None:
        _need(_broadcast([found[0], call.shape(2)]) == tuple(found[0]))
    return _same(call)


def _searched(call: _Call) -> Shapes:
    edges, shape = call.shape(), call.shape(1)
    _need(len(edges) == 1 or edges[:-1] == shape[:-1])
    return [shape]


def _bucketized(call: _Call) -> Shapes:
    _need(len(call.shape(1)) == 1)
    return [call.shape()]


def _top(call: _Call) -> Shapes:
    shape, count = call.shape(), call.number(1, 0)
    dim = call.dim(2, len(shape), -1)
    _need(0 <= count <= (shape[dim] if shape else 1))
    if not shape:
        return [(), ()]
    return [(*shape[:dim], count, *shape[dim + 1 :])] * 2


def _kth(call: _Call) -> Shapes:
    shape = call.shape()
    _need(1 <= call.number(1, 1) <= (shape[call.dim(2, len(shape), -1)] if shape else 1))
    return _reduced(call)


# -- whole layers ---------------------------------------------------------------------------------


def _distances(call: _Call) -> Shapes:
    x, y = call.shape(), call.shape(1)
    _need(len(x) >= 2 and len(y) >= 2 and x[-1] == y[-1])
    return [(*_broadcast([x[:-2], y[:-2]]), x[-2], y[-2])]


def _crossed(call: _Call) -> Shapes:
    x, y = call.shape(), call.shape(1)
    _need(len(x) == len(y))
    found = _broadcast([x, y])
    dim = _inside(call.whole(call.given("dim"), -1), len(found))
    _need(bool(x) and x[dim] == y[dim] == 3)
    return [found]


def _attended(call: _Call) -> Shapes:
    query, key, value = (call.shape(place) for place in range(3))
    _need(min(map(len, (query, key, value))) >= 2)
    _need(query[-1] == key[-1] and key[-2] == value[-2])
    groups = [shape[:-2] for shape in (key, value)]
    if len(query) > 2 and all(group and group[-1] and query[-3] % group[-1] == 0 for group in groups):
        groups = [(*group[:-1], query[-3]) for group in groups]  # heads that several queries share
    lead = _broadcast([query[:-2], *groups])
    if isinstance(call.at(3), ValueRef):
        whole = (*lead, query[-2], key[-2])
        _need(_broadcast([call.shape(3), whole]) == whole)
    return [(*lead, query[-2], value[-1])]


def _layer_normed(call: _Call) -> Shapes:
    shape, normed = call.shape(), call.numbers(1)
    _need(bool(normed) and shape[-len(normed) :] == normed)
    for place in (2, 3):
        _need(call.at(place) is None or call.shape(place) == normed)
    return [shape]


def _losses(call: _Call) -> Shapes:
    x, target = call.shape(), call.shape(1)
    _need((*x[:-1],) == target if len(x) < 3 else (x[0], *x[2:]) == target)
    classes = x[-1] if len(x) < 3 else x[1]
    _need(1 <= len(x) <= 4 and (call.at(2) is None or call.shape(2) == (classes,)))
    return [target if call.number(3, 1) == 0 else (), ()]


def _recurrent(gates: int) -> Rule:
    def rule(call: _Call) -> Shapes:
        x, layers = call.shape(), call.number(4, 1)
        ways, first = 1 + bool(call.at(7)), bool(call.at(8))
        states = call.listed(1) if gates == 4 else [call.shape(1)]
        _need(len(x) == 3 and layers > 0 and len(states) == (2 if gates == 4 else 1))
        steps, batch, width = (x[1], x[0], x[2]) if first else x
        hidden = states[0][-1]
        _need(all(state == (layers * ways, batch, hidden) for state in states))
        biases = [(gates * hidden,)] * 2 if call.at(3) else []
        wanted: list[Shape] = []
        for layer in range(layers):
            read = hidden * ways if layer else width
            wanted += [(gates * hidden, read), (gates * hidden, hidden), *biases] * ways
        _need(call.listed(2) == wanted)
        result = (batch, steps, hidden * ways) if first else (steps, batch, hidden * ways)
        return [result, *states]

    return rule


_PAIRS = frozenset({"sort", "topk", "kthvalue", "max.dim", "min.dim", "cummax", "cummin", "var_mean",
                    "nll_loss_forward", "nll_loss2d_forward"})  # fmt: skip
"""Operations of two results."""
_RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("sum.default", "mean.default", "prod.default", "max.default", "min.default"), _number),
    **dict.fromkeys(("any.default", "all.default", "median"), _number),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), _along),
    **dict.fromkeys(("sort", "_softmax", "_log_softmax"), _along),
    **dict.fromkeys(("tril", "triu"), _triangle),
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _viewed),
    **dict.fromkeys(("expand", "broadcast_to"), _expanded),
    **dict.fromkeys(("full", "zeros", "ones"), _made),
    **dict.fromkeys(("arange", "view_as_real", "view_as_complex"), _unknown),
    **{f"reflection_pad{rank}d": _padded(rank, reaches=True) for rank in (1, 2, 3)},
    **{f"replication_pad{rank}d": _padded(rank, reaches=False) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": _pooled(rank, dilates=False) for rank in (1, 2, 3)},
    **{f"max_pool{rank}d_with_indices": _pooled(rank, dilates=True) for rank in (2, 3)},
    **{f"_adaptive_avg_pool{rank}d": _resized(rank, batched=False) for rank in (2, 3)},
    **{f"adaptive_max_pool{rank}d": _resized(rank, batched=False) for rank in (2, 3)},
    **dict.fromkeys(("upsample_bilinear2d", "upsample_bicubic2d"), _resized(2, batched=True)),
    **dict.fromkeys(("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"), _resized(2, batched=True)),
    **dict.fromkeys(("grid_sampler_2d", "grid_sampler_3d"), _sampled),
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), _scattered),
    **dict.fromkeys(("index", "_unsafe_index"), _indexed),
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bagged),
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _losses),
    **dict.fromkeys(("rnn_tanh", "rnn_relu"), _recurrent(1)),
    "histc": _counted,
    "roll": _rolled,
    "flip": _flipped,
    "permute": _permuted,
    "transpose": _transposed,
    "t": _t,
    "squeeze": _squeezed,
    "unsqueeze": _unsqueezed,
    "select": _selected,
    "slice": _sliced,
    "slice_scatter": _slice_replaced,
    "select_scatter": _place_replaced,
    "diagonal": _diagonal,
    "unfold": _unfolded,
    "unbind": _unbound,
    "flatten": _flattened,
    "unflatten": _unflattened,
    "repeat": _repeated,
    "as_strided": _strided,
    "cat": _joined,
    "stack": _stacked,
    "constant_pad_nd": _padded(0, reaches=False),
    "mm": _mm,
    "bmm": _bmm,
    "linear": _linear,
    "convolution": _convolved,
    **{f"upsample_nearest{rank}d": _resized(rank, batched=True) for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d": _resized(rank, batched=True) for rank in (1, 2, 3)},
    "upsample_linear1d": _resized(1, batched=True),
    "upsample_trilinear3d": _resized(3, batched=True),
    "affine_grid_generator": _grid,
    "gather": _gathered,
    "index_select": _index_selected,
    "index_put": _index_put,
    "embedding": _embedded,
    "embedding_dense_backward": _embedding_gradient,
    "searchsorted": _searched,
    "bucketize": _bucketized,
    "topk": _top,
    "kthvalue": _kth,
    "_cdist_forward": _distances,
    "linalg_cross": _crossed,
    "scaled_dot_product_attention": _attended,
    "native_layer_norm": _layer_normed,
    "gru": _recurrent(3),
    "lstm": _recurrent(4),
}
"""By name with the overload, or without it."""
