"""What a rule has to say of a text."""

from __future__ import annotations

import ast

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.triton.source import KERNEL, LAUNCH


def at(node: ast.AST, code: str, message: Sentence) -> Finding:
    """A problem of ``kernel.py`` at a node of its tree."""
    return Finding(f"audit-{code}", message, KERNEL, getattr(node, "lineno", 0))


def of_record(message: Sentence) -> Finding:
    """A problem of ``launch.json``."""
    return Finding("audit-launch", message, LAUNCH)
