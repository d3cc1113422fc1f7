"""How results lie in memory. A kernel gives contiguous tensors: where PyTorch gives another order, or repeats
elements without copies, the call gives the same view of such a tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from .parts import SCALAR, Leaf
from .tensor_effects import Warned, check_effects, seen, watched

Dim = int | str
Step = tuple[str, tuple[Any, ...]]
"""A method that gives a view, and its arguments: sizes, and tuples of them."""
ITEM = "[]"
"""The method that takes a place or a slice of what it is called on."""


@dataclass(frozen=True)
class TensorLayout:
    """``order`` has the dimensions from the outermost in memory to the innermost; ``repeated`` are those
    whose elements are one and the same. Neither says anything of dimensions of one element. ``part`` has the
    offset and the strides of what is a part of a larger tensor, as a slice is, or has elements several times;
    it is empty for others."""

    order: tuple[int, ...]
    repeated: frozenset[int]
    part: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether the elements lie in the order of a contiguous tensor, each by itself."""
        return not self.repeated and list(self.order) == sorted(self.order)


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    """What is known of a tensor without symbolic sizes."""
    steps = tensor.stride()
    long = [dim for dim, size in enumerate(tensor.shape) if size > 1]
    repeated = frozenset(dim for dim in long if steps[dim] == 0)
    apart = [dim for dim in long if dim not in repeated]
    order = tuple(sorted(apart, key=lambda dim: (-steps[dim], dim)))
    return TensorLayout(order, repeated, _part(tensor, apart))


def _part(tensor: torch.Tensor, apart: Sequence[int]) -> tuple[int, ...]:
    elements = math.prod(tensor.shape[dim] for dim in apart)
    if not tensor.numel() or tensor.untyped_storage().nbytes() == elements * tensor.element_size():
        return ()
    return tensor.storage_offset(), *(tensor.stride(dim) for dim in apart)


@dataclass(frozen=True)
class Peeled:
    """``value`` is a contiguous value of the graph; ``steps`` make what the function gives of it."""

    value: dict[str, Any]
    steps: tuple[Step, ...]


def text_of(steps: Iterable[Step], base: str, size_text: Callable[[Dim], str]) -> str:
    """The Python text of a view of ``base``."""
    for method, arguments in steps:
        given = ", ".join(_text(argument, size_text) for argument in arguments)
        base += f"[{given}]" if method == ITEM else f".{method}({given})"
    return base


def _text(argument: Any, size_text: Callable[[Dim], str]) -> str:
    if isinstance(argument, tuple):
        return f"({', '.join(_text(one, size_text) for one in argument)}{',' * (len(argument) == 1)})"
    if isinstance(argument, slice):
        ends = (argument.start, argument.stop)
        first = ":".join("" if end is None else _text(end, size_text) for end in ends)
        return first if argument.step is None else f"{first}:{_text(argument.step, size_text)}"
    return repr(argument) if argument is None else size_text(argument)


def view_by(steps: Iterable[Step], base: Any, size: Callable[[Dim], int]) -> Any:
    """The view of a tensor."""
    for method, arguments in steps:
        given = tuple(_given(argument, size) for argument in arguments)
        if method == ITEM:
            base = base[given if len(given) > 1 else given[0]]
        else:
            base = getattr(base, method)(*given)
    return base


def _given(argument: Any, size: Callable[[Dim], int]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_given(one, size) for one in argument)
    if isinstance(argument, slice):
        return slice(*(_given(end, size) for end in (argument.start, argument.stop, argument.step)))
    return argument if argument is None else size(argument)


Shape = Callable[[dict[str, Any]], Sequence[Dim]]
"""The shape of a value of a graph."""


def peeled(
    value: dict[str, Any], layout: TensorLayout, nodes: Mapping[str, Any], shape_of: Shape
) -> tuple[Peeled, TensorLayout]:
    """The value that the last views of a graph are views of, back to one that lies in memory as a contiguous
    tensor does, or to one that no view gave; and how that one lies. ``nodes`` are the graph's by name."""
    steps: tuple[Step, ...] = ()
    while not layout.is_plain and value["ref"] in nodes:
        seen = _view_of(nodes[value["ref"]], shape_of)
        if seen is None:
            break
        made, names = seen
        steps = (*made, *steps)
        layout = _renamed(layout, names)
        value = nodes[value["ref"]]["args"][0]
    return Peeled(value, steps), layout


def _view_of(node: Mapping[str, Any], shape_of: Shape) -> tuple[tuple[Step, ...], dict[int, int]] | None:
    """The methods that give the node's value as a view of its argument, and which dimension of that each of
    its dimensions is; None where it is no such view."""
    name, (source, *arguments) = node["op"].split(".")[1], node["args"] or [None]
    if name not in ("permute", "t", "transpose", "unsqueeze", "squeeze", "expand"):
        return None
    before, after = shape_of(source), node["outputs"][0]["shape"]
    rank = len(before)
    if name == "expand":
        first = len(after) - rank
        kept = {first + dim: dim for dim, size in enumerate(before) if size == after[first + dim]}
        return (("expand", tuple(after)),), kept
    if name == "unsqueeze":
        new = arguments[0] % (rank + 1)
        return (("unsqueeze", (new,)),), {dim + (dim >= new): dim for dim in range(rank)}
    if name == "squeeze":
        gone = _squeezed(before, *arguments)
        left = [dim for dim in range(rank) if dim not in gone]
        return tuple(("squeeze", (dim,)) for dim in reversed(gone)), dict(enumerate(left))
    dims = _permutation(name, rank, arguments)
    return (("permute", tuple(dims)),), dict(enumerate(dims))


def _squeezed(shape: Sequence[Dim], *arguments: Any) -> list[int]:
    """The dimensions that a squeeze takes away, in their order."""
    named = arguments[0] if arguments else range(len(shape))
    dims = {dim % len(shape) for dim in ([named] if isinstance(named, int) else named)}
    return sorted(dim for dim in dims if shape[dim] == 1)


def _permutation(name: str, rank: int, arguments: Sequence[Any]) -> list[int]:
    dims = list(range(rank))
    if name == "permute":
        return [dim % rank for dim in arguments[0]]
    if rank > 1:
        one, other = (0, 1) if name == "t" else (dim % rank for dim in arguments)
        dims[one], dims[other] = dims[other], dims[one]
    return dims


def _renamed(layout: TensorLayout, names: Mapping[int, int]) -> TensorLayout:
    return TensorLayout(
        tuple(names[dim] for dim in layout.order if dim in names),
        frozenset(names[dim] for dim in layout.repeated if dim in names),
        layout.part,
    )


def full_order(layout: TensorLayout, rank: int) -> tuple[int, ...]:
    """A permutation of all dimensions that has those of more than one element in the order of the layout, and
    the others where they are."""
    result = list(range(rank))
    for position, dim in zip(sorted(layout.order), layout.order, strict=True):
        result[position] = dim
    return tuple(result)


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=lambda position: order[position]))


@dataclass(frozen=True)
class Outcome:
    """What a call gives besides values: the layout of each result in flat order, None for what is no tensor,
    and what the call warns of."""

    layouts: list[TensorLayout | None]
    warned: tuple[Warned, ...]


def outcome_of(call: Callable[..., Any], leaves: Iterable[Leaf], *, as_captured: bool = True) -> Outcome:
    """What comes of a call. Without ``as_captured`` those of its operands want gradients that did not, and
    the other way round. Raises what the call raises, and Refused where it does more to tensors than to give
    them values."""
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        plain = seen(torch.empty(()))
        named = [(leaf.expression, _operand(leaf, as_captured)) for leaf in leaves]
        given = [(text, tensor, seen(tensor)) for text, tensor in named]
        with watched() as warned:
            results = pytree.tree_leaves(call(*(tensor for _, tensor in named)))
        check_effects(given, results, plain)
    layouts = [layout_of(result) if isinstance(result, torch.Tensor) else None for result in results]
    return Outcome(layouts, tuple(warned))


def _operand(leaf: Leaf, as_captured: bool) -> torch.Tensor:
    """A tensor that lies in memory as the user's does, and gives the code the same answers, but for gradients
    where it is not to be ``as_captured``."""
    if leaf.kind == SCALAR:
        return torch.empty((), dtype=torch.float32)
    made = torch.empty_strided(leaf.value.shape, leaf.value.stride(), dtype=leaf.value.dtype)
    if isinstance(leaf.known_as, torch.nn.Parameter):
        made._is_param = True  # as isinstance asks
    if leaf.original is not None or not made.is_floating_point():
        return made
    return made.requires_grad_(leaf.known_as.requires_grad == as_captured)


def conditions_of_order(
    call: Callable[..., Any],
    leaves: tuple[Leaf, ...],
    read: Iterable[str],
    captured: Outcome,
) -> Iterator[str]:
    """Python texts that hold where tensors lie in memory in the order that they had when they were captured:
    for those whose order decides on that of a result, but for contiguous operands, of which a call asks that
    anyway. ``captured`` came of the call then, ``read`` are the texts of the operands."""
    wanted = set(read)
    for index, leaf in enumerate(leaves):
        if leaf.kind == SCALAR or leaf.value.dim() < 2:
            continue
        if leaf.expression in wanted and leaf.value.is_contiguous():
            continue
        if any(
            _outcome_with(call, leaves, index, order) != captured for order in _other_orders(leaf.value.dim())
        ):
            order = full_order(layout_of(leaf.value), leaf.value.dim())
            yield f"guards.ordered({leaf.expression}, {order})"


def _other_orders(rank: int) -> Iterator[tuple[int, ...]]:
    """Orders that between them put every two dimensions the one way and the other."""
    yield tuple(range(rank))
    yield tuple(reversed(range(rank)))


def _outcome_with(
    call: Callable[..., Any], leaves: tuple[Leaf, ...], index: int, order: tuple[int, ...]
) -> Outcome | None:
    """What comes of the call where one operand lies in another order; None where it is not taken so."""

    def given(*values: torch.Tensor) -> Any:
        value = values[index]
        moved = torch.empty([value.shape[dim] for dim in order], dtype=value.dtype).permute(inverse(order))
        return call(*values[:index], moved, *values[index + 1 :])

    try:
        return outcome_of(given, leaves)
    except Exception:  # whatever it raised, the order matters
        return None
