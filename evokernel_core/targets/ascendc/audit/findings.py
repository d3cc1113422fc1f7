"""What a rule finds."""

from __future__ import annotations

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.unit import Node


@frozen
class Finding:
    """One broken rule: its stable code, the sentence, and where."""

    code: str
    message: Sentence = field(converter=Sentence)
    file: str
    line: int


def at(node: Node, code: str, message: Sentence) -> Finding:
    """A finding at a node of the tree."""
    return Finding(f"audit-{code}", message, node.file, node.line)
