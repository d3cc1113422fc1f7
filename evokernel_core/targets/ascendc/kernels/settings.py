"""What settings of stored strategies say, whichever family they are of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from evokernel_core.compiler.schedule import Schedule as Settings
from evokernel_core.compiler.schedule import Stages, require_known
from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.targets.ascendc.ir.legality import MOST_STAGES

__all__ = ["BUFFERS", "Settings", "chosen", "formula_of", "require_known", "rounds_like_torch"]
T = TypeVar("T")
BUFFERS = Stages(1, MOST_STAGES)
"""As many as a queue has."""
_FORMULA = frozenset({"eager_rounding", "online", "reduction", "cut", "family"})
"""Settings that change what is computed, or where it is rounded; others change what lies where, and when."""


def formula_of(strategy: Strategy) -> frozenset[tuple[str, Setting]]:
    """What of a strategy decides its results' last bits, of all kernels of a program. Two strategies of one
    formula that differ in tiles fail alike where a result is wrong."""
    chosen = (
        (key, value) for key, value in strategy.all_settings().items() if key.rsplit(".", 1)[-1] in _FORMULA
    )
    return frozenset([("", strategy.family), *chosen])


def rounds_like_torch(strategy: Strategy) -> int:
    """How many kernels of a strategy round between operations as PyTorch does."""
    return sum(
        value is True for key, value in strategy.all_settings().items() if key.endswith("eager_rounding")
    )


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
