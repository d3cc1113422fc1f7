"""The call of a function of the file that a trial makes, with all the tensors that it can read."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from ..graph import complex_tensors
from ..guards.code import is_torchs
from ..loading.source import Source, SourceFunction, definitions
from ..regions.dataclass_outputs import opened
from ..regions.parts import PARAMETER, SCALAR, TENSOR, Leaf
from ..sentence import Sentence
from .arguments import argument_of
from .calls_made import Trial
from .state import Held, Holder, Watch, holders_of, put, replaced, tensors_in

_NOWHERE = ast.Constant(None)


@dataclass(frozen=True)
class Entry:
    """``given`` is the callable, ``bound`` what it is called with, ``receiver`` the module or None.
    ``refusal`` says why a region cannot stand for all of the function, empty where it can; ``state`` is what
    the module and the file's globals held before the first call, and ``holders`` where."""

    function: SourceFunction
    given: Callable[..., Any]
    receiver: Any
    bound: inspect.BoundArguments
    refusal: str
    state: Watch
    holders: tuple[Holder, ...]

    @property
    def read_names(self) -> frozenset[str]:
        """The names that the body reads."""
        names = (node for statement in self.function.node.body for node in ast.walk(statement))
        return frozenset(name.id for name in names if isinstance(name, ast.Name))

    @property
    def names(self) -> dict[str, Any]:
        """The file's globals, as the function sees them."""
        result: dict[str, Any] = inspect.unwrap(getattr(self.given, "__func__", self.given)).__globals__
        return result

    @property
    def roots(self) -> dict[str, Any]:
        """What the function knows by name when it begins."""
        receiver = {self.function.receiver: self.receiver} if self.function.receiver else {}
        others = self.bound.arguments.items()
        return {**receiver, **{name: value for name, value in others if not isinstance(value, torch.Tensor)}}

    def may_lack(self, name: str) -> bool:
        """Whether a call may leave an argument out."""
        parameter = self.bound.signature.parameters[name]
        return parameter.default is not parameter.empty


def entry_of(
    trial: Trial, source: Source, module: types.ModuleType, state: Watch | None = None
) -> Entry | None:
    """What a trial calls, before it is run; None where that is no function of the file. ``state`` is what
    was held before a run that there has been."""
    target = trial.function
    if isinstance(target, torch.nn.Module):
        given, receiver = getattr(target, "forward", None), target
    else:
        given, receiver = target, None
    outer = getattr(given, "__func__", given)
    function = inspect.unwrap(outer) if callable(outer) else None
    if not isinstance(function, types.FunctionType) or function.__code__.co_filename != source.path:
        return None
    known = definitions(source, function.__qualname__)
    if len(known) != 1:
        return None
    try:
        bound = inspect.signature(given).bind(*trial.args, **trial.kwargs)
    except TypeError:  # the call itself will say what is wrong with it
        return None
    bound.apply_defaults()
    holders = tuple(_holders(known[0], receiver, module))
    refusal = _refusal(known[0], outer, function)
    return Entry(known[0], given, receiver, bound, refusal, state or Watch(holders), holders)


def state_of(function: SourceFunction, receiver: Any, module: types.ModuleType) -> Watch:
    """What a module, and the file's globals, hold now."""
    return Watch(_holders(function, receiver, module))


def _refusal(known: SourceFunction, outer: Any, function: types.FunctionType) -> Sentence:
    """A decorator of torch's, such as ``no_grad``, stays where it is and runs around the kernel too."""
    if inspect.isgeneratorfunction(function):
        return Sentence(
            "{name} is a generator: return tensors instead of yielding them.", name=known.qualname
        )
    step = outer
    while step is not function:
        if not is_torchs(step):
            return Sentence(
                "A decorator of {name} may change what it is given: move its work into the body.",
                name=known.qualname,
            )
        step = step.__wrapped__
    return Sentence()


@dataclass
class EntryCall:
    """An entry as a function of tensors: ``leaves`` say what each is at the call site.

    ``conditions`` are Python texts that must hold for the call to do what it did when it was traced.
    ``changes`` are the entries of the module, or of what is below it, that the last run set anew;
    ``complex_results`` the flat positions of results that were complex tensors, ``given_back`` the text of a
    list or dictionary that was there before and that its result holds, empty where there is none.
    """

    entry: Entry
    leaves: tuple[Leaf, ...]
    conditions: tuple[str, ...]
    places: tuple[Held, ...]
    holders: tuple[Holder, ...]
    changes: list[Any] = field(default_factory=list)
    complex_results: list[int] = field(default_factory=list)
    given_back: str = ""

    def __call__(self, *values: Any) -> tuple[Any, list[Any]]:
        """The function's result, and the tensors that it set as attributes; of complex ones their parts."""
        values = tuple(map(complex_tensors.restored, self.leaves, values))
        by_name = {leaf.expression: value for leaf, value in zip(self.leaves, values, strict=True)}
        by_tensor = {id(leaf.known_as): value for leaf, value in zip(self.leaves, values, strict=True)}
        bound = self.entry.bound
        kept = dict(bound.arguments)
        bound.arguments.update(
            {name: by_name.get(name, replaced(value, by_tensor)) for name, value in kept.items()}
        )
        try:
            with put(self.places, by_tensor):
                watch = Watch(self.holders)
                result = self.entry.given(*bound.args, **bound.kwargs)
                self.changes = watch.changes()
                self.given_back = _given_back(result, self.holders)
        finally:
            bound.arguments.update(kept)
        changed = [change.value for change in self.changes if isinstance(change.value, torch.Tensor)]
        real, self.complex_results = complex_tensors.real_results((opened(result), changed))
        return real


def _given_back(result: Any, holders: Iterable[Holder]) -> str:
    """How the call site reaches a list or dictionary of the holders that is in a result."""
    known = {
        id(value): holder.path(key)
        for holder in holders
        for key, value in holder.items()
        if isinstance(value, (list, dict))
    }
    waiting = [result]
    while known and waiting:
        value = waiting.pop()
        if id(value) in known:
            return known[id(value)]
        if isinstance(value, (tuple, list)):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
    return ""


def call_of(entry: Entry, module: types.ModuleType, *, fix_numbers: bool) -> EntryCall:
    """Raises Refused for arguments that no call of a kernel can take. ``fix_numbers`` makes the values of
    Python numbers conditions instead of inputs."""
    leaves, conditions, arguments = [], [], []
    names = _names(entry, module)
    for name, value in entry.bound.arguments.items():
        if not isinstance(value, torch.Tensor) and name not in entry.read_names:
            continue
        optional = entry.may_lack(name) and name in entry.read_names
        result = argument_of(
            name, value, module.__name__, optional=optional, fix_numbers=fix_numbers, names=names
        )
        leaves += [_leaf(text, TENSOR, tensor) for text, tensor in result.tensors]
        leaves += [_leaf(text, SCALAR, number) for text, number in result.numbers]
        conditions += result.conditions
        arguments += result.holders
    given = {id(leaf.known_as) for leaf in leaves}
    holders = _holders(entry.function, entry.receiver, module)
    places = tensors_in(holders)
    first = {id(place.tensor): place for place in reversed(places) if id(place.tensor) not in given}
    leaves += [_leaf(holder.expression, PARAMETER, holder.tensor) for holder in reversed(first.values())]
    holders += arguments
    return EntryCall(entry, tuple(leaves), tuple(conditions), tuple(tensors_in(holders)), tuple(holders))


def _names(entry: Entry, module: types.ModuleType) -> dict[Any, str]:
    """The file's functions and classes by the names that the entry's body sees them under."""
    return {
        value: name
        for name, value in vars(module).items()
        if isinstance(value, (types.FunctionType, type)) and name not in entry.function.local_names
    }


def _leaf(expression: str, kind: str, value: Any) -> Leaf:
    return complex_tensors.leaf(_NOWHERE, kind, expression, value, -1)


def _holders(function: SourceFunction, receiver: Any, module: types.ModuleType) -> list[Holder]:
    """What is below the receiver, and below the file's globals that functions read."""
    result = []
    if receiver is not None:
        result += holders_of(receiver, function.receiver, module.__name__)
    shared = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, (torch.Tensor, torch.nn.Module, list, dict))
        and value is not receiver
        and not name.startswith("__")
    }
    if any(isinstance(value, torch.Tensor) for value in shared.values()):
        result.append(Holder(vars(module), str))
    for name, value in shared.items():
        if not isinstance(value, torch.Tensor):
            result += holders_of(value, name, module.__name__)
    return result


def outside_state(was_run: Callable[[ast.AST], bool], functions: Iterable[SourceFunction]) -> Sentence:
    """What the functions do besides computing, that a call of a kernel would not; empty if nothing."""
    for function in functions:
        for node in ast.walk(function.node):
            if isinstance(node, ast.Global):
                return Sentence(
                    "Line {line} sets the global {name}: return the value instead.",
                    line=node.lineno,
                    name=node.names[0],
                )
            printing = (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            )
            if printing and was_run(node):
                return Sentence(
                    "Line {line} prints, which a kernel cannot: print outside of {name}.",
                    line=node.lineno,
                    name=function.qualname,
                )
    return Sentence()
