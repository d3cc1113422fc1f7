"""Operations on complex tensors have names of their own where kernels are offered for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..errors import OF_COMPLEX
from ..sentence import Sentence
from .names import refs_in

_KEPT = "complex64"


def is_complex(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


def name_for(name: str, args: Any, kwargs: Any) -> str:
    """An operation's name as kernels are offered for it, by its arguments."""
    return name + OF_COMPLEX if any(map(is_complex, pytree.tree_leaves((args, kwargs)))) else name


def names_in(nodes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """The same of each node of a graph in JSON form, and its line."""
    result: set[str] = set()
    for node in nodes:
        reads_complex = not result.isdisjoint(refs_in(node["args"]))
        yield node["op"] + OF_COMPLEX * reads_complex, node["line"]
        if any(spec["dtype"] == _KEPT for spec in node["outputs"]):
            result.add(node["name"])


def refusal(dtype: torch.dtype) -> str:
    """Why a tensor of complex numbers is outside of what kernels compute; empty where it is not."""
    name = str(dtype).removeprefix("torch.")
    if not dtype.is_complex or name == _KEPT:
        return ""
    return Sentence(
        "A tensor is {name}, and kernels compute {kept} only: convert it, or what it is made of.",
        name=name,
        kept=_KEPT,
    )
