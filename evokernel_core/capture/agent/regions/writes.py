"""What a call must ask before a kernel writes into tensors that its caller passes."""

from __future__ import annotations

import types
from collections.abc import Collection

import torch

from ..errors import Refused
from .parts import PARAMETER, TENSOR, Leaf


def conditions_of_writing(
    leaves: tuple[Leaf, ...], written: Collection[int], module: types.ModuleType
) -> list[str]:
    """Python texts that hold where no gradient flows into what is written, and no other argument shares its
    memory: then new values that are copied into it are all that a caller can see. ``written`` are numbers
    of leaves. Raises Refused where the file has no name to ask by."""
    if not written:
        return []
    tensors = [leaf for leaf in leaves if leaf.kind == TENSOR]
    asked = [_without_gradients(tensors, leaves, module), *_apart(tensors, [leaves[i] for i in written])]
    return [text for text in asked if text]


def _without_gradients(tensors: list[Leaf], leaves: tuple[Leaf, ...], module: types.ModuleType) -> str:
    if any(leaf.kind == PARAMETER and leaf.value.requires_grad for leaf in leaves):
        name = next((name for name, value in vars(module).items() if value is torch), None)
        if name is None:
            raise Refused("It writes into an argument that gradients may reach: import torch, to ask.")
        return f"not {name}.is_grad_enabled()"
    floats = [leaf.expression for leaf in tensors if leaf.value.is_floating_point()]
    return f"not ({' or '.join(f'{text}.requires_grad' for text in floats)})" if floats else ""


def _apart(tensors: list[Leaf], written: list[Leaf]) -> list[str]:
    """One text for each pair of a tensor that is written and another one."""
    pairs: list[tuple[str, str]] = []
    for leaf in written:
        for other in tensors:
            names = sorted((leaf.expression, other.expression))
            if leaf is not other and (names[0], names[1]) not in pairs:
                pairs.append((names[0], names[1]))
    return [f"{_memory(one)} != {_memory(other)}" for one, other in pairs]


def _memory(text: str) -> str:
    return f"{text}.untyped_storage().data_ptr()"
