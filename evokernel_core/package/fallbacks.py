"""The code that runs where a kernel's guard fails, and whether it is still what the kernel was made from.

The language server asks it of a text, and each package of itself: ``guards.py`` holds the functions below, so
they need nothing but ``ast``, ``copy`` and ``textwrap``. Guard and code are compared as syntax, so that a
formatter changes nothing; of code that cannot be read by itself nothing is said.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Iterator
from pathlib import Path


def functions() -> str:
    """The text of what follows, which begins behind the second gap of two lines."""
    return Path(__file__).read_text("utf-8").partition("\n\n\n")[2].partition("\n\n\n")[2]


def stands(tree: ast.Module, name: str, original: str) -> bool:
    """Whether what runs where a kernel's guard fails is still the original code, at every guard that is
    found: code that was added to, as in `return x * 2`, holds its text too."""
    wanted = _statements(original)
    if wanted is None:
        return True
    dumps = _unguarded_dumps(wanted)
    return all(_unguarded_dumps(place)[: len(dumps)] == dumps for place in _fallbacks(tree, name))


def _statements(code: str) -> list[ast.stmt] | None:
    """Code that was cut out of a file, whose first line lost its indentation; None where it is unreadable."""
    if not code.strip():
        return None
    first, _, rest = code.strip().partition("\n")
    rest = textwrap.dedent(rest)
    for text in (f"(\n{code}\n)", f"{first}\n{rest}", f"{first}\n{textwrap.indent(rest, '    ')}"):
        try:
            return ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _fallbacks(tree: ast.Module, name: str) -> Iterator[list[ast.stmt]]:
    """The code at each guard of a kernel that runs where it fails."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _is_guard(node.test, name):
            yield [ast.Expr(node.orelse)]
        for field in ("body", "orelse", "finalbody"):
            found = getattr(node, field, None)  # of an expression, as a lambda, it is no block
            block: list[ast.stmt] = found if isinstance(found, list) else []
            for at, statement in enumerate(block):
                if isinstance(statement, ast.If) and _is_guard(statement.test, name):
                    yield statement.orelse or block[at + 1 :]


def _is_guard(test: ast.AST, *names: str) -> bool:
    """Whether a test is the guard of a kernel: of one that is named, where any is."""
    if isinstance(test, ast.IfExp):  # False if torch.jit.is_scripting() else ...
        test = test.orelse
    call = test.func if isinstance(test, ast.Call) else None
    if not isinstance(call, ast.Attribute) or call.attr != "holds" or not isinstance(call.value, ast.Name):
        return False
    return not names or call.value.id in names


class _Unguarded(ast.NodeTransformer):
    """Takes guards out: a kernel within the code of another changes nothing of it."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.orelse if _is_guard(node.test) else node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if _is_guard(node.test) else node


def _unguarded_dumps(statements: list[ast.stmt]) -> list[str]:
    """The syntax of each statement, without positions."""
    block = _Unguarded().visit(ast.Module(copy.deepcopy(statements), []))
    return [ast.dump(statement) for statement in block.body]
