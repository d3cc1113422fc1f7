"""Ascend's extension of torch where it is not installed: files that import it, or ask it for a device, are
traced on the CPU all the same; its own operations say that they cannot be."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

import torch

NAME = "torch_npu"
_DEVICE = "npu"
_ANSWERS = {"is_available": False, "device_count": 0, "current_device": 0}
_COMMANDS = (
    "set_device", "synchronize", "empty_cache", "manual_seed", "manual_seed_all", "set_compile_mode",
)  # fmt: skip


def installed() -> bool:
    """Whether the interpreter has the extension itself."""
    return not isinstance(sys.modules.get(NAME), _Absent) and importlib.util.find_spec(NAME) is not None


class _Absent(types.ModuleType):
    """Any part of the extension; what is not known of it says so when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(_missing(f"{self.__name__}.{name}"))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(_missing(self.__name__))


def _missing(name: str) -> str:
    return f"{name} needs {NAME}, which is not installed, and a trace of its own operations is not possible"


class _Finder(MetaPathFinder, Loader):
    """Finds every module of the extension."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        ours = name == NAME or name.startswith(f"{NAME}.")
        return ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        module = _Absent(spec.name)
        if spec.name == NAME:
            module.npu = _device()  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        return


def _device() -> types.ModuleType:
    """``torch.npu`` of a machine without an NPU."""
    module = types.ModuleType(f"torch.{_DEVICE}")
    for name, answer in _ANSWERS.items():
        setattr(module, name, lambda answer=answer: answer)
    for name in _COMMANDS:
        setattr(module, name, lambda *args, **kwargs: None)
    return module


@contextmanager
def stand_in() -> Iterator[None]:
    """Imports of the extension succeed; nothing is done where it is installed."""
    if isinstance(sys.modules.get(NAME), _Absent) or installed():
        yield
        return
    finder, device = _Finder(), not hasattr(torch, _DEVICE)
    sys.meta_path.append(finder)
    if device:
        setattr(torch, _DEVICE, _device())
    importlib.import_module(NAME)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        if device:
            delattr(torch, _DEVICE)
        for name in [name for name, module in sys.modules.items() if isinstance(module, _Absent)]:
            del sys.modules[name]
