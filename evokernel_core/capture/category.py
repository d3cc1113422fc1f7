"""The category of a graph's main op, and a readable name for its task."""

from __future__ import annotations

import re

from evokernel_core.domain.graph import Graph

_SOFTMAX = {"_softmax", "_log_softmax", "softmax", "log_softmax", "logsumexp"}
_SCAN = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}
_NORM = {"native_layer_norm", "native_group_norm", "native_batch_norm"}
_HEAVY = (
    ("attention", {"scaled_dot_product_attention"}),
    ("convolution", {"convolution"}),
    ("matmul", {"mm", "bmm", "lstm", "gru"}),
)
"""Categories of the operations that outweigh all others beside them, the heaviest first."""
_POOLING = {
    "max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d",
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d",
}  # fmt: skip
_INDEX = {
    "gather", "scatter", "scatter_add", "index_select", "index", "index_put", "index_add", "index_copy",
    "embedding", "nll_loss_forward",
}  # fmt: skip
_LAYOUT = {
    "permute", "transpose", "t", "cat", "stack", "constant_pad_nd", "slice", "select", "flip", "roll",
    "repeat", "expand", "view", "unsqueeze", "squeeze", "clone", "tril", "triu", "unfold", "split",
    "split_with_sizes",
}  # fmt: skip
_OF_COMPLEX = {"view_as_complex", "view_as_real"}
_REDUCTION = {
    "sum", "mean", "amax", "amin", "max", "min", "prod", "var", "var_mean", "std", "any", "all",
    "argmax", "argmin", "linalg_vector_norm",
}  # fmt: skip
_ACTIVATION = {
    "relu", "sigmoid", "tanh", "gelu", "silu", "leaky_relu", "elu", "hardtanh", "clamp", "softplus",
    "hardsigmoid", "hardswish", "mish", "erf",
}  # fmt: skip


def packet(op: str) -> str:
    """``aten.add.Tensor`` gives ``add``."""
    return op.split(".")[1]


def op_category(graph: Graph) -> str:
    """One of KernelTask.op_category's values, from the ops and from what leaves the graph."""
    ops = [packet(node.op) for node in graph.nodes]
    for category, heavy in _HEAVY:
        if heavy.intersection(ops):
            return category
    return _category_of_light_work(graph, ops)


def _category_of_light_work(graph: Graph, ops: list[str]) -> str:
    scalar_output = all(spec.rank == 0 for spec in graph.output_specs())
    if scalar_output and ops and ops[-1] in _REDUCTION and len(ops) > 1:
        return "loss"
    for category, names in (("scan", _SCAN), ("pooling", _POOLING), ("softmax", _SOFTMAX)):
        if names.intersection(ops):
            return category
    if _NORM.intersection(ops) or _normalises(graph):
        return "normalization"
    for category, names in (("reduction", _REDUCTION), ("index", _INDEX)):
        if names.intersection(ops):
            return category
    if ops and _LAYOUT.issuperset(ops):
        return "layout"
    return "activation" if _is_activation(graph, ops) else "elementwise"


def _normalises(graph: Graph) -> bool:
    """A statistic of the input divides it again: RMS, L1, L2 norms and their like."""
    statistics: set[str] = set()
    for node in graph.nodes:
        name, operands = packet(node.op), [ref.name for ref in node.operands()]
        divisors = operands[1:] if name == "div" else operands
        if name in ("div", "rsqrt", "reciprocal") and statistics.intersection(divisors):
            return True
        if name in _REDUCTION or statistics.intersection(operands):
            statistics.add(node.name)
    return False


def _is_activation(graph: Graph, ops: list[str]) -> bool:
    """One tensor in, and its value is bent: tanh(x), x * sigmoid(x), 0.5 * x * (1 + tanh(..))."""
    tensors = [operand for operand in graph.inputs if operand.spec.rank > 0]
    return len(tensors) == 1 and bool(_ACTIVATION.union({"exp", "log1p", "abs"}).intersection(ops))


def task_name(graph: Graph, symbol: str) -> str:
    """An identifier for people: the owner of the code and its main op, as ``mlp_forward_silu``."""
    names = [packet(node.op).strip("_") for node in graph.nodes]
    names = [name for name in names if name not in _OF_COMPLEX] or names
    telling = [name for name in names if name in _SCAN | _SOFTMAX | _NORM | _REDUCTION | _ACTIVATION]
    main = (telling or names or ["op"])[0]
    owner = re.sub(r"\W+", "_", symbol.removesuffix(".forward")).lower()
    return f"{owner}_{main}"
