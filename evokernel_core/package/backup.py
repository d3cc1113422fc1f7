"""Packages that a person changed by hand: another kernel in their place costs nobody's work."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

from evokernel_core.domain.errors import PackageChanged, UsageError
from evokernel_core.foreign import read_foreign_object
from evokernel_core.package.integrity import MANIFEST, check_files, foreign

FOLDER = ".changed"
"""The folder beside the packages; neither Python nor pytest looks into hidden ones."""
_MADE = ("__pycache__", "build")


def back_up_changed(folder: Path) -> Path | None:
    """Copies a package that is not as it was written to ``.changed`` beside it, before another is put in its
    place. Gives the copy's folder, None where nothing would be lost. Raises UsageError where it cannot be
    copied."""
    if folder.is_symlink() or not folder.is_dir() or not _is_changed(folder):
        return None
    backups = folder.parent / FOLDER
    copy = _free(backups / folder.name)
    try:
        if backups.is_symlink():
            raise NotADirectoryError
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(*_MADE))
    except (OSError, shutil.Error) as error:
        raise UsageError(
            "{folder} was changed by hand and cannot be backed up to {copy}: move it elsewhere, and "
            "ask again.",
            folder=folder,
            copy=copy,
        ) from error
    return copy


def _is_changed(folder: Path) -> bool:
    """Whether a folder has files that were not written with a package, or not as they are."""
    try:
        manifest = read_foreign_object(folder / MANIFEST)
        check_files(folder, manifest)
    except (OSError, ValueError, PackageChanged):
        return any(path.name not in _MADE for path in folder.iterdir())
    return any(name not in _MADE for name in foreign(folder, manifest))


def _free(place: Path) -> Path:
    """The first of NAME, NAME-2, NAME-3, ... that is not taken."""
    if not place.exists():
        return place
    numbered = (place.with_name(f"{place.name}-{number}") for number in count(2))
    return next(path for path in numbered if not path.exists())
