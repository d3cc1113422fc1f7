"""An environment with what the light install brings and nothing else, made of links to what is installed."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
import venv
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from attrs import frozen
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@frozen
class Light:
    """A virtual environment in ``folder``, with the packages of this checkout beside those of ``names``."""

    folder: Path
    names: frozenset[str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def run(self, *arguments: str, environment: dict[str, str] | None = None) -> Any:
        """Runs its Python; the answer has what was printed."""
        return subprocess.run(
            [self.python, *arguments], env={**bare_environment(), **(environment or {})},
            capture_output=True, text=True, timeout=120, check=False, cwd=self.folder,
        )  # fmt: skip


def bare_environment() -> dict[str, str]:
    """This process' environment without what would bring in other packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def make_light(folder: Path) -> Light:
    """Takes milliseconds, as nothing is copied."""
    venv.create(folder, with_pip=False, symlinks=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    names = frozenset(closure(PROJECT["dependencies"]))
    for name in names:
        for path in top_of(metadata.distribution(name)):
            if not (packages / path.name).exists():
                (packages / path.name).symlink_to(path)
    (packages / "checkout.pth").write_text(f"{ROOT}\n{ROOT / 'server'}\n", "utf-8")
    return Light(folder, names)


def closure(requirements: Iterable[str]) -> Iterator[str]:
    """The installed packages that satisfy requirements, and theirs in turn."""
    waiting, seen = [Requirement(item) for item in requirements], set()
    while waiting:
        wanted = waiting.pop()
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        extras = {"", *wanted.extras}
        if (wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras)) or (
            name in seen
        ):
            continue
        seen.add(name)
        yield name
        for item in metadata.requires(name) or ():
            needed = Requirement(item)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                needed.marker = None
                waiting.append(needed)


def top_of(distribution: metadata.Distribution) -> set[Path]:
    """The files and folders of a distribution that lie in site-packages itself."""
    files = distribution.files or ()
    names = {file.parts[0] for file in files if file.parts[0] not in {"..", "__pycache__", "bin"}}
    return {Path(str(distribution.locate_file(name))) for name in names}
