"""Sums, means and average pools of linear results, computed in front of the products that make them.

The mean of the rows of a product is a product with the mean of its weights; the sum of a convolution over its
places is a small product of sums of its input; an average pool behind a convolution is one convolution with
other weights. All hold in real arithmetic, and each result is rounded less often than before. What lies
between, scaling and shifting by values that do not vary along the reduced dimensions, as an eval-mode batch
norm has them, is done to the reduced result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import frozen

from evokernel_core.compiler.aten import AVERAGE_POOLS, CONVOLUTION
from evokernel_core.compiler.rewrites.picking import argument, producer, read_once, view
from evokernel_core.compiler.rewrites.pooled_convolutions import pooled_convolution
from evokernel_core.compiler.rewrites.split_reductions import reduced_dims
from evokernel_core.compiler.rewrites.summed_convolutions import summed_convolution
from evokernel_core.compiler.rewrites.summed_products import PRODUCTS, operand_of, summed_product
from evokernel_core.compiler.rewrites.summing import Summing, reduced
from evokernel_core.compiler.rewrites.writer import GraphWriter, rewritten
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.graph import Arg, Graph, Node, ValueRef, literals
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim
from evokernel_core.hardware.device import Device
from evokernel_core.hardware.products import multiply_adds

_REDUCTIONS: Mapping[str, bool] = {
    "aten.mean.dim": True,
    "aten.mean.default": True,
    "aten.sum.dim_IntList": False,
    "aten.sum.default": False,
}
"""Whether the sum is divided by how many there are."""
_SCALES = frozenset(("aten.mul.Tensor", "aten.div.Tensor"))
_SHIFTS = frozenset(("aten.add.Tensor", "aten.sub.Tensor"))
_ROOTS = PRODUCTS | {CONVOLUTION}
_SMALLER = 1.5
"""How many times longer smaller products take than their share of the larger ones."""


def linear_reductions(task: KernelTask, device: Device) -> KernelTask:
    """The task with reductions of products and convolutions in front of these, where that is less work; the
    same task where there are none."""
    ops = {node.op for node in task.graph.nodes}
    if not ops & _ROOTS or not ops & (_REDUCTIONS.keys() | AVERAGE_POOLS):
        return task
    pull = _Pull(read_once(task))
    table = dict.fromkeys((*_REDUCTIONS, *AVERAGE_POOLS), pull)
    return rewritten(task, table, device)


@frozen
class _Chain:
    """What makes a value: a product or convolution, and the steps behind it from the last to the first, each
    with the place of the value among its arguments."""

    root: Node
    steps: tuple[tuple[Node, int], ...]

    @property
    def names(self) -> set[str]:
        return {self.root.name, *(node.name for node, _ in self.steps)}


@frozen
class _Pull:
    """The rewrite; ``once``: the values that one node reads."""

    once: set[str]

    def __call__(self, node: Node, writer: GraphWriter) -> tuple[ValueRef, ...] | None:
        x = node.args[0]
        if not isinstance(x, ValueRef) or node.outputs[0].dtype != "float32":
            return None
        if _is_of_one(node, writer):
            return (view(writer, x, node.outputs[0].shape),)
        chain = _chain_of(writer, self._below_views(node, writer))
        if chain is None or not chain.root.outputs[0].shape:
            return None
        before = len(writer.nodes)
        result = self._written(node, chain, writer)
        if result is None:
            del writer.nodes[before:]
            return None
        self.once.update(made.name for made in writer.nodes[before:])
        if node.name not in self.once:
            self.once.discard(result.name)
        return (result,)

    def _below_views(self, node: Node, writer: GraphWriter) -> ValueRef:
        """What is reduced; of a pool, below the views that make images of it."""
        ref = next(node.operands())
        maker = producer(writer, ref)
        while node.op in AVERAGE_POOLS and maker is not None and maker.op in SAME_ORDER:
            if maker.name not in self.once:
                break
            ref = next(maker.operands())
            maker = producer(writer, ref)
        return ref

    def _written(self, node: Node, chain: _Chain, writer: GraphWriter) -> ValueRef | None:
        before = len(writer.nodes)
        pulled = _pooled if node.op in AVERAGE_POOLS else _summed
        result = pulled(node, chain, writer)
        is_alone = chain.names <= self.once
        if not is_alone and writer.device.shortens_convolutions and chain.root.op == CONVOLUTION:
            return None  # a norm would subtract a mean of one rounding from that of another
        return (
            result if result and _pays(chain.root, writer.nodes[before:], writer, is_alone=is_alone) else None
        )


def _pays(root: Node, made: list[Node], writer: GraphWriter, *, is_alone: bool) -> bool:
    """Whether the launches and products of new nodes take less than what they spare: to read the result of a
    product, and where nothing else does (``is_alone``), the product with its launch and that of its reader. A
    norm in training mode, which takes the variance, is something else."""
    device, launch = writer.device, writer.device.launch_us
    graph = Graph(writer.task.graph.inputs, tuple(writer.nodes), ())

    def products_us(nodes: Iterable[Node]) -> float:
        count = sum(multiply_adds(node, graph, writer.sizes) for node in nodes)
        return device.product_us(count, "float32")

    spared = root.outputs[0].nbytes(writer.sizes) / device.memory_bytes_us
    if is_alone:
        spared += products_us((root,)) + 2 * launch
    launched = sum(node.op not in SAME_ORDER for node in made)
    return launched * launch + _SMALLER * products_us(made) < spared


def _is_of_one(node: Node, writer: GraphWriter) -> bool:
    """Whether a sum or mean is of single elements."""
    shape = writer.shape(next(node.operands()))
    dims = reduced_dims(node, len(shape)) if node.op in _REDUCTIONS else None
    return bool(dims) and argument(node, 3, "dtype") is None and all(shape[dim] == 1 for dim in dims or ())


def _chain_of(writer: GraphWriter, ref: ValueRef) -> _Chain | None:
    """The steps down to the product or convolution; None where there is something else in between."""
    shape = writer.shape(ref)
    steps: list[tuple[Node, int]] = []
    while True:
        node = producer(writer, ref)
        if node is None or node.outputs[0].shape != shape or node.outputs[0].dtype != "float32":
            return None
        if node.op in _ROOTS:
            return _Chain(node, tuple(steps))
        place = _place_of_value(writer, node, shape)
        if place is None:
            return None
        steps.append((node, place))
        value = node.args[place]
        assert isinstance(value, ValueRef)
        ref = value


def _place_of_value(writer: GraphWriter, node: Node, shape: tuple[Dim, ...]) -> int | None:
    """Which argument of a scaling or shift has its whole shape, None where both or neither have."""
    if node.op not in _SCALES | _SHIFTS or len(node.args) != 2:
        return None
    whole = [isinstance(arg, ValueRef) and writer.shape(arg) == shape for arg in node.args]
    if whole.count(True) != 1 or (node.op == "aten.div.Tensor" and not whole[0]):
        return None
    other = node.args[1 - whole.index(True)]
    if isinstance(other, ValueRef) and writer.spec(other).dtype != "float32":
        return None
    return whole.index(True)


# -- sums and means -------------------------------------------------------------------------------


def _summed(node: Node, chain: _Chain, writer: GraphWriter) -> ValueRef | None:
    shape = chain.root.outputs[0].shape
    dims = reduced_dims(node, len(shape))
    if not dims or argument(node, 3, "dtype") is not None:
        return None
    is_mean, first = _REDUCTIONS[node.op], 2 if chain.root.op == CONVOLUTION else len(shape) - 2
    inner, outer = tuple(dim for dim in dims if dim >= first), tuple(dim for dim in dims if dim < first)
    if not inner:
        return None
    summing = Summing(writer, shape, inner, is_mean)
    if any(step.op in _SCALES and summing.varies(_other(step, place)) for step, place in chain.steps):
        return None
    root = summed_convolution if chain.root.op == CONVOLUTION else summed_product
    value = root(chain.root, summing)
    if value is None:
        return None
    value = _behind(chain, value, writer, summing.kept_shape, summing.operand)
    if outer:
        value = reduced(writer, value, outer, is_mean=is_mean)
    return view(writer, value, node.outputs[0].shape)


def _other(step: Node, place: int) -> Arg:
    return step.args[1 - place]


def _behind(
    chain: _Chain,
    value: ValueRef,
    writer: GraphWriter,
    shape: tuple[Dim, ...],
    shift: Callable[[Arg], Arg],
) -> ValueRef:
    """The steps, done to the reduced value of ``shape``; ``shift`` reduces what is added."""
    for step, place in reversed(chain.steps):
        args = list(step.args)
        args[place] = value
        if step.op in _SHIFTS:
            args[1 - place] = shift(_other(step, place))
        value = writer.call(step.op, *args, shape=shape, dtype="float32", **dict(step.kwargs))
    return value


# -- average pools --------------------------------------------------------------------------------


def _pooled(node: Node, chain: _Chain, writer: GraphWriter) -> ValueRef | None:
    windows, shape = _windows(node), node.outputs[0].shape
    if windows is None or len(shape) != len(windows[0]) + 2:
        return None
    if chain.root.op != CONVOLUTION:
        return _pooled_columns(node, chain, writer, *windows)
    if writer.shape(next(node.operands())) != chain.root.outputs[0].shape:
        return None
    dims = tuple(range(2, len(shape)))
    summing = Summing(writer, chain.root.outputs[0].shape, dims, is_mean=True)
    if any(summing.varies(_other(*step)) for step in chain.steps):
        return None
    value = pooled_convolution(chain.root, writer, *windows, shape)
    return None if value is None else _behind(chain, value, writer, shape, lambda other: other)


def _pooled_columns(
    node: Node, chain: _Chain, writer: GraphWriter, windows: tuple[int, ...], steps: tuple[int, ...]
) -> ValueRef | None:
    """The pool of a matrix along its rows, where it is seen as images of one line."""
    rows, *others = chain.root.outputs[0].shape
    read, made = writer.shape(next(node.operands())), node.outputs[0].shape
    is_line = len(others) == 1 and read[-1] == others[0] and all(dim == 1 for dim in read[1:-1])
    if not is_line or read[0] != rows or max(*windows[:-1], *steps[:-1]) > 1 or steps[-1] < 2:
        return None
    columns, kept = Columns(writer, windows[-1], steps[-1], made[-1]), (rows, made[-1])
    summing = Summing(writer, chain.root.outputs[0].shape, (1,), is_mean=True)
    if any(step.op in _SCALES and summing.varies(_other(step, place)) for step, place in chain.steps):
        return None
    value = _behind(chain, pooled_product(chain.root, columns), writer, kept, columns.operand)
    return view(writer, value, made)


def _windows(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Sizes and steps of windows that all lie inside, None where some do not."""
    rank = 3 if "3d" in node.op else 2
    kernel, stride, padding = (
        argument(node, i, name) for i, name in ((1, "kernel_size"), (2, "stride"), (3, "padding"))
    )
    ceil, divisor = argument(node, 4, "ceil_mode"), argument(node, 6, "divisor_override")
    if ceil or divisor is not None or (padding and any(literals(padding, rank))):
        return None
    sizes = literals(kernel, rank)
    return sizes, literals(stride, rank) if stride else sizes


@frozen
class Columns:
    """Windows of ``window`` columns, ``step`` apart, that all lie inside; ``count``: how many there are."""

    writer: GraphWriter
    window: int
    step: int
    count: Dim

    def pooled(self, matrix: ValueRef, dim: int) -> ValueRef:
        """The averages along one dimension of a matrix."""
        shape = self.writer.shape(matrix)
        made = tuple(self.count if place == dim else size for place, size in enumerate(shape))
        windows, steps = (
            tuple(size if place == dim else 1 for place in range(2)) for size in (self.window, self.step)
        )
        plane = view(self.writer, matrix, (1, 1, *shape))
        result = self.writer.call(
            "aten.avg_pool2d.default", plane, windows, steps, shape=(1, 1, *made), dtype="float32"
        )
        return view(self.writer, result, made)

    def operand(self, operand: Arg) -> Arg:
        """The same of what is broadcast to the product."""
        if not isinstance(operand, ValueRef):
            return operand
        shape = self.writer.shape(operand)
        if not shape or shape[-1] == 1:
            return operand
        return self.pooled(view(self.writer, operand, (1, shape[-1])), 1)


def pooled_product(root: Node, columns: Columns) -> ValueRef:
    """The pool of a product [m, n] along n."""
    writer, (a, b) = columns.writer, root.args[:2]
    assert isinstance(a, ValueRef)
    assert isinstance(b, ValueRef)
    weight = operand_of(writer, b)
    matrix = columns.pooled(weight.ref, 0 if weight.is_turned else 1)
    rows, depth = writer.shape(a)
    if weight.is_turned:
        matrix = writer.call("aten.t.default", matrix, shape=(depth, columns.count), dtype="float32")
    return writer.call("aten.mm.default", a, matrix, shape=(rows, columns.count), dtype="float32")
