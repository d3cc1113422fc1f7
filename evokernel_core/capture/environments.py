"""Where the Python of a project may be: in its folder or one above, as the tools of the field keep it."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.foreign import read_foreign_bytes
from evokernel_core.programs import program_on_path

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
    for result in _all(near):
        if result.path not in seen:
            seen.add(result.path)
            yield result


def folder_interpreters(*near: Path) -> Iterator[Interpreter]:
    """Those of the folders ``near`` and above them alone, with nothing run: not even the tools that manage
    environments, which run what lies in a project."""
    for folder in _upwards(near):
        yield from _folder_pythons(folder, asks=False)


def _all(near: tuple[Path, ...]) -> Iterator[Interpreter]:
    yield from _pythons(_active())
    for folder in _upwards(near):
        yield from _folder_pythons(folder, asks=True)
    yield from _pythons(_conda_base())
    for name in ("python3", "python"):
        if result := program_on_path(name):
            yield Interpreter(result, Sentence("{name} on PATH", name=name))
    yield Interpreter(sys.executable, Sentence("EvoKernel's own interpreter"))


def _folder_pythons(folder: Path, *, asks: bool) -> Iterator[Interpreter]:
    for places in (_virtualenvs, _pixi, partial(_poetry, asks=asks), _conda, _pyenv):
        yield from _pythons(places(folder))


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
    if environment := _folder_of("VIRTUAL_ENV"):
        yield environment, Sentence("active environment")
    elif (environment := _folder_of("CONDA_PREFIX")) and not _is_base():
        yield environment, Sentence("active conda environment")


def _conda_base() -> Iterator[Place]:
    """The base environment is active in most shells without having been chosen."""
    if (environment := _folder_of("CONDA_PREFIX")) and _is_base():
        yield environment, Sentence("conda's base environment")


def _folder_of(variable: str) -> Path | None:
    """The folder that an activation has put into the environment. It puts whole paths there: a relative one
    would be another folder in each folder."""
    given = Path(os.environ.get(variable, ""))
    return given if given.is_absolute() else None


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
    paths = sorted(inside.glob("*"))
    for environment in sorted(paths, key=lambda path: path.name != "default"):
        how = Sentence("pixi's environment {name} of {folder}", name=environment.name, folder=folder)
        yield environment, how


def _poetry(folder: Path, *, asks: bool) -> Iterator[Place]:
    name = _poetry_name(folder)
    if name is None:
        return
    said = _asked_poetry(folder) if asks else None
    for environment in [said] if said else sorted(_poetry_cache().glob(f"{_poetry_stem(name, folder)}-py*")):
        yield environment, Sentence("poetry's environment of {folder}", folder=folder)


def _poetry_name(folder: Path) -> str | None:
    """The project's name, None where poetry does not manage it."""
    try:
        project = tomllib.loads(_text(folder / "pyproject.toml"))
    except (ValueError, RecursionError):
        return None
    section, own = _table(_table(project, "tool"), "poetry"), _table(project, "project")
    if not section and not (folder / "poetry.lock").is_file():
        return None
    return str(section.get("name") or own.get("name") or folder.name)


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    """A table of a project's file, empty where there is none or something else has its name."""
    element = data.get(name)
    return element if isinstance(element, dict) else {}


@lru_cache(maxsize=64)
def _asked_poetry(folder: Path) -> Path | None:
    if (poetry := program_on_path("poetry")) is None:
        return None
    try:
        done = subprocess.run(
            [poetry, "env", "info", "-p"], cwd=folder, capture_output=True, text=True,
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
            prefix = Path(os.path.expanduser(said["prefix"]))  # noqa: PTH111 - that of nobody raises nothing
            yield prefix, Sentence("conda environment of {file}", file=file)
        if name := said.get("name"):
            how = Sentence("conda environment {name} of {file}", name=name, file=file)
            yield from ((environment, how) for environment in _conda_environments(name))


def _text(file: Path) -> str:
    """What a file of a project holds, behind its links; empty for a pipe, a device and the endless."""
    try:
        return read_foreign_bytes(Path(os.path.realpath(file))).decode("utf-8", "replace")
    except (OSError, ValueError):
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
