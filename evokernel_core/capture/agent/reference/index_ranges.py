"""Which values integer inputs may have: those that the operations which read them take as indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Node = Mapping[str, Any]
Shapes = Mapping[tuple[str, int], tuple[int, ...]]


@dataclass(frozen=True)
class Range:
    """Values from ``low`` up to and without ``high``; ``extra`` is a further one with a meaning of its
    own, such as the class that a loss ignores. ``offsets``: in order, and the first one is ``low``.
    ``divides``: never 0."""

    low: int
    high: int
    extra: int | None = None
    offsets: bool = False
    divides: bool = False

    def meet(self, other: Range) -> Range:
        """What both take."""
        extra = self.extra if self.extra == other.extra else None
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high, extra, self.offsets or other.offsets, self.divides or other.divides)


_SAME_VALUES = frozenset(
    """view reshape _unsafe_view unsqueeze squeeze expand permute transpose t slice select alias clone detach
    flatten unflatten cat stack where repeat flip roll contiguous broadcast_to _to_copy split split_with_sizes
    lift_fresh_copy index gather index_select remainder""".split()  # noqa: SIM905
)
"""Operations whose results hold no other values than their operands; a cast changes no index, and a
remainder none that is in range."""


def ranges(graph: Mapping[str, Any], shapes: Shapes) -> dict[str, Range]:
    """The range of every input that some operation of the graph reads as indices, by name.

    ``shapes`` has the size of every value by name and number of the result. What lies between an input
    and the operation is followed as long as it only moves values.
    """
    nodes = {node["name"]: node for node in graph["nodes"]}
    inputs = {operand["name"] for operand in graph["inputs"]}
    result: dict[str, Range] = {}
    for node in graph["nodes"]:
        rule = _READERS.get(node["op"].split(".")[1])
        for ref, limit in rule(node, shapes) if rule else ():
            for name in origins(ref["ref"], nodes, inputs, shapes):
                result[name] = result[name].meet(limit) if name in result else limit
    return result


def origins(name: str, nodes: Mapping[str, Node], inputs: set[str], shapes: Shapes) -> Iterator[str]:
    """The inputs whose values reach a value unchanged."""
    if name in inputs:
        yield name
        return
    node = nodes[name]
    if node["op"].split(".")[1] in _SAME_VALUES:
        for ref in _values(node):
            yield from origins(ref["ref"], nodes, inputs, shapes)


def _values(node: Node) -> list[Any]:
    """The operands whose elements a result of the node may have."""
    packet = node["op"].split(".")[1]
    args = node["args"][1:] if packet == "where" else node["args"][:1]
    flat = [element for arg in args for element in (arg if isinstance(arg, list) else [arg])]
    return [element for element in flat if isinstance(element, dict) and "ref" in element]


_Limits = Iterator[tuple[Any, Range]]
_Reader = Callable[[Node, Shapes], _Limits]


def _argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    if position < len(node["args"]):
        return node["args"][position]
    return next((value for key, value in node["kwargs"] if key == name), default)


def _shape(node: Node, position: int, shapes: Shapes) -> tuple[int, ...]:
    ref = node["args"][position]
    return shapes[ref["ref"], ref["index"]]


def _along_dim(node: Node, shapes: Shapes) -> _Limits:
    """``op(self, dim, index, ...)``: an index counts along ``dim`` of self."""
    shape = _shape(node, 0, shapes)
    yield _argument(node, 2, "index"), Range(0, shape[node["args"][1]] if shape else 1)


def _rows(node: Node, shapes: Shapes) -> _Limits:
    yield node["args"][1], Range(0, _shape(node, 0, shapes)[0])


def _per_dimension(node: Node, shapes: Shapes) -> _Limits:
    """``op(self, [index or None, ...])``: negative indices count from the end."""
    for size, index in zip(_shape(node, 0, shapes), node["args"][1]):  # noqa: B905
        if isinstance(index, dict):
            yield index, Range(-size, size)


def _one_hot(node: Node, shapes: Shapes) -> _Limits:
    yield node["args"][0], Range(0, shapes[node["name"], 0][-1])


def _classes(ignored: int) -> _Reader:
    """A loss over classes; ``ignored`` is the position of ``ignore_index``."""

    def limits(node: Node, shapes: Shapes) -> _Limits:
        shape = _shape(node, 0, shapes)
        yield node["args"][1], Range(0, shape[min(1, len(shape) - 1)], _argument(node, ignored, "", -100))

    return limits


def _margin_classes(node: Node, shapes: Shapes) -> _Limits:
    yield node["args"][1], Range(0, _shape(node, 0, shapes)[-1])


def _gradients(node: Node, shapes: Shapes) -> _Limits:
    """Rows of a table that gradients are of."""
    yield node["args"][1], Range(0, shapes[node["name"], 0][0])


def _bags(node: Node, shapes: Shapes) -> _Limits:
    """Rows of a table, and where the bags of them begin."""
    yield node["args"][1], Range(0, _shape(node, 0, shapes)[0])
    yield node["args"][2], Range(0, _shape(node, 1, shapes)[0] + 1, offsets=True)


DIVIDING = ("div", "floor_divide", "remainder", "fmod")
_MOST_DIVISOR = 1 << 31
_DIVISORS = {"int8": (-(1 << 7), 1 << 7), "uint8": (1, 1 << 8), "int16": (-(1 << 15), 1 << 15)}
"""Of types that hold no more: a larger number would become any other, zero too."""


def _divisors(node: Node, shapes: Shapes) -> _Limits:
    """Whole numbers are divided by no zero: PyTorch raises."""
    if isinstance(node["args"][1], dict) and "ref" in node["args"][1]:
        ends = _DIVISORS.get(node["outputs"][0]["dtype"], (-_MOST_DIVISOR, _MOST_DIVISOR))
        yield node["args"][1], Range(*ends, divides=True)


_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys(
        ("gather", "index_select", "scatter", "scatter_add", "scatter_reduce", "index_add", "index_fill",
         "index_copy", "index_reduce"),
        _along_dim,
    ),
    **dict.fromkeys(("index", "index_put", "_unsafe_index", "_unsafe_index_put"), _per_dimension),
    "embedding": _rows,
    "embedding_dense_backward": _gradients,
    **dict.fromkeys(("_embedding_bag", "_embedding_bag_forward_only"), _bags),
    "one_hot": _one_hot,
    "nll_loss_forward": _classes(4),
    "nll_loss2d_forward": _classes(4),
    "multi_margin_loss": _margin_classes,
    **dict.fromkeys(DIVIDING, _divisors),
    "take": lambda node, shapes: iter([(node["args"][1], Range(0, math.prod(_shape(node, 0, shapes))))]),
}  # fmt: skip
"""By operation, which operands it reads as indices and how far they reach."""
