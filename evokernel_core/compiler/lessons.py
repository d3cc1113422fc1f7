"""What a target's failed kernels teach whoever writes the next ones."""

from __future__ import annotations

from typing import Protocol

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import GateResult


class Lessons(Protocol):
    """Rules of a target's language and hardware."""

    def rules(self, failed: GateResult) -> list[Sentence]:
        """The rules that a failed gate is evidence for."""

    def is_refuted(self, text: str) -> bool:
        """Whether a rule forbids a name that the interface has."""
