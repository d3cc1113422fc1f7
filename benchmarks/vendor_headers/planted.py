"""Errors of ours, planted into sound kernels, to see that the judge finds them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from attrs import frozen

FOLDER = Path(__file__).parents[1] / "official_errors"
_FILES = ("op_kernel.cpp", "tiling.h")
_EDITED = _FILES[0]


@frozen
class Base:
    """A sound kernel of benchmarks/official_errors."""

    name: str

    def texts(self) -> dict[str, str]:
        """Its files by name."""
        return {file: (FOLDER / self.name / file).read_text() for file in _FILES}


@frozen
class Planted:
    """One error: ``old``, which the base's op_kernel.cpp has once, becomes ``new``; a message that finds it
    matches ``says``."""

    name: str
    base: Base
    old: str
    new: str
    says: str

    def texts(self) -> dict[str, str]:
        """The kernel's files with the error in them. Raises ValueError where the base does not have its
        place exactly once."""
        texts = self.base.texts()
        found = texts[_EDITED].count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: its place stands {found} times in {self.base.name}/{_EDITED}")
        return texts | {_EDITED: texts[_EDITED].replace(self.old, self.new)}

    def matches(self, message: str) -> bool:
        return re.search(self.says, message) is not None


def planted_errors() -> list[Planted]:
    """The table of benchmarks/official_errors/errors.toml."""
    rows = tomllib.loads((FOLDER / "errors.toml").read_text())["error"]
    return [Planted(**{**row, "base": Base(row["base"])}) for row in rows]
