"""Classes and functions by name: what another process needs to find them again."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LOCAL = "<locals>"
_BEHIND = ("__wrapped__", "func")
"""Where what a decorator gives keeps the class: ``functools.wraps``, and ``functools.partial``."""


def reference(value: Any) -> dict[str, str] | None:
    """Where a class or function is found, None for one that no name reaches. ``file`` and ``root`` say which
    file its module is, and the folder that the module's name is imported from."""
    for module, qualname in _names(value):
        owner = sys.modules.get(module)
        if owner is not None and lookup(owner, qualname) is value:
            file = file_of(owner)
            return {"module": module, "qualname": qualname, "file": file, "root": _root(file, module)}
    return None


def _names(kind: Any) -> Iterator[tuple[str, str]]:
    """Names that may reach a class or function: its own, and those of the classes that it is made of, in
    whose places decorators put others."""
    for made_of in kind.__mro__ if isinstance(kind, type) else (kind,):
        module, qualname = getattr(made_of, "__module__", None), getattr(made_of, "__qualname__", None)
        if module == "torch" and isinstance(made_of, types.BuiltinFunctionType):
            qualname = made_of.__name__  # torch.relu calls itself _VariableFunctionsClass.relu
        if isinstance(module, str) and isinstance(qualname, str) and LOCAL not in qualname:
            yield module, qualname
            if isinstance(kind, type):
                yield from ((module, f"{qualname}.{name}") for name in _BEHIND)


def definition(qualname: str) -> str:
    """The definition in the text that a name begins with: ``Net`` of ``Net.__wrapped__``."""
    parts = qualname.split(".")
    while parts[-1] in _BEHIND:
        parts.pop()
    return ".".join(parts)


def class_behind(value: Any) -> type | None:
    """The class that a value makes instances of: itself, or the one that a function or partial wraps."""
    while not isinstance(value, type):
        if isinstance(value, functools.partial):
            value = value.func
        elif isinstance(value, types.FunctionType) and "__wrapped__" in vars(value):
            value = vars(value)["__wrapped__"]
        else:
            return None
    return value


def lookup(owner: Any, qualname: str) -> Any:
    """What a dotted name reaches, None where it reaches nothing."""
    for part in qualname.split("."):
        owner = getattr(owner, part, None)
    return owner


def file_of(module: Any) -> str:
    """The real path of a module's source file, empty where it has none."""
    name = getattr(module, "__file__", None)
    return os.path.realpath(name) if isinstance(name, str) and name.endswith(".py") else ""


def _root(file: str, module: str) -> str:
    """``/src`` for the module ``pkg.model`` in ``/src/pkg/model.py``."""
    if not file or module == "__main__":
        return str(Path(file).parent) if file else ""
    path = Path(file).parent if Path(file).stem == "__init__" else Path(file).with_suffix("")
    parts = tuple(module.split("."))
    return str(Path(*path.parts[: -len(parts)])) if path.parts[-len(parts) :] == parts else ""


def resolve(known: dict[str, str], module: types.ModuleType, path: str) -> Any:
    """The class or function of a reference; those of the file ``path`` are in ``module``.
    Raises ImportError where there is none now."""
    if known["file"] and known["file"] == os.path.realpath(path):
        owner: Any = module
    else:
        owner = _imported(known)
    member = lookup(owner, known["qualname"])
    if member is None:
        raise ImportError(f"{known['module']} has no {known['qualname']} any more")
    return member


def _imported(known: dict[str, str]) -> Any:
    name, root = known["module"], known["root"]
    if name == "__main__":
        name = Path(known["file"]).stem
    if root and root not in sys.path:
        sys.path.append(root)
    return importlib.import_module(name)
