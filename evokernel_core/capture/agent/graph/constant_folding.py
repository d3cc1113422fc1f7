"""Constants of a graph: numbers that are computed from nothing else (``torch.log(torch.tensor(100.0))`` is
4.6), and small tensors that are joined from numbers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


def numbers(graph: torch.fx.Graph, constants: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Values of one element, by the names of the nodes that compute them. ``constants``: tensors by the
    names of the placeholders that they are given as; fake ones have no value and give none."""
    known = {name: value for name, value in constants.items() if _is_number(value)}
    result: dict[str, torch.Tensor] = {}
    for node in graph.nodes:
        if not _is_pure(node) or not all(
            all_input_node.name in known for all_input_node in node.all_input_nodes
        ):
            continue
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda element: known[element.name])
        value = node.target(*args, **kwargs)
        if _is_number(value):
            known[node.name] = result[node.name] = value
    return result


def joined(name: str, value: torch.Tensor) -> list[dict[str, Any]]:
    """Nodes in domain.serial's JSON form that make a tensor of known numbers; the last one is the tensor."""
    dtype = str(value.dtype).removeprefix("torch.")
    nodes: list[dict[str, Any]] = []

    def add(op: str, args: list[Any], shape: list[int], **kwargs: Any) -> dict[str, Any]:
        label = f"{name}_{len(nodes)}"
        outputs = [{"shape": shape, "dtype": dtype, "contiguous": True}]
        nodes.append({"name": label, "op": op, "args": args, "kwargs": [[*item] for item in kwargs.items()],
                      "outputs": outputs, "line": 0})  # fmt: skip
        return {"ref": label, "index": 0}

    counts = [(number, len(list(run))) for number, run in groupby(value.flatten().tolist())]
    parts = [
        add("aten.full.default", [[count], number], [count], dtype={"dtype": dtype})
        for number, count in counts
    ]
    whole = add("aten.cat.default", [parts, 0], [value.numel()]) if len(parts) > 1 else parts[0]
    add("aten.reshape.default", [whole, list(value.shape)], list(value.shape))
    return nodes


def complex_number(name: str, value: complex) -> list[dict[str, Any]]:
    """Nodes in the same form that make a tensor of no dimensions; the last one is the tensor."""

    def node(label: str, op: str, args: list[Any], made: str, **kwargs: Any) -> dict[str, Any]:
        outputs = [{"shape": [], "dtype": made, "contiguous": True}]
        return {"name": label, "op": op, "args": args, "kwargs": [[*item] for item in kwargs.items()],
                "outputs": outputs, "line": 0}  # fmt: skip

    numbers = {f"{name}_real": value.real, f"{name}_imag": value.imag}
    parts = [
        node(label, "aten.full.default", [[], number], "float32", dtype={"dtype": "float32"})
        for label, number in numbers.items()
    ]
    refs = [{"ref": label, "index": 0} for label in numbers]
    return [*parts, node(name, "aten.complex.default", refs, "complex64")]


def _is_pure(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload) or not node.all_input_nodes:
        return False
    seeded = torch.Tag.nondeterministic_seeded in node.target.tags
    return not seeded and not node.target._schema.is_mutable


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.numel() == 1
