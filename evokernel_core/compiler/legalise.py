"""What is rewritten before a graph is cut into kernels: passes over the whole graph, then single nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

from evokernel_core.compiler.rewrites import (
    attention,
    bags,
    combining,
    comparing,
    complexes,
    convolution,
    counting,
    fills,
    indexing,
    interleaving,
    layout,
    losses,
    measuring,
    one_hot,
    pooling,
    prod,
    putting,
    resizing,
    sampling,
    scan,
    scan_parts,
    sorting,
    views,
)
from evokernel_core.compiler.rewrites.depthwise import trimmed_depthwise
from evokernel_core.compiler.rewrites.dimensions import checked_calls
from evokernel_core.compiler.rewrites.doubles import doubles_in_float32
from evokernel_core.compiler.rewrites.folded_steps import folded_steps
from evokernel_core.compiler.rewrites.framing import framed_beside
from evokernel_core.compiler.rewrites.images_apart import images_apart
from evokernel_core.compiler.rewrites.linear_reductions import linear_reductions
from evokernel_core.compiler.rewrites.lstm_cells import recognise_lstm_cells
from evokernel_core.compiler.rewrites.raised_parts import raised_parts
from evokernel_core.compiler.rewrites.recurrent_cells import recognise_cells
from evokernel_core.compiler.rewrites.scan_patterns import recognise_scans
from evokernel_core.compiler.rewrites.split_reductions import split_reductions
from evokernel_core.compiler.rewrites.sunken_permutations import sunken_permutations
from evokernel_core.compiler.rewrites.variances import related_variances
from evokernel_core.compiler.rewrites.writer import Rewrite, rewritten
from evokernel_core.compiler.target import Pass, Target
from evokernel_core.domain.task import ById, KernelTask
from evokernel_core.hardware.device import Device

_FIRST: tuple[Pass, ...] = (
    checked_calls,
    doubles_in_float32,
    one_hot.one_hot_as_comparison,
    complexes.complex_in_parts,
)
_PATTERNS: tuple[Pass, ...] = (
    recognise_lstm_cells,
    recognise_cells,
    recognise_scans,
    attention.recognise_attention,
    bags.recognise_bags,
    images_apart,
    linear_reductions,
    folded_steps,
    related_variances,
    trimmed_depthwise,
    split_reductions,
)
"""Patterns of several nodes, in the order in which they are applied."""
_LAST: tuple[Pass, ...] = (raised_parts, sunken_permutations, split_reductions, framed_beside)
"""Those that also look at what the rewrites of single nodes write."""
_TABLES: tuple[Mapping[str, Rewrite], ...] = (
    convolution.REWRITES,
    layout.REWRITES,
    interleaving.REWRITES,
    scan.REWRITES,
    scan_parts.REWRITES,
    views.REWRITES,
    pooling.REWRITES,
    indexing.REWRITES,
    losses.REWRITES,
    prod.REWRITES,
    counting.REWRITES,
    fills.REWRITES,
    comparing.REWRITES,
    putting.REWRITES,
    combining.REWRITES,
    bags.REWRITES,
    resizing.REWRITES,
    sorting.REWRITES,
    sampling.REWRITES,
    measuring.REWRITES,
    one_hot.REWRITES,
    attention.REWRITES,
    complexes.REWRITES,
)


@cache
def rewrites(target: Target) -> Mapping[str, Rewrite]:
    """ATen or own name to its rewrite."""
    result: dict[str, Rewrite] = {}
    for table in (*_TABLES, target.passes().rewrites):
        result |= table
    return result


def legalised(task: KernelTask, device: Device, target: Target) -> KernelTask:
    """The task in the operations that the target's families know, grouped as their estimates say. Its inputs,
    outputs and symbols are the same, and it depends on the arguments alone. Raises PlanError for an operation
    that cannot be computed."""
    return _legalised(ById(task), device, target)


@lru_cache(maxsize=64)
def _legalised(key: ById, device: Device, target: Target) -> KernelTask:
    task = key.task
    passes = target.passes()
    for change in (*_FIRST, *passes.dtypes, *_PATTERNS, *passes.operands):
        task = change(task, device)
    task = rewritten(task, rewrites(target), device)
    for change in _LAST:
        task = change(task, device)
    return task
