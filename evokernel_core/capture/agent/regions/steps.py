"""The statements of a run, and which of their values leave it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .absorb import Absorber, names_in
from .liveness import BlockPosition, is_live
from .parts import SCALAR, Parts, Result


@dataclass(frozen=True)
class RegionStep:
    """A statement that a run may hold: the names it assigns, the parts of its value, and the tensors that a
    kernel can give for it: one, each of a tuple, or none."""

    statement: ast.stmt
    assigns: tuple[str, ...]
    parts: Parts
    values: tuple[torch.Tensor, ...]

    @property
    def value(self) -> ast.expr:
        value: ast.expr = self.statement.value  # type: ignore[attr-defined]
        return value

    @property
    def returns(self) -> bool:
        return isinstance(self.statement, ast.Return)

    @property
    def name(self) -> str:
        """The one name that the whole value gets, empty where there is no such name."""
        targets = _targets(self.statement)
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def step_of(absorber: Absorber, statement: ast.stmt, assigned: frozenset[str]) -> RegionStep | None:
    """The step of a statement behind some that gave values to the names ``assigned``."""
    value = getattr(statement, "value", None)
    if value is None or not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
        return None
    assigns = _assigned_names(statement)
    parts = absorber.absorb(value, assigned) if assigns is not None else None
    if parts is None or assigns is None:
        return None
    values = tuple(map(absorber.value, _elements(value)))
    return RegionStep(statement, assigns, parts, values if all(map(is_real, values)) else ())


def is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_complex()


def _elements(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _targets(statement: ast.stmt) -> list[Any]:
    target = getattr(statement, "target", None)
    return [target] if target is not None else getattr(statement, "targets", [])


def _assigned_names(statement: ast.stmt) -> tuple[str, ...] | None:
    """The names given values; None where something other than plain names is written."""
    names: dict[str, None] = {}
    for target in _targets(statement):
        items: list[Any] = target.elts if isinstance(target, ast.Tuple) else [target]
        if not all(isinstance(item, ast.Name) for item in items):
            return None
        names.update(dict.fromkeys(item.id for item in items))
    return tuple(names)


def results_of(
    absorber: Absorber, steps: Sequence[RegionStep], places: tuple[BlockPosition, ...]
) -> tuple[Result, ...]:
    """What leaves the run that ends at the last of ``places``: the last step's value, and those of names that
    are read later. None where one is no tensor under a name of its own, or a step does nothing for them."""
    results: list[Result] = []
    inside = {id(step.statement) for step in steps}
    for number, step in enumerate(steps[:-1]):
        later = steps[number + 1 :]
        again = {name for other in later for name in other.assigns}
        lasting = (name for name in step.assigns if name not in again)
        if any(is_live(name, places, absorber.function.node, inside) for name in lasting):
            if not step.name or len(step.values) != 1:
                return ()
            results.append(Result(step.value, step.values[0], step.name, number))
        elif not any(names_in(other.value) & {*step.assigns} for other in later):
            return ()
    last = tuple(_last_results(steps[-1], len(steps) - 1))
    if not last or (results and not last[0].name):
        return ()
    return (*results, *last)


def _last_results(step: RegionStep, number: int) -> Iterator[Result]:
    """What the last step of a run gives: its value, or each of a tuple that it returns or names."""
    if len(step.values) == 1 and (step.returns or step.name):
        yield Result(step.value, step.values[0], step.name, number)
    elif len(step.values) > 1 and (step.returns or _unpacks(step)):
        names = step.assigns or ("",) * len(step.values)
        for node, value, name in zip(_elements(step.value), step.values, names, strict=True):
            yield Result(node, value, name, number)


def _unpacks(step: RegionStep) -> bool:
    """Whether a step gives a name to each of its values."""
    targets = _targets(step.statement)
    return len(targets) == 1 and isinstance(targets[0], ast.Tuple) and len(step.assigns) == len(step.values)


def go_together(absorber: Absorber, steps: Sequence[RegionStep], results: Sequence[Result]) -> bool:
    """Whether the results are computed from a tensor in common, none of another one, over elements or rows
    of the same sizes: a kernel that reads the tensor for all of them saves reading it for each."""
    leaves = [leaf for step in steps for leaf in step.parts.leaves if leaf.kind != SCALAR]
    if not _are_apart([leaf.value for leaf in leaves], [result.value for result in results]):
        return False
    read, sizes = [], set()
    for result in results:
        before = _reached(steps, result.node, result.step)
        if any(other.step in before for other in results):
            return False
        nodes = [*_walked([result.node, *(steps[number].value for number in before)])]
        read.append({id(leaf.known_as) for leaf in leaves if any(leaf.node is node for node in nodes)})
        sizes.add((*result.value.shape, _elements_read(absorber, nodes, result.value.numel())))
    return bool(set.intersection(*read)) and len(sizes) == 1


def _are_apart(operands: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> bool:
    """Whether each result has memory of its own."""
    given = {tensor.untyped_storage()._cdata for tensor in operands}
    made = {tensor.untyped_storage()._cdata for tensor in results}
    return len(made) == len(results) and not made & given


def _reached(steps: Sequence[RegionStep], node: ast.expr, number: int) -> set[int]:
    """The steps before ``number`` that an expression reads values of, and those that these do."""
    result: set[int] = set()
    for name in names_in(node):
        before = [other for other in range(number) if name in steps[other].assigns]
        if before:
            result |= {before[-1], *_reached(steps, steps[before[-1]].value, before[-1])}
    return result


def _walked(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    return (child for node in nodes for child in ast.walk(node))


def _elements_read(absorber: Absorber, nodes: Sequence[ast.AST], computed: int) -> int:
    """The elements of the rows that expressions reduce, or as many as are computed where they reduce none."""
    evaluations = filter(None, map(absorber.evaluation, nodes))
    rows = (row for evaluation in evaluations for row in absorber.fusibility.rows(evaluation))
    return max((row.extent * row.kept for row in rows), default=computed)
