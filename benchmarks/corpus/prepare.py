"""Make the corpus: an environment with the projects' packages, and a copy of each project to edit.

    python benchmarks/corpus/prepare.py DIR [--mirrors FOLDER] [--venv FOLDER]

Afterwards DIR holds ``venv`` and ``projects/NAME``. Packages come from PyPI; repositories are cloned from
``https://github.com``, or from FOLDER/OWNER+NAME/repo with --mirrors. A project that cannot be had is named
and left out. What is there already is kept, so the command can be repeated.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from entries import drivers

HERE = Path(__file__).parent
TORCH = "torch==2.13.0"
HOOK = "corpus_torchvision"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--mirrors", type=Path, help="folder of bare clones, OWNER+NAME/repo")
    parser.add_argument("--venv", type=Path, help="an environment that exists already")
    args = parser.parse_args()
    venv = args.corpus / "venv"
    projects = args.corpus / "projects"
    projects.mkdir(parents=True, exist_ok=True)
    if args.venv and not venv.exists():
        venv.symlink_to(args.venv.absolute())
    if not venv.exists():
        _install(venv)
    _define_operators(_site(venv))
    missing = [name for name in _wanted() if not _copied(name, projects, venv, args.mirrors)]
    print(f"{len(_wanted()) - len(missing)} of {len(_wanted())} projects in {projects}")
    for name in missing:
        print(f"- {name} could not be had: its entries are left out")
    return 0


def _install(venv: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, TORCH, "numpy"], check=True)
    subprocess.run([*pip, "--no-deps", "-r", HERE / "packages.txt"], check=True)
    subprocess.run([*pip, TORCH, "-r", HERE / "support.txt"], check=True)


def _site(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*")) / "site-packages"


def _define_operators(site: Path) -> None:
    """torchvision's own operators are built for another torch; none is called here, but its import asks
    for their schemas."""
    shutil.copy(HERE / "torchvision_operators.py", site / f"{HOOK}.py")
    (site / f"{HOOK}.pth").write_text(f"import {HOOK}\n")


def _wanted() -> list[str]:
    """The projects that drivers name."""
    return sorted({project for project, _, _ in drivers().values()})


def _copied(name: str, projects: Path, venv: Path, mirrors: Path | None) -> bool:
    target = projects / name
    if target.exists():
        return True
    told = tomllib.loads((HERE / "projects.toml").read_text())
    if name in told["repositories"]:
        return _cloned(told["repositories"][name], target, mirrors, ["*.py", *told["data"].get(name, ())])
    package = _site(venv) / name
    if package.is_dir():
        shutil.copytree(package, target / name)
    return package.is_dir()


def _cloned(repository: str, target: Path, mirrors: Path | None, files: Sequence[str]) -> bool:
    source = f"https://github.com/{repository}"
    if mirrors:
        source = str(mirrors / repository.replace("/", "+") / "repo")
    clone = ["git", "clone", "--quiet", "--no-checkout", source, target]
    checkout = ["git", "-C", target, "checkout", "--quiet", "HEAD", "--", *files]
    return not any(subprocess.run(command, check=False).returncode for command in (clone, checkout))


def roots(name: str, project: Path) -> Iterator[Path]:
    """The folders that imports of a project begin at."""
    inner = tomllib.loads((HERE / "projects.toml").read_text())["roots"].get(name)
    yield project / inner if inner else project


if __name__ == "__main__":
    sys.exit(main())
