"""The guards of one call: what it read while it ran once on fake tensors."""

from __future__ import annotations

import ast
import enum
import functools
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from ..sentence import Sentence
from .changes import shared
from .class_questions import asks_class_of_receiver, asks_classes, compares_tensor_classes
from .code import (
    GlobalRead,
    Ran,
    WrittenCode,
    digests,
    file_of,
    functions_noted,
    global_reads,
    imports_read,
    is_stdlib,
    is_workspace,
    names_of_classes,
    resolved,
    texts_of,
)
from .guard import CapturedGuard, is_plain
from .library import of_python
from .lifting import Setting
from .members import Begins, Members, classes_read
from .process import ProcessCalls
from .reads import Reads
from .recording import recording
from .torch_functions import is_of_layers, originals

_NUMBERS = (bool, int, float, str)
_SIMPLE = (*_NUMBERS, type(None), torch.dtype)


@dataclass(frozen=True)
class Observed:
    """``guards`` in an order in which each can be evaluated if those before hold; ``code`` are digests of
    the functions that ran, by file and name; ``problem`` is why no guards can tell, empty if they can.
    ``tensors`` were read, by the text that reaches them, and ``settings`` are floats. ``attributes`` are all
    names in the code that ran, those behind a dot among them; ``by_text`` may be names for ``getattr``.
    ``walked`` are those of ``tensors`` that a walk through a module has reached."""

    guards: tuple[CapturedGuard, ...]
    code: Mapping[str, str]
    problem: Sentence = field(default_factory=Sentence)
    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    attributes: frozenset[str] = frozenset()
    by_text: frozenset[str] = frozenset()
    walked: Mapping[str, torch.Tensor] = field(default_factory=dict)

    def without(self, paths: Collection[str]) -> tuple[CapturedGuard, ...]:
        """The guards but those on settings that are operands."""
        return tuple(guard for guard in self.guards if not any(guard.fixes(path) for path in paths))


def observed(
    run: Callable[[], Any],
    roots: Mapping[str, Any],
    module: types.ModuleType,
    project: Path,
    without: tuple[tuple[str, str], ...] = (),
    codes: tuple[types.CodeType, ...] = (),
    modules: Mapping[str, Any] = MappingProxyType({}),
) -> Observed:
    """Runs a call once. ``roots`` are what the call site knows by name, ``modules`` those that it calls by
    the text that reaches them; ``module`` is the file that it stands in, ``project`` the folder that imports
    start from. ``without`` names functions, by file and qualified name, whose text the edit itself keeps, as
    does ``codes`` by what they were compiled to. Raises what the call raises."""
    imported = _modules_of_workspace(module)
    reads = Reads(roots, _shared_objects(module, imported), project)
    for path, called in modules.items():
        reads.know(called, path)
    _forget_results((module, *imported.values()))
    reads.contents.note_globals((module, *imported.values()))
    ran: dict[types.CodeType, Ran] = {}
    of_torch: dict[types.CodeType, Ran] = {}
    calls, held = ProcessCalls(reads.is_known), shared((module, *imported.values()))
    is_root = functools.partial(_is_root, frozenset(without), codes)
    begins = Begins(is_root)
    with recording(reads), functions_noted(ran, of_torch, is_of_layers, calls, begins.note):
        run()
    reads.set_anew(held)
    looked_up = originals((*ran.values(), *of_torch.values()), module.__name__)
    read = [*global_reads(ran.values()), *_of_imports(ran.values(), imported)]
    for read_ in read:
        _note_global(reads, read_, module)
        _note_library(reads, read_)
    Members(reads, classes_read(read, module, imported), is_root).ask([*begins])
    reads.refuse_changed()
    _note_answers(reads, calls, {part.kind: part.text for part in classes_read(read, module, imported)})
    reads.hold_to_globals(read_.value for read_ in read if read_.names[0] not in roots)
    reads.read_of_classes(*names_of_classes(ran))
    _note_classes(reads, [function for function in ran.values() if is_workspace(function.code.co_filename)])
    others = [function for function in ran.values() if function.code not in codes]
    of_library = of_python(ran.values(), module.__name__)
    guards = tuple(dict.fromkeys((*reads.guards, *of_library, *looked_up, *calls.guards)))
    return Observed(
        guards,
        digests(others, project, without),
        calls.end() or reads.problem or _not_written(guards),
        reads.tensors,
        tuple(reads.settings.values()),
        *_names(code for code in ran if not is_stdlib(code.co_filename)),
        walked=reads.walked,
    )


def _is_root(
    without: frozenset[tuple[str, str]], codes: tuple[types.CodeType, ...], code: types.CodeType
) -> bool:
    """Whether code is that of the function whose text the edit keeps."""
    return code in codes or (code.co_filename, code.co_qualname) in without


def _not_written(guards: Iterable[CapturedGuard]) -> Sentence:
    """Why a guard is no Python text, as where a dictionary has classes for keys; empty where all are."""
    for guard in guards:
        try:
            ast.parse(guard.condition, mode="eval")
        except SyntaxError:
            return Sentence(
                "It reads {name}, which holds values that no condition can write down: use plain keys.",
                name=guard.owner or guard.condition,
            )
    return Sentence()


def _names(codes: Iterable[types.CodeType]) -> tuple[frozenset[str], frozenset[str]]:
    """Names that code reads, and texts of code that reads by a text."""
    names, texts = set[str](), set[str]()
    for code in codes:
        names.update(code.co_names)
        texts.update(texts_of(code))
    return frozenset(names), frozenset(texts)


def _shared_objects(module: types.ModuleType, others: Mapping[str, types.ModuleType]) -> dict[str, Any]:
    """Modules and settings that the workspace's modules hold, by the text that reaches them."""
    result: dict[str, Any] = {}
    for name, member in others.items():
        prefix = f'guards.module("{name}").'
        result |= {prefix + key: value for key, value in vars(member).items() if _is_state(value)}
    return result | {key: value for key, value in vars(module).items() if _is_state(value)}


def _forget_results(modules: Iterable[types.ModuleType]) -> None:
    """Functions that keep results run again, so that it is seen what they read."""
    for module in modules:
        for value in list(vars(module).values()):
            if isinstance(value, functools._lru_cache_wrapper):
                value.cache_clear()


def _modules_of_workspace(module: types.ModuleType) -> dict[str, types.ModuleType]:
    """The user's modules that are imported, by name, but for ``module``."""
    return {
        name: element
        for name, element in list(sys.modules.items())
        if element is not module and is_workspace(getattr(element, "__file__", None) or "<")
    }


def _is_state(value: Any) -> bool:
    """Whether a global is an object with attributes that a call may read."""
    kind = type(value)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return isinstance(value, (torch.nn.Module, types.SimpleNamespace)) or bool(file and is_workspace(file))


def _of_imports(ran: Iterable[Ran], modules: Mapping[str, types.ModuleType]) -> Iterator[GlobalRead]:
    """What functions read of modules of the user's that they import themselves."""
    written = WrittenCode()
    for function in ran:
        if is_workspace(function.code.co_filename):
            for read in imports_read(function, written.code(function.code)):
                if read.names and read.module in modules and read.names[0] in vars(modules[read.module]):
                    yield resolved(vars(modules[read.module]), read.names)


def _note_classes(reads: Reads, ran: list[Ran]) -> None:
    """What functions of the user's ask of the classes of objects that they reach."""
    written = WrittenCode()
    codes = [written.code(function.code) for function in ran]
    reads.ask_classes(of_all=any(map(asks_classes, codes)), of_roots=any(map(asks_class_of_receiver, codes)))
    for function in ran:
        if compares_tensor_classes(function):
            reads.refuse(
                "{name} compares the class of a tensor, which is another one while it is traced: use "
                "isinstance.",
                name=function.code.co_qualname,
            )


def _note_answers(reads: Reads, calls: ProcessCalls, classes: Mapping[type, str]) -> None:
    """What abstract classes said of objects: a program may register more classes with them."""
    for asked in calls.asked_of_classes:
        kind = classes.get(asked.kind)
        value = classes.get(asked.value) if isinstance(asked.value, type) else reads.path_of(asked.value)
        if kind is None or value is None:
            reads.refuse(
                "It asks the abstract class {name} whether it knows an object, which a call "
                "cannot ask again: use a concrete class.",
                name=asked.kind.__qualname__,
            )
        else:
            answer = f"{asked.function}({value}, {kind}) is {asked.answer}"
            reads.add(CapturedGuard("", answer))


def _note_library(reads: Reads, global_read: GlobalRead) -> None:
    """Lists and dictionaries of Python's own modules, such as ``sys.argv``, are those of another program."""
    reader = sys.modules.get(global_read.module)
    owner = getattr(reader, global_read.names[0], None)
    if (
        len(global_read.names) > 1
        and isinstance(owner, types.ModuleType)
        and isinstance(global_read.value, (list, dict, set))
    ):
        file = getattr(owner, "__file__", None)
        is_pythons = is_stdlib(file) if file else owner.__name__ in sys.builtin_module_names
        if is_pythons and is_workspace(getattr(reader, "__file__", None) or "<"):
            reads.of_process(".".join(global_read.names))


def _note_global(reads: Reads, global_read: GlobalRead, module: types.ModuleType) -> None:
    """Settings of installed packages are compared only where they are single plain values."""
    name, value = global_read.names[-1], global_read.value
    if name == "__version__" and isinstance(value, str) and global_read.module == module.__name__:
        reads.add(CapturedGuard(".".join(global_read.names), f"str({{}}) == {str(value)!r}"))
    if name.startswith("__") or isinstance(value, types.ModuleType):
        return
    if isinstance(value, type) and not is_workspace(file_of(value)):
        return
    if not global_read.of_workspace and not (
        isinstance(value, _NUMBERS) and global_read.module == module.__name__
    ):
        return
    file = getattr(sys.modules.get(global_read.module), "__file__", None) or ""
    own = global_read.module == module.__name__
    if isinstance(value, types.FunctionType) and not (own or is_workspace(value.__code__.co_filename)):
        return
    if not own and is_stdlib(file):
        return
    if not own and not is_workspace(file) and not isinstance(value, (*_SIMPLE, torch.Tensor)):
        return
    kinds = (enum.Enum, torch.Tensor, tuple, list, dict, types.FunctionType, type)
    if own or isinstance(value, kinds) or is_plain(value):
        path = ".".join(global_read.names)
        reads.value(path if own else f'guards.module("{global_read.module}").{path}', value)
