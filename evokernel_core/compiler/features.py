"""Structural features of a task, for the memory's similarity."""

from __future__ import annotations

import math
from collections import Counter

from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.compiler.fusion.program import parted
from evokernel_core.compiler.fusion.records import PROGRAM
from evokernel_core.compiler.target import Target
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec


def task_features(task: KernelTask, target: Target) -> dict[str, float]:
    """Feature name to weight: what the graph computes, on which dtypes, at which sizes.

    Counts are damped by log1p and sizes are base-2 logarithms over 10, so that all weights are of
    the order of one and no feature drowns the others.
    """
    kinds = covered_ops(target)
    features: dict[str, float] = {}
    ops = Counter(node.op.removeprefix("aten.").split(".")[0] for node in task.graph.nodes)
    for op, count in ops.items():
        features[f"op:{op}"] = math.log1p(count)
    for kind, count in Counter(kinds.get(node.op, "other") for node in task.graph.nodes).items():
        features[f"kind:{kind}"] = math.log1p(count)
    features[f"category:{task.op_category}"] = 1.0
    features["inputs"] = math.log1p(len(task.graph.inputs))
    features["outputs"] = math.log1p(len(task.graph.outputs))
    return features | _size_features(task)


def _size_features(task: KernelTask) -> dict[str, float]:
    specs = [*(operand.spec for operand in task.graph.inputs), *task.graph.output_specs()]
    largest = max(specs, key=lambda spec: spec.nbytes(task.sizes), default=TensorSpec((), "float32"))
    shape = largest.sizes(task.sizes)
    return {
        f"dtype:{largest.dtype}": 1.0,
        f"rank:{len(shape)}": 0.5,
        "log_elements": math.log2(max(math.prod(shape), 1)) / 10,
        "log_last_dim": math.log2(max(shape[-1] if shape else 1, 1)) / 10,
    }


def schedule_features(task: KernelTask, strategy: Strategy, estimate_us: float) -> dict[str, float]:
    """Feature name to weight of a schedule for a task, and of its estimate: what the family's own settings
    say, numbers as base-2 logarithms over 10. Of a program, each kernel's under the name of its family, and
    how many there are."""
    kernels = parted(strategy) if strategy.family == PROGRAM else (strategy,)
    features = {"kernels": math.log2(1 + len(kernels)) / 10, "log_estimate": math.log2(estimate_us) / 10}
    for kernel in kernels:
        features[f"family:{kernel.family}"] = 1.0
        for name, value in kernel.settings:
            features |= _setting(f"{kernel.family}.{name}", value)
    return features | _size_features(task)


def _setting(name: str, value: Setting) -> dict[str, float]:
    match value:
        case str() | bool():
            return {f"{name}={value}": 0.3}
        case _:
            return {name: math.copysign(math.log2(1 + abs(value)) / 10, value)}
