"""Which call of eager PyTorch each traced node is part of: one that is taken apart makes several nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any
from unittest.mock import patch

import torch
from torch.fx import traceback
from torch.fx.experimental import proxy_tensor

_FIELD = "original_aten"
"""The field of a node's meta data in which PyTorch notes the operation that was called."""


@dataclass(frozen=True)
class EagerCall:
    """A call by its operation's name, and by its place among a function's calls."""

    op: str
    number: int


class _Calls:
    def __init__(self) -> None:
        self._numbers = count(1)
        self._is_inside = False

    @contextmanager
    def call(self, operation: Any) -> Iterator[None]:
        """Nodes traced meanwhile are of this call, if they are of no other around it."""
        if self._is_inside or not traceback.has_preserved_node_meta():
            yield
            return
        self._is_inside = True
        meta = traceback.current_meta
        meta[_FIELD] = EagerCall(str(operation), next(self._numbers))
        try:
            yield
        finally:
            self._is_inside = False
            meta[_FIELD] = None


_calls: ContextVar[_Calls | None] = ContextVar("_calls", default=None)


@contextmanager
def noted() -> Iterator[None]:
    """While nodes are traced, each is told its call."""
    calls = _Calls()
    token = _calls.set(calls)
    try:
        with patch.object(proxy_tensor, "set_original_aten_op", calls.call):
            yield
    finally:
        _calls.reset(token)


def call_of(operation: Any) -> AbstractContextManager[None]:
    """A context in which what is traced is a call of an operation that PyTorch's dispatcher takes apart."""
    calls = _calls.get()
    return nullcontext() if calls is None else calls.call(operation)


def told(node: torch.fx.Node) -> dict[str, Any] | None:
    """A node's call as data; None where it has none, as where its operation is called by itself."""
    call = node.meta.get(_FIELD)
    if not isinstance(call, EagerCall):
        return None
    return {"op": call.op, "number": call.number}
