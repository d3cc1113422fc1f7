"""Where shapes come from: the file's suppliers such as get_inputs(), or an ``# evokernel:`` comment."""

from __future__ import annotations

import inspect
import types
from dataclasses import dataclass
from typing import Any

import torch

from ..errors import AgentError
from ..loading.constant_tensors import SmallTensors
from ..loading.lazy_modules import first_called
from ..loading.load import failure
from ..loading.source import Source
from .distinct import distinct
from .groups import NOTHING, SUPPLIERS, Group, groups_of, split_keywords, supplies_inputs

Annotations = dict[str, dict[str, Any]]
"""Qualified name to argument name to ``{"shape": [...], "dtype": "float16"}`` or a literal."""


@dataclass(frozen=True)
class Trial:
    """One call that exercises the file's functions. ``what`` names it for messages."""

    what: str
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self) -> None:
        self.function(*self.args, **self.kwargs)


@dataclass(frozen=True)
class Problem:
    """Why a definition with a shape comment could not be called."""

    symbol: str
    reason: str
    message: str


def trials(
    module: types.ModuleType, source: Source, annotations: Annotations, group: int = 0
) -> tuple[list[Trial], list[Problem]]:
    """Every call that the file gives shapes for; of several input groups the one with that number.
    Raises AgentError(needs_shapes) if there is none."""
    found, problems = [], []
    if supplies_inputs(module):
        found.append(_convention(module, source, group))
    for qualname, values in annotations.items():
        try:
            found.append(_annotated(module, source, qualname, values))
        except AgentError as error:
            problems.append(Problem(qualname, error.reason, str(error)))
    if not found and not problems:
        raise AgentError("needs_shapes", NOTHING)
    return found, problems


def in_evaluation(found: list[Trial]) -> None:
    """Puts the modules that are called into that mode."""
    for trial in found:
        if isinstance(trial.function, torch.nn.Module):
            trial.function.eval()


def _convention(module: types.ModuleType, source: Source, number: int) -> Trial:
    groups = groups_of(module, source)
    if number >= len(groups):
        message = f"The file has {len(groups)} input groups, and none with the number {number}."
        raise AgentError("needs_shapes", message)
    group = groups[number]
    target = main_definition(module, source)
    name = target.__name__
    if isinstance(target, type):
        target = _build(target, *_init_arguments(target, group), source)
    args, kwargs = split_keywords(group.inputs, getattr(target, "forward", target))
    return _trial(name, target, args, kwargs)


def _trial(what: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Trial:
    trial = Trial(what, target, *distinct(args, kwargs))
    if isinstance(target, torch.nn.Module):
        first_called(target, trial.run)
    return trial


def _init_arguments(target: type, group: Group) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the class is built with. Arguments that nothing gives are those of the inputs: a feature count is
    then a parameter of both, ``__init__(self, features)`` and ``get_inputs(features=64)``."""
    args, kwargs = split_keywords(group.init, target)
    parameters = list(inspect.signature(target).parameters.values())[len(args) :]
    missing = [
        item.name for item in parameters
        if item.default is item.empty and item.name not in kwargs and item.name in group.defaults
    ]  # fmt: skip
    return args, {**kwargs, **{name: group.defaults[name] for name in missing}}


def main_definition(module: types.ModuleType, source: Source) -> Any:
    """The class that the inputs are for: ``Model`` by the convention, else the last one defined;
    in a file without a module class, the last function."""
    names = [node.name for node in source.tree.body if hasattr(node, "name")]
    values = [getattr(module, name, None) for name in names]
    classes = [v for v in values if isinstance(v, type) and issubclass(v, torch.nn.Module)]
    convention = [item for item in classes if item.__name__ == "Model"]
    functions = [v for v in values if isinstance(v, types.FunctionType) and v.__name__ not in SUPPLIERS]
    for group in (convention, classes, functions):
        if group:
            return group[-1]
    raise AgentError("needs_shapes", "The file has inputs but no module class or function to call: add one.")


def _build(target: type, args: tuple[Any, ...], kwargs: dict[str, Any], source: Source) -> Any:
    try:
        with SmallTensors():
            return target(*args, **kwargs)
    except BaseException as error:
        what = f"Building {target.__name__}"
        raise AgentError("import_failed", failure(what, error, source.path)) from error


def _annotated(module: types.ModuleType, source: Source, qualname: str, values: dict[str, Any]) -> Trial:
    target: Any = module
    for part in qualname.split("."):
        target = getattr(target, part, None)
    if target is None:
        raise AgentError("needs_shapes", f"{qualname} has a shape comment but does not exist when imported.")
    arguments = {name: _value(value) for name, value in values.items()}
    if isinstance(target, type):
        init = _take(inspect.signature(target.__init__), arguments)
        target = _build(target, (), init, source)
        call = _take(inspect.signature(target.forward), arguments)
        _check(qualname, inspect.signature(target.forward), call, arguments.keys() - init.keys())
    else:
        call = arguments
        _check(qualname, inspect.signature(target), call, call.keys())
    return _trial(qualname, target, (), call)


def _take(signature: inspect.Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in signature.parameters if name in arguments}


def _check(qualname: str, signature: inspect.Signature, call: dict[str, Any], given: Any) -> None:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = {
        name for name, item in signature.parameters.items()
        if item.default is item.empty and item.kind not in kinds
    }  # fmt: skip
    missing, unknown = sorted(needed - call.keys()), sorted(set(given) - signature.parameters.keys())
    if missing or unknown:
        problem = (
            f"does not mention {missing[0]}" if missing else f"mentions {unknown[0]}, which is no argument"
        )
        raise AgentError(
            "needs_shapes", f"The shape comment of {qualname} {problem}: list each tensor argument once."
        )


def _value(value: Any) -> Any:
    """A tensor for a shape, else the literal."""
    if isinstance(value, dict) and "shape" in value:
        dtype = getattr(torch, value["dtype"])
        return torch.empty(value["shape"], dtype=dtype)
    return value
