"""Guards of a traced graph: which of them hold for all sizes from some least ones on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from torch.utils._sympy.functions import FloorDiv, Max, Min, Mod, PythonMod

_MAXIMA, _EXTREMES = (sympy.Max, Max), (sympy.Max, Max, sympy.Min, Min)
_RELATIONS = (sympy.StrictGreaterThan, sympy.GreaterThan, sympy.StrictLessThan, sympy.LessThan)


@dataclass(frozen=True)
class Settled:
    """``least``: sizes from which on all guards hold but ``open``, by symbol."""

    least: Mapping[Any, int]
    open: tuple[Any, ...]


def settle(guards: Iterable[Any], least: Mapping[Any, int], sizes: Mapping[Any, int]) -> Settled:
    """Raises least sizes, as little as each guard asks and up to the captured ``sizes``, until the guards are
    proved to hold from there on. Where a guard has several symbols, one of them is raised, the first by name
    that does."""
    result = dict(least)
    waiting = [guard for guard in guards if guard not in (sympy.true, True)]
    for guard in sorted(waiting, key=lambda element: len(element.free_symbols)):
        for symbol in sorted(guard.free_symbols, key=str):
            if not holds(guard, result):
                result[symbol] = _raised(guard, symbol, result, sizes[symbol])
    return Settled(result, tuple(guard for guard in waiting if not holds(guard, result)))


def _raised(guard: Any, symbol: Any, least: Mapping[Any, int], size: int) -> int:
    """The smallest size from which on the guard is proved; where there is none, what it was."""
    low, high = least[symbol], size
    if not holds(guard, {**least, symbol: high}):
        return low
    while high - low > 1:
        middle = (low + high) // 2
        if holds(guard, {**least, symbol: middle}):
            high = middle
        else:
            low = middle
    return high


def holds(guard: Any, least: Mapping[Any, int]) -> bool:
    """Whether a guard is proved to hold for all sizes from ``least`` on; false where it is not known."""
    guard = _without_remainders(guard, least)
    if guard in (sympy.true, True):
        return True
    if isinstance(guard, (sympy.Or, sympy.And)):
        return (any if isinstance(guard, sympy.Or) else all)(holds(part, least) for part in guard.args)
    if isinstance(guard, _RELATIONS):
        bound = _lower(guard.gts - guard.lts, least)
        strict = isinstance(guard, (sympy.StrictGreaterThan, sympy.StrictLessThan))
        return bound is not None and bound >= (1 if strict else 0)
    if not isinstance(guard, (sympy.Eq, sympy.Ne)):
        return False
    difference = guard.lhs - guard.rhs
    if isinstance(guard, sympy.Eq):
        return bool(sympy.expand(_without_extremes(difference, least)) == 0)
    return any((_lower(sign * difference, least) or 0) > 0 for sign in (1, -1))


def _without_remainders(guard: Any, least: Mapping[Any, int]) -> Any:
    """The guard with numbers that are surely smaller than what divides them for their remainders."""
    if guard in (sympy.true, sympy.false, True, False):
        return guard
    remainders = guard.atoms(Mod, PythonMod)
    return guard.xreplace(
        {remainder: remainder.args[0] for remainder in remainders if _is_smaller(remainder.args, least)}
    )


def _is_smaller(division: tuple[Any, ...], least: Mapping[Any, int]) -> bool:
    """Whether a number is surely the remainder of its own division."""
    number, divisor = division
    bound, distance = _lower(number, least), _lower(divisor - number, least)
    return bound is not None and bound >= 0 and distance is not None and distance > 0


def _lower(expression: Any, least: Mapping[Any, int]) -> int | None:
    """A number that the expression never falls below; None where that is not known.

    Each symbol and each quotient is written as its least value plus something that is not negative. If
    then every term has a coefficient that is not negative, the constant one is the least value.
    """
    shifted = sympy.expand(_shifted(_without_extremes(expression, least), least))
    constant, others = shifted.as_coeff_add()
    if not constant.is_Integer:
        return None
    factors = (term.as_coeff_Mul() for term in others)
    if all(factor.is_nonnegative and rest.is_nonnegative for factor, rest in factors):
        return int(constant)
    return None


def _shifted(expression: Any, least: Mapping[Any, int]) -> Any:
    """The expression over differences to the least values, which are not negative."""
    if expression.is_Symbol:
        return least[expression] + sympy.Symbol(f"above_{expression}", integer=True, nonnegative=True)
    if isinstance(expression, FloorDiv):
        bound, divisor = _lower(expression.args[0], least), expression.args[1]
        if bound is not None and divisor.is_Integer and divisor > 0:
            number = f"above_{expression}"
            return bound // int(divisor) + sympy.Symbol(number, integer=True, nonnegative=True)
        return sympy.Symbol(f"unknown_{expression}", integer=True)
    if expression.is_Add or expression.is_Mul:
        return expression.func(*(_shifted(part, least) for part in expression.args))
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return _shifted(expression.base, least) ** expression.exp
    return expression if expression.is_number else sympy.Symbol(f"unknown_{expression}", integer=True)


def _without_extremes(expression: Any, least: Mapping[Any, int]) -> Any:
    """``Max(number, size)`` as the size, where that is never smaller, and ``Min`` alike."""
    chosen = {}
    for extreme in expression.atoms(*_EXTREMES):
        sign = 1 if isinstance(extreme, _MAXIMA) else -1
        for part in extreme.args:
            others = [other for other in extreme.args if other is not part]
            plain = not any(other.has(*_EXTREMES) for other in others)
            bounds = [_lower(sign * (part - other), least) for other in others] if plain else [None]
            if all(bound is not None and bound >= 0 for bound in bounds):
                chosen[extreme] = part
                break
    return expression.xreplace(chosen) if chosen else expression
