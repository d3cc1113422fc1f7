"""Extents: sizes as a coefficient times symbolic factors, exact where sizes are symbols."""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from attrs import frozen

from evokernel_core.domain.tensor import Dim, evaluate_dim


@frozen
class Extent:
    """``coefficient`` times the product of ``factors`` (sorted size expressions without products)."""

    coefficient: int = 1
    factors: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        return self.coefficient == 1 and not self.factors

    def times(self, other: Extent) -> Extent:
        factors = tuple(sorted(self.factors + other.factors))
        return Extent(self.coefficient * other.coefficient, factors)

    def divided_by(self, other: Extent) -> Extent | None:
        """The exact quotient, None where ``other`` does not divide this extent for every size."""
        if other.coefficient == 0 or self.coefficient % other.coefficient:
            return None
        left = Counter(self.factors)
        left.subtract(other.factors)
        if min(left.values(), default=0) < 0:
            return None
        return Extent(self.coefficient // other.coefficient, tuple(sorted(left.elements())))

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        if not self.factors:  # asked for thousands of times where schedules are compared
            return self.coefficient
        return self.coefficient * math.prod(evaluate_dim(factor, sizes) for factor in self.factors)

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that the size depends on."""
        return frozenset().union(*map(names_in, self.factors))

    @property
    def constant(self) -> int | None:
        """The size where it does not depend on symbols."""
        return None if self.factors else self.coefficient

    def cpp(self) -> str:
        """A C++ expression over int64_t variables named like the symbols."""
        factors = [f"({_cpp(factor)})" if not factor.isidentifier() else factor for factor in self.factors]
        if self.coefficient != 1 or not factors:
            factors.append(str(self.coefficient))
        return " * ".join(factors)

    def __str__(self) -> str:
        return " * ".join(
            [*([] if self.coefficient == 1 and self.factors else [str(self.coefficient)]), *self.factors]
        )


ONE = Extent()


@lru_cache(maxsize=1 << 14)
def names_in(dim: Dim) -> frozenset[str]:
    """The symbols of a size expression, which may divide as C++ does."""
    nodes = ast.walk(ast.parse(str(dim), mode="eval"))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


@lru_cache(maxsize=1 << 14)
def extent(dim: Dim) -> Extent:
    """The extent of a size or size expression."""
    if isinstance(dim, int):
        return Extent(dim)
    return _from_ast(ast.parse(dim, mode="eval").body)


def product(extents: Iterable[Extent]) -> Extent:
    total = Extent()
    for extent in extents:
        total = total.times(extent)
    return total


def times(dims: Iterable[Dim]) -> Dim:
    """The product of sizes."""
    total = product(map(extent, dims))
    if total.constant is not None:
        return total.constant
    factors = [factor if factor.isidentifier() else f"({factor})" for factor in total.factors]
    return " * ".join([*([str(total.coefficient)] if total.coefficient != 1 else []), *factors])


def _from_ast(node: ast.expr) -> Extent:
    match node:
        case ast.Constant(value=int(value)):
            return Extent(value)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _from_ast(left).times(_from_ast(right))
    return Extent(1, (ast.unparse(node),))


def _cpp(expression: str) -> str:
    return expression.replace("//", "/")
