"""GPUs: the constants of one model, read from ``gpus/<name>.toml``.

A figure that its maker published says where; what nobody published is marked ``assumed``, and what was
measured says on which device. Fields of ``Device`` and what schedules of Triton ask stand here.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

from attrs import NOTHING, fields, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.tensor import ITEM_SIZE
from evokernel_core.hardware.gpu.gpu_files import DEFAULT_GPU, GPUS, gpu_names

_LANES_FP32 = 4
"""A multiply-add of float32 takes as many steps as an element of 4 bytes moves through the vector units."""

_PROGRAMS_A_CYCLE = 0.84
"""Measured on one H200, whatever programs do (docs/results/gpu_search.md); assumed elsewhere."""


@frozen
class Gpu:
    """One model. ``multiprocessors`` of ``threads_per_warp`` lanes; ``shared_bytes`` is what one program may
    have, ``registers`` 32-bit words of a multiprocessor, ``flops`` floating-point (or integer) operations a
    microsecond of matrix products with float32 sums, by the operands' dtype, ``tf32`` beside float32;
    ``vector_flops`` those of float32 without matrix units, ``special_flops`` exponentials and their kin.
    ``compute_capability`` names NVIDIA's architecture, 0 elsewhere."""

    name: str
    title: str
    backend: str
    """As PyTorch's device type says it."""
    compute_capability: int
    multiprocessors: int
    threads_per_warp: int
    threads_per_multiprocessor: int
    registers: int
    shared_bytes: int
    shared_bytes_per_multiprocessor: int
    clock_mhz: float
    memory_bytes: int
    l2_bytes: int
    peak_bytes_us: float
    memory_bytes_us: float
    l2_bytes_us: float
    worker_bytes_us: float
    launch_us: float
    vector_flops: float
    special_flops: float
    float64_flops: float
    flops: Mapping[str, float]
    has_tf32: bool = True
    programs: int = 0
    """Of a launch at the most, each of which does the work of several in turn; 0: one for each tile."""
    live_bytes: int = 0
    """All tiles of a program that are alive at once; 0: registers and shared memory limit them alone."""

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def programs_us(self) -> float:
        """Programs that a launch begins in a microsecond at the most; no limit where one does the work of
        several in turn."""
        return math.inf if self.programs else _PROGRAMS_A_CYCLE * self.clock_mhz

    @property
    def parallel(self) -> int:
        """Programs that run independently of each other, one a multiprocessor."""
        return self.multiprocessors

    @property
    def shares_rows(self) -> bool:
        """Programs of a launch do not wait for each other."""
        return False

    @property
    def shortens_convolutions(self) -> bool:
        return self.has_tf32

    def cores_of(self, unit: str) -> int:
        """Every multiprocessor has each unit."""
        return self.multiprocessors

    def product_us(self, multiply_adds: int, dtype: str) -> float:
        """Microseconds of so many multiply-adds with every matrix unit busy; of float32 at three products of
        TF32, which keeps float32's accuracy, where that is faster than the vector units."""
        return 2 * multiply_adds / self.product_flops(dtype)

    def product_flops(self, dtype: str) -> float:
        """Operations a microsecond of products whose results are as exact as the dtype's."""
        if dtype == "float32":
            return max(self.vector_flops, self.flops.get("float32", 0.0), self.flops.get("tf32", 0.0) / 3)
        if dtype == "float64":
            return self.float64_flops
        return self.flops.get(dtype, self.vector_flops)

    def elementwise_us(self, elements: int, dtype: str) -> float:
        """Microseconds of one simple instruction for each element, with every worker busy."""
        wide = max(ITEM_SIZE.get(dtype, 4) // _LANES_FP32, 1)
        return 2 * wide * elements / self.vector_flops

    def transcendental_us(self, elements: int) -> float:
        """The same of an exponential, a logarithm or their kin."""
        return elements / self.special_flops


@cache
def load_gpu(name: str = DEFAULT_GPU) -> Gpu:
    """The GPU of that name, the same object each time. Raises UsageError for an unknown one, and for a file
    that lacks a constant."""
    path = GPUS / f"{name}.toml"
    if name not in gpu_names():
        raise UsageError(
            "There is no GPU called {name}; choose one of: {known}.",
            name=repr(name),
            known=", ".join(gpu_names()),
        )
    return read_gpu(path)


def read_gpu(path: Path) -> Gpu:
    """The GPU of a file. Raises UsageError where a constant is missing or of another kind."""
    data = tomllib.loads(path.read_text())
    hints = get_type_hints(Gpu)
    given: dict[str, Any] = {"name": path.stem}
    for constant in fields(Gpu):
        if constant.name in data:
            given[constant.name] = _read(path, constant.name, hints[constant.name], data[constant.name])
    missing = [one.name for one in fields(Gpu) if one.name not in given and one.default is NOTHING]
    unknown = sorted(data.keys() - {one.name for one in fields(Gpu)})
    if missing or unknown:
        raise UsageError(
            "The GPU file {path} lacks {missing} and has {unknown} besides; correct these names.",
            path=path,
            missing=", ".join(missing) or "nothing",
            unknown=", ".join(unknown) or "nothing",
        )
    return Gpu(**given)


def _read(path: Path, name: str, kind: Any, value: Any) -> Any:
    if kind is float and type(value) in (int, float) and value > 0:
        return float(value)
    if kind in (int, str, bool) and type(value) is kind:
        return value
    if isinstance(value, dict) and all(type(one) in (int, float) and one > 0 for one in value.values()):
        return {str(key): float(one) for key, one in value.items()}
    raise UsageError(
        "The GPU file {path} has {name} = {value}; give a number of its kind.",
        path=path,
        name=name,
        value=repr(value)[:40],
    )


def gpu_of(device: object) -> Gpu:
    """A device that is a GPU. Raises UsageError for another."""
    if not isinstance(device, Gpu):
        raise UsageError(
            "{name} is no GPU; choose one of: {known}.",
            name=repr(getattr(device, "name", device)),
            known=", ".join(gpu_names()),
        )
    return device
