"""Schedules from stored strategies, which other versions of EvoKernel and other people may have written."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Self, TypeVar, get_type_hints

from attrs import NOTHING, Attribute, asdict, fields, frozen

from evokernel_core.compiler.strategies import require_known
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.targets.ascendc.ir.legality import MOST_STAGES

T = TypeVar("T")
_MOST = (1 << 31) - 1
"""Numbers of schedules become constants of 32 bits."""


@frozen
class Settings:
    """A schedule whose fields are the settings of its strategies."""

    @classmethod
    def of(cls, strategy: Strategy) -> Self:
        """The schedule of a strategy. Settings that this version does not know are left out, those which
        the strategy lacks are what they are by default. Raises StrategyError for what is no schedule."""
        require_known(strategy)
        given, kinds = dict(strategy.settings), get_type_hints(cls)
        values = {
            field.name: _value(kinds[field.name], field.name, given[field.name])
            for field in fields(cls)
            if field.name in given
        }
        for field in fields(cls):
            if field.name not in values and field.default is NOTHING:
                raise StrategyError(
                    "A {family} strategy lacks {name}; draft it anew.",
                    family=strategy.family,
                    name=repr(field.name),
                )
        return cls(**values)

    def settings(self) -> dict[str, Setting]:
        """What a strategy stores of the schedule."""
        return asdict(self, value_serializer=_stored)


def chosen(strategy: Strategy, name: str, table: Mapping[str, T]) -> T:
    """What a setting chooses from a table. Raises StrategyError where it names nothing there."""
    value = dict(strategy.settings).get(name)
    if not isinstance(value, str) or value not in table:
        raise StrategyError(
            "A {family} strategy has {name} {value}; draft it anew.",
            family=strategy.family,
            name=name,
            value=repr(value),
        )
    return table[value]


def _stored(_: object, attribute: Attribute[object] | None, value: Setting) -> Setting:
    return str(value) if isinstance(value, Enum) else value


def _value(kind: type, name: str, value: Setting) -> object:
    try:
        if issubclass(kind, Enum):
            return kind(value)
    except ValueError as error:
        raise StrategyError(
            "A strategy has {name} {value}; draft it anew.", name=name, value=repr(value)
        ) from error
    low, high = (1, MOST_STAGES) if name.endswith("buffers") else (0, _MOST)
    if type(value) is not kind or (isinstance(value, int) and not low <= value <= high):
        raise StrategyError("A strategy has {name} {value}; draft it anew.", name=name, value=repr(value))
    return value
