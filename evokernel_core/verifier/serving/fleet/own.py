"""A Ray of our own on this machine, closed to its other users: Ray leaves its token readable and its folder
writable for everybody."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evokernel_core import temporary

LONGEST_PLACE = 28
"""Characters of the folder that ours lies in: a socket's path has 107 at most, and Ray adds 65 to ours."""
_OTHERS = 0o077
_SHORT = Path("/tmp")


@contextlib.contextmanager
def private_folder_of_ray() -> Iterator[Path]:
    """A folder for all that Ray keeps, which nobody else reaches, while the block lasts. What this process
    and its children write from here on is their owner's alone. Raises OSError."""
    os.umask(_OTHERS)
    close_token(Path.home())
    shared = temporary.parent()
    if shared is not None and len(str(shared)) <= LONGEST_PLACE:
        with temporary.folder_in(shared, "ray") as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory(prefix="evokernel-ray-", dir=_SHORT, ignore_cleanup_errors=True) as name:
        inside = Path(name) / "work"  # Ray opens the folder that it is given to everybody
        inside.mkdir()
        yield inside


def close_folder(folder: Path) -> None:
    """Takes from others what Ray gave them: it opens the folders that it makes. Raises OSError."""
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(path.lstat().st_mode):
                path.chmod(0o700)


def close_token(home: Path) -> None:
    """A token that an earlier Ray has left is its owner's alone. Raises OSError."""
    token = home / ".ray" / "auth_token"
    with contextlib.suppress(FileNotFoundError):
        result = token.lstat()
        if stat.S_ISREG(result.st_mode) and result.st_uid == os.getuid() and result.st_mode & _OTHERS:
            token.chmod(0o600)
