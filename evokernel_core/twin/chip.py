"""Chips: the constants of one NPU model, read from ``chips/<name>.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from attrs import field, frozen

from evokernel_core.domain.errors import UsageError

CHIPS = Path(__file__).parent / "chips"
DEFAULT_CHIP = "ascend910b1"


@frozen
class Chip:
    """One NPU model.

    ``aic`` and ``aiv``: cube and vector cores. ``mhz``: core clock. ``ub_bytes``: unified buffer
    of a vector core that a kernel may use. ``hbm_bytes``: device memory. ``hbm_gbps``: its peak
    rate in GB/s. ``l2_bytes``: shared L2. ``launch_us``: cost of one kernel launch. ``constants``
    holds every number of the file by its dotted key, the ones above included.
    """

    name: str
    aic: int
    aiv: int
    mhz: float
    ub_bytes: int
    hbm_bytes: int
    hbm_gbps: float
    l2_bytes: int
    launch_us: float
    constants: Mapping[str, float] = field(hash=False, factory=dict)
    path: Path = field(hash=False, eq=False, default=CHIPS)


def chip_names() -> tuple[str, ...]:
    """The chips that ``load_chip`` knows, sorted."""
    return tuple(sorted(path.stem for path in CHIPS.glob("*.toml")))


@cache
def load_chip(name: str = DEFAULT_CHIP) -> Chip:
    """The chip of that name. Raises UsageError for an unknown one."""
    path = CHIPS / f"{name}.toml"
    if path.parent != CHIPS or not path.is_file():  # names come from packages and over the network, too
        known = ", ".join(chip_names())
        raise UsageError(f"There is no chip called {name!r}; choose one of: {known}.")
    return parse_chip(name, path)


def parse_chip(name: str, path: Path) -> Chip:
    """The chip of a TOML file. Raises UsageError where a required constant is missing.

    ``base = "ascend910b1"`` takes the constants that the file does not state from that chip.
    """
    constants = _constants(path)

    def need(key: str) -> float:
        value = _by_last_part(constants, key)
        if value is None:
            raise UsageError(f"The chip file {path} lacks {key}; add it in the section that it belongs to.")
        return value

    return Chip(
        name=name,
        aic=int(need("aic")),
        aiv=int(need("aiv")),
        mhz=need("mhz"),
        ub_bytes=int(need("ub_bytes")),
        hbm_bytes=int(need("hbm_bytes")),
        hbm_gbps=need("hbm_gbps"),
        l2_bytes=int(need("l2_bytes")),
        launch_us=need("launch_us"),
        constants=constants,
        path=path,
    )


def _constants(path: Path) -> dict[str, float]:
    table = tomllib.loads(path.read_text())
    base = table.get("base")
    inherited = _constants(path.parent / f"{base}.toml") if base else {}
    return {**inherited, **dict(_flatten(table))}


def runner_text(chip: Chip) -> str:
    """The chip as the runner reads it: one ``section.key value`` a line, sorted."""
    return "".join(f"{key} {value:.17g}\n" for key, value in sorted(chip.constants.items()))


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for key, value in table.items():
        dotted = f"{prefix}{key}"
        match value:
            case bool():
                yield dotted, float(value)
            case int() | float():
                yield dotted, float(value)
            case {"value": int() | float() as number}:
                yield dotted, float(number)
            case dict():
                yield from _flatten(value, f"{dotted}.")


def _by_last_part(constants: Mapping[str, float], key: str) -> float | None:
    matches = (value for dotted, value in constants.items() if dotted.rpartition(".")[2] == key)
    return next(matches, None)
