"""The code behind a trace: functions of the workspace that ran, the globals that they read, their digests.

A kernel stands for the code that was traced. Where that code, or a global that it reads, is another one
later, the kernel must not stand for it any more.
"""

from __future__ import annotations

import ast
import dis
import hashlib
import itertools
import os
import sys
import sysconfig
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, Protocol

import torch

_STDLIB = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")})
_INSTALLED = (*_STDLIB, *{sysconfig.get_paths()[name] for name in ("purelib", "platlib")})
TORCH = str(Path(torch.__file__).parent)
AGENT = str(Path(__file__).resolve().parents[1])
"""The folder of this program."""
_WRAPPERS = (f"{TORCH}/_compile.py", f"{TORCH}/_dynamo/")
"""Files of torch's that wrap functions of its own."""
_LOADS = ("LOAD_GLOBAL", "LOAD_NAME")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True)
class Ran:
    """A function that ran: its code, and the globals that it sees."""

    code: types.CodeType
    names: Mapping[str, Any]


@lru_cache(maxsize=4096)  # asked of every module and of every object in one, for each call
def is_workspace(file: str) -> bool:
    """Whether a file is the user's, rather than installed or made while running."""
    return (
        not file.startswith(("<", AGENT)) and "site-packages" not in file and not file.startswith(_INSTALLED)
    )


def is_torchs(function: Any) -> bool:
    """Whether a function was written in Python in torch itself."""
    return getattr(function, "__code__", None) is not None and function.__code__.co_filename.startswith(TORCH)


def file_of(kind: type) -> str:
    """The file of the module that a class is of; ``<`` where there is none."""
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or "<"


def is_called_by_workspace(depth: int = 2) -> bool:
    """Whether the nearest caller outside Python's own library is the user's code."""
    frame: types.FrameType | None = sys._getframe(depth)
    while frame is not None and (
        is_stdlib(frame.f_code.co_filename) or frame.f_code.co_filename.startswith("<frozen")
    ):
        frame = frame.f_back
    return frame is not None and is_workspace(frame.f_code.co_filename)


def is_stdlib(file: str) -> bool:
    """Whether a file comes with Python itself."""
    return file.startswith(_STDLIB) and "site-packages" not in file


class CallListener(Protocol):
    """Hears of calls that code of the user's makes of what is not the user's."""

    def in_c(self, function: Any) -> None:
        """Of a function or method in C."""

    def in_python(self, frame: types.FrameType, caller: types.CodeType) -> None:
        """Of a function in Python, whose ``frame`` begins; the nearest code around it that is not torch's
        is the user's, and the ``caller`` is what called it."""


def _caller(frame: types.FrameType) -> types.CodeType | None:
    """What called, where the nearest code that is not torch's is the user's."""
    caller = frame.f_back
    while caller is not None and caller.f_code.co_filename.startswith(_WRAPPERS):
        caller = caller.f_back
    around = caller
    while around is not None and around.f_code.co_filename.startswith(TORCH):
        around = around.f_back
    return caller.f_code if caller and around and is_workspace(around.f_code.co_filename) else None


@contextmanager
def functions_noted(
    known: dict[types.CodeType, Ran],
    of_torch: dict[types.CodeType, Ran],
    wanted: Callable[[str], bool],
    calls: CallListener,
    begins: Callable[[types.FrameType], None],
) -> Iterator[None]:
    """Notes each Python function that runs meanwhile, once: those outside torch, and those of torch in files
    that are wanted. ``calls`` hears of what the user's code calls that is not the user's, ``begins`` of each
    call of the user's."""
    skipped: set[types.CodeType] = set()

    def note(frame: types.FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "c_call" and is_workspace(code.co_filename):
            calls.in_c(called)
        elif event == "call" and is_workspace(code.co_filename):
            begins(frame)
        elif event == "call" and (caller := _caller(frame)):
            calls.in_python(frame, caller)
        if event != "call" or code in skipped:
            return
        skipped.add(code)
        if not code.co_filename.startswith((TORCH, AGENT, "<")):
            known[code] = Ran(code, frame.f_globals)
        elif wanted(code.co_filename):
            of_torch[code] = Ran(code, frame.f_globals)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@dataclass(frozen=True)
class GlobalRead:
    """``names`` are a global and the attributes read from it in turn; ``value`` is what they gave.
    ``of_workspace``: the attributes are of modules and classes of the user's."""

    module: str
    names: tuple[str, ...]
    value: Any
    of_workspace: bool = True


def global_reads(ran: Iterable[Ran]) -> list[GlobalRead]:
    """What functions read of globals, as far as attributes of modules and classes lead."""
    result: dict[tuple[str, tuple[str, ...]], GlobalRead] = {}
    written = WrittenCode()
    for function in ran:
        for chain in chains(written.code(function.code)):
            if chain[0] in function.names:
                read = resolved(function.names, chain)
                result.setdefault((read.module, read.names), read)
    return list(result.values())


def names_of_classes(ran: Iterable[types.CodeType]) -> tuple[frozenset[str], frozenset[str]]:
    """The attributes that the user's functions may read of a class which they reach by an object of it, and
    those that they may ask for by a text."""
    written = WrittenCode()
    codes = [written.code(code) for code in ran if is_workspace(code.co_filename)]
    reading = [
        code for code in codes if {"type", "__class__"} & {*code.co_names} or "cls" in code.co_varnames[:1]
    ]
    names = frozenset(name for code in reading for name in code.co_names) - {"__class__", "type"}
    return names, frozenset(text for code in reading for text in texts_of(code))


BY_TEXT = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller", "delattr", "setattr"})
"""What reads or sets an attribute by a text."""


def texts_of(code: types.CodeType) -> frozenset[str]:
    """The texts of code that may be names of attributes, where it reaches any by a text."""
    if BY_TEXT.isdisjoint(code.co_names):
        return frozenset()
    return frozenset(text for text in code.co_consts if isinstance(text, str) and text.isidentifier())


class WrittenCode:
    """The code of functions as their files say it: what runs may have been instrumented."""

    def __init__(self) -> None:
        self._files: dict[str, Mapping[tuple[str, int], types.CodeType]] = {}

    def code(self, ran: types.CodeType) -> types.CodeType:
        file = ran.co_filename
        if file not in self._files:
            self._files[file] = _codes(_text_of(file), file)
        return self._files[file].get((ran.co_name, ran.co_firstlineno), ran)


@lru_cache(maxsize=64)  # the calls of a file, and its regions, go through the same few files
def _codes(text: str, file: str) -> Mapping[tuple[str, int], types.CodeType]:
    """The code of each function and class of a file's text, by name and first line."""
    try:
        waiting = [compile(text, file, "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return {}
    result = {}
    while waiting:
        code = waiting.pop()
        waiting += [co_constant for co_constant in code.co_consts if isinstance(co_constant, types.CodeType)]
        result[code.co_name, code.co_firstlineno] = code
    return result


@lru_cache(maxsize=2048)  # calls go through the same functions, many of them torch's
def chains(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Each global that code reads, with the attributes that follow."""
    return tuple(_chains(code))


def _chains(code: types.CodeType) -> Iterator[tuple[str, ...]]:
    chain: list[str] = []
    for step in dis.get_instructions(code):
        if chain and step.opname in _ATTRIBUTES:
            chain.append(str(step.argval))
            continue
        if chain:
            yield tuple(chain)
        chain = [str(step.argval)] if step.opname in _LOADS else []
    if chain:
        yield tuple(chain)


@dataclass(frozen=True)
class ImportRead:
    """``names`` are read in turn from a module that code imports itself."""

    module: str
    names: tuple[str, ...]


def imports_read(ran: Ran, code: types.CodeType) -> Iterator[ImportRead]:
    """What a function reads of modules that it imports in its own body."""
    bound: dict[str, ImportRead] = {}
    steps = list(dis.get_instructions(code))
    module, part, chain = "", "", None
    for at, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            module, part = _imported(ran, str(step.argval), steps[at - 2 : at]), ""
            has_names = any(step.opname == "IMPORT_FROM" for step in steps[at + 1 : at + 2])
            if not has_names and steps[at - 1].argval is None and steps[at + 1].opname.startswith("STORE"):
                is_as = steps[at + 1].argval != step.argval.split(".")[0]
                bound[str(steps[at + 1].argval)] = ImportRead(module if is_as else module.split(".")[0], ())
        elif step.opname == "IMPORT_FROM":
            part = str(step.argval)
        elif step.opname.startswith("STORE") and part:
            bound[str(step.argval)] = ImportRead(module, (part,))
            yield bound[str(step.argval)]
            part = ""
        elif step.opname in _ATTRIBUTES and chain is not None:
            chain = ImportRead(chain.module, (*chain.names, str(step.argval)))
            continue
        if chain is not None:
            yield chain
        chain = bound.get(str(step.argval)) if step.opname in _LOCALS else None


_LOCALS = frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", *_LOADS})


def _imported(ran: Ran, name: str, before: list[dis.Instruction]) -> str:
    """The name of an imported module; ``before`` loads the level of a relative import, and the names."""
    level = before[0].argval if before else 0
    if not isinstance(level, int) or not level:
        return name
    package = str(ran.names.get("__package__") or "")
    return resolve_name("." * level + name, package) if package else name


def resolved(names: Mapping[str, Any], chain: tuple[str, ...]) -> GlobalRead:
    """Follows a chain while it leads through modules and classes."""
    value, taken = names[chain[0]], 1
    own = taken == len(chain) or _is_of_workspace(value)
    while taken < len(chain) and (isinstance(value, (types.ModuleType, type)) or _is_settings(value)):
        try:
            value = getattr(value, chain[taken])
        except (AttributeError, RuntimeError):
            break
        taken += 1
    return GlobalRead(str(names.get("__name__", "")), chain[:taken], value, own or taken == 1)


def _is_settings(value: Any) -> bool:
    """Whether an object holds settings of torch's, as ``torch.backends.cuda.matmul`` does."""
    return type(value).__module__.startswith("torch.backends")


def _is_of_workspace(owner: Any) -> bool:
    """Whether a module or a class, of which attributes are read, is the user's."""
    module = (
        owner if isinstance(owner, types.ModuleType) else sys.modules.get(getattr(owner, "__module__", ""))
    )
    return is_workspace(getattr(module, "__file__", None) or "<")


def digests(ran: Iterable[Ran], root: Path, without: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The digest of each workspace function that ran, by ``file:qualified.name`` below ``root``; ``without``
    are the functions whose own text stands in the edit, by file and name."""
    left_out = set(without)
    wanted: dict[str, set[int]] = {}
    for function in ran:
        if is_workspace(function.code.co_filename):
            wanted.setdefault(function.code.co_filename, set()).add(function.code.co_firstlineno)
    result = {}
    for file, lines in wanted.items():
        text = _text_of(file)
        for name, first, source in functions_of(text):
            if first in lines and (file, name) not in left_out:
                result[f"{Path(os.path.relpath(file, root)).as_posix()}:{name}"] = digest(source)
    return result


def _text_of(file: str) -> str:
    import linecache  # knows the editor's text of the file

    return "".join(linecache.getlines(file))


def tree_of(code: types.CodeType) -> _Function | None:
    """The syntax tree of a function; None where its file does not tell it from others."""
    result = [
        node
        for _, first, node in _trees_of(_text_of(code.co_filename))
        if first == code.co_firstlineno
        and code.co_name == getattr(node, "name", "<lambda>")
        and _holds(node, code)
    ]
    return result[0] if len(result) == 1 else None


def place_of(code: types.CodeType, project: Path) -> str:
    """``model.py:Model.__init__.<lambda 1>``: where code stands, as ``guards.defined`` asks. Empty where the
    text of its file does not tell."""
    file, project = Path(code.co_filename).resolve(), project.resolve()
    name = file.relative_to(project).as_posix() if file.is_relative_to(project) else file.name
    counts: Counter[str] = Counter()
    result = []
    for qualified, first, node in _trees_of(_text_of(code.co_filename)):
        counts[qualified] += 1
        own = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        if (own, first) == (code.co_name, code.co_firstlineno) and _holds(node, code):
            again = f"@{counts[qualified]}" if counts[qualified] > 1 else ""
            result.append(f"{name}:{qualified}{again}")
    return result[0] if len(result) == 1 else ""


def _holds(node: _Function, code: types.CodeType) -> bool:
    """Whether code stands in a lambda: several may start on one line."""
    if not isinstance(node, ast.Lambda):
        return True
    body = node.body
    begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    for line, last, column, behind in code.co_positions():
        if line is None or last is None or column is None or behind is None:
            continue
        if (line, column) != (last, behind) and not (begin <= (line, column) and (last, behind) <= end):
            return False
    return True


@lru_cache(maxsize=64)
def functions_of(text: str) -> tuple[tuple[str, int, str], ...]:
    """Qualified name, first line (decorators included) and source of each function of a file."""
    lines = text.splitlines()
    return tuple(
        (name, first, "\n".join(lines[first - 1 : node.end_lineno])) for name, first, node in _trees_of(text)
    )


_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@lru_cache(maxsize=64)
def _trees_of(text: str) -> tuple[tuple[str, int, _Function], ...]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    return tuple(_functions(tree, ""))


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, int, _Function]]:
    """Lambdas are numbered within what they stand in, and are whole lines."""
    lambdas = itertools.count()
    for child in _below(node):
        name = prefix + (f"<lambda {next(lambdas)}>" if isinstance(child, ast.Lambda) else child.name)
        if not isinstance(child, ast.ClassDef):
            first = min(
                [child.lineno, *(decorator.lineno for decorator in getattr(child, "decorator_list", ()))]
            )
            yield name, first, child
        yield from _functions(child, f"{name}.")


def _below(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda]:
    """The functions and classes that stand in a node and in no other of them, in their order."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
        else:
            yield from _below(child)


def digest(source: str) -> str:
    """Of a function's text, whatever its white space and comments on lines of their own."""
    lines = (line for line in source.splitlines() if not line.lstrip().startswith("#"))
    return hashlib.sha256("".join("".join(lines).split()).encode()).hexdigest()[:16]
