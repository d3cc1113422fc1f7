"""Verdicts of before a gate named the case that failed: it stood in the words, behind what was wrong.

Memories and services of that time hold them."""

from __future__ import annotations

import re

from attrs import evolve

from evokernel_core.domain.sentence import Sentence, joined
from evokernel_core.domain.verdict import DrawnCase, GateName, GateResult, GateStatus

_TEMPLATE = "(with {sizes}; inputs: {distribution}, seed {seed})"
_CASE = re.compile(r" ?\(with ([^;()]*); inputs: ([^,()]*), seed (\d+)\)")
_SIZE = re.compile(r"(\w+)=(\d+)")


def apart(gate: GateResult) -> GateResult:
    """The gate with its case beside the words."""
    if (gate.gate, gate.status) != (GateName.CORRECTNESS, GateStatus.FAILED):
        return gate
    feedback, case = _apart(gate.feedback)
    return evolve(gate, feedback=feedback, case=case)


def _apart(said: Sentence) -> tuple[Sentence, DrawnCase | None]:
    if not said.values or said.template == _TEMPLATE:
        return _of_text(said)
    case = None
    kept = dict(said.values)
    for name, value in said.values.items():
        if isinstance(value, Sentence):
            kept[name], inner = _apart(value)
            case = case or inner
    if said.template == " ".join(f"{{{name}}}" for name in kept):
        return joined(part if isinstance(part, Sentence) else str(part) for part in kept.values()), case
    return Sentence(said.template, **kept), case


def _of_text(text: Sentence) -> tuple[Sentence, DrawnCase | None]:
    match = _CASE.search(text)
    if match is None:
        return text, None
    sizes = tuple((name, int(size)) for name, size in _SIZE.findall(match[1]))
    return Sentence(text.replace(match[0], "", 1)), DrawnCase(sizes, match[2], int(match[3]))
