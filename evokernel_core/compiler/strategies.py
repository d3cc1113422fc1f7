"""What is asked of a strategy whatever its family."""

from __future__ import annotations

from evokernel_core.domain.errors import StrategyError
from evokernel_core.domain.kernel import STRATEGY_VERSION, Setting, Strategy

_FORMULA = frozenset({"eager_rounding", "half", "online", "reduction", "cut", "family"})
"""Settings that change what is computed, or where it is rounded; others change what lies where, and when."""


def formula_of(strategy: Strategy) -> frozenset[tuple[int | None, str, Setting]]:
    """What of a strategy decides its results' last bits, of all kernels of a program. Two strategies of one
    formula that differ in tiles fail alike where a result is wrong."""
    chosen = (setting for setting in strategy.each_setting() if setting[1] in _FORMULA)
    return frozenset([(None, "", strategy.family), *chosen])


def rounds_like_torch(strategy: Strategy) -> int:
    """How many kernels of a strategy round between operations as PyTorch does."""
    return sum(value is True for _, name, value in strategy.each_setting() if name == "eager_rounding")


def in_half(strategy: Strategy) -> bool:
    """Whether a kernel of it computes in half, which nothing proposes unless the settings ask for it."""
    return any(name == "half" and value for _, name, value in strategy.each_setting())


def require_known(strategy: Strategy) -> None:
    """Raises StrategyError where a newer version gave the settings a meaning that this one does not know."""
    if not 1 <= strategy.version <= STRATEGY_VERSION:
        raise StrategyError(
            "A {family} strategy of version {version} is not for this EvoKernel, which reads up to {newest}.",
            family=strategy.family,
            version=strategy.version,
            newest=STRATEGY_VERSION,
        )
