"""What failed kernels teach of Triton: a rule for each way in which programs disturb each other."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import GateResult, Severity

RULES: Mapping[str, Sentence] = {
    "out-of-bounds": Sentence("You cannot read or write beyond the end of a tensor."),
    "overlapping-stores": Sentence("You cannot let two programs of a launch store the same element."),
    "race": Sentence("You cannot read in a launch what another program of it stores."),
    "uninitialised-read": Sentence("You cannot read scratch memory that nothing has written."),
    "output-not-written": Sentence("You cannot leave any element of an output unwritten."),
    "input-modified": Sentence("You cannot write to an input."),
    "shared-memory": Sentence("You cannot let a program use more shared memory than the device has."),
}
"""One sentence per rule that a kernel broke."""


class TritonLessons:
    """``compiler.lessons.Lessons``."""

    def rules(self, failed: GateResult) -> list[Sentence]:
        codes = [hazard.code for hazard in failed.hazards if hazard.severity is Severity.ERROR]
        codes += [failed.code] if failed.code in RULES and failed.code not in codes else []
        return [RULES[code] for code in codes if code in RULES]

    def is_refuted(self, text: str) -> bool:
        return False
