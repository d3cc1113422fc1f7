"""Products of complex numbers that are written with slices and a stack, as rotary embeddings often are.

``stack((a * c - b * s, a * s + b * c), -1)``, where a and b are every second element of one tensor, is the
product of its pairs with the pairs of c and s.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from evokernel_core.compiler.limits import sharing
from evokernel_core.compiler.ops import COMPLEX_MULTIPLY
from evokernel_core.compiler.rewrites.writer import GraphWriter
from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.graph import Node, SymbolicInt, ValueRef, literal
from evokernel_core.domain.tensor import Dim

_REAL = "float32"


@frozen
class _Part:
    """Every second element of the last dimension of ``whole``, or one of its last dimension of two."""

    whole: ValueRef
    place: int


def rotated(writer: GraphWriter, refs: Sequence[ValueRef]) -> ValueRef | None:
    """Two tensors stacked along a last dimension as one product of pairs; None where they are no product."""
    nodes = {node.name: node for node in writer.nodes}
    if len(refs) != 2 or any(writer.spec(ref).dtype != _REAL for ref in refs):
        return None
    minus, plus = (_factors(nodes, ref, op) for ref, op in zip(refs, ("sub", "add"), strict=True))
    if minus is None or plus is None:
        return None
    crossed = {frozenset(pair) for pair in plus}
    for a, c in (minus[0], minus[0][::-1]):
        for b, s in (minus[1], minus[1][::-1]):
            whole = _both_parts(writer, nodes, a, b)
            if whole is not None and crossed == {frozenset((a, s)), frozenset((b, c))}:
                return _product(writer, whole, writer.shape(a), (c, s), writer.shape(refs[0]))
    return None


def _factors(
    nodes: dict[str, Node], ref: ValueRef, op: str
) -> tuple[tuple[ValueRef, ValueRef], tuple[ValueRef, ValueRef]] | None:
    """The operands of the two products whose sum or difference a value is."""
    node = nodes.get(ref.name)
    if node is None or node.op != f"aten.{op}.Tensor" or node.kwargs or len(list(node.operands())) != 2:
        return None
    pairs = []
    for operand in node.operands():
        product = nodes.get(operand.name)
        if product is None or product.op != "aten.mul.Tensor":
            return None
        taken = list(product.operands())
        if len(taken) != 2:
            return None
        pairs.append((taken[0], taken[1]))
    return pairs[0], pairs[1]


def _both_parts(writer: GraphWriter, nodes: dict[str, Node], a: ValueRef, b: ValueRef) -> ValueRef | None:
    """The tensor of which the first value is the first of all pairs, and the other one the second."""
    first, second = (_part(writer, nodes, ref) for ref in (a, b))
    if first is None or second is None or (first.place, second.place) != (0, 1):
        return None
    return first.whole if first.whole == second.whole else None


def _part(writer: GraphWriter, nodes: dict[str, Node], ref: ValueRef) -> _Part | None:
    node = nodes.get(ref.name)
    if node is None or node.op not in ("aten.slice.Tensor", "aten.select.int") or len(node.args) < 3:
        return None
    whole, dim, place = node.args[:3]
    if not isinstance(whole, ValueRef) or not isinstance(dim, int) or place not in (0, 1):
        return None
    shape = writer.shape(whole)
    if dim % len(shape) != len(shape) - 1:
        return None
    if node.op == "aten.select.int":
        return _Part(whole, literal(place)) if extent(shape[-1]) == Extent(2) else None
    halves = extent(node.outputs[0].shape[-1]).times(Extent(2)) == extent(shape[-1])
    return _Part(whole, literal(place)) if node.args[4:] == (2,) and halves else None


def _product(
    writer: GraphWriter,
    whole: ValueRef,
    sizes: tuple[Dim, ...],
    factors: tuple[ValueRef, ValueRef],
    result: tuple[Dim, ...],
) -> ValueRef | None:
    """The pairs of ``sizes`` times those of the factors; None where no kernel shares the factors so."""
    given = [writer.shape(ref) for ref in factors]
    same = list(map(extent, given[0])) == list(map(extent, given[1]))
    if not same or list(map(extent, sizes)) != list(map(extent, result)) or len(given[0]) > len(sizes):
        return None
    own = (*[1] * (len(sizes) - len(given[0])), *given[0])
    if sharing(sizes, own) is None or any(writer.spec(ref).dtype != _REAL for ref in (whole, *factors)):
        return None
    stacked = writer.call("aten.stack.default", factors, -1, shape=(*given[0], 2), dtype=_REAL)
    x, w = _viewed(writer, whole, (*sizes, 2)), _viewed(writer, stacked, (*own, 2))
    return writer.call(COMPLEX_MULTIPLY.name, x, w, shape=(*sizes, 2), dtype=_REAL)


def _viewed(writer: GraphWriter, x: ValueRef, shape: tuple[Dim, ...]) -> ValueRef:
    sizes = tuple(SymbolicInt(dim) if isinstance(dim, str) else dim for dim in shape)
    return writer.call("aten.view.default", x, sizes, shape=shape, dtype=_REAL)
