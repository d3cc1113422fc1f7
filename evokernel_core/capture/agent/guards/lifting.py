"""Which Python floats that a trace read can be operands of the kernel, so that it serves any value of them.

The code is traced again with other values, and the two graphs are compared: a number that stands in both as
it was read is an operand. One that the code compares, or computes with before a tensor meets it, is a guard.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..graph.names import input_name

_OPERATIONS = frozenset({"aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor"})
"""Operations of which a kernel takes a number at run time, as their second operand."""
_MOST = 16
_SHIFT = 2.0**-9


@dataclass(frozen=True)
class Setting:
    """A float that was read: the text that reaches it, and the dictionary that holds it."""

    path: str
    holder: dict[str, Any]
    name: str
    value: float


class _Watched(float):
    """A float that tells whether code looked at it otherwise than by passing it on."""

    looked_at = False

    def __new__(cls, value: float) -> _Watched:
        return super().__new__(cls, value)


def _telling(name: str) -> Callable[..., Any]:
    method = getattr(float, name)

    def call(self: Any, *args: Any) -> Any:
        self.looked_at = True
        return method(float(self) if name == "__hash__" else self, *args)

    return call


_COMPARING = ("lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "round", "hash")
for _name in _COMPARING:
    setattr(_Watched, f"__{_name}__", _telling(f"__{_name}__"))


def lifted(
    graph: dict[str, Any], settings: Iterable[Setting], traced: Callable[[], dict[str, Any]]
) -> tuple[dict[str, Any], frozenset[str]]:
    """The graph with operands for settings, and the paths of those; ``traced`` gives the graph anew."""
    chosen = [setting for setting in settings if math.isfinite(setting.value)][:_MOST]
    if not chosen or not any(_numbers(node) for node in graph["nodes"]):
        return graph, frozenset()
    values = [_Watched(_shifted(choice.value, index)) for index, choice in enumerate(chosen)]
    try:
        with _put(chosen, values):
            other = traced()
    except Exception:  # with other values there is no such graph: each value is a condition of its own
        return graph, frozenset()
    by_value = {float(new): choice for choice, new in zip(chosen, values) if not new.looked_at}  # noqa: B905
    places = _places(graph, other, by_value)
    if not places:
        return graph, frozenset()
    return _with_operands(graph, places), frozenset(place.path for place in places.values())


def _shifted(value: float, index: int) -> float:
    step = _SHIFT * (index + 1)
    return value * (1.0 + step) if value else step


@contextmanager
def _put(settings: list[Setting], values: list[_Watched]) -> Iterator[None]:
    try:
        for setting, value in zip(settings, values):  # noqa: B905
            setting.holder[setting.name] = value
        yield
    finally:
        for setting in settings:
            setting.holder[setting.name] = setting.value


def _numbers(node: dict[str, Any]) -> bool:
    return node["op"] in _OPERATIONS and len(node["args"]) > 1 and isinstance(node["args"][1], float)


def _places(
    graph: dict[str, Any], other: dict[str, Any], by_value: Mapping[float, Setting]
) -> dict[str, Setting]:
    """The nodes whose second operand is a setting; empty where the graphs differ in anything else."""
    result: dict[str, Setting] = {}
    if len(graph["nodes"]) != len(other["nodes"]):
        return {}
    for node, again in zip(graph["nodes"], other["nodes"]):  # noqa: B905
        if _numbers(node) and _numbers(again) and node["args"][1] != again["args"][1]:
            setting = by_value.get(again["args"][1])
            if setting is None or setting.value != node["args"][1]:
                return {}
            result[node["name"]] = setting
        elif node != again:
            return {}
    return result if graph["outputs"] == other["outputs"] else {}


def _with_operands(graph: dict[str, Any], places: Mapping[str, Setting]) -> dict[str, Any]:
    graph = copy.deepcopy(graph)
    taken = {part["name"] for part in (*graph["inputs"], *graph["nodes"])}
    names: dict[str, str] = {}
    for setting in places.values():
        if setting.path not in names:
            names[setting.path] = input_name(setting.path, taken)
            taken.add(names[setting.path])
            spec = {"shape": [], "dtype": "float32", "contiguous": True}
            graph["inputs"].append(
                {"name": names[setting.path], "spec": spec, "kind": "scalar",
                 "expression": setting.path, "value": setting.value}
            )  # fmt: skip
    for node in graph["nodes"]:
        if node["name"] in places:
            node["args"][1] = {"ref": names[places[node["name"]].path], "index": 0}
    return graph
