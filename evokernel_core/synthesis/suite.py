"""A suite: the problem files in and below a folder, the names they go by, and their order."""

from __future__ import annotations

import ast
import fnmatch
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from attrs import frozen

from evokernel_core.capture.finder import INPUTS
from evokernel_core.capture.text import read_python
from evokernel_core.domain.errors import ImportFailed, UsageError

_MAY_SUPPLY = re.compile(r"get_inputs|get_input_groups|import \*|evokernel:")
"""A file without any of these texts says no inputs; one with them may."""


@frozen
class SuiteProblem:
    """A file of a suite. ``level`` is its folder as the suite sees it, such as ``level1`` or ``math/scan``,
    empty where that is the suite itself."""

    file: Path
    level: str = ""

    @property
    def key(self) -> str:
        """Tells it from a problem of the same name in another folder."""
        return f"{self.level}/{self.file.stem}"


@frozen
class Suite:
    """The problems to solve, in order, and the helpers among the files that were asked for: those that say
    no inputs and define no module, beside problems that do."""

    problems: tuple[SuiteProblem, ...]
    helpers: tuple[Path, ...] = ()


def suite_of(path: Path, levels: Iterable[int] = (), pattern: str = "*") -> Suite:
    """The suite that a folder is, with all folders below it, or one file. Names that begin with an
    underscore or a dot are no problems, neither are environments of Python. ``levels`` are the numbers
    of folders such as ``level1`` or ``level_1``. Raises UsageError where there is no problem."""
    if path.is_file():
        return Suite((SuiteProblem(path),))
    wanted = set(levels)
    python_files = [file for file in _python_files(path) if not wanted or wanted & _levels_of(file, path)]
    if not python_files:
        raise UsageError(_nothing_in(path, wanted))
    chosen = [file for file in python_files if fnmatch.fnmatch(file.name, pattern) or file.stem == pattern]
    if not chosen:
        raise UsageError(
            f"None of the {len(python_files)} Python files of {path} matches {pattern!r}, the first is "
            f"{python_files[0].name}; correct --filter."
        )
    problems = [file for file in chosen if _is_problem(file)]
    helpers = [file for file in chosen if file not in set(problems)] if problems else []
    # where no file is a problem, each says why
    return Suite(
        tuple(SuiteProblem(file, _level_of(file, path)) for file in problems or chosen), tuple(helpers)
    )


def _nothing_in(path: Path, levels: set[int]) -> str:
    if not levels:
        return (
            f"{path} has no Python files, in itself or in folders below it; give the folder of the problems."
        )
    asked = ", ".join(f"level{level}" for level in sorted(levels))
    return f"{path} has no Python files in folders that are named {asked}; correct --levels."


def _python_files(path: Path) -> list[Path]:
    """In order: folders by their names, files in a folder by their numbers."""
    return sorted(_walk(path, set()), key=lambda file: _order(file.relative_to(path)))


def _walk(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Each folder once, whatever links lead to it; its own name comes before that of a link."""
    seen.add(folder.resolve())
    try:
        items = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder} cannot be read ({error.strerror}); correct its rights.") from error
    if any(item.name == "pyvenv.cfg" for item in items):
        return
    visible = [item for item in items if not item.name.startswith(("_", "."))]
    yield from (path for path in visible if path.suffix == ".py" and (path.is_file() or _is_broken(path)))
    for path in sorted(filter(Path.is_dir, visible), key=Path.is_symlink):
        if path.resolve() not in seen:
            yield from _walk(path, seen)


def _is_broken(path: Path) -> bool:
    """A link to nothing, which the user should know of."""
    return path.is_symlink() and not path.exists()


def _order(relative: Path) -> tuple[list[list[tuple[int, str]]], int, str]:
    number = re.match(r"\d+", relative.name)
    folders = [_natural(part) for part in relative.parts[:-1]]
    return folders, int(number.group()) if number else 0, relative.name


def _natural(name: str) -> list[tuple[int, str]]:
    """``task_2`` comes before ``task_10``."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.findall(r"\d+|\D+", name)]


def _levels_of(file: Path, suite: Path) -> set[int]:
    """The numbers of the level folders that a file lies in."""
    names = (*file.relative_to(suite).parts[:-1], suite.absolute().name)
    result = (re.fullmatch(r"level[ _-]?(\d+)", name, re.IGNORECASE) for name in names)
    return {int(match.group(1)) for match in result if match}


def _level_of(file: Path, suite: Path) -> str:
    folder = file.parent.relative_to(suite).as_posix()
    if folder != ".":
        return folder
    name = suite.absolute().name
    return name if name.startswith("level") else ""


def _is_problem(file: Path) -> bool:
    """Whether a file says inputs or defines a module; one that cannot be read says what is wrong with it."""
    try:
        text = read_python(file)
        tree = ast.parse(text)
    except (ImportFailed, SyntaxError, ValueError):
        return True
    if _MAY_SUPPLY.search(text) and ("evokernel:" in text or any(map(_supplies, tree.body))):
        return True
    return any(_is_module(statement) for statement in tree.body)


def _is_module(statement: ast.stmt) -> bool:
    bases = statement.bases if isinstance(statement, ast.ClassDef) else []
    return any(ast.unparse(base).endswith("Module") for base in bases)


def _supplies(statement: ast.stmt) -> bool:
    """Whether a statement gives the file a function for its inputs."""
    names: set[str] = set()
    for node in ast.walk(statement) if not isinstance(statement, ast.FunctionDef) else (statement,):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return bool(names & (INPUTS | {"*"}))


def labels(problems: Iterable[SuiteProblem]) -> dict[str, str]:
    """What each problem, by its key, is called: by its file, with its folder where others share the name."""
    by_stem = groupby(sorted(problems, key=_stem), key=_stem)
    groups = [list(group) for _, group in by_stem]
    return {
        problem.key: problem.file.stem if len(group) == 1 else problem.key.lstrip("/")
        for group in groups
        for problem in group
    }


def _stem(problem: SuiteProblem) -> str:
    return problem.file.stem
