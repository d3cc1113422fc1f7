"""The files of chips, by name: who only lists them reads none."""

from __future__ import annotations

from pathlib import Path

CHIPS = Path(__file__).parent / "chips"
DEFAULT_CHIP = "ascend910b1"


def chip_names() -> tuple[str, ...]:
    """The chips that have a file, sorted; the default is the first."""
    return tuple(sorted(path.stem for path in CHIPS.glob("*.toml")))
