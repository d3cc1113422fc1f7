"""Whether a name's value is still wanted after a run of statements."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class BlockPosition:
    """A position in a block: statement ``index`` of ``body`` is the one that ends the run or that
    holds the next inner block."""

    body: list[ast.stmt]
    index: int
    statement: ast.stmt


def is_live(
    name: str, places: tuple[BlockPosition, ...], function: ast.FunctionDef, inside: set[int]
) -> bool:
    """Whether ``name`` may be read after the run, on some path. ``places`` lead from the function's
    body to the run's end; ``inside`` are the ids of the run's statements."""
    if _escapes(name, function):
        return True
    for depth in range(len(places) - 1, -1, -1):
        place = places[depth]
        for statement in place.body[place.index + 1 :]:
            if _reads(statement, name):
                return True
            if _overwrites(statement, name):
                return False
        if depth and _may_repeat(places[depth - 1].statement):
            loop = places[depth - 1].statement
            if any(_reads(node, name) for node in _outside(loop, inside)):
                return True
    return False


def _may_repeat(statement: ast.stmt) -> bool:
    """Loops run again; the handlers of a ``try`` may run after any of its statements."""
    return isinstance(statement, (ast.For, ast.While, ast.AsyncFor, ast.Try, ast.Match))


def _outside(node: ast.AST, inside: set[int]) -> list[ast.AST]:
    """The parts of a statement that are not in the run, as far apart as needed to leave it out."""
    result: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if id(child) in inside:
            continue
        if any(id(node) in inside for node in ast.walk(child)):
            result.extend(_outside(child, inside))
        else:
            result.append(child)
    return result


def _reads(node: ast.AST, name: str) -> bool:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id == name and not isinstance(child.ctx, ast.Store):
            return True
        if (
            isinstance(child, ast.AugAssign)
            and isinstance(child.target, ast.Name)
            and child.target.id == name
        ):
            return True
    return False


def _overwrites(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, (ast.Return, ast.Raise)):
        return True
    if not isinstance(statement, ast.Assign):
        return False
    return any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)


def _escapes(name: str, function: ast.FunctionDef) -> bool:
    """Whether an inner function, a global declaration or locals() can see the name."""
    scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    for node in ast.walk(function):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, ast.Name) and node.id in ("locals", "vars", "eval", "exec"):
            return True
        if isinstance(node, scopes) and node is not function and _reads(node, name):
            return True
    return False
