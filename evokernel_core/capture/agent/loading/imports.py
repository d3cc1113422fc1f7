"""Where the imports of a file start, as whoever asks for its capture has found it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Imports:
    """``root`` is the folder from which the file is imported, ``package`` the dotted package that it is part
    of then, empty where it is in none. ``first`` are folders that Python looks through before what is
    installed, ``last`` those behind it."""

    root: Path
    package: str = ""
    first: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @classmethod
    def read(cls, path: Path, data: Mapping[str, Any]) -> Imports:
        """``{"root", "first", "last"}``; the root is a folder above the file."""
        root = Path(data["root"])
        package = ".".join(path.parent.relative_to(root).parts)
        return cls(root, package, tuple(data["first"]), tuple(data["last"]))

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where modules of the person's own come from."""
        return (self.root, *map(Path, (*self.first, *self.last)))
