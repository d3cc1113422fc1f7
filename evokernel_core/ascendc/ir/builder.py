"""Builds kernels node by node, as a kernel's author would write them.

k = Builder("Adds one to every element.")
x, y = k.input("x", "x", "float", 4), k.output("y", "output", "float", 4)
count = k.param("count", Size(extent))
tiles = k.param("tiles", ceil_div(count, TILE))
source, result = Buffer("source", "float", 4, TILE, 2), Buffer("result", "float", 4, TILE, 2)
with k.cores("tile", tiles) as tile:
    start = k.let("start", tile * TILE, U64)
    length = k.let("length", least(count - start, TILE))
    k.load(source, x, start, length)
    k.call("Adds", result, source, Converted(Int(1), "float"), length, repeats=ceil_div(length, 64))
    k.store(y, start, result, length)
kernel = k.kernel()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from evokernel_core.ascendc.ir.expr import U32, U64, Expr, Index, Param, Var, expr
from evokernel_core.ascendc.ir.nodes import (
    Buffer,
    Copy,
    For,
    Instruction,
    Kernel,
    Let,
    Node,
    Operand,
    Region,
    Require,
    Role,
    Section,
    Slice,
    Tensor,
    TensorList,
)


class Builder:
    """Collects the nodes of one kernel; ``kernel`` gives it, frozen."""

    def __init__(self, note: str) -> None:
        self._note = note
        self._tensors: list[Tensor | TensorList] = []
        self._params: list[Param | Require] = []
        self._blocks: list[list[Node]] = [[]]

    # -- what a kernel works on -----------------------------------------------------------------

    def input(self, name: str, address: str, ctype: str, item_bytes: int) -> Tensor:
        """A tensor that is read; ``address`` is the parameter that says where it lies."""
        return self._tensor(Tensor(name, address, ctype, item_bytes, Role.INPUT))

    def inputs(self, name: str, addresses: Sequence[str], ctype: str, item_bytes: int) -> TensorList:
        """Tensors of one type that a loop chooses among."""
        items = (
            Tensor(f"{name}{place}", address, ctype, item_bytes, Role.INPUT)
            for place, address in enumerate(addresses)
        )
        found = TensorList(name, tuple(items))
        self._tensors.append(found)
        return found

    def output(self, name: str, address: str, ctype: str, item_bytes: int) -> Tensor:
        """A tensor that is written in full."""
        return self._tensor(Tensor(name, address, ctype, item_bytes, Role.OUTPUT))

    def _tensor(self, tensor: Tensor) -> Tensor:
        self._tensors.append(tensor)
        return tensor

    def param(self, name: str, value: Expr, note: str = "", ctype: str = U64) -> Param:
        """A field of OpTiling that ComputeTiling computes from sizes and earlier fields."""
        found = Param(name, value, note, ctype)
        self._params.append(found)
        return found

    def require(self, left: Index, sign: str, right: Index, note: str = "") -> None:
        """A call is refused where this does not hold."""
        self._params.append(Require(expr(left), sign, expr(right), note))

    # -- what it does ---------------------------------------------------------------------------

    def let(self, name: str, value: Index, ctype: str = U32) -> Var:
        """A local constant."""
        var = Var(name, ctype)
        self._add(Let(var, expr(value)))
        return var

    def load(
        self,
        target: Buffer | Slice,
        tensor: Tensor | TensorList,
        offset: Index,
        count: Index,
        index: Expr | None = None,
    ) -> None:
        """Copies ``count`` elements from ``offset`` of a tensor into the unified buffer."""
        self._add(Copy(Region(tensor, expr(offset), index), whole(target), expr(count)))

    def store(self, tensor: Tensor, offset: Index, source: Buffer | Slice, count: Index) -> None:
        """Copies ``count`` elements from the unified buffer to ``offset`` of a tensor."""
        self._add(Copy(whole(source), Region(tensor, expr(offset)), expr(count)))

    def call(self, key: str, *operands: Operand | Buffer | int, repeats: Index, template: str = "") -> None:
        """A vector instruction by its row in the API table; the first operand is written."""
        given = tuple(map(_operand, operands))
        self._add(Instruction(key, given, expr(repeats), template))

    @contextmanager
    def cores(self, name: str, end: Index) -> Iterator[Var]:
        """A loop whose values are dealt to cores in turn."""
        with self._loop(Var(name, U64), end, cores=True) as var:
            yield var

    @contextmanager
    def loop(self, name: str, end: Index) -> Iterator[Var]:
        """A loop of one core."""
        with self._loop(Var(name, U32), end, cores=False) as var:
            yield var

    @contextmanager
    def _loop(self, var: Var, end: Index, *, cores: bool) -> Iterator[Var]:
        self._blocks.append([])
        yield var
        body = tuple(self._blocks.pop())
        self._add(For(var, expr(end), body, cores))

    @contextmanager
    def section(self, name: str, note: str = "") -> Iterator[None]:
        """Nodes that read as one step."""
        self._blocks.append([])
        yield
        body = tuple(self._blocks.pop())
        self._add(Section(name, body, note))

    def _add(self, node: Node) -> None:
        self._blocks[-1].append(node)

    def kernel(self) -> Kernel:
        """The kernel of all nodes so far."""
        return Kernel(self._note, tuple(self._tensors), tuple(self._params), tuple(self._blocks[0]))


def whole(item: Buffer | Slice) -> Slice:
    """A buffer from its first element on."""
    return Slice(item, expr(0)) if isinstance(item, Buffer) else item


def at(buffer: Buffer, offset: Index) -> Slice:
    """What lies in a buffer from element ``offset`` on."""
    return Slice(buffer, expr(offset))


def _operand(item: Operand | Buffer | int) -> Operand:
    if isinstance(item, Buffer):
        return whole(item)
    return expr(item) if isinstance(item, int) else item
