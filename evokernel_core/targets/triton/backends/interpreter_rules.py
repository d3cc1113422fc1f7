"""What the interpreting process found, as hazards with sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import Hazard, Severity
from evokernel_core.targets.triton.source import KERNEL


@frozen
class MemoryRule:
    """A rule of memory: the stable code of its hazard, and its sentence."""

    code: str
    template: Sentence


_OUTSIDE, _OVERLAP = "out-of-bounds", "overlapping-stores"
RULES: Mapping[str, MemoryRule] = {
    "out-of-bounds": MemoryRule(
        _OUTSIDE,
        Sentence("A program {verb} element {element} of {tensor}, which has {count}; mask what is outside."),
    ),
    "no-tensor": MemoryRule(
        _OUTSIDE,
        Sentence("A program {verb} at an address of no tensor; add offsets to a pointer that it is given."),
    ),
    "other-width": MemoryRule(
        _OUTSIDE,
        Sentence(
            "A program {verb} {size} bytes by a pointer to {tensor}, whose elements have {own}; "
            "keep its dtype."
        ),
    ),
    "input-modified": MemoryRule("input-modified", Sentence("A program stores to the input {tensor}.")),
    "overlapping-stores": MemoryRule(
        _OVERLAP,
        Sentence("Several programs of a launch store element {element} of {tensor}; let one store it."),
    ),
    "overlapping-lanes": MemoryRule(
        _OVERLAP,
        Sentence(
            "A program stores different values to one element of {tensor} at once; give each lane its own."
        ),
    ),
    "race": MemoryRule(
        "race",
        Sentence(
            "A program loads element {element} of {tensor}, which another program of the launch stores; "
            "use a second launch."
        ),
    ),
    "output-not-written": MemoryRule(
        "output-not-written",
        Sentence("No program stores element {element} of {tensor}, nor {more} others; cover all elements."),
    ),
    "nondeterministic": MemoryRule(
        "nondeterministic",
        Sentence(
            "A second run on the same input gives other bytes in {tensor}: it depends on memory that nobody "
            "wrote, or on the order of programs."
        ),
    ),
}
"""By the names that the process gives them (``interpreted/memory.py``, ``interpreted/cases.py``)."""
_WORDS = (str, int, float)
_VERBS = {"loads": Sentence("loads"), "stores": Sentence("stores")}


def hazard_of(told: Mapping[str, Any]) -> Hazard:
    """The hazard of a broken rule. Raises KeyError for a rule that is not known."""
    rule, line = RULES[told["rule"]], int(told["line"])
    values = {
        str(name): _VERBS.get(str(value), value)
        for name, value in told["values"].items()
        if isinstance(value, _WORDS)
    }
    message = Sentence(str(rule.template), **values)
    return Hazard(rule.code, Severity.ERROR, message, KERNEL if line else "", line)
