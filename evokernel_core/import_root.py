"""Where a file's imports start: the folder that has to be on Python's path while the file runs.

Packages may do without ``__init__.py``, so that a folder's files alone do not tell. What tells is an import
that finds its file from there: of the file itself, of one beside it, or of a program above it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from attrs import frozen

MARKERS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")
"""What the top folder of a project has."""
_MOST_ABOVE = 8
_MOST_FILES = 64
_LARGEST_BYTES = 1 << 20
_FOREIGN = frozenset({*sys.stdlib_module_names, "torch"})
"""Packages that the interpreter has whatever folders are called."""
_KERNELS = "evokernel_kernels"
_PLAIN = re.compile(r"^[ \t]*import[ \t]+([\w. \t,]+)", re.MULTILINE)
_FROM = re.compile(
    r"^[ \t]*from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n(#]+)", re.MULTILINE
)
_COMMENT = re.compile(r"#.*|[()\\]")


@frozen
class Imported:
    """A module that a text names: ``level`` dots, and the words behind them. ``is_sure``: its last word is a
    module, and no name in one."""

    level: int
    words: tuple[str, ...]
    is_sure: bool = True


@frozen
class ImportPath:
    """``root`` is where the file's own imports start; ``first`` are folders that Python looks through before
    what is installed, ``last`` those of the project, behind it."""

    root: Path
    first: tuple[Path, ...]
    last: tuple[Path, ...]


def import_root(file: Path) -> Path:
    """The folder from which Python imports a file and its kernels: the nearest one above it that is no
    package, or one further up where imports start from there."""
    regular = _regular_root(file)
    above = _above(regular)
    return _of_kernels(file, (regular, *above)) or _of_imports(file, regular, above) or regular


def import_path(file: Path, environment: str = "") -> ImportPath:
    """Where a file's imports are looked for; ``environment`` is ``PYTHONPATH`` as the file's programs have
    it."""
    root = import_root(file)
    named = tuple(Path(entry).absolute() for entry in environment.split(os.pathsep) if entry)
    project = _above(root)
    if not any(_is_top(folder) for folder in (root, *project)):
        project = ()
    sources = tuple(folder / "src" for folder in (root, *project) if _is_top(folder))
    return ImportPath(root, named, (*project, *(folder for folder in sources if folder.is_dir())))


def _regular_root(file: Path) -> Path:
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return folder


def _above(folder: Path) -> tuple[Path, ...]:
    """The folders above one that belong to its project, as far as that is known."""
    paths: list[Path] = []
    home = Path.home()
    while not _is_top(folder) and len(paths) < _MOST_ABOVE:
        folder = folder.parent
        if folder in (Path(folder.anchor), home) or folder in home.parents or _anyone_writes(folder):
            break
        paths.append(folder)
    return tuple(paths)


def _is_top(folder: Path) -> bool:
    return any((folder / name).exists() for name in MARKERS)


def _anyone_writes(folder: Path) -> bool:
    """Whether files in a folder may be anybody's, as in /tmp."""
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return True


def _of_kernels(file: Path, folders: tuple[Path, ...]) -> Path | None:
    """The folder that holds the kernels which the file calls already."""
    names = [
        module.words[1] for module in imports_in(file) if module.words[:1] == (_KERNELS,) and module.words[1:]
    ]
    for folder in folders:
        if any((folder / _KERNELS / name).is_dir() for name in names):
            return folder
    return None


def _of_imports(file: Path, regular: Path, above: tuple[Path, ...]) -> Path | None:
    """The folder from which each import finds its file that does not from where the file's would start: those
    of the file itself, and those of files beside and above it that name it."""
    near = (regular, file.parent)
    beside = [path for path in _python_files(file.parent) if path != file]
    result = [_package_root(file, module) for module in imports_in(file) if module.level]
    result += [
        _package_root(path, module)
        for path in beside
        for module in imports_in(path)
        if _names(file, path, module)
    ]
    for module in imports_in(file):
        if not any(_finds(folder, module) for folder in near):
            result.append(next((folder for folder in above if _finds(folder, module)), None))
    for folder in above:
        programs = (*beside, *_python_files(folder))
        if any(_leads_to(folder, module, file) for path in programs for module in imports_in(path)):
            result.append(folder)
    return max((folder for folder in result if folder in above), key=above.index, default=None)


def _package_root(path: Path, imported: Imported) -> Path | None:
    """Where imports start so that a file may import relatively; None where it finds nothing so."""
    package = path.parents[imported.level - 1]
    return package.parent if not imported.words or _is_module(package.joinpath(*imported.words)) else None


def _names(file: Path, path: Path, imported: Imported) -> bool:
    """Whether a relative import of another file is of this one."""
    return bool(imported.level) and path.parents[imported.level - 1].joinpath(
        *imported.words
    ) == file.with_suffix("")


def _leads_to(folder: Path, imported: Imported, file: Path) -> bool:
    """Whether an absolute import from a folder is of a file."""
    return not imported.level and folder.joinpath(*imported.words) == file.with_suffix("")


def _finds(folder: Path, imported: Imported) -> bool:
    """Whether an absolute import finds a file from a folder. One of a single word finds no mere folder."""
    if imported.level or not imported.words or imported.words[0] in _FOREIGN:
        return False
    path = folder.joinpath(*imported.words)
    if len(imported.words) == 1:
        return imported.is_sure and ((path / "__init__.py").is_file() or path.with_suffix(".py").is_file())
    return _is_module(path)


def _is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def _python_files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".py"))
    except OSError:
        return
    yield from (folder / name for name in names[:_MOST_FILES])


def imports_in(path: Path) -> tuple[Imported, ...]:
    """The imports of a file's text, none where it cannot be read."""
    try:
        status = path.stat()
        return _imports(str(path), status.st_mtime_ns, status.st_size)
    except OSError:
        return ()


@lru_cache(maxsize=1024)
def _imports(path: str, _: int, size: int) -> tuple[Imported, ...]:
    if size > _LARGEST_BYTES:
        return ()
    return tuple(dict.fromkeys(_imports_of(Path(path).read_text("utf-8", "replace"))))


def _imports_of(text: str) -> Iterator[Imported]:
    for match in _PLAIN.finditer(text):
        for clause in match[1].split(","):
            if words := clause.split():
                yield Imported(0, tuple(words[0].split(".")))
    for match in _FROM.finditer(text):
        module = tuple(filter(None, match[2].split(".")))
        names = [clause.split()[0] for clause in _COMMENT.sub("", match[3]).split(",") if clause.split()]
        yield Imported(len(match[1]), module)
        yield from (Imported(len(match[1]), (*module, name), is_sure=False) for name in names)
