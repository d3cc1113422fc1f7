"""Schedules that describe themselves, whatever the target.

A field of a schedule says beside its type which values are legal, what its changes are called, and the word
that notes have for it:

    @frozen
    class RowSchedule(Schedule):
        tile: Annotated[int, Range(256, 8192, unit=256), Scaled("double tile", "halve tile")]
        buffers: Annotated[int, Stages(1, 4), Named({2: "double buffer", 1: "single buffer"})] = 2

Storing and reading, neighbours, the legality of ranges, notes and whether copies overlap follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from string import Formatter
from typing import Annotated, Any, ClassVar, Self, get_args, get_origin, get_type_hints

from attrs import NOTHING, Attribute, asdict, evolve, fields, frozen

from evokernel_core.compiler.strategies import require_known
from evokernel_core.domain.descriptor import Overlap
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.domain.sentence import Sentence

_MOST = (1 << 31) - 1
"""Numbers of schedules become constants of 32 bits."""


def _always(schedule: Any) -> bool:
    return True


# -- which values are legal -----------------------------------------------------------------------


@frozen(kw_only=True)
class Rule(ABC):
    """Which values of a field are legal, in schedules of which ``when`` holds."""

    when: Callable[[Any], bool] = _always

    @abstractmethod
    def holds(self, value: Any) -> bool:
        """Whether a value is legal."""

    @property
    @abstractmethod
    def legal(self) -> Sentence:
        """The legal values in words."""


@frozen
class Range(Rule):
    """Numbers from ``least`` to ``most``: multiples of ``unit``, or powers of two."""

    least: int = 1
    most: int = _MOST
    unit: int = 1
    power_of_two: bool = False

    def holds(self, value: int) -> bool:
        in_steps = value & (value - 1) == 0 if self.power_of_two else value % self.unit == 0
        return in_steps and self.least <= value <= self.most

    @property
    def legal(self) -> Sentence:
        numbers = Sentence("powers of two") if self.power_of_two else Sentence("whole numbers")
        if self.unit > 1:
            numbers = Sentence("multiples of {unit}", unit=self.unit)
        if self.most == _MOST:
            return Sentence("{numbers} from {least} on", numbers=numbers, least=self.least)
        return Sentence("{numbers} from {least} to {most}", numbers=numbers, least=self.least, most=self.most)


@frozen
class Stages(Range):
    """How many buffers one kind of data has: from two on copies and computation overlap. A strategy with
    another number is not read at all, as its buffers would be allocated before anything is judged."""


@frozen
class OneOf(Rule):
    """A table of values."""

    values: tuple[Setting, ...]

    def holds(self, value: Setting) -> bool:
        return value in self.values

    @property
    def legal(self) -> Sentence:
        return Sentence(", ".join(map(str, self.values)))


# -- what its changes are called ------------------------------------------------------------------


def _alone(before: Any, after: Any) -> Any:
    return after


@frozen(kw_only=True)
class Change(ABC):
    """The named changes of a field, in schedules of which ``when`` holds. ``also``: what else changes; the
    schedule as it was, and with the new value, give the one that is meant."""

    when: Callable[[Any], bool] = _always
    also: Callable[[Any, Any], Any] = _alone

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]: ...

    @abstractmethod
    def values(self, value: Any) -> Iterator[tuple[str, Setting]]:
        """The names with the values that they lead to, legal or not."""


@frozen
class UpOrDown(Change):
    """A number becomes larger, or smaller. What has no name is not there."""

    up: str = ""
    down: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.up, self.down)))

    def values(self, value: int) -> Iterator[tuple[str, int]]:
        yield from ((name, other) for name, other in self._both(value) if name)

    @abstractmethod
    def _both(self, value: int) -> Iterator[tuple[str, int]]:
        """The two names with the values that they lead to."""


@frozen
class Scaled(UpOrDown):
    """A number times ``more`` and ``less``, each a numerator and a denominator, in multiples of ``unit``, the
    latter no less than ``least``."""

    unit: int = 1
    least: int = 0
    rounds_up: bool = False
    more: tuple[int, int] = (2, 1)
    less: tuple[int, int] = (1, 2)

    def _both(self, value: int) -> Iterator[tuple[str, int]]:
        yield self.up, self._times(value, self.more)
        yield self.down, max(self.least, self._times(value, self.less))

    def _times(self, value: int, factor: tuple[int, int]) -> int:
        result = value * factor[0] // factor[1]
        return (-(-result // self.unit) if self.rounds_up else result // self.unit) * self.unit


@frozen
class Shifted(UpOrDown):
    """A number ``by`` more or less."""

    by: int = 1

    def _both(self, value: int) -> Iterator[tuple[str, int]]:
        yield self.up, value + self.by
        yield self.down, value - self.by


@frozen
class Listed(UpOrDown):
    """The next and the last one in a table that grows; of a number that is not there the nearest counts."""

    table: tuple[int, ...] = ()

    def _both(self, value: int) -> Iterator[tuple[str, int]]:
        place = min(range(len(self.table)), key=lambda index: abs(self.table[index] - value))
        yield from ((self.up, other) for other in self.table[place + 1 : place + 2])
        yield from ((self.down, other) for other in self.table[max(place - 1, 0) : place])


@frozen
class Named(Change):
    """Each value under a name of its own."""

    table: Mapping[Any, str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.table.values())

    def values(self, value: Setting) -> Iterator[tuple[str, Setting]]:
        yield from ((name, other) for other, name in self.table.items())


@frozen
class Word:
    """What notes call a field."""

    text: str


# -- what follows ---------------------------------------------------------------------------------


@frozen
class Declared:
    """A field of a schedule with what it says of itself."""

    name: str
    kind: type
    is_required: bool
    rules: tuple[Rule, ...]
    changes: tuple[Change, ...]
    word: str

    @property
    def names(self) -> tuple[str, ...]:
        """Of all its changes."""
        return tuple(name for change in self.changes for name in change.names)


def _declared(field: Attribute[Any], hint: Any) -> Declared:
    kind, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    words = [part.text for part in said if isinstance(part, Word)]
    if not all(isinstance(part, Rule | Change | Word) for part in said):
        raise TypeError(f"{field.name} says what is neither a rule, nor a change, nor a word.")
    return Declared(
        field.name,
        kind,
        field.default is NOTHING,
        tuple(part for part in said if isinstance(part, Rule)),
        tuple(part for part in said if isinstance(part, Change)),
        words[0] if words else field.name,
    )


@frozen
class Schedule:
    """A schedule whose fields are the settings of its strategies. ``family``: that of the strategies, where
    the kernels' family has several."""

    family: ClassVar[str] = ""

    @classmethod
    @cache
    def declared(cls) -> tuple[Declared, ...]:
        """Its fields, with what they say of themselves."""
        hints = get_type_hints(cls, include_extras=True)
        return tuple(_declared(field, hints[field.name]) for field in fields(cls))

    @classmethod
    @cache
    def _rules(cls) -> tuple[tuple[str, Rule], ...]:
        return tuple((field.name, rule) for field in cls.declared() for rule in field.rules)

    @classmethod
    def of(cls, strategy: Strategy) -> Self:
        """The schedule of a strategy. Settings that this version does not know are left out, those which
        the strategy lacks are what they are by default. Raises StrategyError for what is no schedule."""
        require_known(strategy)
        given = dict(strategy.settings)
        values = {
            field.name: _read(field, given[field.name]) for field in cls.declared() if field.name in given
        }
        for field in cls.declared():
            if field.is_required and field.name not in values:
                raise StrategyError(
                    "A {family} strategy lacks {name}; draft it anew.",
                    family=strategy.family,
                    name=repr(field.name),
                )
        return cls(**values)

    def settings(self) -> dict[str, Setting]:
        """What a strategy stores of the schedule."""
        return asdict(self, value_serializer=_stored)

    def neighbours(self, *names: str) -> Iterator[tuple[str, Self]]:
        """The named changes of the fields ``names``, of all without any: their names with the schedules that
        they lead to, legal or not."""
        by_name = {field.name: field for field in self.declared()}
        for name in names or by_name:
            here = getattr(self, name)
            for change in (one for one in by_name[name].changes if one.when(self)):
                for words, value in change.values(here):
                    if value != here:
                        yield words, change.also(self, evolve(self, **{name: value}))

    def why_out_of_range(self) -> Sentence | None:
        """Which field has a value that is legal for no task and on no device; None where all are legal."""
        for name, rule in self._rules():
            value = getattr(self, name)
            if not rule.holds(value) and rule.when(self):
                return Sentence(
                    "{field} is {value}; legal values are {values}.",
                    field=name,
                    value=str(value),
                    values=rule.legal,
                )
        return None

    def told(self, note: str) -> Sentence:
        """A note in whose template fields stand by their words, and properties by their names; one that has
        its values is as it is."""
        if isinstance(note, Sentence) and note.values:
            return note
        fields_of = {field.word: field.name for field in self.declared()}
        words = [word for _, word, _, _ in Formatter().parse(note) if word]
        return Sentence(note, **{word: getattr(self, fields_of.get(word, word)) for word in words})

    @property
    def overlap(self) -> Overlap:
        """Whether copies and computation overlap: that of the first field that counts buffers."""
        counts = (
            getattr(self, field.name)
            for field in self.declared()
            if any(isinstance(rule, Stages) for rule in field.rules)
        )
        return Overlap.of(next(counts, 1))


def _stored(_: object, attribute: Attribute[object] | None, value: Setting) -> Setting:
    return str(value) if isinstance(value, Enum) else value


def _read(field: Declared, value: Setting) -> object:
    """The value of a field. Raises StrategyError for one that no version stores."""
    refusal = StrategyError(
        "A strategy has {name} {value}; draft it anew.", name=field.name, value=repr(value)
    )
    try:
        if issubclass(field.kind, Enum):
            return field.kind(value)
    except ValueError as error:
        raise refusal from error
    rules = [rule for rule in field.rules if isinstance(rule, Stages)]
    if type(value) is not field.kind:
        raise refusal
    if isinstance(value, int) and not all(rule.holds(value) for rule in (Range(0, _MOST), *rules)):
        raise refusal
    return value
