"""Which Python runs the user's code: the first one with torch of a fallback chain."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import InterpreterUnavailable

_RAN = 86
"""The exit status of a probe that ran, which a program that is no Python does not give by chance."""
_HAS_TORCH = f"import importlib.util as u, sys; sys.exit({_RAN} if u.find_spec('torch') else 1)"
_STARTS = f"import sys; sys.exit({_RAN})"
_PROBE_SECONDS = 20


@frozen
class Interpreter:
    """``how`` says where it was found, for the person."""

    path: str
    how: str


def find_interpreter(setting: str, workspace: Path) -> Interpreter:
    """The setting if there is one, else the first candidate with torch. The answer is remembered.

    Raises InterpreterUnavailable if there is none, or if the one in the setting has no torch.
    """
    if setting:
        path = _resolve(setting, workspace)
        if path is None or not _starts(path):
            raise InterpreterUnavailable(f"The interpreter {setting} does not run Python: set one that does.")
        if not _has_torch(path):
            raise InterpreterUnavailable(
                f"The interpreter {path} has no torch: install torch in it or set another interpreter."
            )
        return Interpreter(path, "setting")
    for candidate in _candidates(workspace.absolute()):
        if _has_torch(candidate.path):
            return candidate
    raise InterpreterUnavailable("No Python with torch was found: set the interpreter that runs your models.")


def _candidates(workspace: Path) -> Iterator[Interpreter]:
    environment = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    folders = [(environment, "active environment")] if environment else []
    folders += [(str(workspace / name), f"{name} in the workspace") for name in (".venv", "venv", "env")]
    for folder, how in folders:
        for name in ("bin/python", "Scripts/python.exe", "python.exe"):
            path = Path(folder) / name
            if path.is_file():
                yield Interpreter(str(path), how)
    for name in ("python3", "python"):
        if found := shutil.which(name):
            yield Interpreter(found, f"{name} on PATH")
    yield Interpreter(sys.executable, "EvoKernel's own interpreter")


def _resolve(setting: str, workspace: Path) -> str | None:
    path = Path(setting).expanduser()
    if path.is_absolute() or len(path.parts) > 1:
        path = path if path.is_absolute() else workspace / path
        return str(path) if path.is_file() else None
    return shutil.which(setting)


@lru_cache(maxsize=64)
def _has_torch(path: str) -> bool:
    return _status(path, _HAS_TORCH) == _RAN


@lru_cache(maxsize=64)
def _starts(path: str) -> bool:
    return _status(path, _STARTS) == _RAN


def _status(path: str, code: str) -> int:
    """The exit status of the code, -1 where the interpreter cannot run it."""
    try:
        done = subprocess.run(
            [path, "-c", code],
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
            cwd=Path(path).anchor or None,
        )
    except (OSError, subprocess.TimeoutExpired):
        return -1
    return done.returncode


def forget() -> None:
    """Look again at the next call, as after an installation."""
    _has_torch.cache_clear()
    _starts.cache_clear()
