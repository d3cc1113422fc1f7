"""A stand-in for libcuda in tests: its kernels are Python functions on this machine's memory.

A "cubin" is a file with the name of a function; a launch calls it with the grid and the raw arguments, while
its module is loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from evokernel_core.targets.triton.backends.child.driver import LaunchConfig

Kernel = Callable[[tuple[int, int, int], Any], None]
INVALID_HANDLE = 400
"""What launches of functions return whose module is gone."""


class FakeDriver:
    """The functions of the driver that judges call. ``failing``: launches return this CUresult."""

    def __init__(self, kernels: dict[str, Kernel], failing: int = 0) -> None:
        self._kernels = list(kernels.items())
        self.failing = failing
        self.launched: list[tuple[int, int, int]] = []
        self.modules: dict[int, int] = {}
        """The kernel of each module that is loaded."""
        self._handles = count(1)

    def add(self, name: str, kernel: Kernel) -> None:
        """One more kernel."""
        self._kernels.append((name, kernel))

    def cuModuleLoadData(self, module: Any, cubin: bytes) -> int:
        names = [name for name, _ in self._kernels]
        module._obj.value = next(self._handles)
        self.modules[module._obj.value] = names.index(cubin.decode())
        return 0

    def cuModuleUnload(self, module: Any) -> int:
        del self.modules[module.value]
        return 0

    def cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> int:
        function._obj.value = module.value
        return 0

    def cuFuncSetAttribute(self, function: Any, attribute: int, value: int) -> int:
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = b"made to fail"
        return 0

    def cuMemsetD8Async(self, address: Any, value: Any, nbytes: Any, stream: Any) -> int:
        ctypes.memset(address.value, value.value, nbytes.value)
        return 0

    def cuLaunchKernelEx(self, config: Any, function: Any, parameters: Any, extra: Any) -> int:
        if self.failing:
            return self.failing
        if function.value not in self.modules:
            return INVALID_HANDLE
        about: LaunchConfig = config._obj
        grid = (about.grid_x, about.grid_y, about.grid_z)
        self.launched.append(grid)
        self._kernels[self.modules[function.value]][1](grid, Arguments(parameters))
        return 0


class Arguments:
    """What a launch was given, by place."""

    def __init__(self, parameters: Any) -> None:
        self._parameters = parameters

    def number(self, place: int) -> int:
        return ctypes.cast(self._parameters[place], ctypes.POINTER(ctypes.c_int32)).contents.value

    def floats(self, place: int, count: int, offset: int = 0) -> np.ndarray:
        """Elements from a pointer on."""
        address = ctypes.cast(self._parameters[place], ctypes.POINTER(ctypes.c_uint64)).contents.value
        kind = ctypes.c_float * count
        return np.ctypeslib.as_array(kind.from_address(address + 4 * offset))
