"""Step-centric training samples from the stored attempts (Kernel-Smith's filters).

A first step (task to kernel) is kept if the kernel is feasible; a later step (kernel to kernel) only
if it is feasible and faster than its parent, a verified kernel too, by latencies of the same source and
chip. Both are capped per task, best steps first, so that easy tasks do not crowd out the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evokernel_core.domain.serial import to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Latency
from evokernel_core.memory.candidates import Stored
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.lessons import summary

PER_TASK = 16


def samples(memory: Memory, per_task: int = PER_TASK) -> Iterator[dict[str, Any]]:
    """JSON objects: task, parent kernel and its verdict in words, child kernel, gain (parent latency
    over child latency; None for a first step)."""
    for task in memory.tasks():
        kept = [sample for sample in _steps(memory, task) if sample["gain"] is None or sample["gain"] > 1.0]
        kept.sort(key=lambda sample: -(sample["gain"] or 1.0))
        yield from kept[:per_task]


def _steps(memory: Memory, task: KernelTask) -> Iterator[dict[str, Any]]:
    stored = memory.candidates(task.task_id)
    for child in stored:
        if not child.verdict.feasible:
            continue
        parent = _parent(child, stored)
        gain = _gain(parent, child) if parent else None
        if child.parent and gain is None:
            continue  # the parent was judged by another verifier, or timed only: not comparable
        yield {
            "task": to_data(task),
            "parent": _kernel(parent) if parent else None,
            "child": _kernel(child),
            "gain": gain,
        }


def _parent(child: Stored, stored: tuple[Stored, ...]) -> Stored | None:
    for item in stored:
        same = item.verdict.verifier == child.verdict.verifier
        if item.source.source_id == child.parent and same and item.verdict.feasible:
            return item
    return None


def _gain(parent: Stored, child: Stored) -> float | None:
    before, after = parent.verdict.latency, child.verdict.latency
    if before is None or after is None or _judge(before) != _judge(after):
        return None
    return before.us / after.us


def _judge(latency: Latency) -> tuple[str, str]:
    return latency.source.value, latency.chip


def _kernel(item: Stored) -> dict[str, Any]:
    return {
        "tiling_h": item.source.tiling_h,
        "op_kernel_cpp": item.source.op_kernel_cpp,
        "strategy": to_data(item.source.strategy),
        "feedback": summary(item.verdict),
    }
