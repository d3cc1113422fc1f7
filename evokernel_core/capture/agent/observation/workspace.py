"""Which files are the person's own: those below the observed folders that nobody installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_INSTALLED = ("site-packages", "dist-packages")


class Workspace:
    """``roots`` are the folders to look at; a folder of installed packages only if it is named itself."""

    def __init__(self, roots: list[str]) -> None:
        self._roots = [Path(os.path.realpath(root)) for root in roots]
        self._known: dict[str, str] = {}

    def file(self, name: str | None) -> str:
        """The real path of a source file of the workspace, empty for any other."""
        if not name:
            return ""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def of_module(self, module: str) -> str:
        """The same for a module by its name."""
        return self.file(getattr(sys.modules.get(module), "__file__", None))

    def _look(self, name: str) -> str:
        path = Path(os.path.realpath(name))
        if path.suffix != ".py":
            return ""
        for root in self._roots:
            if path.is_relative_to(root) and not _is_installed(path.relative_to(root), root):
                return str(path)
        return ""


def _is_installed(inner: Path, root: Path) -> bool:
    if any(part in _INSTALLED or part.startswith(".") for part in inner.parts):
        return True
    return any((root / folder / "pyvenv.cfg").exists() for folder in inner.parents)
