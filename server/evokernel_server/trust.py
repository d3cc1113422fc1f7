"""Whose code may be run: that of the folders which the client, or the person in this session, says it trusts.

Opening a file must never run it. So nothing is trusted until somebody says so, and what lies in a workspace
cannot say it: trust comes with ``initialize`` or from a command, never from a configuration section.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_server.texts.translations import _

OPTION = "trusted"
REASON = "untrusted"
"""The code of a file whose analysis waits for trust."""


@frozen
class Trust:
    """``folders`` are real paths, with all that lies below; ``everywhere`` needs none of them."""

    everywhere: bool = False
    folders: tuple[Path, ...] = ()

    def __bool__(self) -> bool:
        return self.everywhere or bool(self.folders)

    def covers(self, path: Path) -> bool:
        """Whether the code of a file, or of the files in a folder, may be run. Links are followed first: one
        in a trusted folder does not make its target trusted."""
        if self.everywhere:
            return path.is_absolute()
        if not self.folders or not path.is_absolute():
            return False
        real = real_path(path)
        return real is not None and any(real.is_relative_to(folder) for folder in self.folders)

    def with_folder(self, folder: Path) -> Trust:
        """This and a folder more; the same where the system cannot have such a folder."""
        real = real_path(folder)
        return self if real is None else evolve(self, folders=(*self.folders, real))


def read_trust(given: object) -> Trust:
    """Trust as ``initializationOptions`` says it: true, false or a list of folders; ``~`` is the home folder.

    Raises UsageError for anything else, which trusts nothing.
    """
    if given is None or isinstance(given, bool):
        return Trust(everywhere=given is True)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        folders = [_folder(element) for element in given]
        if all(folders):
            return Trust(folders=tuple(folder for folder in folders if folder))
    raise UsageError(
        _(
            "The option trusted cannot be {value}: it takes true, false or a list of absolute folders; "
            "nothing is trusted now.",
            value=repr(given),
        )
    )


def _folder(given: object) -> Path | None:
    if not isinstance(given, str):
        return None
    try:
        path = Path(given).expanduser()
    except RuntimeError:  # the home folder of nobody
        return None
    return real_path(path) if path.is_absolute() else None


def real_path(path: Path) -> Path | None:
    """The path without links; None for one that the system cannot have."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def sentence(own_client: bool) -> str:
    """What an untrusted file's status, hint and diagnostic say."""
    if own_client:
        return _("This workspace is not trusted, so nothing of it is run: trust it in the editor.")
    return _(
        "This folder is not trusted, so nothing of it is run: "
        "open the file's code actions, or set trusted in the initialization options."
    )
