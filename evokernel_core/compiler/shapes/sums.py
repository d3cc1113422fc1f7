"""Sums of extents: offsets and strides, exact where sizes are symbols."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from attrs import frozen

from evokernel_core.compiler.shapes.sizes import Extent, extent
from evokernel_core.domain.graph import Arg, SymbolicInt
from evokernel_core.domain.tensor import Dim


@frozen
class Sum:
    """The sum of ``terms``: one for each product of factors, sorted, none of coefficient 0."""

    terms: tuple[Extent, ...] = ()

    @staticmethod
    def of(*extents: Extent) -> Sum:
        result: dict[tuple[str, ...], int] = {}
        for term in extents:
            result[term.factors] = result.get(term.factors, 0) + term.coefficient
        return Sum(tuple(Extent(number, key) for key, number in sorted(result.items()) if number))

    @staticmethod
    def number(value: int) -> Sum:
        return Sum.of(Extent(value))

    def plus(self, other: Sum) -> Sum:
        return Sum.of(*self.terms, *other.terms)

    def times(self, other: Sum) -> Sum:
        return Sum.of(*(mine.times(its) for mine in self.terms for its in other.terms))

    def minus(self, other: Sum) -> Sum:
        return self.plus(other.times(Sum.number(-1)))

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols that the sum depends on."""
        return frozenset().union(*(term.symbols for term in self.terms))

    @property
    def constant(self) -> int | None:
        """The value where it does not depend on symbols."""
        if not self.terms:
            return 0
        return self.terms[0].constant if len(self.terms) == 1 else None

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        return sum(term.evaluate(sizes) for term in self.terms)

    def cpp(self) -> str:
        """A C++ expression over int64_t variables named like the symbols."""
        return " + ".join(term.cpp() for term in self.terms) or "0"


ZERO = Sum()
UNIT = Sum.number(1)


def expanded(extent: Extent) -> Sum:
    """The extent with factors that are sums multiplied out, so that equal sizes look equal."""
    result = Sum.number(extent.coefficient)
    for factor in extent.factors:
        result = result.times(_of_ast(ast.parse(factor, mode="eval").body))
    return result


def size(dim: Dim) -> Sum:
    """A size or size expression as a sum."""
    return expanded(extent(dim))


def integer(arg: Arg) -> Sum | None:
    """An integer argument of a node; None for anything else."""
    if isinstance(arg, SymbolicInt):
        return size(arg.expression)
    return Sum.number(arg) if isinstance(arg, int) else None


def _of_ast(node: ast.expr) -> Sum:
    match node:
        case ast.Constant(value=int(value)):
            return Sum.number(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return ZERO.minus(_of_ast(operand))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _of_ast(left).plus(_of_ast(right))
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            return _of_ast(left).minus(_of_ast(right))
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _of_ast(left).times(_of_ast(right))
    return Sum.of(Extent(1, (ast.unparse(node),)))
