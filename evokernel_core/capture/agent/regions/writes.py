"""What a call must ask before a kernel writes into tensors that its caller passes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..errors import Refused
from ..inputs.state import Held
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
