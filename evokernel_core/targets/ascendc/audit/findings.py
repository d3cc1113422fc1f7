"""What a rule finds."""

from __future__ import annotations

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.unit import Node


def at(node: Node, code: str, message: Sentence) -> Finding:
    """A finding at a node of the tree."""
    return Finding(f"audit-{code}", message, node.file, node.line)
