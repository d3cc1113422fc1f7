"""Grow regions: maximal expressions and runs of statements that one kernel can compute."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..loading.record import OpCall
from ..loading.source import OPAQUE, number_of
from ..sentence import Sentence
from ..tracing.fusibility import Fusibility
from .absorb import Absorber, names_in
from .call_site import escaped
from .liveness import BlockPosition, is_live
from .parts import Parts, Refusal, RegionPlan, total

OWN_OPS = "evokernel."
"""The namespace of the generated kernels' ops."""

_BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class _Step:
    """A statement that a run may hold: the names it assigns and the parts of its value; ``real``: that is
    a tensor a kernel can give."""

    statement: ast.stmt
    assigns: frozenset[str]
    parts: Parts
    real: bool


def grow(absorber: Absorber) -> Iterator[RegionPlan | Refusal]:
    """The regions of one function in source order, and refusals for statements that have none."""
    yield from _block(absorber, absorber.function.node.body, ())


def _block(
    absorber: Absorber, body: list[ast.stmt], outer: tuple[BlockPosition, ...]
) -> Iterator[RegionPlan | Refusal]:
    start = 0
    while start < len(body):
        run = _longest_run(absorber, body, start, outer)
        if run:
            yield run
            start += len(run.body)
            continue
        statement = body[start]
        yield from _statement(absorber, statement)
        places = (*outer, BlockPosition(body, start, statement))
        for inner in _inner_blocks(statement):
            yield from _block(absorber, inner, places)
        start += 1


def _inner_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name in _BLOCKS:
        if block := getattr(statement, name, None):
            yield block
    for handler in [*getattr(statement, "handlers", []), *getattr(statement, "cases", [])]:
        yield handler.body


def _longest_run(
    absorber: Absorber, body: list[ast.stmt], start: int, outer: tuple[BlockPosition, ...]
) -> RegionPlan | None:
    """The longest run of two or more statements from ``start`` with one value that is used later, on lines
    that no other statement is on."""
    steps: list[_Step] = []
    best = None
    for index in range(start, len(body)):
        assigned = frozenset().union(*(step.assigns for step in steps)) if steps else frozenset()
        step = _step(absorber, body[index], assigned)
        if step is None:
            break
        steps.append(step)
        if len(frozenset().union(*(step.parts.rows for step in steps))) > 1:
            break
        alone = absorber.source.has_own_lines(body[start], body[index])
        if len(steps) >= 2 and alone and _is_closed(absorber, steps, body, index, outer):
            best = _run_plan(absorber, steps) or best
        if isinstance(body[index], ast.Return):
            break
    return best


def _step(absorber: Absorber, statement: ast.stmt, assigned: frozenset[str]) -> _Step | None:
    value = getattr(statement, "value", None)
    if value is None or not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return)):
        return None
    assigns = _assigned_names(statement)
    parts = absorber.absorb(value, assigned) if assigns is not None else None
    if parts is None or assigns is None:
        return None
    return _Step(statement, assigns, parts, _is_real(absorber.value(value)))


def _is_real(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.is_complex()


def _assigned_names(statement: ast.stmt) -> frozenset[str] | None:
    """The names given values; None where something other than plain names is written."""
    if isinstance(statement, ast.Return):
        return frozenset()
    targets: list[Any]
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
    names: set[str] = set()
    for target in targets:
        items: list[Any] = target.elts if isinstance(target, ast.Tuple) else [target]
        if not all(isinstance(item, ast.Name) for item in items):
            return None
        names.update(item.id for item in items)
    return frozenset(names)


def _is_closed(
    absorber: Absorber, steps: list[_Step], body: list[ast.stmt], index: int, outer: tuple[BlockPosition, ...]
) -> bool:
    """Exactly the last statement's value leaves the run, and every other name is used inside it."""
    last, function = steps[-1], absorber.function.node
    returns = isinstance(last.statement, ast.Return)
    if not last.real or (not returns and len(last.assigns) != 1):
        return False
    for position, step in enumerate(steps[:-1]):
        later = steps[position + 1 :]
        if not any(step.assigns & names_in(_value(later_step)) for later_step in later):
            return False
    names = frozenset().union(*(step.assigns for step in steps)) - last.assigns
    places = (*outer, BlockPosition(body, index, body[index]))
    inside = {id(step.statement) for step in steps}
    return not any(is_live(name, places, function, inside) for name in names)


def _value(step: _Step) -> ast.expr:
    value: ast.expr = step.statement.value  # type: ignore[attr-defined]
    return value


def _run_plan(absorber: Absorber, steps: list[_Step]) -> RegionPlan | None:
    parts = total(step.parts for step in steps)
    last = steps[-1].statement
    if parts is None or len(parts.rows) > 1 or not _worthwhile(absorber, parts):
        return None
    # statements that only lead up to the first computing one belong in front of the region
    if not steps[0].parts.work and not steps[0].assigns:
        return None
    value = absorber.value(_value(steps[-1]))
    body = tuple(step.statement for step in steps)
    return RegionPlan(absorber.function, body, parts, _statement_form(absorber, last), value)


def _statement_form(absorber: Absorber, last: ast.stmt) -> str:
    """The last statement's text with ``{call}`` for its value."""
    if isinstance(last, ast.Return):
        return "return {call}"
    if isinstance(last, ast.AnnAssign):
        target, annotation = absorber.source.segment(last.target), ast.unparse(last.annotation)
        return f"{target}: {escaped(annotation)} = {{call}}"
    targets = [absorber.source.segment(target) for target in last.targets]  # type: ignore[attr-defined]
    return " = ".join([*targets, "{call}"])


def _worthwhile(absorber: Absorber, parts: Parts) -> bool:
    """Something is computed, from at least one tensor, and no argument writes into another."""
    tensors = [leaf for leaf in parts.leaves if isinstance(leaf.value, torch.Tensor)]
    storages = {leaf.value.untyped_storage()._cdata for leaf in tensors}
    for leaf in parts.leaves:
        evaluation = absorber.evaluation(leaf.node)
        if evaluation and evaluation.mutated & storages:
            return False
    return bool(parts.work and tensors)


def _statement(absorber: Absorber, statement: ast.stmt) -> Iterator[RegionPlan | Refusal]:
    result = False
    for expression in _own_expressions(statement):
        for plan in _expressions(absorber, expression):
            result = True
            yield plan
    if not result:
        yield from _refusal(absorber, statement)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that the statement itself evaluates, not those of statements inside it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for name, value in ast.iter_fields(statement):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.withitem):
                yield child.context_expr
            elif isinstance(child, ast.expr) and name != "annotation":
                yield child


def _expressions(absorber: Absorber, node: ast.AST) -> Iterator[RegionPlan]:
    if isinstance(node, ast.expr) and number_of(node) >= 0:
        plan = _expression_plan(absorber, node)
        if plan:
            yield plan
            return
    if not isinstance(node, OPAQUE):
        for child in ast.iter_child_nodes(node):
            yield from _expressions(absorber, child)


def _expression_plan(absorber: Absorber, node: ast.expr) -> RegionPlan | None:
    value = absorber.value(node)
    if not _is_real(value):
        return None
    parts = absorber.absorb(node)
    if parts is None or not _worthwhile(absorber, parts):
        return None
    return RegionPlan(absorber.function, (node,), parts, "{call}", value)


def _refusal(absorber: Absorber, statement: ast.stmt) -> Iterator[Refusal]:
    """Why a statement with tensor work of its own has no region; silent where it only calls on."""
    if isinstance(statement, ast.AugAssign):
        if _adds_to_tensor(absorber, statement):
            target = ast.unparse(statement.target)
            reason = Sentence(
                "Line {line} changes {target} in place: assign a new value instead.",
                line=statement.lineno,
                target=target,
            )
            yield Refusal(absorber.function, statement, reason)
        return
    for expression in _own_expressions(statement):
        for node in ast.walk(expression):
            evaluation = absorber.evaluation(node)
            if evaluation is None or not isinstance(node, ast.expr):
                continue
            if reason := _reason(absorber, node):
                yield Refusal(absorber.function, expression, reason)
                return


def _adds_to_tensor(absorber: Absorber, statement: ast.AugAssign) -> bool:
    """Whether either side is known to be a tensor; the target itself is not recorded."""
    names = {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    same = (
        node for node in ast.walk(absorber.function.node) if isinstance(node, ast.Name) and node.id in names
    )
    return any(isinstance(absorber.value(node), torch.Tensor) for node in (statement.value, *same))


def _telling(calls: list[OpCall]) -> OpCall | None:
    """The call to name: work on tensors, rather than bookkeeping, making or rearranging them."""
    # views alone are no work for a kernel, and a kernel in place is no obstacle
    real = [call for call in calls if not call.func.is_view and not call.name.startswith(OWN_OPS)]
    for call in real:
        if not call.mutates and any(isinstance(value, torch.Tensor) for value in call.args):
            return call
    return real[0] if real else None


def _reason(absorber: Absorber, node: ast.expr) -> Sentence:
    evaluation = absorber.evaluation(node)
    if evaluation is None or evaluation.calls_user:
        return Sentence()
    if evaluation.too_long:
        return Sentence("Line {line} runs too many ops for one kernel.", line=node.lineno)
    obstacles = absorber.fusibility.obstacles(evaluation)
    if not obstacles and len(absorber.fusibility.rows(evaluation)) > 1:
        return Sentence(
            "Line {line} reduces over more than one shape of rows: split the expression.", line=node.lineno
        )
    return _obstacle_reason(absorber.fusibility, obstacles, node.lineno)


def _obstacle_reason(fusibility: Fusibility, obstacles: list[OpCall], line: int) -> Sentence:
    call = _telling(obstacles)
    if call is None:
        return Sentence()
    if any(obstacle.draws for obstacle in obstacles):
        return Sentence("Line {line} draws random numbers, which a kernel cannot repeat.", line=line)
    if call.mutates:
        return Sentence(
            "Line {line} writes in place ({op}), which a kernel of one line cannot: use the "
            "out-of-place form, or a kernel of the whole function.",
            line=line,
            op=call.name,
        )
    return fusibility.unfit_call(call, line)
