"""Rules on a file as it is written, before any parser sees it, and its syntax tree."""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.triton.audit.allowed import DEEPEST, LONGEST, MOST_NODES

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
