"""What a fused kernel costs on a GPU: bytes, passes over them, arithmetic, programs that fill the device."""

from __future__ import annotations

import math
from collections.abc import Mapping

from evokernel_core.compiler.lowering.plan import Plan
from evokernel_core.compiler.lowering.values import Domain, Value
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu import Gpu
from evokernel_core.targets.triton.kernels.fused.accumulating import count
from evokernel_core.targets.triton.kernels.fused.fused_schedule import TileSchedule
from evokernel_core.targets.triton.kernels.occupancy import THREAD_REGISTERS

_SPECIAL = frozenset({"exp", "ln", "sqrt", "div"})
"""Operations of the special-function units."""
_REGISTERS_A_VALUE = 1.5
"""Registers of a float32 element of the tile, with addresses and what is computed from it (assumed)."""
_LATENCY_US = 0.7
"""From a load to its data from device memory, microseconds (assumed: 0.5 to 0.9 were published)."""
_SPILLED = 3.0
"""How much slower a program is whose tile does not fit registers (assumed)."""


def estimate_us(plan: Plan, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    """Modelled microseconds of one launch."""
    begun = programs_of(plan, schedule, sizes) / gpu.programs_us
    busy = max(_memory_us(plan, schedule, sizes, gpu), _arithmetic_us(plan, sizes, gpu))
    return gpu.launch_us + max(busy, begun)


def programs_of(plan: Plan, schedule: TileSchedule, sizes: Mapping[str, int]) -> int:
    """How many programs a launch has."""
    rows, columns = plan.rows.evaluate(sizes), plan.inner.evaluate(sizes)
    if plan.family == "piecewise":
        return rows
    if plan.family == "rowwise":
        return -(-rows // schedule.rows)
    if plan.family == "columnwise":
        outer = rows // max(plan.mid.evaluate(sizes), 1)
        return outer * -(-columns // schedule.columns)
    return -(-rows // schedule.rows) * -(-columns // schedule.columns)


def points_of(plan: Plan, sizes: Mapping[str, int]) -> int:
    """Points of the iteration space."""
    pieces = plan.leading.times(plan.mid) if plan.family == "piecewise" else None
    rows = plan.rows.evaluate(sizes) * (pieces.evaluate(sizes) if pieces else 1)
    return rows * plan.inner.evaluate(sizes)


def passes_of(plan: Plan, schedule: TileSchedule) -> int:
    """How often the points are gone over."""
    if not schedule.looped or not plan.reductions:
        return 1
    return count(plan)


def _memory_us(plan: Plan, schedule: TileSchedule, sizes: Mapping[str, int], gpu: Gpu) -> float:
    points, programs = points_of(plan, sizes), programs_of(plan, schedule, sizes)
    inputs = _input_bytes(plan, sizes, points)
    outputs = sum(
        ITEM_SIZE[one.dtype] * (points if one.domain is Domain.FULL else points / _reduced(plan, sizes))
        for one in plan.outputs
    )
    passes = passes_of(plan, schedule)
    resident = _resident_programs(schedule, gpu)
    under_way = min(programs, resident * gpu.multiprocessors)
    again = (passes - 1) * inputs
    in_cache = inputs * under_way / max(programs, 1) <= gpu.l2_bytes
    rate = _rate(schedule, under_way, gpu, plan)
    again_us = again / (gpu.l2_bytes_us if in_cache else gpu.memory_bytes_us)
    full = (inputs + outputs) / gpu.memory_bytes_us
    waves = programs / max(under_way, 1)
    uneven = math.ceil(waves) / waves if waves < 4 else 1.0
    steps = _steps(plan, schedule, sizes)
    fixed = _LATENCY_US * passes * (1 + 0.1 * min(steps, 200))
    slow = _SPILLED if schedule.tile * _REGISTERS_A_VALUE > THREAD_REGISTERS * 32 * schedule.warps else 1.0
    return slow * max((full * uneven), (inputs * passes + outputs) / rate) + again_us + fixed


def _rate(schedule: TileSchedule, under_way: int, gpu: Gpu, plan: Plan) -> float:
    """Bytes a microsecond that the programs under way can have: what each has requested, by the latency."""
    tensors = max(sum(1 for one in plan.inputs if one.inner), 1)
    requested = under_way * schedule.tile * 4 * tensors / _LATENCY_US
    workers = min(under_way, gpu.multiprocessors) * gpu.worker_bytes_us
    return min(requested, workers, gpu.l2_bytes_us)


def _resident_programs(schedule: TileSchedule, gpu: Gpu) -> int:
    """Programs that a multiprocessor holds at a time: threads and registers."""
    threads = schedule.warps * gpu.threads_per_warp
    registers = max(int(schedule.tile * _REGISTERS_A_VALUE / threads) + 24, 32) * threads
    return max(min(gpu.threads_per_multiprocessor // threads, gpu.registers // registers, 32), 1)


def _steps(plan: Plan, schedule: TileSchedule, sizes: Mapping[str, int]) -> int:
    """Steps of a program's loops."""
    if not schedule.looped:
        return 1
    mid, inner = plan.mid.evaluate(sizes), plan.inner.evaluate(sizes)
    down, across = -(-mid // schedule.rows), -(-inner // schedule.columns)
    if plan.family == "rowwise":
        return across
    if plan.family == "columnwise":
        return down
    return -(-mid * plan.leading.evaluate(sizes) // schedule.rows) * across


def _reduced(plan: Plan, sizes: Mapping[str, int]) -> int:
    """Points that are reduced to one."""
    if plan.family == "piecewise":
        return plan.leading.times(plan.mid).times(plan.inner).evaluate(sizes)
    return (plan.mid if plan.family == "columnwise" else plan.inner).evaluate(sizes)


def _input_bytes(plan: Plan, sizes: Mapping[str, int], points: int) -> int:
    """Bytes of all inputs, each once."""
    total = 0
    for one in {one.source: one for one in plan.inputs}.values():
        elements = plan.inner.evaluate(sizes) if one.inner else 1
        elements *= plan.mid.evaluate(sizes) if one.mid else 1
        elements *= plan.leading.evaluate(sizes) if one.mid and plan.family == "piecewise" else 1
        for there, size in zip(one.outer, plan.outer, strict=True):
            elements *= size.evaluate(sizes) if there else 1
        total += elements * ITEM_SIZE[one.dtype]
    return total


def _arithmetic_us(plan: Plan, sizes: Mapping[str, int], gpu: Gpu) -> float:
    points = points_of(plan, sizes)
    values: tuple[Value, ...] = plan.values()
    special = sum(value.op in _SPECIAL for value in values)
    simple = sum(value.op not in ("load", "scalar", "size") for value in values)
    return gpu.elementwise_us(points * simple, "float32") + gpu.transcendental_us(points * special)
