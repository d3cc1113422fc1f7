"""Which files are the person's own: those below the observed folders that nobody installed or generated."""

from __future__ import annotations

import os
from pathlib import Path

_WRITTEN = ("site-packages", "dist-packages", "evokernel_kernels")


class Workspace:
    """``roots`` are the folders to look at; a folder of installed packages only if it is named itself."""

    def __init__(self, roots: list[str]) -> None:
        self._roots = [Path(os.path.realpath(root)) for root in roots]
        self._known: dict[str, str] = {}
        self._folders: dict[tuple[str, ...], list[str]] = {}

    def file(self, name: str | None) -> str:
        """The real path of a source file of the workspace, empty for any other."""
        if not name:
            return ""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def folders(self, path: tuple[str, ...]) -> list[str]:
        """The folders of the workspace on Python's path, in its order."""
        if path not in self._folders:
            result = dict.fromkeys(os.path.realpath(entry) for entry in path)
            self._folders[path] = [folder for folder in result if self._is_below(Path(folder))]
        return self._folders[path]

    def _is_below(self, path: Path) -> bool:
        return any(
            path.is_relative_to(root) and not _is_written(path.relative_to(root), root)
            for root in self._roots
        )

    def _look(self, name: str) -> str:
        path = Path(os.path.realpath(name))
        return str(path) if path.suffix == ".py" and self._is_below(path) else ""


def _is_written(inner: Path, root: Path) -> bool:
    if any(part in _WRITTEN or part.startswith(".") for part in inner.parts):
        return True
    return any((root / folder / "pyvenv.cfg").exists() for folder in inner.parents)
