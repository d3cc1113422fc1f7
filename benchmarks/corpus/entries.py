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
    """``file`` lies below ``project``; ``driver``: the script that calls it and its arguments, empty where
    the file says its own inputs."""

    name: str
    project: Path
    file: str
    driver: tuple[str, ...]
    interpreter: Path

    def program(self, tree: Path) -> tuple[str, ...]:
        """The driver, or the file of a copy of the project."""
        return self.driver or (str(tree / self.file),)

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
    for name, (project, file, driver) in sorted(drivers().items()):
        if (projects / project / file).exists():
            yield Entry(name, projects / project, file, driver, interpreter)


def drivers() -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Of each entry its project, its file and what drives it."""
    table, found = HERE / "drivers" / "table.py", {}
    for row in ast.parse(table.read_text()).body:
        for call in row.decorator_list if isinstance(row, ast.FunctionDef) else ():
            assert isinstance(call, ast.Call)
            project, file = map(ast.literal_eval, call.args[:2])
            found[row.name] = project, file, (str(table), row.name)
    for path in (HERE / "drivers").glob("use_*.py"):
        said = _constants(path)
        found[path.stem.removeprefix("use_")] = said["PROJECT"], said["FILE"], (str(path),)
    return found


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
            yield Entry(name, path.parent, path.name, (), interpreter)


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
