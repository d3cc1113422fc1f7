"""What a region needs from outside, and the region as planned on the syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..loading.source import SourceFunction, number_of
from ..tracing.fusibility import ReductionRows
from .tensor_effects import Warned

TENSOR, PARAMETER, SCALAR = "tensor", "parameter", "scalar"


@dataclass(frozen=True)
class Leaf:
    """A sub-expression that the call site evaluates and passes.

    ``owner`` is the number of the expression that uses it, to be kept out of the region if the leaf
    cannot be an argument after all. ``member`` is the path below the module for a parameter of a
    module that the region calls, else empty. ``original`` is the complex tensor that ``value`` is the real
    view of.
    """

    node: ast.expr
    kind: str
    expression: str
    value: Any
    owner: int
    member: str = ""
    original: Any = None

    @property
    def known_as(self) -> Any:
        """The object that the user's code has."""
        return self.value if self.original is None else self.original

    @property
    def key(self) -> Any:
        """Leaves of one key are one input: a name read twice, but not a call made twice."""
        repeatable = _repeatable(self.node, entries=self.kind == PARAMETER)
        return self.expression if repeatable or self.member else id(self.node)


def _repeatable(node: ast.expr, *, entries: bool) -> bool:
    """``entries``: what it takes out of lists and dictionaries is there before and after."""
    kinds: tuple[type[ast.AST], ...] = (
        ast.Name,
        ast.Attribute,
        ast.Constant,
        ast.Load,
        ast.BinOp,
        ast.operator,
    )
    if entries:
        kinds += (ast.Subscript,)
    return all(isinstance(child, kinds) for child in ast.walk(node))


@dataclass(frozen=True)
class ModuleCall:
    """A call of a library module inside a region; ``leaves`` are its parameters and buffers."""

    node: ast.expr
    module: Any
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Parts:
    """What absorbing an expression into a region brings along; ``work`` counts computing ops and
    ``rows`` are the grids that its reductions work on: a kernel has at most one."""

    leaves: tuple[Leaf, ...] = ()
    modules: tuple[ModuleCall, ...] = ()
    work: int = 0
    numbers: tuple[int, ...] = ()
    rows: frozenset[ReductionRows] = frozenset()

    def __add__(self, other: Parts) -> Parts:
        return Parts(
            self.leaves + other.leaves,
            self.modules + other.modules,
            self.work + other.work,
            self.numbers + other.numbers,
            self.rows | other.rows,
        )


def total(parts: Iterable[Parts | None]) -> Parts | None:
    """The sum; None as soon as one part is None."""
    result = Parts()
    for part in parts:
        if part is None:
            return None
        result = result + part
    return result


@dataclass(frozen=True)
class Result:
    """A tensor that a region gives: what ``node`` evaluated to in its statement ``step``, under a name unless
    the region is an expression, or returns it."""

    node: ast.expr
    value: Any
    name: str = ""
    step: int = 0


@dataclass(frozen=True)
class RegionPlan:
    """A region on the syntax tree. ``body`` is one expression, or a run of statements of which the last gives
    a result; ``apart`` is what the regions of a run are where one kernel cannot give several results."""

    function: SourceFunction
    body: tuple[ast.AST, ...]
    parts: Parts
    replacement: str
    results: tuple[Result, ...]
    apart: tuple[RegionPlan | Refusal, ...] = ()

    @property
    def first(self) -> Any:
        return self.body[0]

    @property
    def last(self) -> Any:
        return self.body[-1]

    @property
    def names(self) -> ast.expr:
        """The names of the results, as the region gives them."""
        names: list[ast.expr] = [ast.Name(result.name, ast.Load()) for result in self.results]
        return ast.Tuple(names, ast.Load()) if len(names) > 1 else names[0]

    def origin(self, result: Result) -> ast.expr:
        """The expression that made a result, where its statement only names what another one gave."""
        made = result.node
        for statement in reversed(self.body[: result.step]):
            targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
            if any(
                isinstance(made, ast.Name) and ast.unparse(target) == made.id for target in targets if target
            ):
                made = statement.value  # type: ignore[attr-defined]
        return made

    @property
    def key(self) -> tuple[int, ...]:
        """The same for the same growth."""
        roots = (number_of(result.node) for result in self.results)
        return (*roots, len(self.body), *self.parts.numbers)


@dataclass(frozen=True)
class Refusal:
    """A top-level statement whose tensor work no kernel can take, and why."""

    function: SourceFunction
    node: ast.AST
    reason: str


Place = tuple[int, int, tuple[tuple[str, tuple[Any, ...]], ...]]
KEY = "subject"
"""Where a region holds its subject until the request that captured it ends."""


@dataclass(frozen=True)
class Subject:
    """``call`` takes one value for each of ``leaves``, in their order; ``specs`` are those of the values,
    with names for sizes that may vary. ``places`` have a position among the flat results of the call, the
    number of the graph's output that is computed for it, and the views (method and arguments) that the call
    gives of that output, which is contiguous; ``copies`` are pairs of the numbers of an
    input that becomes a copy of another one, which is no work of the graph's, and of that one. ``warned`` is
    what the call warns of."""

    call: Callable[..., Any]
    leaves: tuple[Leaf, ...]
    specs: tuple[dict[str, Any], ...]
    places: tuple[Place, ...]
    copies: tuple[tuple[int, int], ...] = ()
    warned: tuple[Warned, ...] = ()


def taken_out(regions: Sequence[dict[str, Any]]) -> list[tuple[dict[str, Any], Subject]]:
    """The regions that have a subject, with it; none holds it any more, so that all are JSON."""
    return [(region, region.pop(KEY)) for region in regions if KEY in region]
