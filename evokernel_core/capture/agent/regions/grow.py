"""Grow regions: maximal expressions and runs of statements that one kernel can compute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import torch

from ..loading.record import OpCall
from ..loading.source import OPAQUE, number_of
from ..sentence import Sentence
from ..tracing.fusibility import Fusibility
from .absorb import Absorber
from .call_site import escaped
from .liveness import BlockPosition
from .parts import Parts, Refusal, RegionPlan, Result, total
from .steps import RegionStep, go_together, is_real, results_of, step_of

OWN_OPS = "evokernel."
"""The namespace of the generated kernels' ops."""

_BLOCKS = ("body", "orelse", "finalbody")


def grow(absorber: Absorber) -> Iterator[RegionPlan | Refusal]:
    """The regions of one function in source order, and refusals for statements that have none."""
    yield from _block(absorber, absorber.function.node.body, ())


def _block(
    absorber: Absorber, body: list[ast.stmt], outer: tuple[BlockPosition, ...]
) -> Iterator[RegionPlan | Refusal]:
    yield from _part(absorber, body, outer, range(len(body)))


def _part(
    absorber: Absorber,
    body: list[ast.stmt],
    outer: tuple[BlockPosition, ...],
    part: range,
    *,
    joined: bool = True,
) -> Iterator[RegionPlan | Refusal]:
    """The regions of a part of a block; those of several results where they may be ``joined``."""
    start = part.start
    while start < part.stop:
        run = _longest_run(absorber, body, range(start, part.stop), outer, joined=joined)
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
    absorber: Absorber,
    body: list[ast.stmt],
    part: range,
    outer: tuple[BlockPosition, ...],
    *,
    joined: bool,
) -> RegionPlan | None:
    """The longest run of statements from the first of ``part`` that one kernel can compute: two or more with
    one value that is used later, or with several that go together; on lines that no other statement is on."""
    steps: list[RegionStep] = []
    best = None
    for index in part:
        assigned = frozenset(name for step in steps for name in step.assigns)
        step = step_of(absorber, body[index], assigned)
        if step is None:
            break
        steps.append(step)
        if len(frozenset().union(*(step.parts.rows for step in steps))) > 1:
            break
        alone = absorber.source.has_own_lines(body[part.start], body[index])
        results = results_of(absorber, steps, (*outer, BlockPosition(body, index, body[index])))
        if alone and len(results) == 1 and len(steps) > 1:
            best = _run_plan(absorber, steps, results) or best
        elif alone and joined and len(results) > 1 and go_together(absorber, steps, results):
            apart = _part(absorber, body, outer, range(part.start, index + 1), joined=False)
            best = _run_plan(absorber, steps, results, tuple(apart)) or best
        if step.returns:
            break
    return best


def _run_plan(
    absorber: Absorber,
    steps: list[RegionStep],
    results: tuple[Result, ...],
    apart: tuple[RegionPlan | Refusal, ...] = (),
) -> RegionPlan | None:
    parts = total(step.parts for step in steps)
    if parts is None or len(parts.rows) > 1 or not _worthwhile(absorber, parts):
        return None
    # statements that only lead up to the first computing one belong in front of the region
    if not steps[0].parts.work and not steps[0].assigns:
        return None
    body = tuple(step.statement for step in steps)
    form = _statement_form(absorber, body[-1], results)
    return RegionPlan(absorber.function, body, parts, form, results, apart)


def _statement_form(absorber: Absorber, last: ast.stmt, results: tuple[Result, ...]) -> str:
    """The last statement's text with ``{call}`` for its value, or an assignment to several names."""
    if isinstance(last, ast.Return):
        return "return {call}"
    if len(results) > 1:
        return f"{', '.join(result.name for result in results)} = {{call}}"
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
    if not is_real(value):
        return None
    parts = absorber.absorb(node)
    if parts is None or not _worthwhile(absorber, parts):
        return None
    return RegionPlan(absorber.function, (node,), parts, "{call}", (Result(node, value),))


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
