"""The category of a graph's main op, and a readable name for its task."""

from __future__ import annotations

import re

from evokernel_core.domain.graph import Graph

_SOFTMAX = {"_softmax", "_log_softmax", "softmax", "log_softmax", "logsumexp"}
_SCAN = {"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}
_NORM = {"native_layer_norm", "native_group_norm", "native_batch_norm"}
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
    reductions = [name for name in ops if name in _REDUCTION]
    scalar_output = all(spec.rank == 0 for spec in graph.output_specs())
    if scalar_output and ops and ops[-1] in _REDUCTION and len(ops) > 1:
        return "loss"
    if _SCAN.intersection(ops):
        return "scan"
    if _SOFTMAX.intersection(ops):
        return "softmax"
    if _NORM.intersection(ops) or _normalises(graph):
        return "normalization"
    if reductions:
        return "reduction"
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
    tensors = [item for item in graph.inputs if item.spec.rank > 0]
    return len(tensors) == 1 and bool(_ACTIVATION.union({"exp", "log1p", "abs"}).intersection(ops))


def task_name(graph: Graph, symbol: str) -> str:
    """An identifier for people: the owner of the code and its main op, as ``mlp_forward_silu``."""
    names = [packet(node.op).strip("_") for node in graph.nodes]
    telling = [name for name in names if name in _SCAN | _SOFTMAX | _NORM | _REDUCTION | _ACTIVATION]
    main = (telling or names or ["op"])[0]
    owner = re.sub(r"\W+", "_", symbol.removesuffix(".forward")).lower()
    return f"{owner}_{main}"
