"""What a matrix product is asked to compute, and where its operands lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from attrs import evolve, frozen

from evokernel_core.compiler.aten import ADD, RELU
from evokernel_core.compiler.lowering.opset import fused_ops
from evokernel_core.compiler.ops import SPLIT_K_MM
from evokernel_core.compiler.problems.reading import below_views, one_node
from evokernel_core.compiler.problems.strided import NOWHERE, Axis, Group, behind_views
from evokernel_core.compiler.shapes.sizes import ONE, Extent, extent, product
from evokernel_core.compiler.shapes.views import SAME_ORDER
from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.graph import Graph, Node, ValueRef, literal
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import Dim

E = TypeVar("E")

TRIANGLES = frozenset({"aten.triu.default", "aten.tril.default"})
WHOLE_PRODUCTS = frozenset({"aten.mm.default", "aten.bmm.default"})
PRODUCTS = WHOLE_PRODUCTS | {SPLIT_K_MM.name}
QUANT = {"float32": "", "float16": "F322F16", "bfloat16": "F322BF16"}
"""Types of products, and the mode in which Fixpipe rounds a float32 sum to them."""


@frozen
class Loop:
    """One step of the way from the number of a product to its matrix: the matrix advances by ``stride``
    elements every ``within`` products, and comes back to the first after ``size`` steps where it
    ``wraps``."""

    size: Extent
    stride: Extent
    within: Extent
    wraps: bool


@frozen
class Side:
    """One operand: the input's name, whether its rows of memory run along the columns of the matrix,
    elements from row to row of memory, and where the matrices of a batch lie."""

    name: str
    transposed: bool
    pitch: Extent
    loops: tuple[Loop, ...]

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that places in memory depend on."""
        parts = [extent for loop in self.loops for extent in (loop.stride, loop.size, loop.within)]
        return frozenset().union(*(part.symbols for part in (self.pitch, *parts)))


@frozen
class Triangle:
    """The elements of a result that are kept, the others being zero: those whose column less their row is
    at least ``diagonal`` (``upper``) or at most."""

    upper: bool
    diagonal: int


@frozen
class Product:
    """``batch`` products of m x k by k x n, in ``splits`` sums each where k is cut (0: it is not); ``bias``:
    the input of n numbers, of the operands' type, with which every row begins; ``relu``: negative results
    become zero on their way to memory."""

    a: Side
    b: Side
    batch: Extent
    m: Extent
    n: Extent
    k: Extent
    dtype: str
    out_dtype: str
    splits: int = 0
    triangle: Triangle | None = None
    relu: bool = False
    bias: str | None = None

    def evaluate(self, sizes: Mapping[str, int]) -> tuple[int, int, int, int]:
        """batch, m, n and k in numbers."""
        return (
            self.batch.evaluate(sizes),
            self.m.evaluate(sizes),
            self.n.evaluate(sizes),
            self.k.evaluate(sizes),
        )

    def at(self, sizes: Mapping[str, int]) -> Product:
        """The same product with its sizes and pitches in numbers, which are asked for thousands of times."""
        batch, m, n, k = (Extent(size) for size in self.evaluate(sizes))
        a, b = (evolve(side, pitch=Extent(side.pitch.evaluate(sizes))) for side in (self.a, self.b))
        return evolve(self, a=a, b=b, batch=batch, m=m, n=n, k=k)


def read_product(task: KernelTask, *, takes_bias: bool = False) -> Product:
    """The one product of a task, and what is added to each of its rows if ``takes_bias``. Raises PlanError
    where the task is anything else."""
    graph = task.graph
    nodes = graph.nodes_by_name
    node = product_node(task)
    if len(graph.outputs) != 1:
        raise PlanError("The kernel has not exactly one matrix product with one result.")
    if takes_bias and node.op in WHOLE_PRODUCTS:
        result, relu = _through_relu(graph, nodes, graph.outputs[0])
        bias = _bias(task, nodes, result, node)
        if bias is not None:
            return evolve(product_of(task, node), relu=relu, bias=bias)
    triangle, relu = _on_the_way(nodes, graph.outputs[0], node)
    return evolve(product_of(task, node), triangle=triangle, relu=relu)


def read_chain(
    task: KernelTask,
    read: Callable[[ValueRef, tuple[Dim, ...], tuple[Dim, ...]], E],
    takes_bias: Callable[[Product], bool] = lambda product: False,
) -> tuple[Product, E | None]:
    """The product of a task, and what ``read`` makes of what follows it, None where nothing does. ``read``
    takes the product's result with the sizes of its rows and columns. ``takes_bias``: whether sums of a
    product may begin with a row. Raises PlanError as it does, or where there is another product."""
    node = product_node(task)
    try:
        return read_product(task, takes_bias=takes_bias(product_of(task, node))), None
    except PlanError:
        more = any(fused_ops().get(other.op, "view") != "view" for other in task.graph.nodes)
        if node.op not in WHOLE_PRODUCTS or not more:
            raise
    shape = node.outputs[0].shape
    return product_of(task, node), read(ValueRef(node.name), shape[:-1], shape[-1:])


def _through_relu(graph: Graph, nodes: Mapping[str, Node], result: ValueRef) -> tuple[ValueRef, bool]:
    """What a result is before zero takes the place of what is negative, if it does."""
    result = below_views(graph, result)
    below = nodes.get(result.name)
    if below is None or below.op != RELU:
        return result, False
    return below_views(graph, next(iter(below.operands()))), True


def _bias(task: KernelTask, nodes: Mapping[str, Node], result: ValueRef, node: Node) -> str | None:
    """The input that is added to every row of a product, where a result is that and no more."""
    added = nodes.get(result.name)
    if added is None or added.op != ADD or len(added.args) != 2 or added.kwargs:
        return None
    sources = {below_views(task.graph, operand).name: operand for operand in added.operands()}
    others = [name for name in sources if name != node.name]
    if len(sources) != 2 or len(others) != 1 or others[0] not in {item.name for item in task.graph.inputs}:
        return None
    bias, made, product = task.graph.spec(sources[others[0]]), added.outputs[0], node.outputs[0]
    operand = task.graph.spec(next(iter(node.operands())))
    is_row = bias.shape[-1:] == made.shape[-1:] == product.shape[-1:] and set(bias.shape[:-1]) <= {1}
    is_typed = len({bias.dtype, made.dtype, product.dtype, operand.dtype}) == 1
    return others[0] if is_row and is_typed else None


def product_node(task: KernelTask) -> Node:
    """The one product of a task. Raises PlanError where it has none or several."""
    return one_node(task, PRODUCTS, Sentence("The kernel has not exactly one matrix product."))


def _on_the_way(nodes: Mapping[str, Node], result: ValueRef, node: Node) -> tuple[Triangle | None, bool]:
    """What is kept of a product on the way to the kernel's result, and whether negative results are not."""
    triangle: Triangle | None = None
    relu = False
    while result.name != node.name:
        below = nodes.get(result.name)
        if below is not None and below.op in TRIANGLES and triangle is None and node.op != SPLIT_K_MM.name:
            diagonal = literal(below.args[1]) if len(below.args) > 1 else 0
            triangle = Triangle("triu" in below.op, diagonal)
        elif below is not None and below.op == RELU and node.op != SPLIT_K_MM.name:
            relu = True
        elif below is None or below.op not in SAME_ORDER or triangle is not None:
            raise PlanError("The result is more than a matrix product.")
        result = next(iter(below.operands()))
    return triangle, relu


def product_of(task: KernelTask, node: Node) -> Product:
    """The product that a node of the task computes."""
    left, right = node.operands()
    shape, dtype = node.outputs[0].shape, task.graph.spec(left).dtype
    if dtype not in QUANT:
        raise PlanError("A matrix product in {dtype} is not covered.", dtype=dtype)
    splits = literal(node.args[2]) if node.op == SPLIT_K_MM.name else 0
    return Product(
        _side(task, left),
        _side(task, right),
        ONE if splits else product(map(extent, shape[:-2])),
        extent(shape[-2]),
        extent(shape[-1]),
        extent(task.graph.spec(left).shape[-1]),
        dtype,
        node.outputs[0].dtype,
        splits,
    )


def _side(task: KernelTask, ref: ValueRef) -> Side:
    name, groups = behind_views(task, ref)
    transposed, pitch = _matrix(*groups[-2:])
    return Side(name, transposed, pitch, loops_of(groups[:-2]))


def _matrix(rows: Group, columns: Group) -> tuple[bool, Extent]:
    """Whether memory holds the transpose, and elements from row to row of memory."""
    if len(rows) > 1 or len(columns) > 1:
        raise PlanError("A dimension of a matrix operand lies in strided segments; copy the operand first.")
    if NOWHERE in (axis.stride for axis in (*rows, *columns)):
        raise PlanError("An operand of a matrix product is broadcast in its own two dimensions.")
    if not rows and not columns:
        return False, ONE
    if not rows or not columns:
        return _vector((rows or columns)[0], bool(rows))
    for transposed, (outer, inner) in enumerate(((rows[0], columns[0]), (columns[0], rows[0]))):
        if inner.stride == ONE:
            return bool(transposed), outer.stride
    raise PlanError("No dimension of a matrix operand is dense in memory; copy the operand first.")


def _vector(axis: Axis, is_column: bool) -> tuple[bool, Extent]:
    """One row or column: a dense one is a row of memory, of another one each element is."""
    if axis.stride == ONE:
        return is_column, axis.size
    return not is_column, axis.stride


def loops_of(leading: Sequence[Group]) -> tuple[Loop, ...]:
    """From the leading dimensions of an operand: how its matrix follows from the number of a product."""
    axes = [axis for group in leading for axis in group]
    loops: list[Loop] = []
    within = ONE
    for place, axis in reversed(list(enumerate(axes))):
        if axis.stride != NOWHERE:
            loops.insert(0, Loop(axis.size, axis.stride, within, place > 0))
        within = within.times(axis.size)
    return tuple(loops)
