"""A candidate's launches, from the record of its compilation to calls of the driver and of libraries."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .driver import Driver, Prepared, value_of
from .library import LibraryStage

_MOST_MODULES = 64
"""That stay loaded from one request to the next."""


class Modules:
    """Cubins that are loaded, by their file."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._loaded: dict[str, Any] = {}

    def function(self, launch: Mapping[str, Any]) -> Any:
        """The function of a launch. Raises DriverError, OSError."""
        path = launch["cubin"]
        if path not in self._loaded:
            self._loaded[path] = self.driver.load(Path(path).read_bytes())
        return self.driver.function(self._loaded[path], launch["function"], launch["shared_bytes"])

    def trim(self) -> None:
        """Unloads the oldest of many. Only between requests: a function is gone with its module, and one call
        may have more of them than stay. Raises DriverError."""
        while len(self._loaded) > _MOST_MODULES:
            self.driver.unload(self._loaded.pop(next(iter(self._loaded))))


class Launches:
    """What one call of a candidate does: memory to be zeroed, then launches and library calls in turn."""

    def __init__(self, modules: Modules, call: Mapping[str, Any], torch: Any) -> None:
        """``call``: ``{"launches": [...], "zeroed": [names]}``. Raises DriverError, and ValueError for a
        library's operation that is none."""
        self._driver, self._torch = modules.driver, torch
        self._zeroed: list[str] = call["zeroed"]
        self._stages: list[tuple[Mapping[str, Any], Any]] = []
        for launch in call["launches"]:
            if "op" in launch:
                self._stages.append((launch, LibraryStage(torch, launch)))
            elif all(launch["grid"]):
                self._stages.append((launch, modules.function(launch)))

    def scratch(self) -> dict[str, int]:
        """Bytes of what the compiler wants in memory, by a name that no record can have."""
        return {
            f"{what}#{place}": nbytes
            for place, (launch, _) in enumerate(self._stages)
            for what in ("scratch", "profile")
            if "op" not in launch and (nbytes := _programs(launch) * launch[f"{what}_bytes"])
        }

    def made(self) -> frozenset[str]:
        """The tensors that calls of libraries make, which therefore have no memory of the call's own."""
        return frozenset(launch["result"] for launch, _ in self._stages if "op" in launch)

    def prepare(self, memory: Any, stream: int) -> PreparedCall:
        """The call with tensors as ``memory`` has them: ``addresses()``, ``sizes``, ``tensor(name)``."""
        addresses: dict[str, int] = memory.addresses()
        results = Results(memory, self.made(), self._torch)
        steps: list[Callable[[], None]] = [
            _zeroing(self._driver, addresses[name], memory.sizes[name], stream)
            for name in self._zeroed
            if name in addresses
        ]
        for place, (launch, stage) in enumerate(self._stages):
            if "op" in launch:
                steps.append(_calling(stage, results))
                continue
            values = [
                results.address(value)
                if value in results.names
                else value_of(kind, addresses[value])
                if kind.startswith("*")
                else value_of(kind, value)
                for kind, value in launch["values"]
            ]
            ends = [value_of("*", addresses.get(f"{what}#{place}", 0)) for what in ("scratch", "profile")]
            steps.append(_launching(self._driver, Prepared(stage, dict(launch), [*values, *ends], stream)))
        return PreparedCall(steps, results)


class Results:
    """The tensors that calls of libraries made, and the others of the call."""

    def __init__(self, memory: Any, names: frozenset[str], torch: Any) -> None:
        self.names = names
        self._memory, self._bytes = memory, torch.uint8
        self._made: dict[str, Any] = {}
        self._addresses = {name: ctypes.c_uint64(0) for name in names}

    def address(self, name: str) -> ctypes.c_uint64:
        """Where a result will lie, as an argument of a launch; known when it is made."""
        return self._addresses[name]

    def put(self, name: str, tensor: Any) -> None:
        """A result, contiguous."""
        self._made[name] = tensor
        self._addresses[name].value = tensor.data_ptr()

    def tensor(self, name: str) -> Any:
        """The bytes of a tensor. Raises ValueError for a result that is not made yet."""
        if name not in self.names:
            return self._memory.tensor(name)
        if name not in self._made:
            raise ValueError(f"{name} is read before a library makes it")
        return self._made[name].view(-1).view(self._bytes)


class PreparedCall:
    """Enqueues everything that a call does, and nothing else."""

    def __init__(self, steps: list[Callable[[], None]], results: Results) -> None:
        self._steps, self.results = steps, results

    def __call__(self) -> None:
        """Raises DriverError, and torch's errors of a library's operation."""
        for step in self._steps:
            step()


def _zeroing(driver: Driver, address: int, nbytes: int, stream: int) -> Callable[[], None]:
    return lambda: driver.zero(address, nbytes, stream)


def _launching(driver: Driver, launch: Prepared) -> Callable[[], None]:
    return lambda: driver.launch(launch)


def _calling(stage: LibraryStage, results: Results) -> Callable[[], None]:
    return lambda: stage.run(results)


def _programs(launch: Mapping[str, Any]) -> int:
    x, y, z = launch["grid"]
    return int(x * y * z * launch["clusters"])
