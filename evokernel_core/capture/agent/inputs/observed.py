"""Calls of a file's classes and functions as a program of the person's own made them."""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import describe
from ..guards.guard import CapturedGuard
from ..loading.constant_tensors import SmallTensors
from ..loading.load import reads_values
from ..loading.source import Source
from ..observation.decode import CannotBuild, Decoder
from ..observation.names import lookup, resolve
from ..sentence import Sentence
from .calls_made import CallProblem, Trial, trial_of
from .entry import Entry

MOST_TRIED = 3
"""Observed calls of one definition that are tried, the most frequent first."""

Observation = dict[str, Any]
"""``{"qualname", "built", "call", "training", "dtype", "modules"}``, as capture/observations.py keeps it."""


def observed_trials(
    module: types.ModuleType,
    source: Source,
    observations: list[Observation],
    was_run: Callable[[str], bool],
    problems: list[CallProblem],
) -> Iterator[Trial]:
    """A call for each definition that none before it has run; the ones made of most parts come first,
    because they run others. Those that cannot be made are problems."""
    by_name: dict[str, list[Observation]] = {}
    for observation in observations:
        by_name.setdefault(observation["qualname"], []).append(observation)
    size = {name: max(element["modules"] for element in value) for name, value in by_name.items()}
    for name in sorted(by_name, key=lambda name: -size[name]):
        reason = Sentence()
        for observation in by_name[name][:MOST_TRIED]:
            if was_run(name):
                break
            try:
                yield _trial(module, source, observation)
            except BaseException as error:  # whatever the file's constructors raise
                reason = reason or _words(name, error)
        if reason and not was_run(name):
            problems.append(CallProblem(name, "needs_shapes", reason))


def _words(name: str, error: BaseException) -> Sentence:
    if isinstance(error, CannotBuild):
        return Sentence(
            "{name} was observed, but with {error}, which cannot be made again: add get_inputs() and "
            "get_init_inputs().",
            name=name,
            error=error,
        )
    if reads_values(error):
        return Sentence(
            "Building or calling {name} reads what its tensors hold ({error}), which a capture does "
            "not have: put what computes it outside of the model.",
            name=name,
            error=describe(error),
        )
    return Sentence(
        "What was observed of {name} cannot be repeated ({error}). Run evokernel observe again if "
        "the file has changed; add get_inputs() if the program changes what the file imports.",
        name=name,
        error=describe(error),
    )


def _trial(module: types.ModuleType, source: Source, observation: Observation) -> Trial:
    decoder = Decoder(module, source.path)
    target = lookup(module, observation["qualname"])
    if target is None:
        raise ImportError(Sentence("it has no {qualname}", qualname=observation["qualname"]))
    if observation["built"] is not None:
        target = _built(resolve(observation["built"]["class"], module, source.path), observation, decoder)
    args, kwargs = decoder.call(observation["call"])
    return trial_of(observation["qualname"], target, args, kwargs, observed=True)


def _built(kind: Any, observation: Observation, decoder: Decoder) -> torch.nn.Module:
    with SmallTensors():
        args, kwargs = decoder.call(observation["built"])
        made: torch.nn.Module = kind(*args, **kwargs)
    if observation["dtype"] is not None:
        made = made.to(getattr(torch, observation["dtype"]))
    return made.train(observation["training"])


def pinned_number(
    entry: Entry, guards: Iterable[Mapping[str, str]], observations: Iterable[Observation]
) -> str:
    """The argument that a guard asks for the number of this call, where most of the observed calls had
    another one; empty where there is none."""
    known = [CapturedGuard(**guard) for guard in guards]
    for name, value in entry.bound.arguments.items():
        if type(value) is int and any(guard.fixes(name) for guard in known):
            seen = _seen(entry, name, observations)
            if 2 * seen[value] < seen.total():
                return name
    return ""


def _seen(entry: Entry, name: str, observations: Iterable[Observation]) -> Counter[Any]:
    """How often an argument had each value; what is no number counts as another one."""
    counter: Counter[Any] = Counter()
    for observation in observations:
        if entry.function.qualname not in (observation["qualname"], f"{observation['qualname']}.forward"):
            continue
        given = _bound(entry.bound.signature, observation["call"]).get(name)
        counter[given if type(given) is int else None] += observation["count"]
    return counter


def _bound(signature: inspect.Signature, call: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        bound = signature.bind(*call["args"], **call["kwargs"])
    except TypeError:  # an observation of an older text
        return {}
    bound.apply_defaults()
    return bound.arguments
