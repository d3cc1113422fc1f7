"""Schedules of attentions: queries and keys of a step, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Annotated

from attrs import frozen

from evokernel_core.compiler.problems.attention import Attention
from evokernel_core.compiler.schedule import Listed, Named, Range, Scaled, Schedule, Stages
from evokernel_core.domain.descriptor import Algorithm, Dataflow, Descriptor, Split
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.expressions import next_power_of_2
from evokernel_core.targets.triton.kernels.occupancy import resident, together
from evokernel_core.targets.triton.kernels.precision import (
    PRECISION_NAMES,
    Precision,
    first_precisions,
    on_vector_units,
    product_rate,
    why_not,
)

_OTHER_REGISTERS = 48
"""A thread's registers beside scores, parts of the output and operands."""
_OF_SCORE = 10.0
"""Instructions of a score beside its power; none runs beside products (docs/results/gpu_search.md)."""
_STEP_US = 0.9
"""Assumed: two products of a step with the softmax between them, with nothing ahead."""
_TILES = (
    *((128, 128, 8), (128, 64, 8), (128, 64, 4), (64, 128, 4), (64, 64, 4), (64, 32, 4), (32, 64, 4)),
    *((32, 32, 4), (16, 128, 4), (16, 64, 4), (16, 32, 4), (16, 16, 1)),
)
"""Queries and keys of a step and warps of first schedules."""
_WIDTHS = tuple(2**power for power in range(4, 14))
_BLOCK = Range(16, 128, power_of_two=True)


@frozen
class AttentionSchedule(Schedule):
    """``block_q`` x ``block_k`` scores in a step of a program."""

    block_q: Annotated[int, _BLOCK, Scaled("double queries", "halve queries")]
    block_k: Annotated[int, _BLOCK, Scaled("double keys of a step", "halve keys of a step")]
    warps: Annotated[int, Range(1, 16, power_of_two=True), Scaled("double warps", "halve warps")] = 4
    stages: Annotated[
        int, Stages(1, 5), Listed("one stage more", "one stage less", table=(1, 2, 3, 4, 5))
    ] = 2
    precision: Annotated[Precision, Named(PRECISION_NAMES)] = Precision.IEEE


def starts(problem: Attention, sizes: Mapping[str, int], gpu: Gpu) -> Iterator[AttentionSchedule]:
    """Steps no larger than the attention needs."""
    queries, keys = problem.queries.evaluate(sizes), problem.keys.evaluate(sizes)
    for block_q, block_k, warps in _TILES:
        if block_q <= max(16, next_power_of_2(queries)) and block_k <= max(16, next_power_of_2(keys)):
            for stages, precision in product((3, 2, 1), first_precisions(problem.dtype, gpu)):
                yield AttentionSchedule(block_q, block_k, warps, stages, precision)


def padded(size: int) -> int:
    """Columns of a tile that holds whole rows of queries, keys or values."""
    return max(16, next_power_of_2(size))


def refusal(
    problem: Attention, schedule: AttentionSchedule, sizes: Mapping[str, int], gpu: Gpu
) -> str | None:
    """Why a schedule makes no kernel."""
    if reason := why_not(schedule.precision, problem.dtype, gpu):
        return reason
    depth, width = problem.depth.evaluate(sizes), problem.width.evaluate(sizes)
    if not _resident(problem.dtype, depth, width, schedule, gpu):
        return "Rows of queries, keys and values do not fit the registers and the shared memory."
    return None


def widest(dtype: str, gpu: Gpu) -> int:
    """Numbers of a row of queries, keys and values up to which the smallest tiles fit the device."""
    tiles = [AttentionSchedule(*tile, stages=1) for tile in _TILES]

    def fits(width: int, tile: AttentionSchedule) -> bool:
        is_small = gpu.live_bytes == 0 or _live_bytes(dtype, width, width, tile) <= gpu.live_bytes
        return is_small and _resident(dtype, width, width, tile, gpu) > 0

    return max((width for width in _WIDTHS if any(fits(width, tile) for tile in tiles)), default=0)


def _resident(dtype: str, depth: int, width: int, schedule: AttentionSchedule, gpu: Gpu) -> int:
    """Programs that a multiprocessor holds at a time."""
    size, depth, width = ITEM_SIZE[dtype], padded(depth), padded(width)
    threads = schedule.warps * gpu.threads_per_warp
    shared = schedule.block_q * depth * size + schedule.stages * schedule.block_k * (depth + width) * size
    shared += schedule.block_q * schedule.block_k * size
    registers = schedule.block_q * (width + schedule.block_k) / threads
    if on_vector_units(schedule.precision, dtype, gpu):
        registers += (schedule.block_q + schedule.block_k) * 16 / threads
        # queries of a thread stay in its registers through the loop, at least by half (by what ptxas took)
        registers += math.sqrt(schedule.block_q * schedule.block_k / threads) * depth / 2
    elif schedule.precision is Precision.TF32X3:
        registers += 2 * schedule.block_q * depth / threads
    return resident(gpu, schedule.warps, shared, math.ceil(registers) + _OTHER_REGISTERS)


def live_bytes(problem: Attention, schedule: AttentionSchedule, sizes: Mapping[str, int]) -> int:
    """Of all tiles of a program at once: queries, a step's keys and values, sums with what becomes of them,
    and scores."""
    depth, width = problem.depth.evaluate(sizes), problem.width.evaluate(sizes)
    return _live_bytes(problem.dtype, depth, width, schedule)


def _live_bytes(dtype: str, depth: int, width: int, schedule: AttentionSchedule) -> int:
    depth, width = padded(depth), padded(width)
    operands = ITEM_SIZE[dtype] * (schedule.block_q * depth + schedule.block_k * (depth + width))
    return operands + 4 * schedule.block_q * (2 * width + 5 * schedule.block_k)


def estimate_us(problem: Attention, schedule: AttentionSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    """Estimated microseconds: products, exponentials and memory side by side."""
    size = ITEM_SIZE[problem.dtype]
    matrices, queries, keys, depth, width = (
        getattr(problem, key).evaluate(sizes) for key in ("matrices", "queries", "keys", "depth", "width")
    )
    tiles = math.ceil(queries / schedule.block_q)
    programs = matrices * tiles
    held = max(_resident(problem.dtype, depth, width, schedule, gpu), 1)
    is_cut = problem.causal and problem.heads.is_one
    seen = keys if not is_cut else max(1, (min(keys, queries) + schedule.block_q) // 2)
    steps = math.ceil(seen / schedule.block_k)
    share = 1.0
    if problem.dtype == "float32":
        enough = 64 if on_vector_units(schedule.precision, problem.dtype, gpu) else 128
        share = min(1.0, math.sqrt(schedule.block_q * schedule.block_k) / enough)
    rate = product_rate(gpu, schedule.precision, problem.dtype) * share / gpu.multiprocessors
    step = 2 * schedule.block_q * schedule.block_k * (padded(depth) + padded(width)) / rate
    scores = schedule.block_q * schedule.block_k * gpu.multiprocessors
    step += scores / gpu.special_flops + _OF_SCORE * scores * 2 / gpu.vector_flops
    rounds = math.ceil(programs / (gpu.multiprocessors * held))
    at_once = min(held, math.ceil(programs / gpu.multiprocessors))
    computed = rounds * steps * max(step * at_once, step + _STEP_US / min(schedule.stages, 2))
    shared = math.ceil(matrices / problem.sharing.evaluate(sizes))
    moved = (matrices * queries * (depth + width) + shared * keys * (depth + width)) * size
    if problem.mask is not None:
        moved += matrices * queries * keys * 4
    panels = programs * steps * schedule.block_k * (depth + width) * size
    total = together(computed, panels / gpu.l2_bytes_us, moved / gpu.memory_bytes_us)
    return total + _STEP_US + gpu.launch_us


def notes(problem: Attention, schedule: AttentionSchedule) -> Iterator[str]:
    """A schedule in words."""
    yield Sentence(
        "Online softmax over steps of {block_q} queries x {block_k} keys, {warps} warps, {stages} stages."
    )
    if problem.causal:
        yield Sentence("Keys behind the last query of a tile are not read.")


def cell(problem: Attention, schedule: AttentionSchedule) -> Descriptor:
    """Its archive cell."""
    return Descriptor(Dataflow.OUTPUT_STATIONARY, "SHARED", Split.HEADS, Algorithm.ONLINE)
