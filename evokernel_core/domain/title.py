"""What a task computes, as a name for people: ``rms_norm``, ``attention``; or ``Block.forward``, the function
that holds it, where it is several such things or none."""

from __future__ import annotations

from collections.abc import Sequence

from evokernel_core.domain.task import KernelTask

_PRODUCTS = {"mm", "bmm", "addmm", "baddbmm"}
_KINDS = {
    **dict.fromkeys(_PRODUCTS, "matmul"),
    **dict.fromkeys(("lstm", "gru", "convolution"), ""),
    **dict.fromkeys(("softmax", "log_softmax", "logsumexp"), ""),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), ""),
    "scaled_dot_product_attention": "attention",
    "native_layer_norm": "layer_norm",
    "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm",
}
"""Operations that name what is computed, whatever is computed beside them; empty: by their own name."""
_MOVES = {"view", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "clone", "to_copy", "slice"}
"""Operations that compute nothing."""


def title_of(task: KernelTask, symbol: str) -> str:
    """``symbol`` is the function that holds the code."""
    names = [node.op.split(".")[1].strip("_") for node in task.graph.nodes]
    kinds = _kinds(names, task.op_category)
    if len(kinds) == 1:
        return kinds.pop()
    if kinds == {"matmul", "softmax"} and sum(name in _PRODUCTS for name in names) == 2:  # written out
        return "attention"
    computed = [name for name in names if name not in _MOVES]
    return computed[0] if len(computed) == 1 and not kinds else symbol


def _kinds(names: Sequence[str], category: str) -> set[str]:
    kinds = {_KINDS[name] or name for name in names if name in _KINDS}
    if category == "normalization" and not any(kind.endswith("_norm") for kind in kinds):
        is_rms = {"mean", "rsqrt"}.issubset(names) and not {"sub", "var", "var_mean"}.intersection(names)
        kinds.add("rms_norm" if is_rms else "normalization")
    return kinds
