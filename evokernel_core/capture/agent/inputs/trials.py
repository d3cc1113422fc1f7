"""Where shapes come from: the file's suppliers such as get_inputs(), what was observed, the file's own
program, an ``# evokernel:`` comment."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import AgentError
from ..loading.constant_tensors import SmallTensors
from ..loading.load import failure, gave_nothing
from ..loading.source import Source
from ..observation.names import class_behind
from ..sentence import Sentence
from .calls_made import CallProblem, Trial, trial_of
from .groups import NOTHING, SUPPLIERS, Group, groups_of, split_keywords, supplies_inputs
from .observed import Observation, observed_trials
from .program import Program

Annotations = dict[str, dict[str, Any]]
"""Qualified name to argument name to ``{"shape": [...], "dtype": "float16"}`` or a literal."""


@dataclass(frozen=True)
class Known:
    """What is known of a file's inputs besides its own suppliers: shape comments, and what was observed.
    Of several input groups the one with the number ``group`` is called."""

    annotations: Annotations
    observations: list[Observation]
    group: int = 0


def default_dtype(module: types.ModuleType, known: Known) -> torch.dtype:
    """What PyTorch's default is while a file's functions run: that of every observed call, where the inputs
    are theirs and they agree."""
    result = {observation.get("default_dtype", "float32") for observation in known.observations}
    if supplies_inputs(module) or len(result) != 1:
        return torch.float32
    named: torch.dtype = getattr(torch, result.pop())
    return named


def trials(
    module: types.ModuleType,
    source: Source,
    known: Known,
    program: Program,
    was_run: Callable[[str], bool],
    problems: list[CallProblem],
) -> Iterator[Trial]:
    """The calls that exercise a file's functions, each to be made before the next is asked for: that of its
    suppliers, those that were observed, without both those of the file's own program, and those of comments.

    ``was_run`` tells of a definition whether a call has run it. Raises AgentError(needs_shapes) where there
    is no call at all."""
    count = 0
    if supplies_inputs(module):
        count += 1
        yield _convention(module, source, known.group)
    for trial in observed_trials(module, source, known.observations, was_run, problems):
        count += 1
        yield trial
    if not count:
        program.run(module)
    for trial in program.trials(module, was_run, problems):
        count += 1
        yield trial
    for qualname, values in known.annotations.items():
        try:
            yield _annotated(module, source, qualname, values)
        except AgentError as error:
            problems.append(CallProblem(qualname, error.reason, error.sentence))
    if not count and not known.annotations and not problems:
        raise AgentError("needs_shapes", _nothing(program, source))


def _nothing(program: Program, source: Source) -> Sentence:
    """Why nothing says the shapes, with the person's next step."""
    name = Path(source.path).name
    if program.failure:
        return gave_nothing(name, program.failure)
    return NOTHING


def _convention(module: types.ModuleType, source: Source, number: int) -> Trial:
    groups = groups_of(module, source)
    if number >= len(groups):
        raise AgentError(
            "needs_shapes",
            "The file has {count} input groups, and none with the number {number}.",
            count=len(groups),
            number=number,
        )
    group = groups[number]
    name, target = main_definition(module, source)
    if class_behind(target):
        args, kwargs = _init_arguments(target, group)
        target = _build(name, target, args, kwargs, source)
    args, kwargs = split_keywords(group.inputs, getattr(target, "forward", target))
    return trial_of(name, target, args, kwargs)


def _init_arguments(target: Any, group: Group) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What the class is built with. Arguments that nothing gives are those of the inputs: a feature count is
    then a parameter of both, ``__init__(self, features)`` and ``get_inputs(features=64)``."""
    args, kwargs = split_keywords(group.init, target)
    parameters = list(inspect.signature(target).parameters.values())[len(args) :]
    missing = [
        parameter.name for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.name not in kwargs
        and parameter.name in group.defaults
    ]  # fmt: skip
    return args, {**kwargs, **{name: group.defaults[name] for name in missing}}


def main_definition(module: types.ModuleType, source: Source) -> tuple[str, Any]:
    """The class that the inputs are for, by its name in the file, or what a decorator put in its place:
    ``Model`` by the convention, else the last one defined; in a file without a module class, the last
    function."""
    names = [node.name for node in source.tree.body if hasattr(node, "name")]
    values = {name: getattr(module, name, None) for name in names}
    kinds = {name: class_behind(value) for name, value in values.items()}
    classes = [name for name in names if (kind := kinds[name]) and issubclass(kind, torch.nn.Module)]
    functions = [
        name for name in names
        if isinstance(values[name], types.FunctionType) and not kinds[name] and name not in SUPPLIERS
    ]  # fmt: skip
    for group in (["Model"] if "Model" in classes else [], classes, functions):
        if group:
            return group[-1], values[group[-1]]
    raise AgentError("needs_shapes", "The file has inputs but no module class or function to call: add one.")


def _build(name: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], source: Source) -> Any:
    try:
        with SmallTensors():
            return target(*args, **kwargs)
    except BaseException as error:
        what = Sentence("Building {name}", name=name)
        raise AgentError("import_failed", failure(what, error, source.path)) from error


def _annotated(module: types.ModuleType, source: Source, qualname: str, values: dict[str, Any]) -> Trial:
    target: Any = module
    for part in qualname.split("."):
        target = getattr(target, part, None)
    if target is None:
        raise AgentError(
            "needs_shapes",
            "{qualname} has a shape comment but does not exist when imported.",
            qualname=qualname,
        )
    arguments = {name: _value(value) for name, value in values.items()}
    if kind := class_behind(target):
        init = {name: value for name, value in arguments.items() if name in _taken_by_init(kind)}
        target = _build(qualname, target, (), init, source)
        call = _take(inspect.signature(target.forward), arguments)
        _check(qualname, inspect.signature(target.forward), call, arguments.keys() - init.keys())
    else:
        call = arguments
        _check(qualname, inspect.signature(target), call, call.keys())
    return trial_of(qualname, target, (), call)


def _taken_by_init(kind: type) -> frozenset[str]:
    """The names of what a class may be built with; those that it passes on as ``**kwargs`` are of the class
    that it is made of."""
    names: set[str] = set()
    for made_of in kind.__mro__:
        if "__init__" in vars(made_of):
            parameters = inspect.signature(made_of.__init__).parameters  # type: ignore[misc]
            names |= parameters.keys()
            if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
                break
    return frozenset(names)


def _take(signature: inspect.Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: arguments[name] for name in signature.parameters if name in arguments}


def _check(qualname: str, signature: inspect.Signature, call: dict[str, Any], given: Any) -> None:
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = {
        name for name, value in signature.parameters.items()
        if value.default is value.empty and value.kind not in kinds
    }  # fmt: skip
    missing, unknown = sorted(needed - call.keys()), sorted(set(given) - signature.parameters.keys())
    if missing or unknown:
        told: dict[str, Any] = {"name": qualname, "argument": (missing or unknown)[0]}
        if missing:
            raise AgentError(
                "needs_shapes",
                "The shape comment of {name} does not mention {argument}: list each tensor argument once.",
                **told,
            )
        raise AgentError(
            "needs_shapes",
            "The shape comment of {name} mentions {argument}, which is no argument: "
            "list each tensor argument once.",
            **told,
        )


def _value(value: Any) -> Any:
    """A tensor for a shape, else the literal."""
    if isinstance(value, dict) and "shape" in value:
        dtype = getattr(torch, value["dtype"])
        return torch.empty(value["shape"], dtype=dtype)
    return value
