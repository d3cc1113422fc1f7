"""Complex values as two real ones: how a part is computed, and how parts lie side by side in memory."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.compiler.rewrites.elementwise import apply
from evokernel_core.compiler.rewrites.layout import viewed
from evokernel_core.compiler.rewrites.picking import as_arg
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.tensor import Dim

REAL = "float32"
"""The dtype of either part of complex64, the only complex type that kernels compute."""
Part = ValueRef | float
"""A real tensor, or the number that all its elements are."""


@frozen
class Complex:
    """A complex value by its real and imaginary part. ``pairs`` is a tensor that holds both, along a last
    dimension of two, where there is one."""

    re: Part
    im: Part
    pairs: ValueRef | None = None


@frozen
class Parts:
    """Arithmetic on parts; what is known while planning is not computed again."""

    writer: GraphWriter

    def apply(self, op: str, *args: Part) -> ValueRef:
        """``aten.op`` of float32."""
        return apply(self.writer, op, *(self._tensor(arg) for arg in args))

    def _tensor(self, part: Part) -> ValueRef:
        return part if isinstance(part, ValueRef) else self.filled(part, ())

    def filled(self, number: float, shape: tuple[Dim, ...]) -> ValueRef:
        sizes = tuple(map(as_arg, shape))
        return self.writer.call("aten.full.default", sizes, number, shape=shape, dtype=REAL)

    def mul(self, a: Part, b: Part) -> Part:
        if not isinstance(a, ValueRef):
            a, b = b, a
        if not isinstance(a, ValueRef):
            return a * b if not isinstance(b, ValueRef) else b
        if b == 0:
            return 0.0
        if b == 1:
            return a
        return self._with(a, "mul.Tensor", b)

    def add(self, a: Part, b: Part) -> Part:
        if not isinstance(a, ValueRef):
            a, b = b, a
        if not isinstance(a, ValueRef):
            return a + b if not isinstance(b, ValueRef) else b
        return a if b == 0 else self._with(a, "add.Tensor", b)

    def sub(self, a: Part, b: Part) -> Part:
        if isinstance(a, ValueRef):
            return a if b == 0 else self._with(a, "sub.Tensor", b)
        return self.add(self.neg(b), a)

    def neg(self, a: Part) -> Part:
        return apply(self.writer, "neg.default", a) if isinstance(a, ValueRef) else -a

    def div(self, a: Part, b: Part) -> Part:
        if not isinstance(b, ValueRef):
            return self.mul(a, 1.0 / b) if b else self.apply("div.Tensor", a, b)
        return 0.0 if a == 0 else self.apply("div.Tensor", a, b)

    def _with(self, a: ValueRef, op: str, b: Part) -> ValueRef:
        return apply(self.writer, op, a, b)

    def tensor(self, part: Part, shape: tuple[Dim, ...]) -> ValueRef:
        """The part as a tensor of that shape."""
        if not isinstance(part, ValueRef):
            return self.filled(part, shape)
        own = self.writer.shape(part)
        if list(map(extent, own)) == list(map(extent, shape)):
            return part
        sizes = tuple(map(as_arg, shape))
        return self.writer.call("aten.expand.default", part, sizes, shape=shape, dtype=REAL)

    def fitted(self, part: Part, shape: tuple[Dim, ...]) -> Part:
        """The part with the shape of the value that it is part of."""
        return self.tensor(part, shape) if isinstance(part, ValueRef) else part


def separated(writer: GraphWriter, x: ValueRef) -> Complex:
    """The parts of what holds them side by side along its last dimension, which is two. One kernel takes all
    pairs apart, after which either part lies in memory without gaps."""
    shape = writer.shape(x)[:-1]
    rank = len(shape)
    apart = writer.call("aten.permute.default", x, (rank, *range(rank)), shape=(2, *shape), dtype=REAL)
    re, im = (writer.call("aten.select.int", apart, 0, place, shape=shape, dtype=REAL) for place in range(2))
    return Complex(re, im, x)


def side_by_side(parts: Parts, value: Complex, shape: tuple[Dim, ...]) -> ValueRef:
    """The parts along a last dimension of two."""
    if value.pairs is not None:
        return value.pairs
    writer, rank = parts.writer, len(shape)
    tensors = (parts.tensor(part, shape) for part in (value.re, value.im))
    apart = tuple(viewed(writer, part, (1, *shape)) for part in tensors)
    joined = writer.call("aten.cat.default", apart, 0, shape=(2, *shape), dtype=REAL)
    order = (*range(1, rank + 1), 0)
    return writer.call("aten.permute.default", joined, order, shape=(*shape, 2), dtype=REAL)
