"""What failed kernels teach of AscendC: a rule for each hazard, and names that its interface has not."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import GateName, GateResult, Severity
from evokernel_core.hardware.ascend.api import interface_words, most_of

_REPEATS = most_of("Add", "repeatTime")

RULES: Mapping[str, Sentence] = {
    "ub-capacity": Sentence(
        "You cannot allocate more bytes in unified buffer queues and buffers than the core has."
    ),
    "alignment": Sentence(
        "You cannot use unified buffer addresses or lengths that are not multiples of 32 bytes."
    ),
    "out-of-bounds": Sentence("You cannot read or write beyond the end of a tensor."),
    "uninitialised-read": Sentence("You cannot read unified buffer elements that nothing has written."),
    "stale-read": Sentence("You cannot use a tensor of a queue after FreeTensor gave its buffer back."),
    "queue-misuse": Sentence(
        "You cannot use a tensor of a queue out of the order alloc, enqueue, dequeue, free."
    ),
    "event-misuse": Sentence(
        "You cannot wait for an event that was not set, nor set one that is not waited for."
    ),
    "repeat-limit": Sentence(
        "You cannot pass more than {repeats} repeats to one vector instruction.", repeats=_REPEATS
    ),
    "mask-limit": Sentence("You cannot pass a mask that is larger than the elements of one repeat."),
    "stride-limit": Sentence("You cannot pass a stride beyond its field in one instruction."),
    "dtype-unsupported": Sentence(
        "You cannot call a vector instruction with a dtype that it does not support."
    ),
    "overlap": Sentence("You cannot let source and destination of one instruction overlap in part."),
    "output-not-written": Sentence("You cannot leave any element of an output unwritten."),
    "input-modified": Sentence("You cannot write to an input."),
    "nondeterministic": Sentence("You cannot let the order of the cores change the result."),
    "gm-misaligned-access": Sentence(
        "You cannot access global memory at an address that is no multiple of the element's size."
    ),
    "too-many-buffers": Sentence("You cannot create more buffers and queues than there are event ids."),
    "wrong-core": Sentence(
        "You cannot use a memory of the cube core on a vector core, nor the other way round."
    ),
    "kernel-type": Sentence("You cannot synchronise cores of a kind that the kernel's type does not start."),
    "deadlock": Sentence(
        "You cannot wait for cores that do not signal, nor for more blocks than the chip has cores."
    ),
    "param-limit": Sentence("You cannot pass a parameter beyond the range that its interface documents."),
    "assert": Sentence("You cannot assert what does not hold for every shape of the contract."),
}
"""One sentence per hazard of the hardware."""

_UNKNOWN_NAME = re.compile(
    r"['‘]([A-Z]\w*)['’] is not a member of ['‘]AscendC['’]"
    r"|no member named ['‘]([A-Z]\w*)['’] in namespace ['‘]AscendC['’]"
)
"""g++'s words and clang's. What they suggest in its place ("did you mean") stands behind it."""
_SAYS_NO_SUCH_NAME = re.compile(r"You cannot use AscendC::(\w+): there is none\.")


class AscendCLessons:
    """``compiler.lessons.Lessons``."""

    def rules(self, failed: GateResult) -> list[Sentence]:
        texts = [RULES[h.code] for h in failed.hazards if h.severity is Severity.ERROR and h.code in RULES]
        if failed.gate is GateName.COMPILE:
            texts += _api_rules(failed)
        elif failed.code in RULES:
            texts.append(RULES[failed.code])
        return texts

    def is_refuted(self, text: str) -> bool:
        said = _SAYS_NO_SUCH_NAME.fullmatch(text)
        return said is not None and said[1] in interface_words()


def _api_rules(failed: GateResult) -> list[Sentence]:
    """Names of the AscendC namespace that the compiler did not know and the table of the interface has not;
    other names give no rule."""
    result = (match[1] or match[2] for match in _UNKNOWN_NAME.finditer(failed.feedback))
    unknown = sorted(set(result) - interface_words())
    return [Sentence("You cannot use AscendC::{name}: there is none.", name=name) for name in unknown]
