"""What hazards mean and what helps against them, in the person's language. Codes are the same in any."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evokernel_core.domain.sentence import Sentence
from evokernel_core.twin.hazards import HazardRule, hazard_rules
from evokernel_server.texts.translations import _, told


def warnings_in(codes: Iterable[str]) -> str:
    """Each code with what it means and what helps; codes of other versions alone."""
    rules = hazard_rules()
    return " ".join(_explained(rules[code]) if code in rules else f"{code}." for code in codes)


def _explained(rule: HazardRule) -> str:
    return _("{code}: {what} {help}", code=rule.code, what=rule.what, help=rule.help)


def with_help(reason: str) -> str:
    """A reason with what helps against the hazards that it names."""
    return " ".join(filter(None, (told(reason), help_with(reason))))


def help_with(reason: str) -> str:
    """What helps against the hazards that a sentence names, "" where it names none."""
    named = dict.fromkeys(_codes(reason)) if isinstance(reason, Sentence) else {}
    return " ".join(told(hazard_rules()[code].help) for code in named)


def _codes(sentence: Sentence) -> Iterator[str]:
    for value in sentence.values.values():
        if isinstance(value, Sentence):
            yield from _codes(value)
        elif value in hazard_rules():
            yield str(value)
