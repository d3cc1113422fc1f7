"""Ascend's extension of torch while a file is traced: files that import it, or ask it for a device, are
traced on the CPU. Its documented functions are the compositions of ``agent/npu``, in this process alone;
where it is installed they take the places of its own until the trace ends, so that both trace alike."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

import torch

from ..guards.code import AGENT, is_workspace
from ..npu.functions import function
from ..npu.table import TABLE

NAME = "torch_npu"
_DEVICE = "npu"
_PARTS = ("npu", "contrib", "profiler", "utils", "optim", "dynamo", "distributed", "testing")
"""Modules of the extension that ``import torch_npu`` brings along."""
_AMP = f"{NAME}.{_DEVICE}.amp"
_COUNTS = {"device_count": 1, "current_device": 0, "memory_allocated": 0, "max_memory_allocated": 0}
_ANSWERS = {"is_bf16_supported": True, "is_initialized": True, "get_device_name": "Ascend910B"}


class Format(enum.IntEnum):
    """``torch_npu.Format``: how a device stores a tensor (documentation of npu_format_cast)."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47


def installed() -> bool:
    """Whether the interpreter has the extension itself."""
    return not isinstance(sys.modules.get(NAME), _Absent) and importlib.util.find_spec(NAME) is not None


class _Asked:
    """Whether the person's code was answered as if there was an NPU."""

    is_so = False

    def note(self) -> None:
        """The nearest caller outside this program was, if it is the person's: libraries look for devices,
        too."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(AGENT):
            frame = frame.f_back
        self.is_so = self.is_so or is_workspace(frame.f_code.co_filename)


asked = _Asked()


class _Absent(types.ModuleType):
    """Any part of the extension; what is not known of it says so when it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        asked.note()
        result: Any = function(name) if self.__name__ in (NAME, f"{NAME}.contrib") else None
        if result is None and self.__name__ == NAME and name in _PARTS:
            result = importlib.import_module(f"{NAME}.{name}")
        if result is None:
            raise AttributeError(_missing(f"{self.__name__}.{name}"))
        return result

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
        if spec.name in (f"{NAME}.{_DEVICE}", f"{NAME}.profiler"):
            return _Device(spec.name)
        module = _Absent(spec.name)
        if spec.name == NAME:
            module.__dict__.update(Format=Format, __version__=torch.__version__)
        if spec.name == _AMP:
            module.__dict__.update(GradScaler=_Idle(), autocast=_no_autocast)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        return


class _Idle:
    """Streams, events, profilers and what commands of a device return: nothing that a value depends on."""

    def __call__(self, *args: Any, **kwargs: Any) -> _Idle:
        return self

    def __getattr__(self, name: str) -> _Idle:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __enter__(self) -> _Idle:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def __bool__(self) -> bool:
        return False

    def __float__(self) -> float:
        return 0.0


class _Device(types.ModuleType):
    """``torch.npu``: one device, to the person's own code; installed libraries see that there is none, as
    they would choose other ways through models that never name an NPU."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name != "is_available":
            asked.note()
        if name == "is_available":
            return _is_available
        if name == "amp":
            return importlib.import_module(_AMP)
        answers = {**_COUNTS, **_ANSWERS}
        return (lambda *args, **kwargs: answers[name]) if name in answers else _Idle()


def _no_autocast(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(f"{_AMP}.autocast chooses types that only {NAME} knows: use torch.autocast")


def _is_available() -> bool:
    asked.note()
    return "site-packages" not in sys._getframe(1).f_code.co_filename


_STAND_INS = (_Absent, _Device)


class _Operations:
    """``torch.ops.npu``: the table, then the operations that the extension itself registered."""

    def __init__(self, registered: Any) -> None:
        self._registered = registered

    def __getattr__(self, name: str) -> Any:
        if name in TABLE or not installed():
            result = function(name)
            if result is not None:
                return result
        return getattr(self._registered, name)

    def __iter__(self) -> Iterator[str]:
        """The registered ones: torch 2.6 and 2.7 look through all for composite operations."""
        return iter(self._registered)


@contextmanager
def stand_in() -> Iterator[None]:
    """Imports of the extension succeed, and its documented functions trace."""
    if isinstance(sys.modules.get(NAME), _Absent) or isinstance(torch.ops.npu, _Operations):
        yield
        return
    with ExitStack() as stack:
        stack.enter_context(replaced(torch.ops, _DEVICE, _Operations(torch.ops.npu)))
        stack.enter_context(_compositions() if installed() else _absent())
        asked.is_so = False
        yield


@contextmanager
def _compositions() -> Iterator[None]:
    """The table in the places of the extension's own functions."""
    extension = importlib.import_module(NAME)
    with ExitStack() as stack:
        for name in TABLE:
            if hasattr(extension, name):
                stack.enter_context(replaced(extension, name, function(name)))
        yield


@contextmanager
def _absent() -> Iterator[None]:
    finder = _Finder()
    sys.meta_path.append(finder)
    with ExitStack() as stack:
        importlib.import_module(NAME)
        if not hasattr(torch, _DEVICE):
            module = importlib.import_module(f"{NAME}.{_DEVICE}")
            stack.enter_context(replaced(torch, _DEVICE, module))
            sys.modules[f"torch.{_DEVICE}"] = module
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            for name in [name for name, module in sys.modules.items() if isinstance(module, _STAND_INS)]:
                del sys.modules[name]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Another value for an attribute until the end."""
    missing = object()
    before = owner.__dict__.get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
