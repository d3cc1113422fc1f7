"""The entries of a corpus: a model file of somebody's, and the script of ours that builds and calls it."""

from __future__ import annotations

import ast
import os
import shutil
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).parent
SUPPLIERS = frozenset({"get_inputs", "get_input_groups", "get_inputs_dyn_list"})
KERNELS = "evokernel_kernels"


@frozen
class Entry:
    """``file`` lies below ``project``; ``driver`` is empty where the file says its own inputs."""

    name: str
    project: Path
    file: str
    driver: Path | None
    interpreter: Path

    @property
    def needs_observation(self) -> bool:
        """Whether a capture learns the inputs from a run of the driver."""
        return self.driver is not None

    def root(self, tree: Path) -> Path:
        """The folder that imports of the file begin at, in a copy of the project."""
        folder = (tree / self.file).parent
        while (folder / "__init__.py").exists():
            folder = folder.parent
        return folder

    def environment(self, tree: Path) -> dict[str, str]:
        """What a process of the entry is started with, so that it imports from one copy of the project."""
        inner = tomllib.loads((HERE / "projects.toml").read_text())["roots"].get(self.project.name, "")
        before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        places = dict.fromkeys((str(self.root(tree)), str(tree / inner), str(tree), *filter(None, before)))
        fixed = {"PYTHONHASHSEED": "0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
        return {**os.environ, **fixed, "PYTHONPATH": os.pathsep.join(places)}


def entries(corpus: Path, pattern: str) -> list[Entry]:
    """The drivers whose projects are in the corpus, and the files below it that say their own inputs."""
    venv = corpus / "venv" / "bin" / "python"
    found = [*_driven(corpus / "projects", venv), *_telling(corpus, venv)]
    return [entry for entry in found if fnmatch(entry.name, pattern)]


def _driven(projects: Path, interpreter: Path) -> Iterator[Entry]:
    for path in sorted((HERE / "drivers").glob("use_*.py")):
        said = _constants(path)
        project = projects / said["PROJECT"]
        if (project / said["FILE"]).exists():
            yield Entry(path.stem.removeprefix("use_"), project, said["FILE"], path, interpreter)


def _constants(path: Path) -> dict[str, str]:
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            found[ast.unparse(node.targets[0])] = node.value.value
    return found


def _telling(corpus: Path, interpreter: Path) -> Iterator[Entry]:
    """Files outside of projects that have ``get_inputs()`` or a relative."""
    skipped = {corpus / "projects", corpus / "runs", corpus / "venv"}
    for path in sorted(corpus.rglob("*.py")):
        if skipped.isdisjoint(path.parents) and KERNELS not in path.parts and _tells(path):
            name = str(path.relative_to(corpus).with_suffix("")).replace(os.sep, ".")
            yield Entry(name, path.parent, path.name, None, interpreter)


def _tells(path: Path) -> bool:
    try:
        body = ast.parse(path.read_text(errors="replace")).body
    except SyntaxError:
        return False
    return any(isinstance(node, ast.FunctionDef) and node.name in SUPPLIERS for node in body)


def edited_copy(entry: Entry, target: Path) -> Path:
    """A copy of the project in which one file can be changed: all others are links to the original's.
    Returns the file."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        entry.project, target, copy_function=_link, ignore=shutil.ignore_patterns(".git", KERNELS)
    )
    file = target / entry.file
    file.unlink()
    shutil.copy2(entry.project / entry.file, file)
    return file


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
