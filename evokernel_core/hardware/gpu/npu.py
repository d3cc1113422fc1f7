"""Ascend chips as Triton's kernels see them: a vector core takes a program, whose tiles lie in its unified
buffer.

Nothing here was run: the figures are those of the chip's file, and what triton-ascend makes of a text is
judged by its own front (docs/triton.md).
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType

from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Baseline
from evokernel_core.hardware.ascend.baseline import eager_baseline
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.hardware.gpu.gpu import Gpu

_LANES = 64
"""Elements of float32 that an instruction takes in a cycle: a repeat of 256 bytes."""


def npu_baseline(task: KernelTask, gpu: Gpu) -> Baseline:
    """What torch_npu's own kernels take on the chip: the same whatever language ours are in."""
    return eager_baseline(task, load_chip(gpu.name))


@cache
def npu(name: str) -> Gpu:
    """The chip of that name. ``registers`` are words of the unified buffer, ``shared_bytes`` the L1 of a cube
    core, in which operands of products lie; a warp is of no account there. Raises UsageError for an unknown
    one."""
    chip = load_chip(name)
    unified = chip.constants["memory.ub_total_bytes"]
    return Gpu(
        name=name,
        title=f"Ascend {name.removeprefix('ascend').upper()}",
        backend="npu",
        compute_capability=0,
        multiprocessors=chip.aiv,
        threads_per_warp=32,
        threads_per_multiprocessor=1024,
        registers=int(unified) // 4,
        shared_bytes=chip.memory.l1_bytes,
        shared_bytes_per_multiprocessor=chip.memory.l1_bytes,
        clock_mhz=chip.mhz,
        memory_bytes=chip.hbm_bytes,
        l2_bytes=chip.l2_bytes,
        peak_bytes_us=chip.peak_bytes_us,
        memory_bytes_us=chip.memory_bytes_us,
        l2_bytes_us=chip.l2_bytes_us,
        worker_bytes_us=chip.worker_bytes_us,
        launch_us=chip.launch_us,
        vector_flops=2 * _LANES * chip.aiv * chip.mhz,
        special_flops=chip.vector.elements_per_cycle.transcendental * chip.aiv * chip.mhz,
        float64_flops=chip.mhz,  # by scalar code alone
        flops=MappingProxyType(
            {
                "float16": _products(chip.aic, chip.mhz, chip.cube.depth_a_cycle(2)),
                "bfloat16": _products(chip.aic, chip.mhz, chip.cube.depth_a_cycle(2)),
                "float32": _products(chip.aic, chip.mhz, chip.cube.depth_a_cycle(4)),
            }
        ),
        has_tf32=False,
        programs=chip.aiv,
        live_bytes=int(unified),
    )


def _products(cores: int, mhz: float, depth: float) -> float:
    """Operations a microsecond of 16 x 16 results with so many terms in a cycle."""
    return 2 * 16 * 16 * depth * cores * mhz
