"""The files of a reference, under other names in another folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

if TYPE_CHECKING:
    from evokernel_core.capture.reference import ReferenceCase


def moved_to(case: ReferenceCase, folder: Path) -> ReferenceCase:
    """The same files under their names in another folder."""

    def moved(paths: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(link(path, folder / path.name) for path in paths)

    return evolve(
        case,
        inputs=moved(case.inputs),
        outputs=moved(case.outputs),
        precise=moved(case.precise),
        rounded=moved(case.rounded),
        beside=tuple(map(moved, case.beside)),
    )


def link(source: Path, target: Path) -> Path:
    """A second name for the file, or a copy where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
    return target
