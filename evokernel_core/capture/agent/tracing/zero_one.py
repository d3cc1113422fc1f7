"""Which symbols may be one. torch traces sizes of two and more, and assumes that none is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..reference.reference import size_of
from .export import RegionFunction
from .sizes import SymbolSizes


class _Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def least_sizes(
    function: RegionFunction, specs: list[dict[str, Any]], outputs: list[list[int | str]], known: SymbolSizes
) -> list[dict[str, Any]]:
    """The symbols of a task. The least size of each is one where the region then runs the same ops to the
    shapes that the graph predicts, else what tracing assumed. ``specs`` are the specs of the function's
    inputs, ``outputs`` the shapes of the graph's results."""
    sizes = {name: known.hints[symbol] for symbol, name in known.names.items()}
    traced = {name: known.minimums[symbol] for symbol, name in known.names.items()}
    expected = _run(function, specs, sizes)[0]
    works = {name for name, least in traced.items() if least == 2 and _agrees(
        function, specs, outputs, {**sizes, name: 1}, expected
    )}  # fmt: skip
    together = {name: 1 if name in works else size for name, size in sizes.items()}
    if not _agrees(function, specs, outputs, together, expected):
        works = set()
    return known.symbols({name: 1 if name in works else least for name, least in traced.items()})


def _agrees(
    function: RegionFunction,
    specs: list[dict[str, Any]],
    outputs: list[list[int | str]],
    sizes: Mapping[str, int],
    expected: list[str],
) -> bool:
    try:
        calls, shapes = _run(function, specs, sizes)
    except Exception:
        return False  # whatever it raised, a size of one is not covered
    predicted = [tuple(size_of(dim, sizes) for dim in shape) for shape in outputs]
    return calls == expected and shapes == predicted


def _run(
    function: RegionFunction, specs: list[dict[str, Any]], sizes: Mapping[str, int]
) -> tuple[list[str], list[tuple[int, ...]]]:
    names = _Names()
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        inputs = [
            torch.empty([size_of(dim, sizes) for dim in spec["shape"]], dtype=getattr(torch, spec["dtype"]))
            for spec in specs
        ]
        with names:
            results = pytree.tree_leaves(function.call(*inputs))
    return names.calls, [tuple(result.shape) for result in results]
