"""Classes and functions by name: what another process needs to find them again."""

from __future__ import annotations

import importlib
import os
import sys
import types
from pathlib import Path
from typing import Any

LOCAL = "<locals>"


def reference(item: Any) -> dict[str, str] | None:
    """Where a class or function is found, None for one that no name reaches. ``file`` and ``root`` say which
    file its module is, and the folder that the module's name is imported from."""
    module, qualname = getattr(item, "__module__", None), getattr(item, "__qualname__", None)
    if module == "torch" and isinstance(item, types.BuiltinFunctionType):
        qualname = item.__name__  # torch.relu calls itself _VariableFunctionsClass.relu
    if not isinstance(module, str) or not isinstance(qualname, str) or LOCAL in qualname:
        return None
    owner = sys.modules.get(module)
    if owner is None or lookup(owner, qualname) is not item:
        return None
    file = file_of(owner)
    return {"module": module, "qualname": qualname, "file": file, "root": _root(file, module)}


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


def resolve(found: dict[str, str], module: types.ModuleType, path: str) -> Any:
    """The class or function of a reference; those of the file ``path`` are in ``module``.
    Raises ImportError where there is none now."""
    if found["file"] and found["file"] == os.path.realpath(path):
        owner: Any = module
    else:
        owner = _imported(found)
    item = lookup(owner, found["qualname"])
    if item is None:
        raise ImportError(f"{found['module']} has no {found['qualname']} any more")
    return item


def _imported(found: dict[str, str]) -> Any:
    name, root = found["module"], found["root"]
    if name == "__main__":
        name = Path(found["file"]).stem
    if root and root not in sys.path:
        sys.path.append(root)
    return importlib.import_module(name)
