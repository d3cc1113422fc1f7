"""Sums, products, powers and functions of terms, in their normal form."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from attrs import frozen

from evokernel_core.vendor.terms import Number, Shape, Term, broadcast, same_number


@frozen
class Algebra:
    """Builds sums, products, powers and functions. ``bindings``: how many the numbers have values for."""

    bindings: int

    def constant(self, value: float) -> Number:
        return (float(value),) * self.bindings

    def number(self, value: float | Number) -> Term:
        number = value if isinstance(value, tuple) else self.constant(value)
        return Term("number", (), "", (), (number,))

    def variable(self, name: str, shape: Shape) -> Term:
        return Term("input", (), name, shape)

    def function(self, name: str, *args: Term, attributes: str = "") -> Term:
        """A function of elements that has no rule of its own, such as an exponential."""
        return self._elementwise(name, args, attributes)

    def _elementwise(
        self, op: str, args: Sequence[Term], attributes: str = "", numbers: tuple[Number, ...] = ()
    ) -> Term:
        shape = broadcast(arg.shape for arg in args)
        return Term(op, tuple(args), attributes, shape, numbers)

    def add(self, *terms: Term) -> Term:
        """The sum: constants folded, equal terms counted."""
        total = self.constant(0.0)
        parts: dict[str, tuple[Term, Number]] = {}
        for term in terms:
            for part, count in self._summands(term):
                if part is None:
                    total = _plus(total, count)
                else:
                    old = parts.get(part.key)
                    parts[part.key] = (part, _plus(old[1], count) if old else count)
        kept = [other for _, other in sorted(parts.items())]
        if not kept:
            return self.number(total)
        if len(kept) == 1 and not any(total):
            return self._times(*kept[0])
        numbers = (total, *(count for _, count in kept))
        return self._elementwise("sum", [part for part, _ in kept], "", numbers)

    def _summands(self, term: Term) -> Iterable[tuple[Term | None, Number]]:
        if term.op == "number":
            return [(None, term.numbers[0])]
        if term.op == "sum":
            return [(None, term.numbers[0]), *zip(term.args, term.numbers[1:], strict=True)]
        if term.op == "product" and all(term.numbers[0]):
            return [(self._times(term, tuple(1 / value for value in term.numbers[0])), term.numbers[0])]
        return [(term, self.constant(1.0))]

    def _times(self, term: Term, factor: Number) -> Term:
        return self.multiply(term, self.number(factor))

    def subtract(self, left: Term, right: Term) -> Term:
        return self.add(left, self.multiply(right, self.number(-1.0)))

    def divide(self, left: Term, right: Term) -> Term:
        return self.multiply(left, self.power(right, -1.0))

    def multiply(self, *terms: Term) -> Term:
        """The product: constants folded, powers of the same base joined where that is exact algebra."""
        factor = self.constant(1.0)
        bases: dict[tuple[str, str], tuple[Term, float]] = {}
        for term in terms:
            for base, exponent in self._factors(term):
                if base.op == "number":
                    factor = tuple(a * b**exponent for a, b in zip(factor, base.numbers[0], strict=True))
                    continue
                whole = exponent.is_integer()  # two roots of a negative number are not that number
                place = base.key, f"{exponent > 0}" if whole else f"{exponent} {len(bases)}"
                old = bases.get(place)
                bases[place] = base, exponent + (old[1] if old else 0.0)
        if not bases:
            return self.number(factor)
        kept = [self._raised(*other) for _, other in sorted(bases.items())]
        if len(kept) == 1 and same_number(factor, self.constant(1.0)):
            return kept[0]
        return self._elementwise("product", kept, "", (factor,))

    def _factors(self, term: Term) -> Iterable[tuple[Term, float]]:
        if term.op == "product":
            inner = [pair for arg in term.args for pair in self._factors(arg)]
            return [(self.number(term.numbers[0]), 1.0), *inner]
        if term.op == "power":
            return [(term.args[0], term.numbers[0][0])]
        return [(term, 1.0)]

    def _raised(self, base: Term, exponent: float) -> Term:
        if exponent == 1.0:
            return base
        return self._elementwise("power", [base], "", (self.constant(exponent),))

    def power(self, base: Term, exponent: float) -> Term:
        """The power. Whole powers go into products; a root of a square is left alone: it is no identity."""
        if exponent == 1.0:
            return base
        if base.op == "number" and all(value > 0 for value in base.numbers[0]):
            return self.number(tuple(value**exponent for value in base.numbers[0]))
        if exponent == -1.0 and (logistic := self._logistic(base)) is not None:
            return logistic
        if exponent == -1.0 or (exponent.is_integer() and self._is_whole(base)):
            if base.op == "product" and all(base.numbers[0]):
                factors = [self.power(arg, exponent) for arg in base.args]
                coefficient = tuple(value**exponent for value in base.numbers[0])
                return self.multiply(self.number(coefficient), *factors)
            if base.op == "power":
                return self._raised(base.args[0], base.numbers[0][0] * exponent)
        return self._raised(base, exponent)

    @staticmethod
    def _is_whole(base: Term) -> bool:
        """Whether no factor is a root."""
        factors = base.args if base.op == "product" else (base,)
        return all(factor.op != "power" or factor.numbers[0][0].is_integer() for factor in factors)

    def _logistic(self, base: Term) -> Term | None:
        """``1 / (1 + exp(x))`` as a sigmoid."""
        one = self.constant(1.0)
        if base.op != "sum" or len(base.args) != 1 or base.args[0].op != "exp":
            return None
        if not (same_number(base.numbers[0], one) and same_number(base.numbers[1], one)):
            return None
        return self.function("sigmoid", self.multiply(base.args[0].args[0], self.number(-1.0)))

    def silu(self, x: Term) -> Term:
        return self.multiply(x, self.function("sigmoid", x))

    def gelu(self, x: Term, approximate: str) -> Term:
        """By the error function, or by a hyperbolic tangent; both as PyTorch's documentation has them."""
        if approximate == "tanh":
            cubic = self.add(x, self.multiply(self.number(0.044715), self.power(x, 3.0)))
            bent = self.function("tanh", self.multiply(self.number(math.sqrt(2 / math.pi)), cubic))
        else:
            bent = self.function("erf", self.multiply(x, self.number(math.sqrt(0.5))))
        return self.multiply(self.number(0.5), x, self.add(self.number(1.0), bent))


def _plus(left: Number, right: Number) -> Number:
    return tuple(a + b for a, b in zip(left, right, strict=True))
