"""Which command a person might observe to learn how a file is used."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from evokernel_core.capture.observe import workspace_of
from evokernel_core.visible import is_visible

_MAIN = re.compile(r"^if\s+__name__\s*==\s*['\"]__main__['\"]", re.MULTILINE)
_LIKELY = ("train", "main", "run", "demo", "example", "sample", "generate", "infer", "test", "bench")
_MOST_FILES = 300
_MOST_FOLDERS = 1000
_LARGEST = 200_000
_ANY = "PROGRAM.py"
_LEFT_OUT = frozenset({"site-packages", "node_modules", "build", "dist", "__pycache__"})


def command_for(file: Path, text: str, python: str = "python", evokernel: str = "evokernel") -> str:
    """``evokernel observe -- python train.py``, to be run in the project's folder; the program is the file
    itself where it has a ``__main__`` block, else one that imports it, else the project's tests."""
    workspace = workspace_of(file.parent)
    python = python if is_visible(python) else "python"
    evokernel = evokernel if is_visible(evokernel) else "evokernel"
    if _MAIN.search(text):
        program = shlex.quote(_relative(file, workspace)) if _can_be_typed(file) else _ANY
    else:
        program = _user(file, workspace) or ("-m pytest" if (workspace / "tests").is_dir() else _ANY)
    return f"{shlex.quote(evokernel)} observe -- {shlex.quote(python)} {program}"


def own_program() -> str:
    """How a terminal starts this EvoKernel: by its name where PATH leads to it, else by its path. An editor
    starts the server from an environment that its terminals need not have."""
    beside = Path(sys.executable).with_name("evokernel")
    result = shutil.which("evokernel")
    if not beside.is_file() or (result is not None and Path(result).samefile(beside)):
        return "evokernel"
    return str(beside)


def _user(file: Path, workspace: Path) -> str:
    """A program of the project that imports the file, the likeliest first; empty where none is found."""
    imports = re.compile(rf"^\s*(?:from|import)\s[^\n]*\b{re.escape(file.stem)}\b", re.MULTILINE)
    sources = [
        source
        for source in _sources(workspace)
        if source != file and _can_be_typed(source) and _uses(source, imports)
    ]
    if not sources:
        return ""
    best = min(sources, key=lambda source: (_rank(source), len(source.parts), str(source)))
    if best.name.startswith("test_"):
        return f"-m pytest {shlex.quote(_relative(best, workspace))}"
    return shlex.quote(_relative(best, workspace))


def _can_be_typed(file: Path) -> bool:
    """A terminal acts on control characters before a shell sees the quotes around them."""
    return is_visible(str(file))


def _rank(file: Path) -> int:
    """Programs before modules that only import the file, by what their names promise."""
    return next((number for number, word in enumerate(_LIKELY) if file.stem.startswith(word)), len(_LIKELY))


def _uses(file: Path, imports: re.Pattern[str]) -> bool:
    try:
        if file.stat().st_size > _LARGEST:
            return False
        text = file.read_text("utf-8")
    except (OSError, ValueError):
        return False
    is_program = _MAIN.search(text) or _rank(file) < len(_LIKELY)
    return bool(is_program) and imports.search(text) is not None


def _sources(workspace: Path) -> Iterator[Path]:
    """The first Python files of a project, those near its top before others."""
    waiting, count, looked = [workspace], 0, 0
    while waiting and count < _MOST_FILES and looked < _MOST_FOLDERS:
        looked += 1
        try:
            inside = sorted(waiting.pop(0).iterdir())
        except OSError:
            continue
        for path in inside:
            if path.name.startswith(".") or path.name in _LEFT_OUT or (path / "pyvenv.cfg").exists():
                continue
            if path.is_symlink():
                continue  # it may lead round in circles, or out of the project
            if path.is_dir():
                waiting.append(path)
            elif path.suffix == ".py" and path.is_file():
                count += 1
                yield path


def _relative(path: Path, workspace: Path) -> str:
    """A file that is called like an option is named with its folder."""
    said = path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else str(path)
    return f"./{said}" if said.startswith("-") else said
