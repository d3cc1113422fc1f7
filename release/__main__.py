"""``make release``: builds wheel, sdist and extension of the last commit into dist/, and checks them.

Nothing is published. Usage: python -m release [--interpreter PYTHON_WITH_TORCH]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from release.contents import faults, read_archive, vsix_faults, wheel_faults
from release.patient import run, say
from release.smoke import smoke

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
COMPILED = (".po",)
"""What a wheel holds only compiled."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--interpreter", type=Path, default=Path(sys.executable), help="A Python with torch."
    )
    interpreter = arguments.parse_args().interpreter
    if _git("status", "--porcelain").strip():
        sys.exit("A release is of a commit: commit what has changed, or stash it.")
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="evokernel-release-") as folder:
        tree = Path(folder)
        subprocess.run(f"git archive HEAD | tar x -C '{tree}'", shell=True, cwd=ROOT, check=True)
        _python("wheel and sdist", "-m", "build", "--outdir", str(DIST), str(tree))
        vsix = _build_extension(tree / "vscode-extension")
    wheel, sdist = _only("*.whl"), _only("*.tar.gz")
    _python("metadata", "-m", "twine", "check", "--strict", str(wheel), str(sdist))
    found = [f"{path.name}: {fault}" for path in (wheel, sdist, vsix) for fault in faults(read_archive(path))]
    found += [f"{wheel.name}: {fault}" for fault in wheel_faults(read_archive(wheel), _sources())]
    found += [f"{vsix.name}: {fault}" for fault in vsix_faults(read_archive(vsix))]
    if found:
        sys.exit("\n".join(found))
    for done in smoke(wheel, interpreter):
        say(f"{done.seconds:6.1f} s  {done.step}: {done.shown}")
    for path in (wheel, sdist, vsix):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        count = len(read_archive(path))
        say(f"{digest}  {path.relative_to(ROOT)}  {path.stat().st_size:,} bytes, {count} files")


def _build_extension(folder: Path) -> Path:
    version = json.loads((folder / "package.json").read_text("utf-8"))["version"]
    target = DIST / f"evokernel-{version}.vsix"
    for label, command in {
        "packages of the extension": ("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"),
        "types and rules of the extension": ("npm", "run", "--silent", "lint"),
        "tests of the extension": ("npm", "test", "--silent"),
        "extension": ("npm", "run", "--silent", "package", "--", "--out", str(target)),
    }.items():
        _step(label, command, folder)
    return target


def _sources() -> dict[str, bytes]:
    """What git tracks of the packages, by name below the import path."""
    return dict(_each_source())


def _each_source() -> Iterator[tuple[str, bytes]]:
    for folder, top in packages(ROOT).items():
        for name in _git("ls-files", "-z", folder).split("\0"):
            if name and not name.endswith(COMPILED):
                path = ROOT / name
                yield path.relative_to(top).as_posix(), path.read_bytes()


def packages(root: Path) -> dict[str, Path]:
    """Each package that setuptools is told to find, by its folder below ``root``, with its import path."""
    find = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"][
        "find"
    ]
    return {
        folder.relative_to(root).as_posix(): top
        for top in (root / where for where in find["where"])
        for pattern in find["include"]
        for folder in sorted(top.glob(pattern))
        if (folder / "__init__.py").is_file()
    }


def _only(pattern: str) -> Path:
    (path,) = DIST.glob(pattern)
    return path


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _python(label: str, *arguments: str) -> None:
    _step(label, (sys.executable, *arguments), ROOT)


def _step(label: str, command: tuple[str, ...], folder: Path) -> None:
    """Runs a program to its end, and says what it was and how long it took."""
    say(f"         {label} …")
    began = time.monotonic()
    run(label, command, cwd=folder)
    say(f"{time.monotonic() - began:6.1f} s  {label}")


if __name__ == "__main__":
    main()
