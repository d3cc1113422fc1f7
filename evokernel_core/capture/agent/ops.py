"""Which dispatched ops a kernel can compute, directly or after decomposition to core ATen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from .record import Evaluation, OpCall

NO_OPS = frozenset({
    "aten.alias.default", "aten.clone.default", "aten.contiguous.default", "aten.detach.default",
    "aten.lift_fresh.default", "aten.lift_fresh_copy.default", "aten._assert_tensor_metadata.default",
})  # fmt: skip
"""Ops that change no value: they vanish from the graph."""

CASTS = frozenset({"aten._to_copy.default"})
"""Ops that alone are not worth a kernel."""


@lru_cache(maxsize=1)
def decompositions() -> dict[Any, Any]:
    return dict(torch.export.default_decompositions().items())


class Fusibility:
    """Answers for one request; ``categories`` maps op names to pointwise, reduction or view."""

    def __init__(self, categories: Mapping[str, str]) -> None:
        self.categories = categories
        self._known: dict[str, tuple[str, ...]] = {}

    def fits(self, name: str) -> bool:
        """Whether a core-ATen op can be in a kernel."""
        return name in self.categories or name in NO_OPS

    def computes(self, name: str) -> bool:
        """Whether the op is work for a kernel, rather than a view, a cast or nothing at all."""
        return self.categories.get(name) in ("pointwise", "reduction") and name not in CASTS

    def core_ops(self, call: OpCall) -> tuple[str, ...]:
        """The core-ATen ops that a call decomposes into; itself where nothing is known."""
        if self.fits(call.name):
            return (call.name,)
        key = _key(call)
        if key not in self._known:
            self._known[key] = _decompose(call)
        return self._known[key]

    def obstacle(self, evaluation: Evaluation) -> str:
        """The first op of an evaluation that no kernel computes, empty if all fit."""
        for call in evaluation.ops:
            if call.mutates:
                return call.name
            if any(not self.fits(name) for name in self.core_ops(call)):
                return call.name
        return ""

    def work(self, evaluation: Evaluation) -> int:
        """How many of the evaluation's core ops compute something."""
        return sum(self.computes(name) for call in evaluation.ops for name in self.core_ops(call))


def _key(call: OpCall) -> str:
    def describe(value: Any) -> str:
        return f"{value.dtype}{value.dim()}" if isinstance(value, torch.Tensor) else repr(value)

    return f"{call.name}{pytree.tree_map(describe, (call.args, call.kwargs))}"


def _decompose(call: OpCall) -> tuple[str, ...]:
    if call.func not in decompositions():
        return (call.name,)
    flat, spec = pytree.tree_flatten((call.args, call.kwargs))
    tensors = [value for value in flat if isinstance(value, torch.Tensor)]

    def run(*given: torch.Tensor) -> Any:
        remaining = iter(given)
        values = [next(remaining) if isinstance(value, torch.Tensor) else value for value in flat]
        args, kwargs = pytree.tree_unflatten(values, spec)
        return call.func(*args, **kwargs)

    mode = _mode_of(tensors)
    try:
        with mode:
            graph = make_fx(run, decomposition_table=decompositions())(*tensors).graph
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        # an op whose decomposition does not trace on its own stays what it is
        return (call.name,)
    names = tuple(str(node.target) for node in graph.nodes if node.op == "call_function")
    return tuple(name for name in names if name.startswith(("aten.", "prims.")))


def _mode_of(tensors: list[torch.Tensor]) -> Any:
    fake: Iterator[FakeTensor] = (tensor for tensor in tensors if isinstance(tensor, FakeTensor))
    return next((tensor.fake_mode for tensor in fake), FakeTensorMode())
