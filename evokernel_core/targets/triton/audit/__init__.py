"""The audit gate of Triton: rules that a candidate keeps before anything of it is compiled or run.

Only Python's parser reads ``kernel.py``; its tree holds nothing but jit functions whose statements, names and
attributes stand in closed lists (allowed.py), so that running the file defines functions and does no more.
``launch.json`` is data: its names are those of the task, its numbers expressions over the sizes.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding, audit_result
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus
from evokernel_core.targets.triton.audit.allowed import DEEPEST, LONGEST, MOST_NODES
from evokernel_core.targets.triton.audit.functions import check_function
from evokernel_core.targets.triton.audit.module import check_module, functions_of
from evokernel_core.targets.triton.audit.problems import of_record
from evokernel_core.targets.triton.audit.record import check_record
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import FILES, KERNEL, LAUNCH

_CODING = re.compile(r"^[ \t\f]*#.*?coding[:=]", re.ASCII)
_OPENING, _CLOSING = "([{", ")]}"


def check_text(file: str, text: str) -> Iterator[Finding]:
    """What a file has that makes readers disagree: control characters, a declared encoding, too much text."""
    if len(text) > LONGEST or _bracket_depth(text) > DEEPEST:
        yield Finding("audit-size", _TOO_LARGE, file, 1)
    for number, line in enumerate(text.split("\n"), 1):
        if any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in line):
            yield Finding(
                "audit-text", Sentence("A control character is not allowed; remove it."), file, number
            )
        if number <= 2 and _CODING.match(line):
            message = Sentence("A kernel is UTF-8 and declares no encoding; remove the comment.")
            yield Finding("audit-text", message, file, number)


_TOO_LARGE = Sentence("The file is nested too deeply or too long for the audit; write it plainly.")


def _bracket_depth(text: str) -> int:
    """The most brackets that are open at once, with those of comments and strings."""
    depth = deepest = 0
    for char in text:
        if char in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSING:
            depth -= 1
    return deepest


class NotPython(Exception):
    """A text that Python does not parse; carries where and why."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def parsed(text: str) -> ast.Module | Sentence:
    """The tree of a text, or why it is too large for one. Raises NotPython."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as error:
        raise NotPython(error.lineno or 0, error.msg) from error
    except ValueError as error:
        raise NotPython(0, str(error)) from error
    except (RecursionError, MemoryError):
        return _TOO_LARGE
    return tree if _fits(tree) else _TOO_LARGE


def _fits(tree: ast.Module) -> bool:
    level: list[ast.AST] = [tree]
    nodes = 0
    for _ in range(DEEPEST):
        nodes += len(level)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return nodes <= MOST_NODES
    return False


__all__ = ["audit"]


def audit(task: KernelTask, source: KernelSource) -> GateResult:
    """The gate's result; its code is that of the first problem. A text that is no Python fails the compile
    gate already here."""
    written = [problem for file in FILES for problem in check_text(file, source.files[file])]
    if written:
        return audit_result(written)
    try:
        return audit_result(_problems(task, source))
    except NotPython as error:
        message = Sentence("{file}:{line}: {why}", file=KERNEL, line=error.line, why=error)
        return GateResult(GateName.COMPILE, GateStatus.FAILED, "syntax", message)


def _problems(task: KernelTask, source: KernelSource) -> Iterator[Finding]:
    tree = parsed(source.files[KERNEL])
    if isinstance(tree, Sentence):
        yield Finding("audit-size", tree, KERNEL, 1)
        return
    functions = functions_of(tree)
    yield from check_module(tree)
    for function in functions.values():
        yield from check_function(function, functions.keys())
    try:
        record = read_launches(source.files[LAUNCH])
    except UsageError as error:
        yield of_record(error.sentence)
        return
    yield from check_record(task, record, functions)
