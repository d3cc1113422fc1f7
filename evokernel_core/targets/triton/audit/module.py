"""Rules on a file as a whole: its imports, and that jit functions alone stand in it."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.triton.audit.allowed import BUILTINS
from evokernel_core.targets.triton.audit.problems import at
from evokernel_core.targets.triton.source import HEADER, KERNEL

MODULES = ("tl", "triton")
_IMPORTS = tuple(HEADER.splitlines())


def body_of(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a file behind its docstring."""
    return tree.body[1:] if tree.body and _is_docstring(tree.body[0]) else tree.body


def functions_of(tree: ast.Module) -> Mapping[str, ast.FunctionDef]:
    """The functions of a file by name."""
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def _is_docstring(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def check_module(tree: ast.Module) -> Iterator[Finding]:
    """The header, and what stands behind it."""
    body = body_of(tree)
    header = tuple(ast.unparse(node) for node in body[: len(_IMPORTS)])
    if header != _IMPORTS:
        lines = " / ".join(_IMPORTS)
        message = Sentence("The file begins with the lines {lines}; write exactly those.", lines=lines)
        yield Finding("audit-import", message, KERNEL, 1)
    seen: set[str] = set()
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if node not in body[: len(_IMPORTS)]:
                message = Sentence("A kernel imports triton and triton.language as tl alone; remove this.")
                yield at(node, "import", message)
        elif not isinstance(node, ast.FunctionDef):
            message = Sentence("Only functions with the decorator triton.jit stand at the top of the file.")
            yield at(node, "top", message)
        else:
            yield from _check_function(node, seen)
            seen.add(node.name)
    yield from _check_calls(functions_of(tree))


def _check_function(node: ast.FunctionDef, seen: set[str]) -> Iterator[Finding]:
    if [ast.unparse(each) for each in node.decorator_list] != ["triton.jit"]:
        message = Sentence(
            "{name} has other decorators than one triton.jit without arguments; write that one.",
            name=node.name,
        )
        yield at(node, "decorator", message)
    if node.name in seen:
        yield at(node, "name", Sentence("{name} stands twice in the file; rename one.", name=node.name))
    if not is_free(node.name):
        yield at(node, "name", taken(node.name))
    if node.returns is not None:
        message = Sentence("{name} has an annotation other than tl.constexpr; remove it.", name=node.name)
        yield at(node, "annotation", message)


def is_free(name: str) -> bool:
    """Whether a function, parameter or variable may have the name: it hides nothing that kernels use."""
    hides = name in MODULES or name in BUILTINS or keyword.iskeyword(name)
    return name.isascii() and not name.startswith("__") and not hides


def taken(name: str) -> Sentence:
    """Why a name is none for a kernel's own."""
    return Sentence("The name {name} is taken by Python or Triton; choose another one.", name=name)


def _check_calls(functions: Mapping[str, ast.FunctionDef]) -> Iterator[Finding]:
    """Functions are written into their callers, so that none may call itself."""
    called = {
        name: {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in functions}
        for name, node in functions.items()
    }
    try:
        TopologicalSorter(called).prepare()
    except CycleError as error:
        names = ", ".join(dict.fromkeys(error.args[1]))
        first = functions[error.args[1][0]]
        yield at(first, "recursion", Sentence("{names} call themselves; write a loop.", names=names))
