"""KernelSource and the Strategy behind it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import define, evolve, field, frozen

from evokernel_core.domain.descriptor import NOT_KNOWN, Descriptor
from evokernel_core.domain.earlier_sources import earlier_id, is_earlier
from evokernel_core.domain.files import Files
from evokernel_core.domain.sentence import Sentence

Setting = bool | int | float | str
THEN = ", then "
"""Between the names of refinement steps that were made at once."""
STRATEGY_VERSION = 3
"""Of what settings mean; it grows when one comes to mean something else. Stored strategies without a
version are of the first one. Until the third a program's kernels were settings (``earlier_strategies``)."""


def after(first: Sentence, step: Sentence) -> Sentence:
    """The name of steps and of one that was made with them."""
    return Sentence("{first}, then {next}", first=first, next=step)


def steps_in(move: Sentence) -> tuple[Sentence, ...]:
    """The names of the steps that were made at once, in their order."""
    if move.values.keys() == {"first", "next"}:
        parts = (
            value if isinstance(value, Sentence) else Sentence(str(value)) for value in move.values.values()
        )
        return tuple(step for part in parts for step in steps_in(part))
    return (move,) if move.values else tuple(map(Sentence, move.split(THEN)))


def _sorted_settings(settings: object) -> tuple[tuple[str, Setting], ...]:
    items = settings.items() if isinstance(settings, dict) else settings
    return tuple(sorted((str(key), value) for key, value in items))  # type: ignore[attr-defined]


def _sentences(notes: Iterable[str]) -> tuple[Sentence, ...]:
    return tuple(map(Sentence, notes))


@frozen
class KernelSchedule:
    """The schedule of one distinct kernel of a program: its family, and its settings, sorted."""

    family: str
    settings: tuple[tuple[str, Setting], ...] = field(converter=_sorted_settings, default=())


@frozen
class Strategy:
    """A schedule in numbers (``settings``, sorted) and in words (``notes``).

    ``family`` names the schedule family, or ``model`` for what a language model wrote.
    ``move`` is the named refinement step that made it from its parent, empty for a draft.
    ``version`` is that of the settings' meaning.
    ``groups``: of a program, the nodes that each kernel call computes, in the order of the calls; a node is
    its number in the canonical order of the task. ``kernels`` are the distinct kernels, in the order in which
    they are first called.
    """

    family: str
    settings: tuple[tuple[str, Setting], ...] = field(converter=_sorted_settings, default=())
    notes: tuple[Sentence, ...] = field(converter=_sentences, default=())
    descriptor: Descriptor = NOT_KNOWN
    move: Sentence = field(default=Sentence(), converter=Sentence)
    version: int = STRATEGY_VERSION
    groups: tuple[tuple[int, ...], ...] = ()
    kernels: tuple[KernelSchedule, ...] = ()

    def is_same_schedule(self, other: Strategy) -> bool:
        """Whether two differ in words and in how they came about alone."""
        parts = ((choice.family, choice.settings, choice.groups, choice.kernels) for choice in (self, other))
        return next(parts) == next(parts)

    def each_setting(self) -> Iterator[tuple[int | None, str, Setting]]:
        """Its settings, then family and settings of each kernel behind the kernel's number."""
        yield from ((None, name, value) for name, value in self.settings)
        for number, kernel in enumerate(self.kernels):
            yield number, "family", kernel.family
            yield from ((number, name, value) for name, value in kernel.settings)

    def all_settings(self) -> dict[str, Setting]:
        """The same by names: ``0.tile`` is a setting of the first kernel."""
        return {
            name if number is None else f"{number}.{name}": value
            for number, name, value in self.each_setting()
        }

    def setting(self, name: str, default: Setting | None = None) -> Setting:
        """The value of a setting. Raises KeyError where it is absent and no default was given."""
        for key, value in self.settings:
            if key == name:
                return value
        if default is None:
            raise KeyError(name)
        return default


@define(frozen=True, slots=False)
class KernelSource:
    """What a proposer writes: the files of a kernel in a target's language (AscendC's: docs/kernel-abi.md).

    Raises ValueError and TypeError for files that are none (``Files``).
    """

    target: str
    files: Mapping[str, str] = field(converter=Files)
    strategy: Strategy

    @cached_property
    def source_id(self) -> str:
        """sha256 (hex) of target and files, whatever their order. Kernels of AscendC keep the id that they
        had before a source named its target."""
        if is_earlier(self.target, self.files):
            return earlier_id(self.files)
        text = json.dumps([self.target, sorted(self.files.items())], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def with_files(self, texts: Mapping[str, str]) -> KernelSource:
        """The same with other texts in these files."""
        return evolve(self, files={**self.files, **texts})
