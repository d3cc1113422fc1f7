"""Where the Python of a project may be: in its folder or one above, as the tools of the field keep it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.sentence import Sentence

Place = tuple[Path, Sentence]
"""The folder of an environment, and how it was found."""
_PYTHONS = ("bin/python", "Scripts/python.exe", "python.exe")
_TOOL_SECONDS = 10
_CONDA_FILES = ("environment.yml", "environment.yaml", "conda.yml", "conda.yaml")
_CONDA_ROOTS = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".conda")


@frozen
class Interpreter:
    """``how`` says where it was found, for the person."""

    path: str
    how: Sentence


def interpreters(*near: Path) -> Iterator[Interpreter]:
    """Every Python that may be meant, the likeliest first, each once: the active environment, those of the
    folders ``near`` and above them, PATH, and the one that runs EvoKernel."""
    seen: set[str] = set()
    for found in _all(near):
        if found.path not in seen:
            seen.add(found.path)
            yield found


def _all(near: tuple[Path, ...]) -> Iterator[Interpreter]:
    yield from _pythons(_active())
    for folder in _upwards(near):
        for places in (_virtualenvs, _pixi, _poetry, _conda, _pyenv):
            yield from _pythons(places(folder))
    yield from _pythons(_conda_base())
    for name in ("python3", "python"):
        if found := shutil.which(name):
            yield Interpreter(found, Sentence("{name} on PATH", name=name))
    yield Interpreter(sys.executable, Sentence("EvoKernel's own interpreter"))


def _pythons(places: Iterator[Place]) -> Iterator[Interpreter]:
    for folder, how in places:
        for name in _PYTHONS:
            if (folder / name).is_file():
                yield Interpreter(str(folder / name), how)
                break


def _upwards(near: tuple[Path, ...]) -> Iterator[Path]:
    """Each folder and those above it, up to the home folder or below the root of the file system."""
    home, seen = Path.home(), set[Path]()
    for start in near:
        for folder in (start, *start.parents):
            shared = folder != start and _anyone_writes(folder)  # what lies in /tmp may be anybody's
            if shared or folder == Path(folder.anchor) or folder in home.parents:
                break
            if folder not in seen:
                seen.add(folder)
                yield folder
            if folder == home:
                break


def _anyone_writes(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _active() -> Iterator[Place]:
    if environment := os.environ.get("VIRTUAL_ENV"):
        yield Path(environment), Sentence("active environment")
    elif (environment := os.environ.get("CONDA_PREFIX")) and not _is_base():
        yield Path(environment), Sentence("active conda environment")


def _conda_base() -> Iterator[Place]:
    """The base environment is active in most shells without having been chosen."""
    if (environment := os.environ.get("CONDA_PREFIX")) and _is_base():
        yield Path(environment), Sentence("conda's base environment")


def _is_base() -> bool:
    return os.environ.get("CONDA_DEFAULT_ENV") == "base"


def _virtualenvs(folder: Path) -> Iterator[Place]:
    named = os.environ.get("UV_PROJECT_ENVIRONMENT")
    if named and (folder / "pyproject.toml").is_file():
        yield folder / named, Sentence("uv's environment of {folder}", folder=folder)
    for name in (".venv", "venv", "env"):
        yield folder / name, Sentence("{name} in {folder}", name=name, folder=folder)


def _pixi(folder: Path) -> Iterator[Place]:
    inside = folder / ".pixi" / "envs"
    found = sorted(inside.iterdir()) if inside.is_dir() else []
    for environment in sorted(found, key=lambda item: item.name != "default"):
        how = Sentence("pixi's environment {name} of {folder}", name=environment.name, folder=folder)
        yield environment, how


def _poetry(folder: Path) -> Iterator[Place]:
    name = _poetry_name(folder)
    if name is None:
        return
    said = _asked_poetry(folder)
    for environment in [said] if said else sorted(_poetry_cache().glob(f"{_poetry_stem(name, folder)}-py*")):
        yield environment, Sentence("poetry's environment of {folder}", folder=folder)


def _poetry_name(folder: Path) -> str | None:
    """The project's name, None where poetry does not manage it."""
    try:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    section = project.get("tool", {}).get("poetry")
    if section is None and not (folder / "poetry.lock").is_file():
        return None
    return str((section or {}).get("name") or project.get("project", {}).get("name") or folder.name)


@lru_cache(maxsize=64)
def _asked_poetry(folder: Path) -> Path | None:
    if shutil.which("poetry") is None:
        return None
    try:
        done = subprocess.run(
            ["poetry", "env", "info", "-p"], cwd=folder, capture_output=True, text=True,
            timeout=_TOOL_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout.strip()
    return Path(said) if done.returncode == 0 and said else None


def _poetry_cache() -> Path:
    if given := os.environ.get("POETRY_VIRTUALENVS_PATH"):
        return Path(given)
    if given := os.environ.get("POETRY_CACHE_DIR"):
        return Path(given) / "virtualenvs"
    caches = {"darwin": "Library/Caches", "win32": "AppData/Local"}
    below = "pypoetry/Cache" if sys.platform == "win32" else "pypoetry"
    return Path.home() / caches.get(sys.platform, ".cache") / below / "virtualenvs"


def _poetry_stem(name: str, folder: Path) -> str:
    """Poetry names an environment after the project and a digest of its folder."""
    plain = re.sub(r'[ $`!*@"\\\r\n\t]', "_", name.lower())[:42]
    digest = hashlib.sha256(os.path.normcase(os.path.realpath(folder)).encode()).digest()
    return f"{plain}-{base64.urlsafe_b64encode(digest).decode()[:8]}"


def _conda(folder: Path) -> Iterator[Place]:
    for file in (folder / name for name in _CONDA_FILES):
        if not file.is_file():
            continue
        said = dict(re.findall(r"^(name|prefix):\s*[\"']?([^\"'#\n]+?)[\"']?\s*(?:#.*)?$", _text(file), re.M))
        if "prefix" in said:
            yield Path(said["prefix"]).expanduser(), Sentence("conda environment of {file}", file=file)
        if name := said.get("name"):
            how = Sentence("conda environment {name} of {file}", name=name, file=file)
            yield from ((environment, how) for environment in _conda_environments(name))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8", errors="replace")
    except OSError:
        return ""


def _conda_environments(name: str) -> Iterator[Path]:
    """The folders where an environment of that name may be."""
    given = [os.environ.get(key) for key in ("CONDA_ROOT", "MAMBA_ROOT_PREFIX")]
    roots = [Path(root) for root in given if root]
    if program := os.environ.get("CONDA_EXE"):
        roots.append(Path(program).parent.parent)
    roots += [Path.home() / root for root in _CONDA_ROOTS] + [Path("/opt/conda"), Path("/opt/miniconda3")]
    yield from (root / "envs" / name for root in roots)
    for line in _text(Path.home() / ".conda" / "environments.txt").splitlines():
        if Path(line.strip()).name == name:
            yield Path(line.strip())


def _pyenv(folder: Path) -> Iterator[Place]:
    """The versions that ``.python-version`` names; ``3.11`` stands for the newest 3.11 there is."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for line in _text(folder / ".python-version").splitlines():
        name = line.strip()
        if not name or name.startswith("#") or "/" in name:
            continue
        newest = sorted(versions.glob(f"{name}.*"), key=_numbers, reverse=True)
        for version in (versions / name, *newest):
            file = folder / ".python-version"
            yield version, Sentence("pyenv's {name} of {file}", name=version.name, file=file)


def _numbers(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))
