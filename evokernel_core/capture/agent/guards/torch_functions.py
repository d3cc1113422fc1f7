"""What a call looked up of torch by name, a function, class or dtype: a program may put others there.

Attention libraries are switched on that way, and so are quick variants of activations. A kernel stands for
what torch itself does, so its guard asks that the functions are torch's own when it is called.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from .code import TORCH, Ran, WrittenCode, chains, is_stdlib
from .guard import CapturedGuard

_OF_LAYERS = (f"{TORCH}/nn/functional.py", f"{TORCH}/nn/modules/")
_CALL_OF_LAYERS = f"{TORCH}/nn/modules/module.py"
_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
)
_PLAIN = (torch.dtype, torch.layout, torch.memory_format)
_OPERATORS = {
    "+": ("__add__", "__radd__"), "-": ("__sub__", "__rsub__"), "*": ("__mul__", "__rmul__"),
    "/": ("__truediv__", "__rtruediv__"), "@": ("__matmul__",), "**": ("__pow__", "__rpow__"),
    "//": ("__floordiv__",), "%": ("__mod__",), "+=": ("__iadd__",), "-=": ("__isub__",), "*=": ("__imul__",),
    "/=": ("__itruediv__",),
}  # fmt: skip


_OWNERS = (torch.nn.functional, torch)


def is_of_layers(file: str) -> bool:
    """Whether a file is one of torch's with the forward of layers, or with what they call."""
    return file.startswith(_OF_LAYERS)


def originals(ran: Iterable[Ran], module: str) -> Iterator[CapturedGuard]:
    """The guards that ask for the functions of torch which the code of ``ran`` looks up, each by its path,
    and by its own name where that is another one; and for the globals of ``module`` by which it has them."""
    names: dict[str, None] = {}
    written = WrittenCode()
    for function in ran:
        if is_stdlib(function.code.co_filename):
            continue
        code = written.code(function.code)
        names.update(dict.fromkeys(_looked_up(code, function.names)))
        if function.names.get("__name__") == module:
            yield from _of_globals(code, function.names)
    if names:
        yield CapturedGuard("", f"guards.originals({', '.join(repr(name) for name in sorted(names))})")


def _of_globals(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[CapturedGuard]:
    """``F is torch.nn.functional`` and ``silu is torch.nn.functional.silu``: a file may bind them anew."""
    for name in sorted({chain[0] for chain in chains(code)} - {"torch"}):
        value = names.get(name)
        if isinstance(value, types.ModuleType):
            path = value.__name__
        else:
            path = next((f"{owner.__name__}.{own}" for owner in _OWNERS if (own := _own_name(value))
                         and getattr(owner, own, None) is value), "")  # fmt: skip
        if path.split(".")[0] == "torch" and _reached(path) is value:
            yield CapturedGuard(name, f"{{}} is {path}")


def _reached(path: str) -> Any:
    return functools.reduce(lambda owner, name: getattr(owner, name, None), path.split(".")[1:], torch)


def _looked_up(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    if code.co_filename == _CALL_OF_LAYERS:
        yield from ("torch.nn.Module.__call__=_wrapped_call_impl", "torch.nn.Module._call_impl")
        return
    followed: set[str] = set()
    for chain in chains(code):
        if chain[0] in names:
            yield from _of_chain(names, chain, followed)
    imports_torch, operators = _steps_of(code)
    for name in sorted(set(code.co_names) - followed):
        if imports_torch and name not in names:  # an import within the function hides what it belongs to
            yield from _of_owner(torch.nn.functional, name)
            yield from _of_owner(torch, name)
        yield from _of_owner(torch.Tensor, name)
    for operator in operators:
        for name in _OPERATORS.get(operator, ()):
            yield from _of_owner(torch.Tensor, name)


@functools.lru_cache(maxsize=2048)
def _steps_of(code: types.CodeType) -> tuple[bool, tuple[str, ...]]:
    """Whether code imports torch, or some of it, itself, and the operators that it has between two values."""
    steps = list(dis.get_instructions(code))
    imports_torch = any(
        step.opname == "IMPORT_NAME" and str(step.argval).split(".")[0] == "torch" for step in steps
    )
    operators = (step.argrepr for step in steps if step.opname == "BINARY_OP")
    return imports_torch, tuple(dict.fromkeys(operators))


def _of_chain(names: Mapping[str, Any], chain: tuple[str, ...], followed: set[str]) -> Iterator[str]:
    """Of a global and the attributes behind it, as far as they lead through modules and classes of torch."""
    owner = names[chain[0]]
    if len(chain) == 1 or not isinstance(owner, (types.ModuleType, type)):
        home = getattr(owner, "__module__", None) or names.get("__name__", "")
        if isinstance(owner, types.FunctionType) and home.startswith("torch.nn."):
            yield from _of_owner(sys.modules[home], owner.__name__)
        return
    for name in chain[1:]:
        followed.add(name)
        yield from _of_owner(owner, name)
        owner = getattr(owner, name, None)
        if not isinstance(owner, (types.ModuleType, type)):
            return


def _of_owner(owner: Any, name: str) -> Iterator[str]:
    """``torch.nn.functional.gelu``, where a module or a class of torch has a function of its own there."""
    path = getattr(owner, "__name__", "") if isinstance(owner, types.ModuleType) else _class_path(owner)
    if path.split(".")[0] != "torch" or path.startswith("torch._"):
        return
    value = getattr(owner, name, None)
    own = _own_name(value)
    if own and not name.startswith("_" if owner is not torch.Tensor else "_ "):
        yield f"{path}.{name}" if own == name else f"{path}.{name}={own}"


def _class_path(owner: Any) -> str:
    return "torch.Tensor" if owner is torch.Tensor else ""


def _own_name(value: Any) -> str:
    """The name of a function, a class or a dtype of torch's own; empty for all else."""
    if isinstance(value, _PLAIN):
        return str(value).removeprefix("torch.")
    if isinstance(value, type):
        return value.__name__ if value.__module__.split(".")[0] == "torch" else ""
    if isinstance(value, _IN_C):
        module = getattr(value, "__module__", None) or "torch"
        return value.__name__ if module.split(".")[0] == "torch" else ""
    if isinstance(value, types.FunctionType) and value.__code__.co_filename.startswith(TORCH):
        return value.__name__
    return ""
