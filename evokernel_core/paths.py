"""Where the product keeps its data, readable by its owner alone: the platform's user folders, or
EVOKERNEL_HOME."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from evokernel_core.domain.errors import UsageError
from evokernel_core.private import private_folder


def data_dir() -> Path:
    """The folder of the memory database and durable jobs; created on first use."""
    return _ensure(os.environ.get("EVOKERNEL_HOME") or platformdirs.user_data_dir("evokernel"))


def cache_dir() -> Path:
    """The folder of compiled twins, kernels and staged packages; safe to delete."""
    home = os.environ.get("EVOKERNEL_HOME")
    return _ensure(str(Path(home) / "cache") if home else platformdirs.user_cache_dir("evokernel"))


def memory_path() -> Path:
    """The memory's SQLite file."""
    return data_dir() / "memory.db"


def log_path() -> Path:
    """What the command line logs: tracebacks of defects."""
    return data_dir() / "evokernel.log"


def _ensure(folder: str) -> Path:
    path = Path(folder)
    try:
        if not (os.environ.get("EVOKERNEL_HOME") and path.is_dir()):
            private_folder(path)  # a folder that the person made and named keeps its mode
    except OSError as error:
        raise UsageError(
            f"The folder {path} cannot be made ({error.strerror}): set EVOKERNEL_HOME to one that can."
        ) from error
    return path
