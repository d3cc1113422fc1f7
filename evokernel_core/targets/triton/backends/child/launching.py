"""A candidate's launches, from the record of its compilation to calls of the driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .driver import Driver, Prepared, value_of

_MOST_MODULES = 64


class Modules:
    """Cubins that are loaded, by their file."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._loaded: dict[str, Any] = {}

    def function(self, launch: Mapping[str, Any]) -> Any:
        """The function of a launch. Raises DriverError, OSError."""
        path = launch["cubin"]
        if path not in self._loaded:
            while len(self._loaded) >= _MOST_MODULES:
                self.driver.unload(self._loaded.pop(next(iter(self._loaded))))
            self._loaded[path] = self.driver.load(Path(path).read_bytes())
        return self.driver.function(self._loaded[path], launch["function"], launch["shared_bytes"])


class Launches:
    """What one call of a candidate does: memory to be zeroed, then launches in turn."""

    def __init__(self, modules: Modules, call: Mapping[str, Any]) -> None:
        """``call``: ``{"launches": [...], "zeroed": [names]}``. Raises DriverError."""
        self._driver = modules.driver
        self._call = call
        self._launches = [launch for launch in call["launches"] if all(launch["grid"])]
        self._functions = [modules.function(launch) for launch in self._launches]

    def scratch(self) -> dict[str, int]:
        """Bytes of what the compiler wants in memory, by a name that no record can have."""
        return {
            f"{what}#{place}": nbytes
            for place, launch in enumerate(self._launches)
            for what in ("scratch", "profile")
            if (nbytes := _programs(launch) * launch[f"{what}_bytes"])
        }

    def prepare(self, addresses: Mapping[str, int], sizes: Mapping[str, int], stream: int) -> PreparedCall:
        """The call with tensors at these addresses."""
        prepared = []
        for place, (launch, function) in enumerate(zip(self._launches, self._functions, strict=True)):
            values = [
                value_of(kind, addresses[value] if kind.startswith("*") else value)
                for kind, value in launch["values"]
            ]
            ends = [value_of("*", addresses.get(f"{what}#{place}", 0)) for what in ("scratch", "profile")]
            prepared.append(Prepared(function, dict(launch), [*values, *ends], stream))
        zeroed = [(addresses[name], sizes[name]) for name in self._call["zeroed"]]
        return PreparedCall(self._driver, zeroed, prepared, stream)


class PreparedCall:
    """Enqueues everything that a call does, and nothing else."""

    def __init__(
        self, driver: Driver, zeroed: list[tuple[int, int]], launches: list[Prepared], stream: int
    ) -> None:
        self._driver, self._zeroed, self._launches, self._stream = driver, zeroed, launches, stream

    def __call__(self) -> None:
        """Raises DriverError."""
        for address, nbytes in self._zeroed:
            self._driver.zero(address, nbytes, self._stream)
        for launch in self._launches:
            self._driver.launch(launch)


def _programs(launch: Mapping[str, Any]) -> int:
    x, y, z = launch["grid"]
    return int(x * y * z * launch["clusters"])
