"""What settings of strategies and schedules say, whichever family they are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve

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


def whole_step(before: Any, after: Any) -> Any:
    """Of a schedule with deeper steps in L0: a panel in L1 has one at least."""
    return evolve(after, panel_k=max(after.panel_k, after.base_k))
