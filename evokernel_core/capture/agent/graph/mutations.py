"""Which calls change a tensor in place, and in which of the ways that a region may."""

from __future__ import annotations

from typing import Any

import torch

_COPY, _ADD = "aten.copy_.default", "aten.add_.Tensor"


def statistics(name: str, args: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """The running statistics that a batch normalisation changes, which its schema does not say."""
    changes = name.startswith("aten.native_batch_norm") and bool(args[5]) and args[3] is not None
    return (args[3], args[4]) if changes else ()


def updates(node: Any) -> bool:
    """Whether a traced node gives an input of the trace a new value."""
    return str(node.target) == _COPY and changed(node) is not None


def counts(call: Any) -> bool:
    """Whether a traced node or a dispatched call adds a whole number to a single integer."""
    if str(getattr(call, "target", "") or getattr(call, "name", "")) != _ADD:
        return False
    target, step = call.args[0], call.args[1]
    if isinstance(target, torch.fx.Node):
        target = target.meta["val"] if changed(call) is not None else None
    known = isinstance(target, torch.Tensor) and isinstance(step, int) and not isinstance(step, bool)
    return known and target.dim() == 0 and target.dtype in (torch.int32, torch.int64)


def changed(node: Any) -> Any:
    """The input of the trace that a traced node changes, None where it changes none. After a change,
    the tracer names the tensor by the node that changed it."""
    while isinstance(node, torch.fx.Node) and str(node.target) in (_COPY, _ADD):
        node = node.args[0]
    return node if isinstance(node, torch.fx.Node) and node.op == "placeholder" else None
