"""Run the user's file in a fresh module, without allocating its tensors, and leave no traces."""

from __future__ import annotations

import ast
import builtins
import importlib
import linecache
import os
import random
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any

import torch

from ..errors import AgentError, describe
from ..guards.code import is_workspace
from ..sentence import Sentence
from .constant_tensors import SmallTensors
from .devices import patched
from .imports import Imports
from .no_memory import memory_asked
from .npu import NAME as NPU
from .npu import asked, installed
from .outside import Stopped, as_program, deadline
from .record import Recorder
from .source import ENTER, EXIT, Source, instrument, parse

_imported_before: set[Path] = set()
"""Folders of projects whose modules were run and forgotten."""


@contextmanager
def isolation(path: Path, imports: Imports) -> Iterator[None]:
    """The user's file may change global state: put back paths, modules, defaults and the folder."""
    before = set(sys.modules)
    kept_path, folder = list(sys.path), Path.cwd()
    dtype, gradients, state = torch.get_default_dtype(), torch.is_grad_enabled(), random.getstate()
    # a package may hold a module of its own name
    sys.path[:0] = [str(imports.root), str(path.parent), *imports.first]
    sys.path += imports.last
    try:
        if path.parent.is_dir():
            os.chdir(path.parent)
        with (
            patched(SourceFileLoader, "set_data", _caching_libraries(SourceFileLoader.set_data)),
            memory_asked(),
        ):
            yield
    finally:
        os.chdir(folder)
        _forget_modules(set(sys.modules) - before, imports)  # packages of folders follow the path
        sys.path[:] = kept_path
        torch.set_default_device(None)
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        random.setstate(state)


def _caching_libraries(write: Callable[..., None]) -> Callable[..., None]:
    """Python compiles what it imports into a folder beside it. For modules of a project it does so when a
    person runs them, and not because a file of it was opened."""

    def cache(loader: SourceFileLoader, path: str, data: Any, **options: Any) -> None:
        if not is_workspace(loader.path):
            write(loader, path, data, **options)

    return cache


def _forget_modules(names: set[str], imports: Imports) -> None:
    """Modules of the user's own project change between requests; installed ones stay loaded."""
    places = {name: _places(sys.modules.get(name)) for name in names}
    for name, value in places.items():
        own = any(_is_own(place, imports) for place in value)
        if own:
            _imported_before.add(imports.root)
        if own or name.split(".")[0] == "evokernel_kernels":
            del sys.modules[name]


def _places(module: types.ModuleType | None) -> list[str]:
    """A module's file, or the folders of a package that has none."""
    file = getattr(module, "__file__", None)
    return [file] if file else list(getattr(module, "__path__", ()))


def _is_own(place: str, imports: Imports) -> bool:
    return is_workspace(place) and any(Path(place).is_relative_to(folder) for folder in imports.folders)


def parsed(path: str, text: str, imports: Imports) -> Source:
    """The file's expressions. Raises AgentError(import_failed) where it is not valid Python."""
    try:
        return parse(path, text, imports)
    except SyntaxError as error:
        raise AgentError(
            "import_failed",
            "Line {line} is not valid Python ({error}): correct it and try again.",
            line=error.lineno or 0,
            error=error.msg,
        ) from error


def execute(source: Source, recorder: Recorder) -> types.ModuleType:
    """Run the instrumented file. Raises AgentError(import_failed) with the user's error."""
    path = Path(source.path)
    package = source.imports.package
    name = f"{package}.{path.stem}" if package else path.stem
    if name in sys.modules:  # a file called random.py must not replace the library's module
        name = f"evokernel_user_{path.stem}"
    # the editor's text may differ from the file on disk; tracebacks and inspect must see this text
    linecache.cache[source.path] = (
        len(source.text), None, source.text.splitlines(keepends=True), source.path
    )  # fmt: skip
    once = _Once(name, package, source, recorder)
    if not installed() and any(_names_module(node, NPU) for node in ast.walk(source.tree)):
        asked.is_so = True
    try:
        with SmallTensors(), once:
            return once.loaded()
    except builtins.BaseException as error:
        words = failure(Sentence("Importing {name}", name=path.name), error, source.path)
        raise AgentError("import_failed", words, stale=_is_stale(error, source.imports.root)) from error


def _is_stale(error: BaseException, root: Path) -> bool:
    """Whether a project is imported again, and a library that knows it already refuses: it has no second
    operator, data pipe or class of one name."""
    files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
    return root in _imported_before and not is_workspace(files[-1] if files else "")


class _Once(MetaPathFinder, Loader):
    """Runs the instrumented file as its module, whoever imports it first: a package often imports its own
    files, and what registers itself by name fails where it runs twice."""

    def __init__(self, name: str, package: str, source: Source, recorder: Recorder) -> None:
        self.name, self.package, self.source, self.recorder = name, package, source, recorder
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The file's own module, and no other."""
        return ModuleSpec(fullname, self, origin=self.source.path) if fullname == self.name else None

    def exec_module(self, module: types.ModuleType) -> None:
        """Raises what the file raises, and keeps it: a package may swallow it."""
        module.__file__ = self.source.path
        module.__package__ = self.package
        setattr(module, ENTER, self.recorder.enter)
        setattr(module, EXIT, self.recorder.exit)
        try:
            _run(instrument(self.source), module, self.recorder)
        except builtins.BaseException as error:
            self.error = error
            raise

    def loaded(self) -> types.ModuleType:
        """The module, run by an import of its package where it imports other files of that, and alone
        otherwise. What is wrong with the package, the import in the file will say."""
        top = self.package.partition(".")[0]
        if top and any(_is_of(node, top) for node in ast.walk(self.source.tree)):
            with suppress(Exception):
                importlib.import_module(self.package)
        if self.error is not None:
            raise self.error
        if self.name not in sys.modules:
            module = module_from_spec(ModuleSpec(self.name, self, origin=self.source.path))
            sys.modules[self.name] = module
            self.exec_module(module)
        return sys.modules[self.name]


def _run(tree: ast.Module, module: types.ModuleType, recorder: Recorder) -> None:
    """Executes a file. Where a statement fails that defines nothing, as where a script reads its command
    line or ends itself, the definitions behind it are made all the same."""
    path = str(module.__file__)
    try:
        with as_program(Path(path)), deadline() as limit:
            if recorder.watch is not None:
                recorder.watch.limit = limit
            try:
                exec(compile(tree, path, "exec", dont_inherit=True), module.__dict__)
            finally:
                if recorder.watch is not None:
                    recorder.watch.limit = None
    except builtins.BaseException as error:
        line = _top_line(error, path)
        failed = [
            n
            for n, statement in enumerate(tree.body)
            if statement.lineno <= line <= (statement.end_lineno or 0)
        ]
        if not failed or isinstance(tree.body[failed[0]], _DEFINING):
            raise
        recorder.stopped = _stopped(error, path)
        future = [
            statement
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        ]
        rest = [statement for statement in tree.body[failed[0] + 1 :] if isinstance(statement, _DEFINING)]
        try:
            exec(compile(ast.Module([*future, *rest], []), path, "exec", dont_inherit=True), module.__dict__)
        except builtins.BaseException:
            raise error from None


def _stopped(error: BaseException, path: str) -> AgentError:
    """What a script lacks where it runs without its arguments and data is to be given to it by the person;
    all else is wrong with the file."""
    name = Path(path).name
    if not isinstance(error, (SystemExit, OSError, EOFError, Stopped)) and not reads_values(error):
        return AgentError("import_failed", failure(Sentence("Importing {name}", name=name), error, path))
    how = Sentence("it ended with {error}", error=describe(error))
    if isinstance(error, Stopped):
        how = error.sentence
    why = Sentence("{how} at line {line}", how=how, line=line_of(error, path))
    return AgentError("needs_shapes", gave_nothing(name, why))


def gave_nothing(name: str, why: Sentence) -> Sentence:
    """What to do where a file that was run alone did not call its model."""
    if asked.is_so:
        why = Sentence("it was run as if on an NPU, and {why}", why=why)
    return Sentence(
        "Running {name} gave no inputs, because {why}: run it once as 'evokernel observe -- "
        "python {name} ...', or add get_inputs().",
        name=name,
        why=why,
    )


def reads_values(error: BaseException) -> bool:
    """Whether a program failed because it read what tensors hold, which have no elements here."""
    text = f"{type(error).__name__}: {error}"
    signs = (
        "DataDependent",
        "DynamicOutputShape",
        "_local_scalar_dense",
        "is not supported for tensor subcl",
    )
    return any(sign in text for sign in signs)


_DEFINING = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _top_line(error: BaseException, path: str) -> int:
    """The line at the top of the file that an error passed through, 0 if none."""
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_code.co_filename == path and frame.f_code.co_name == "<module>":
            return line
    return 0


def _is_of(node: ast.AST, top: str) -> bool:
    """Whether a node imports something of the package ``top``, which the file belongs to."""
    return (isinstance(node, ast.ImportFrom) and bool(node.level)) or _names_module(node, top)


def _names_module(node: ast.AST, top: str) -> bool:
    """Whether a node imports a package, or something of it, by its name."""
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").split(".")[0] == top
    return isinstance(node, ast.Import) and any(name.name.split(".")[0] == top for name in node.names)


def failure(what: Sentence, error: BaseException, path: str) -> Sentence:
    """One sentence: what failed, how, and at which line of the user's file."""
    advice = Sentence("correct the file and try again")
    if isinstance(error, ImportError) and (error.name or "").split(".")[0] == "evokernel_kernels":
        advice = Sentence("restore the package of the kernel, or revert its call")
    elif isinstance(error, ModuleNotFoundError) and error.name:
        advice = Sentence(
            "install it for {path}, choose an interpreter that has it, or name its folder in PYTHONPATH",
            path=sys.executable,
        )
    if asked.is_so:
        what = Sentence("{what} as if on an NPU", what=what)
    told = {"what": what, "error": describe(error), "advice": advice}
    line = line_of(error, path)
    if line:
        return Sentence("{what} failed at line {line} ({error}): {advice}.", line=line, **told)
    return Sentence("{what} failed ({error}): {advice}.", **told)


def line_of(error: BaseException, path: str) -> int:
    """The innermost line of the file that the error passed through, 0 if none."""
    lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == path]
    return lines[-1] if lines else 0
