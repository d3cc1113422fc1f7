"""What a call looked up of Python and of installed packages by name.

A global may hide a builtin, and a program may have put another function into a module such as ``math``.
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .code import ImportRead, Ran, WrittenCode, chains, imports_read, is_workspace
from .guard import CapturedGuard

OWN_MODULE = "guards.module(__name__).HOME"
"""The module of the file, in the text of a guard: a program may have loaded it under any name."""


def of_python(ran: Iterable[Ran], module: str) -> Iterator[CapturedGuard]:
    """The guards that ask for what the user's code of ``ran`` looks up so; ``module`` is that of the file."""
    hidden: dict[str, set[str]] = {}
    result: dict[CapturedGuard, None] = {}
    written = WrittenCode()
    for function in ran:
        if not is_workspace(function.code.co_filename):
            continue
        home = str(function.names.get("__name__", ""))
        prefix = "" if home == module else f'guards.module("{home}").'
        code = written.code(function.code)
        for chain in chains(code):
            if chain[0] in function.names:
                result.update(dict.fromkeys(_of_module(prefix, function.names, chain)))
            elif _is_pythons(chain[0]):
                hidden.setdefault(home, set()).add(chain[0])
            elif not hasattr(builtins, chain[0]):
                owner = OWN_MODULE if home == module else f'guards.module("{home}")'
                result[CapturedGuard("", f"not hasattr({owner}, {chain[0]!r})")] = None
        for read in imports_read(function, code):
            result.update(dict.fromkeys(_of_import(read)))
    for home, names in hidden.items():
        owner = OWN_MODULE if home == module else f'guards.module("{home}")'
        yield CapturedGuard("", f"guards.builtin({owner}, {', '.join(repr(name) for name in sorted(names))})")
    yield from result


def _is_pythons(name: str) -> bool:
    """Whether a name is a function or a class of Python, as ``guards.builtin`` asks."""
    value: Any = getattr(builtins, name, None)
    if not isinstance(value, types.BuiltinFunctionType) and type(value) is not type:
        return False
    return bool(value.__module__ == "builtins" and value.__name__ == name)


def _of_module(prefix: str, names: Mapping[str, Any], chain: tuple[str, ...]) -> Iterator[CapturedGuard]:
    """``math is guards.module("math")``, and by its name the function that is read from there."""
    module = names[chain[0]]
    if not isinstance(module, types.ModuleType) or is_workspace(getattr(module, "__file__", None) or "<"):
        return
    name = module.__name__
    if name.split(".")[0] == "torch" or sys.modules.get(name) is not module:
        return
    path = prefix + chain[0]
    yield CapturedGuard(path, f'{{}} is guards.module("{name}")')
    for part in chain[1:]:
        inner = getattr(module, part, None)
        if not isinstance(inner, types.ModuleType):
            yield from _of_function(path, module, part)
            return
        path, module = f"{path}.{part}", inner


def _of_import(read: ImportRead) -> Iterator[CapturedGuard]:
    """The same of a module that the function imports itself; of torch's, that it still is where it was."""
    module = sys.modules.get(read.module)
    if module is None or not read.names or is_workspace(getattr(module, "__file__", None) or "<"):
        return
    if read.module.split(".")[0] != "torch":
        yield from _of_function(f'guards.module("{read.module}")', module, read.names[0])
    elif isinstance(part := getattr(module, read.names[0], None), types.ModuleType):
        yield CapturedGuard("", f'{read.module}.{read.names[0]} is guards.module("{part.__name__}")')


def _of_function(path: str, module: types.ModuleType, name: str) -> Iterator[CapturedGuard]:
    value = getattr(module, name, None)
    if not callable(value) or (getattr(value, "__module__", None) or "").split(".")[0] == "torch":
        return
    if own := _name_of(value):
        yield CapturedGuard(path, f'guards.function({{}}.{name}, "{own}")')


def _name_of(value: Any) -> str:
    """The name that ``guards.function`` asks for; empty for an object that has none."""
    code = getattr(value, "__code__", None)
    if code is not None:
        return str(code.co_qualname)
    own = str(getattr(value, "__qualname__", getattr(value, "__name__", None)) or "")
    return f"{value.__module__}.{own}" if isinstance(value, type) else own
