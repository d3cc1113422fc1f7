"""What a rule has to say of a text."""

from __future__ import annotations

import ast

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.triton.source import KERNEL, LAUNCH


@frozen
class Problem:
    """One broken rule: its stable code, the sentence, and where; line 0 stands for the whole file."""

    code: str
    message: Sentence = field(converter=Sentence)
    file: str = KERNEL
    line: int = 0


def at(node: ast.AST, code: str, message: Sentence) -> Problem:
    """A problem of ``kernel.py`` at a node of its tree."""
    return Problem(f"audit-{code}", message, KERNEL, getattr(node, "lineno", 0))


def of_record(message: Sentence) -> Problem:
    """A problem of ``launch.json``."""
    return Problem("audit-launch", message, LAUNCH)
