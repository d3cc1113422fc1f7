"""Programs of this machine by their names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def program_on_path(name: str, path: str | None = None) -> str | None:
    """A program in a folder that ``path``, else the variable PATH, names. An empty or relative word in it
    names none: it would be the present folder, or lie in it, whoever's that is; nor does a relative ``name``
    with a folder in it."""
    if os.sep in name and not Path(name).is_absolute():
        return None
    words = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, words)))
