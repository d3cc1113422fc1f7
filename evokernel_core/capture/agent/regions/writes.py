"""What a call must ask before a kernel writes into tensors that its caller passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ..inputs.state import Held
from .parts import TENSOR, Leaf


def conditions_of_writing(leaves: tuple[Leaf, ...], written: Collection[int]) -> list[str]:
    """Python texts that hold where no other argument shares the memory of what is written: then new values
    that are copied into it are all that a caller can see. ``written`` are numbers of leaves."""
    tensors = [leaf for leaf in leaves if leaf.kind == TENSOR]
    return _apart(tensors, [leaves[index] for index in written])


def aliases(places: Iterable[Held], graph: dict[str, Any]) -> list[str]:
    """Python texts that hold where places of one tensor, such as tied weights, still hold one tensor."""
    used = {item["expression"] for item in (*graph["inputs"], *graph["updates"])}
    together: dict[int, list[str]] = {}
    for place in places:
        together.setdefault(id(place.tensor), []).append(place.expression)
    shared = (list(dict.fromkeys(texts)) for texts in together.values() if used.intersection(texts))
    return [f"{other} is {first}" for first, *others in shared for other in others]


def conditions_of_states(leaves: tuple[Leaf, ...], written: Collection[int]) -> list[str]:
    """Python texts that hold where no argument lies in the memory of a buffer of the module that gets new
    values. One with more elements cannot: batch norms, whose statistics are short, need no text."""
    found = []
    for index in written:
        state = leaves[index]
        if state.kind != TENSOR:
            short = [
                leaf for leaf in leaves if leaf.kind == TENSOR and leaf.value.numel() <= state.value.numel()
            ]
            found += _apart(short, [state])
    return found


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
