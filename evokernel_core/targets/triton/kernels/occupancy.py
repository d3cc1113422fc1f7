"""How many programs of a kernel a multiprocessor holds, and how long launches of them take at least."""

from __future__ import annotations

import math

from evokernel_core.hardware.gpu.gpu import Gpu

THREAD_REGISTERS = 255
"""What one thread may have, by CUDA's guide."""
_MOST_PROGRAMS = 32
"""That share a multiprocessor, by CUDA's guide."""
_OVERLAP = 4.0
"""Exponent of the norm in which times of units that work side by side become one."""


def resident(gpu: Gpu, warps: int, shared_bytes: int, registers: int) -> int:
    """Programs that share a multiprocessor, 0 where none fits: so many ``registers`` a thread."""
    threads = warps * gpu.threads_per_warp
    if shared_bytes > gpu.shared_bytes or registers > THREAD_REGISTERS:
        return 0
    by_shared = gpu.shared_bytes_per_multiprocessor // max(shared_bytes, 1)
    by_registers = gpu.registers // (threads * max(registers, 1))
    return max(0, min(by_shared, by_registers, gpu.threads_per_multiprocessor // threads))


def busy_share(gpu: Gpu, programs: int) -> float:
    """The share of the multiprocessors' time that is worked in when so many equal programs are dealt."""
    rounds = math.ceil(programs / gpu.multiprocessors)
    return programs / (rounds * gpu.multiprocessors) if programs else 1.0


def together(*times: float) -> float:
    """Microseconds of work on units that overlap."""
    return float(sum(time**_OVERLAP for time in times) ** (1 / _OVERLAP))


def streamed_us(gpu: Gpu, nbytes: float, programs: int, warps: int) -> float:
    """Microseconds in which so many programs move bytes: few of them do not use the whole memory, and many
    take as long as it takes to begin them."""
    threads_each = warps * gpu.threads_per_warp
    at_once = min(_MOST_PROGRAMS, gpu.threads_per_multiprocessor // threads_each)
    threads = min(programs, at_once * gpu.multiprocessors) * threads_each
    full = gpu.multiprocessors * gpu.threads_per_multiprocessor / 4
    share = min(1.0, max(threads / full, 1 / (4 * gpu.multiprocessors)))
    rate = min(gpu.memory_bytes_us * share, max(programs, 1) * gpu.worker_bytes_us)
    return max(nbytes / rate, programs / gpu.programs_us)
