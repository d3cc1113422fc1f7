"""What an audit of a kernel's text finds, whatever the language."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import field, frozen

from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.verdict import GateName, GateResult, GateStatus

_MOST_TOLD = 5


@frozen
class Finding:
    """One broken rule: its stable code, the sentence, and where; line 0 stands for the whole file."""

    code: str
    message: Sentence = field(converter=Sentence)
    file: str
    line: int = 0

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


def audit_result(findings: Iterable[Finding]) -> GateResult:
    """The gate's result; its code is that of the first finding."""
    ordered = sorted(dict.fromkeys(findings), key=lambda finding: (finding.file, finding.line))
    if not ordered:
        return GateResult(GateName.AUDIT, GateStatus.PASSED)
    lines = [
        Sentence("{where}: {what}", where=finding.where, what=finding.message)
        for finding in ordered[:_MOST_TOLD]
    ]
    if len(ordered) > _MOST_TOLD:
        lines.append(Sentence("(and {count} more)", count=len(ordered) - _MOST_TOLD))
    return GateResult(GateName.AUDIT, GateStatus.FAILED, ordered[0].code, joined(lines, "\n"))
