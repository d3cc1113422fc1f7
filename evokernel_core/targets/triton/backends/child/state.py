"""What a measurement says of the machine: device, versions, clocks, power, and why a clock was lowered."""

from __future__ import annotations

import ctypes
from typing import Any

_SM_CLOCK, _MEMORY_CLOCK = 1, 2
"""nvmlClockType_t."""
REASONS = {
    0x1: "idle", 0x2: "application clocks", 0x4: "power cap", 0x8: "hardware", 0x10: "sync boost",
    0x20: "thermal (software)", 0x40: "thermal (hardware)", 0x80: "power brake", 0x100: "display clocks",
}  # fmt: skip
"""nvmlClocksEventReasons."""


class Monitor:
    """NVML by ctypes; without it every reading is empty."""

    def __init__(self, bus: str = "", library: Any = None) -> None:
        """``bus``: the device's PCI bus id, as ``torch.cuda`` has it; "" for the first device."""
        self._handle = ctypes.c_void_p()
        self._library = library
        try:
            self._library = library if library is not None else ctypes.CDLL("libnvidia-ml.so.1")
            self._library.nvmlInit_v2()
            handle = ctypes.byref(self._handle)
            by_bus, by_place = "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByIndex_v2"
            name, key = (by_bus, bus.encode()) if bus else (by_place, 0)
            failed = getattr(self._library, name)(key, handle)
            if failed:
                self._library = None
        except (OSError, AttributeError):
            self._library = None

    def driver(self) -> str:
        """The driver's version, "" where nobody says."""
        if self._library is None:
            return ""
        text = ctypes.create_string_buffer(96)
        failed = self._library.nvmlSystemGetDriverVersion(text, 96)
        return "" if failed else text.value.decode()

    def reading(self) -> dict[str, Any]:
        """Clocks in MHz, watts, degrees, and reasons for a lowered clock; only what the device tells."""
        if self._library is None:
            return {}
        told = {
            "clock_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_int(_SM_CLOCK)),
            "memory_mhz": self._number("nvmlDeviceGetClockInfo", ctypes.c_int(_MEMORY_CLOCK)),
            "power_w": self._scaled("nvmlDeviceGetPowerUsage", 1000),
            "celsius": self._number("nvmlDeviceGetTemperature", ctypes.c_int(0)),
            "throttle": self._reasons(),
        }
        return {name: value for name, value in told.items() if value is not None}

    def _number(self, name: str, *arguments: Any) -> int | None:
        number = ctypes.c_uint()
        failed = getattr(self._library, name)(self._handle, *arguments, ctypes.byref(number))
        return None if failed else number.value

    def _scaled(self, name: str, by: int) -> float | None:
        number = self._number(name)
        return None if number is None else round(number / by, 1)

    def _reasons(self) -> list[str] | None:
        mask = ctypes.c_ulonglong()
        name = "nvmlDeviceGetCurrentClocksThrottleReasons"
        if getattr(self._library, name)(self._handle, ctypes.byref(mask)):
            return None
        return [word for bit, word in REASONS.items() if mask.value & bit]


def conditions(torch: Any, monitor: Monitor, driver_version: int) -> dict[str, Any]:
    """Device, versions and flags: those of a row of measurements."""
    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "device": about.name,
        "capability": about.major * 10 + about.minor,
        "multiprocessors": about.multi_processor_count,
        "l2_bytes": about.L2_cache_size,
        "memory_bytes": about.total_memory,
        "torch": torch.__version__,
        "triton": _version("triton"),
        "cuda": torch.version.cuda or "",
        "driver": monitor.driver(),
        "driver_cuda": driver_version,
        "flags": {
            "tf32_matmul": bool(torch.backends.cuda.matmul.allow_tf32),
            "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
            "deterministic": bool(torch.are_deterministic_algorithms_enabled()),
        },
    }


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def bus_id(torch: Any) -> str:
    """The current device's PCI bus id as NVML takes it, "" where torch does not tell."""
    about = torch.cuda.get_device_properties(torch.cuda.current_device())
    names = ("pci_domain_id", "pci_bus_id", "pci_device_id")
    if not all(hasattr(about, name) for name in names):
        return ""
    domain, bus, device = (int(getattr(about, name)) for name in names)
    return f"{domain:08x}:{bus:02x}:{device:02x}.0"
