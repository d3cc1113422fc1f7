"""What a call is given: tensors become inputs of the region, all else must be as it was when traced.

Tensors are taken out of tuples, lists, dictionaries and objects of the file's classes, each by the Python
text that reaches it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import Refused
from ..guards.guard import name_of, same
from .state import Holder, below, holders_of, tensors_in

_PLAIN = (bool, int, float, str, type(None))
_BUILTINS = frozenset({tuple, list, dict})


@dataclass
class Argument:
    """One argument of a call: ``tensors`` by the text that reaches each, ``numbers`` that may change from
    call to call, ``conditions`` as Python texts, ``holders`` of what can be set anew in it."""

    tensors: list[tuple[str, torch.Tensor]] = field(default_factory=list)
    numbers: list[tuple[str, float]] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    holders: list[Holder] = field(default_factory=list)


def argument_of(
    name: str,
    value: Any,
    file_module: str,
    *,
    optional: bool,
    fix_numbers: bool,
    names: Mapping[Any, str],
) -> Argument:
    """``optional``: a call may leave the argument out. ``names`` reach the file's functions and classes where
    the arguments are. Raises Refused for what no condition can tell."""
    argument = Argument()
    if isinstance(value, torch.Tensor):
        argument.conditions += [f"{name} is not None"] * optional
        argument.tensors.append((name, value))
    elif isinstance(value, float) and not fix_numbers:
        argument.numbers.append((name, value))
    elif isinstance(value, types.FunctionType) and value in names:
        argument.conditions.append(f"{name} is {names[value]}")
    else:
        _read(name, name, value, _File(file_module, names), argument)
        known = {id(tensor): (text, tensor) for text, tensor in argument.tensors}
        for holder in tensors_in(argument.holders):
            known.setdefault(id(holder.tensor), (holder.expression, holder.tensor))
        argument.tensors = list(known.values())
    return argument


@dataclass(frozen=True)
class _File:
    """The file's module, and its functions and classes by the names that reach them."""

    module: str
    names: Mapping[Any, str]

    def is_class(self, text: str, kind: type) -> str:
        """That a value is of a class: a subclass may give other members for what it holds."""
        if kind in _BUILTINS:
            return f"type({text}) is {kind.__name__}"
        known = self.names.get(kind)
        return f"type({text}) is {known}" if known else f"guards.named(type({text}), {name_of(kind)!r})"


def _read(argument: str, text: str, value: Any, file: _File, supplied: Argument) -> None:
    """Adds what a value below an argument holds; tensors in holders are found through those."""
    if isinstance(value, torch.Tensor):
        return
    if isinstance(value, (*_PLAIN, torch.dtype, torch.device)):
        supplied.conditions.append(same(text, "", value).condition)
    elif isinstance(value, (tuple, list, dict)):
        _read_container(argument, text, value, file, supplied)
    elif type(value).__module__ == file.module and hasattr(value, "__dict__"):
        supplied.conditions.append(file.is_class(text, type(value)))
        supplied.holders += [
            holder for holder in holders_of(value, text, file.module) if holder.entries is vars(value)
        ]
        for name, member in vars(value).items():
            _read(argument, f"{text}.{name}", member, file, supplied)
    else:
        kind = type(value).__name__
        raise Refused(
            "The argument {argument} holds a {kind} as {text}: pass tensors and plain values.",
            argument=argument,
            kind=kind,
            text=text,
        )


def _read_container(argument: str, text: str, value: Any, file: _File, supplied: Argument) -> None:
    supplied.conditions.append(file.is_class(text, type(value)))
    if not value:
        supplied.conditions.append(f"not {text}")
        return
    if isinstance(value, dict):
        if not all(isinstance(key, _PLAIN) for key in value):
            raise Refused(
                "The argument {argument} has keys that are no plain values: use texts.", argument=argument
            )
        supplied.conditions.append(f"list({text}) == {list(value)!r}")
        entries = list(value.items())
    else:
        supplied.conditions.append(f"len({text}) == {len(value)}")
        entries = list(enumerate(value))
    if isinstance(value, tuple):
        supplied.tensors += list(below(value, text))
    else:
        supplied.holders.append(Holder(value, lambda key: f"{text}[{key!r}]"))
    for key, element in entries:
        _read(argument, f"{text}[{key!r}]", element, file, supplied)
