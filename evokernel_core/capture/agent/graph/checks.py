"""What an operation is given that kernels take in one form only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import Unsupported
from ..tracing.sizes import InexpressibleSize

OF_KERNELS = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
"""The dtypes of what kernels take and give."""
FILLED = ("aten.full.default", "aten.full_like.default", "aten.scalar_tensor.default")
"""Operations that make a tensor of one number."""
_NUMBERED: Mapping[str, tuple[int, ...]] = {
    "aten.constant_pad_nd.default": (1,),
    "aten.convolution.default": (3, 4, 5, 7, 8),
    "aten.roll.default": (1,),
    "aten.topk.default": (1,),
    "aten.kthvalue.default": (1,),
    **dict.fromkeys((f"aten.avg_pool{n}d.default" for n in (1, 2, 3)), (1, 2, 3)),
    **dict.fromkeys((f"aten.max_pool{n}d_with_indices.default" for n in (2, 3)), (1, 2, 3, 4)),
}
"""Operations with arguments that kernels take as numbers, and which ones."""


_ADAPTIVE = frozenset(
    f"aten.{name}pool{n}d.default" for name in ("_adaptive_avg_", "adaptive_max_") for n in (2, 3)
)


def check_numbers(node: Any, name: str) -> None:
    """Raises InexpressibleSize for sizes that must be numbers: a window or padding as large as a tensor."""
    given = [node.args[place] for place in _NUMBERED.get(name, ()) if place < len(node.args)]
    given += _unlike(node) if name in _ADAPTIVE else []
    values = (
        tree_leaf.meta["val"] if isinstance(tree_leaf, torch.fx.Node) else tree_leaf
        for tree_leaf in pytree.tree_leaves(given)
    )
    sizes = [value for value in values if isinstance(value, torch.SymInt)]
    symbols = frozenset().union(*(size.node.expr.free_symbols for size in sizes))
    if symbols:
        raise InexpressibleSize("{name} is given a size where it needs a number.", symbols, name=name)


def _unlike(node: Any) -> list[Any]:
    """The sizes that an adaptive pool of more than one window changes: its windows differ with them."""
    made = node.meta["val"]
    made = made[0] if isinstance(made, (tuple, list)) else made
    rank = len(node.args[1])
    pairs = zip(node.args[0].meta["val"].shape[-rank:], made.shape[-rank:], strict=True)
    return [size for size, result in pairs if _text(result) != "1" and _text(size) != _text(result)]


def _text(size: Any) -> str:
    return str(size.node.expr) if isinstance(size, torch.SymInt) else str(size)


def check_complex(node: Any) -> None:
    """Raises Unsupported for a complex number where PyTorch takes no tensor in its place."""
    for wanted, argument in zip(node.target._schema.arguments, node.args, strict=False):
        if (
            isinstance(argument, complex)
            and "Tensor" not in str(wanted.type)
            and str(node.target) not in FILLED
        ):
            raise Unsupported(
                "{op} is given the complex number {value}: make it a tensor.", op=node.target, value=argument
            )


def check_operands(tensors: Iterable[Mapping[str, Any]]) -> None:
    """Raises Unsupported where ``tensors``, the inputs that a call has before it makes others, are none, or
    have a dtype that no kernel takes."""
    given = list(tensors)
    if not given:
        raise Unsupported("It takes no tensor that would say on which device its kernel runs.")
    for element in given:
        if element["spec"]["dtype"] not in OF_KERNELS:
            raise Unsupported(
                "{name} is {dtype}: kernels take {known}.",
                name=element["expression"],
                dtype=element["spec"]["dtype"],
                known=", ".join(OF_KERNELS),
            )
