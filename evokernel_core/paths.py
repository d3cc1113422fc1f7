"""Where the product keeps its data, readable by its owner alone: the platform's user folders, or
EVOKERNEL_HOME."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from evokernel_core.domain.errors import UsageError
from evokernel_core.private import private_folder


def data_path() -> Path:
    """Where the memory database and durable jobs are, whether or not there is such a folder yet."""
    return Path(os.environ.get("EVOKERNEL_HOME") or platformdirs.user_data_dir("evokernel"))


def cache_path() -> Path:
    """Where compiled twins, kernels and staged packages are, whether or not there is such a folder yet."""
    home = os.environ.get("EVOKERNEL_HOME")
    return Path(home) / "cache" if home else Path(platformdirs.user_cache_dir("evokernel"))


def data_dir() -> Path:
    """``data_path``, made. Raises UsageError where it cannot be."""
    return _ensure(data_path())


def cache_dir() -> Path:
    """``cache_path``, made; safe to delete. Raises UsageError where it cannot be made."""
    return _ensure(cache_path())


def memory_path() -> Path:
    """The memory's SQLite file; its folder is made with it."""
    return data_path() / "memory.db"


def step_model_path(chip: str) -> Path:
    """The step model of a device, beside the memory that it was trained on."""
    return data_path() / f"step-model-{chip}.json"


def log_path() -> Path:
    """What the command line logs: tracebacks of defects."""
    return data_dir() / "evokernel.log"


def _ensure(path: Path) -> Path:
    try:
        if not (os.environ.get("EVOKERNEL_HOME") and path.is_dir()):
            private_folder(path)  # a folder that the person made and named keeps its mode
    except OSError as error:
        raise UsageError(
            "The folder {path} cannot be made ({why}): set EVOKERNEL_HOME to one that can.",
            path=path,
            why=error.strerror,
        ) from error
    return path
