"""What a call must ask before a kernel writes into tensors that its caller passes."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import Refused
from ..inputs.state import Change, Held
from ..loading.source import SourceFunction
from .parts import TENSOR, Leaf


def conditions_of_writing(
    leaves: tuple[Leaf, ...], graph: Mapping[str, Any], copied: Collection[str] = ()
) -> list[str]:
    """Python texts that hold where PyTorch writes into the tensors that the call writes, and nothing else
    that it reads lies in their memory: then new values that are copied into them are all that a caller can
    see. ``copied`` are the texts of tensors that a statement behind the kernel copies others into."""
    changed = [update["expression"] for update in graph["updates"] if update["output"] is not None]
    written = list(dict.fromkeys([*changed, *copied]))
    read = {operand["expression"] for operand in graph["inputs"]}
    given = [leaf.expression for leaf in leaves if leaf.kind == TENSOR or leaf.expression in read]
    others = [text for text in dict.fromkeys(given) if text not in written]
    if not written:
        return []
    texts = [f"guards.writable({_tuple(written)})"]
    if len(written) + len(others) > 1:
        texts.append(f"guards.apart({_tuple(written)}, {_tuple(others)})")
    return texts


def check_writes(graph: Mapping[str, Any], names: Collection[str]) -> None:
    """``names`` are those that the code reads. Raises Refused for writes that autograd does not count."""
    if graph["updates"] and "data" in names:
        raise Refused(
            "It reads the data of a tensor and writes into one, which autograd would count: write into the "
            "tensor itself, under torch.no_grad()."
        )


def _tuple(texts: list[str]) -> str:
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def aliases(places: Iterable[Held], graph: dict[str, Any]) -> list[str]:
    """Python texts that hold where places of one tensor, such as tied weights, still hold one tensor."""
    used = {part["expression"] for part in (*graph["inputs"], *graph["updates"])}
    together: dict[int, list[str]] = {}
    for place in places:
        together.setdefault(id(place.tensor), []).append(place.expression)
    shared = (list(dict.fromkeys(texts)) for texts in together.values() if used.intersection(texts))
    return [f"{other} is {first}" for first, *others in shared for other in others]


def is_set_by_each_call(
    change: Change, later: frozenset[str], graph: dict[str, Any], functions: Iterable[SourceFunction]
) -> bool:
    """Whether what the first call set is a tensor that a ``later`` call sets too, without reading it before
    and without a condition of the ``functions`` on it."""
    text = change.expression
    if not isinstance(change.value, torch.Tensor) or text not in later:
        return False
    if any(operand["expression"] == text for operand in graph["inputs"]):
        return False
    name = text.rpartition(".")[2]
    nodes = (node for function in functions for node in ast.walk(function.node))
    return name.isidentifier() and not any(_asks_for(node, name) for node in nodes)


def _asks_for(node: ast.AST, name: str) -> bool:
    """Whether what runs depends on the attribute itself: a condition reads it, or ``hasattr`` names it."""
    if isinstance(node, ast.Constant):
        return bool(node.value == name)
    return any(
        isinstance(child, ast.Attribute) and child.attr == name and isinstance(child.ctx, ast.Load)
        for part in _conditions(node)
        for child in ast.walk(part)
    )


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        yield node.test
    elif isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Match)):
        yield node
    elif isinstance(node, ast.Try):
        yield from node.body
