"""What settings of stored strategies say, whichever family they are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from evokernel_core.compiler.schedule import Stages
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.ir.legality import MOST_STAGES

T = TypeVar("T")
BUFFERS = Stages(1, MOST_STAGES)
"""As many as a queue has."""


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
