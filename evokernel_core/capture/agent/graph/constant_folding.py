"""Constants of a graph: numbers that are computed from nothing else (``torch.log(torch.tensor(100.0))`` is
4.6), and small tensors that are joined from numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .names import without_view


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


def node_of(
    name: str, op: str, args: list[Any], outputs: list[dict[str, Any]], line: int = 0, **kwargs: Any
) -> dict[str, Any]:
    """A node in domain.serial's JSON form; ``line`` is that of the code which made it, 0 for none."""
    return {"name": name, "op": op, "args": args, "kwargs": [[*item] for item in kwargs.items()],
            "outputs": outputs, "line": line}  # fmt: skip


def contiguous(shape: list[Any], dtype: str) -> dict[str, Any]:
    """The spec of a contiguous tensor."""
    return {"shape": shape, "dtype": dtype, "contiguous": True}


def joined(name: str, value: torch.Tensor) -> list[dict[str, Any]]:
    """Nodes in domain.serial's JSON form that make a tensor of known numbers; the last one is the tensor."""
    dtype = str(value.dtype).removeprefix("torch.")
    nodes: list[dict[str, Any]] = []

    def add(op: str, args: list[Any], shape: list[int], **kwargs: Any) -> dict[str, Any]:
        label = f"{name}_{len(nodes)}"
        nodes.append(node_of(label, op, args, [contiguous(shape, dtype)], **kwargs))
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

    numbers = {f"{name}_real": value.real, f"{name}_imag": value.imag}
    made = [contiguous([], "float32")]
    parts = [
        node_of(label, "aten.full.default", [[], number], made, dtype={"dtype": "float32"})
        for label, number in numbers.items()
    ]
    refs = [{"ref": label, "index": 0} for label in numbers]
    return [*parts, node_of(name, "aten.complex.default", refs, [contiguous([], "complex64")])]


def _is_pure(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload) or not node.all_input_nodes:
        return False
    seeded = torch.Tag.nondeterministic_seeded in node.target.tags
    return not seeded and not node.target._schema.is_mutable


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.numel() == 1


_MOST_WRITTEN = 256
"""Numbers that an edit writes into the user's file; a larger table belongs into a buffer."""
_DIGITS = range(6, 10)
"""Nine digits tell any two numbers of float32 apart."""
_PLAIN = re.compile(r"[A-Za-z_][\w.]*")


def is_table(value: Any) -> bool:
    """Whether a captured constant can stand in a call."""
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) or value.requires_grad:
        return False
    return value.numel() <= _MOST_WRITTEN and bool(value.isfinite().all())


def table(value: torch.Tensor, device: str) -> str:
    """Python text that makes the tensor on a device."""
    return f"torch.tensor({_text(value.tolist(), value.dtype)}, dtype={value.dtype}, device={device})"


def device_of(inputs: list[dict[str, Any]]) -> str:
    """Python text of the device of the first input that a plain name reaches; empty where none does."""
    texts = (without_view(operand["expression"]) for operand in inputs if operand["kind"] != "scalar")
    return next((f"{text}.device" for text in texts if _PLAIN.fullmatch(text)), "")


def _text(value: Any, dtype: torch.dtype) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_text(element, dtype) for element in value)}]"
    if not isinstance(value, float) or math.isclose(value, round(value, 4), rel_tol=0, abs_tol=0):
        return repr(value)
    # double precision of a number of fewer digits has digits that nobody wrote
    exact = torch.tensor(value, dtype=dtype)
    texts = (f"{value:.{digits}g}" for digits in _DIGITS)
    return next((text for text in texts if torch.tensor(float(text), dtype=dtype) == exact), repr(value))
