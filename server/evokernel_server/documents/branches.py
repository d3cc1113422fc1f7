"""What a file's repository has checked out."""

from __future__ import annotations

from pathlib import Path

from evokernel_core.foreign import read_foreign

_POINTER = "gitdir:"


def head_of(file: Path) -> str:
    """The content of HEAD of the repository that a file is in: its branch, or a commit; empty where there is
    none. Blocks: call it on a thread."""
    for folder in file.parents:
        try:
            if (folder / ".git").exists():
                return read_foreign(_git_folder(folder / ".git") / "HEAD").strip()
        except (OSError, ValueError):
            return ""
    return ""


def _git_folder(path: Path) -> Path:
    """A worktree and a submodule have a file that names their folder. Raises OSError, ValueError."""
    if path.is_dir():
        return path
    return path.parent / read_foreign(path).removeprefix(_POINTER).strip()
