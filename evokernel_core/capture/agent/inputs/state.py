"""The tensors that a call finds outside of its arguments: below its module and in the file's globals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from ..guards.changes import is_same

_SEQUENCES = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ParameterList)
_DICTIONARIES = (torch.nn.ModuleDict, torch.nn.ParameterDict)
_INTERNAL = frozenset(vars(torch.nn.Module())) - {"training"}
_GROUPS = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True)
class Holder:
    """A dictionary or list that a call can read and write; ``path`` gives the Python text that yields
    an entry at the call site. A layer of torch's own keeps notes in attributes with an underscore."""

    entries: Any
    path: Callable[[Any], str]
    has_notes: bool = False

    def items(self) -> list[tuple[Any, Any]]:
        """Its entries now, without what torch keeps for itself."""
        if isinstance(self.entries, list):
            return list(enumerate(self.entries))
        return [(key, value) for key, value in self.entries.items() if key not in _INTERNAL]


@dataclass(frozen=True)
class Held:
    """One place that holds a tensor, itself or in a tuple."""

    expression: str
    tensor: torch.Tensor
    holder: Holder
    key: Any


@dataclass(frozen=True)
class Change:
    """An entry that a call has set anew; ``value`` is what it set, None where an assignment does not do
    the same, ``before`` what was there."""

    expression: str
    value: Any
    before: Any = None


def holders_of(owner: Any, text: str, file_module: str) -> list[Holder]:
    """What is below a module, or below an object of a class of the file; parameters and buffers come
    before the other attributes of the same module."""
    return list(_holders(owner, text, file_module, set()))


def _holders(owner: Any, text: str, file_module: str, seen: set[int]) -> Iterator[Holder]:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    for holder in _own_holders(owner, text):
        yield holder
        for key, value in holder.items():
            if isinstance(value, (torch.nn.Module, list, dict)) or type(value).__module__ == file_module:
                yield from _holders(value, holder.path(key), file_module, seen)


def _own_holders(owner: Any, text: str) -> Iterator[Holder]:
    if isinstance(owner, (list, dict)):
        yield Holder(owner, lambda key: f"{text}[{key!r}]")
        return
    if isinstance(owner, torch.nn.Module):
        for group in _GROUPS:
            yield Holder(getattr(owner, group), lambda key: member(owner, text, key))
    if hasattr(owner, "__dict__") and not isinstance(owner, type):
        yield Holder(vars(owner), lambda key: f"{text}.{key}", type(owner).__module__.startswith("torch."))


def member(owner: torch.nn.Module, text: str, name: str) -> str:
    """How Python reaches a registered member: ``self.layers[0]``, ``self.heads['left']``, ``self.norm``. What
    a sequence has under another number than its place is an attribute."""
    if isinstance(owner, _SEQUENCES) and name in map(str, range(len(owner))) and _at(owner, name):
        return f"{text}[{name}]"
    if isinstance(owner, _DICTIONARIES):
        return f"{text}[{name!r}]"
    return f"{text}.{name}" if name.isidentifier() else f"getattr({text}, {name!r})"


def _at(owner: Any, name: str) -> bool:
    return owner[int(name)] is getattr(owner, name, None)


def tensors_in(holders: Iterable[Holder]) -> list[Held]:
    """Every place that holds a tensor."""
    return [
        Held(text, tensor, holder, key)
        for holder in holders
        for key, value in holder.items()
        for text, tensor in below(value, holder.path(key))
    ]


def below(value: Any, text: str) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor, or those in a tuple, by the texts that reach them."""
    if isinstance(value, torch.Tensor):
        yield text, value
    elif isinstance(value, tuple):
        for number, element in enumerate(value):
            yield from below(element, f"{text}[{number}]")


def replaced(value: Any, tensors: Mapping[int, Any]) -> Any:
    """The value with other tensors in it, by the identity of each; a tuple is made anew for them."""
    if isinstance(value, torch.Tensor):
        return tensors.get(id(value), value)
    if not isinstance(value, tuple):
        return value
    items = [replaced(element, tensors) for element in value]
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


@contextmanager
def put(places: Iterable[Held], values: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """Other tensors in the places, by the identity of the tensor that each holds, until the end."""
    with restored(place.holder for place in places):
        for place in places:
            place.holder.entries[place.key] = replaced(place.holder.entries[place.key], values)
        yield


@contextmanager
def restored(holders: Iterable[Holder]) -> Iterator[None]:
    """In the end the holders hold what they did."""
    kept = [(holder, dict(holder.items())) for holder in holders]
    try:
        yield
    finally:
        for holder, entries in kept:
            _restore(holder, entries)


def _restore(holder: Holder, entries: dict[Any, Any]) -> None:
    if isinstance(holder.entries, list):
        holder.entries[:] = entries.values()
        return
    for key in dict(holder.items()):
        if key not in entries:
            del holder.entries[key]
    holder.entries.update(entries)


class Watch:
    """What holders hold at one time, to see later what has changed."""

    def __init__(self, holders: Iterable[Holder]) -> None:
        self._before = [(holder, dict(holder.items())) for holder in holders]
        self._ended: list[Change] | None = None

    def end(self) -> None:
        """What changes from now on is not this one's to tell."""
        self._ended = self.changes()

    def built(self) -> list[Change]:
        """What was no tensor, or was not there, before it was set."""
        return [
            change
            for change in self.changes()
            if not (isinstance(change.before, torch.Tensor) and isinstance(change.value, torch.Tensor))
        ]

    def changes(self) -> list[Change]:
        """The entries that are not what they were, in order."""
        if self._ended is not None:
            return self._ended
        return [change for holder, before in self._before for change in _changes(holder, before)]


def _changes(holder: Holder, before: dict[Any, Any]) -> Iterator[Change]:
    now = dict(holder.items())
    for key in (*now, *(key for key in before if key not in now)):
        if holder.has_notes and key.startswith("_"):
            continue
        if key not in before and isinstance(holder.entries, list):
            yield Change(holder.path(key), None)  # an entry that no assignment makes
        elif key not in before or key not in now or not is_same(before[key], now[key]):
            yield Change(holder.path(key), now.get(key), before.get(key))
