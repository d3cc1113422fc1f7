"""Rules on the words that the preprocessor leaves: keywords and names that no kernel has a use for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evokernel_core.compiler.findings import Finding
from evokernel_core.domain.sentence import Sentence
from evokernel_core.targets.ascendc.audit.lists import names
from evokernel_core.targets.ascendc.audit.own_text import OwnText
from evokernel_core.targets.ascendc.audit.text import refused_name

FORBIDDEN = names("""
    asm goto throw try catch new delete thread_local volatile union typeid dynamic_cast const_cast
    virtual import module co_await co_yield co_return concept requires register
""")
ATTRIBUTES = frozenset(("maybe_unused", "nodiscard", "fallthrough", "likely", "unlikely"))
_WORD = re.compile(
    r"""
      "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])+' | \.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*
    | (?P<name>[A-Za-z_]\w*) | \[\s*\[\s*(?P<attribute>[\w:\s]*)
    """,
    re.VERBOSE,
)


def check_words(own: OwnText) -> Iterator[Finding]:
    """The forbidden words of the candidate's own text."""
    for file, line, text in own.lines:
        for match in _WORD.finditer(text):
            if match["name"] and (message := _refusal(match["name"], text, match.start())):
                yield Finding("audit-forbidden-name", message, file, line)
            elif match["attribute"] and match["attribute"].strip() not in ATTRIBUTES:
                message = Sentence("The attribute {name} is not allowed.", name=match["attribute"].strip())
                yield Finding("audit-forbidden-name", message, file, line)


def _refusal(name: str, text: str, start: int) -> Sentence:
    if name in FORBIDDEN:
        is_deleted_or_defaulted = name == "delete" and re.search(r"=\s*$", text[:start])
        if is_deleted_or_defaulted:
            return Sentence()
        return Sentence("{name} is not allowed in a kernel; remove it.", name=name)
    return refused_name(name)
