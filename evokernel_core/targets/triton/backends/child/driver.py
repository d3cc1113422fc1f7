"""CUDA's driver by ctypes: loads cubins and launches their functions in the context that torch made."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

SUCCESS = 0
NO_CONTEXT_LEFT = frozenset({700, 702, 709, 710, 714, 715, 716, 717, 718, 719})
"""Errors after which a context launches nothing more: an illegal address or instruction, a time-out, ..."""
_SHARED_WITHOUT_ASKING = 48 * 1024
_REGISTERS, _LOCAL_BYTES, _MOST_DYNAMIC_SHARED = 4, 3, 8
"""CUfunction_attribute."""
_CLUSTER, _COOPERATIVE = 4, 2
"""CUlaunchAttributeID."""


class DriverError(Exception):
    """A call of the driver failed; ``code`` is its CUresult."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.code = code


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: an id and 64 bytes of value."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        *((f"grid_{axis}", ctypes.c_uint) for axis in "xyz"),
        *((f"block_{axis}", ctypes.c_uint) for axis in "xyz"),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class Driver:
    """The driver's library. ``library`` stands in for it in tests."""

    def __init__(self, library: Any = None) -> None:
        """Raises OSError where there is no driver."""
        self._library = library if library is not None else ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        """Raises DriverError."""
        code = getattr(self._library, name)(*arguments)
        if code != SUCCESS:
            raise DriverError(name, code, self._name_of(code))

    def _name_of(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorString(code, ctypes.byref(text))
        return (text.value or b"unknown error").decode()

    def version(self) -> int:
        """The CUDA version that the driver implements, e.g. 13000."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        """A module."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        return module

    def unload(self, module: ctypes.c_void_p) -> None:
        self.call("cuModuleUnload", module)

    def function(self, module: ctypes.c_void_p, name: str, shared_bytes: int) -> ctypes.c_void_p:
        """A function of a module, with so much dynamic shared memory allowed."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared_bytes > _SHARED_WITHOUT_ASKING:
            self.call("cuFuncSetAttribute", function, _MOST_DYNAMIC_SHARED, shared_bytes)
        return function

    def resources(self, function: ctypes.c_void_p) -> tuple[int, int]:
        """Registers, and bytes of local memory, of a thread."""
        numbers = []
        for attribute in (_REGISTERS, _LOCAL_BYTES):
            number = ctypes.c_int()
            self.call("cuFuncGetAttribute", ctypes.byref(number), attribute, function)
            numbers.append(number.value)
        return numbers[0], numbers[1]

    def zero(self, address: int, nbytes: int, stream: int) -> None:
        """Enqueues the zeroing of memory."""
        if nbytes:
            numbers = (ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))
            self.call("cuMemsetD8Async", *numbers, ctypes.c_void_p(stream))

    def launch(self, launch: Prepared) -> None:
        """Enqueues a launch. Raises DriverError."""
        code = self._library.cuLaunchKernelEx(launch.config_address, launch.function, launch.parameters, None)
        if code != SUCCESS:
            raise DriverError("cuLaunchKernelEx", code, self._name_of(code))


_SCALARS: dict[str, Any] = {
    "i1": ctypes.c_uint8, "u1": ctypes.c_uint8, "i8": ctypes.c_int8, "u8": ctypes.c_uint8,
    "i16": ctypes.c_int16, "u16": ctypes.c_uint16, "i32": ctypes.c_int32, "u32": ctypes.c_uint32,
    "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip
"""Triton's scalar types as C's."""


def value_of(kind: str, value: float) -> Any:
    """An argument as the kernel takes it: an address for ``*...``, else a number. Raises ValueError for a
    type that is none."""
    if kind.startswith("*"):
        return ctypes.c_uint64(int(value))
    if kind == "fp16":
        return ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", value))[0])
    if kind == "bf16":
        return ctypes.c_uint16(struct.unpack("<I", struct.pack("<f", value))[0] >> 16)
    if kind not in _SCALARS:
        raise ValueError(f"{kind} is no type of an argument")
    return _SCALARS[kind](float(value) if kind.startswith("fp") else int(value))


class Prepared:
    """A launch whose every argument is known: one call of the driver launches it, again and again."""

    def __init__(
        self,
        function: ctypes.c_void_p,
        about: dict[str, Any],
        values: list[Any],
        stream: int,
    ) -> None:
        """``about``: grid, warps, shared_bytes, clusters and cooperative of the launch. ``values``: what the
        function takes, in its order, as C's numbers."""
        self.function = function
        self._values = values
        self.parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self._attributes = _attributes(about)
        x, y, z = about["grid"]
        threads = about["warps"] * about.get("threads_per_warp", 32)
        self._config = LaunchConfig(
            *(x * about["clusters"], y, z, threads, 1, 1, about["shared_bytes"]),
            *(ctypes.c_void_p(stream), self._attributes, len(self._attributes)),
        )
        self.config_address = ctypes.byref(self._config)


def _attributes(about: dict[str, Any]) -> Any:
    wanted = []
    if about["cooperative"]:
        wanted.append(LaunchAttribute(_COOPERATIVE, b"", (1,)))
    if about["clusters"] > 1:
        wanted.append(LaunchAttribute(_CLUSTER, b"", (about["clusters"], 1, 1)))
    return (LaunchAttribute * len(wanted))(*wanted)
