"""What each hazard's code means, and what helps: the data behind docs/hazards.md."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.sentence import Sentence

_FEW, _FEW_WORDS, _LONGEST = 3, 8, 64
_DATA = Path(__file__).parent / "hazards.toml"


@frozen
class HazardRule:
    """One code. ``severity`` in words, with what makes it another one; ``what`` says what was seen, ``help``
    what mends it: both are sentences, for an editor shows them. ``words`` are others that find it.
    ``is_symptom``: mostly a consequence of another hazard of the same run."""

    code: str
    severity: str
    what: Sentence
    help: Sentence
    words: tuple[str, ...] = ()
    is_symptom: bool = False


@cache
def hazard_rules() -> Mapping[str, HazardRule]:
    """All rules by their codes, in the order of the page."""
    rows = tomllib.loads(_DATA.read_text(encoding="utf-8"))["hazard"]
    return {
        code: HazardRule(
            code,
            row["severity"],
            Sentence(row["what"]),
            Sentence(row["help"]),
            tuple(row.get("words", ())),
            row.get("symptom", False),
        )
        for row in rows
        for code in row["codes"]
    }


def explain(code: str) -> HazardRule:
    """The rule of a code. Raises UsageError that names the closest ones."""
    rules = hazard_rules()
    if code not in rules:
        near = difflib.get_close_matches(code[:_LONGEST], rules, n=_FEW, cutoff=0.3) or sorted(rules)[:_FEW]
        raise UsageError(f"There is no hazard {code[:_LONGEST]!r}; the closest codes are {', '.join(near)}.")
    return rules[code]


def find(words: str) -> tuple[HazardRule, ...]:
    """The rules that words speak of: the one of a code, else those in which all of the words are, first those
    with them in their codes. All rules for no words."""
    rules = hazard_rules()
    if words in rules:
        return (rules[words],)
    asked = re.findall(r"\w+", words.lower())[:_FEW_WORDS]
    named = [rule for rule in rules.values() if _speaks(rule.code, asked)]
    others = [
        rule
        for rule in rules.values()
        if rule not in named and _speaks(" ".join((rule.code, rule.what, rule.help, *rule.words)), asked)
    ]
    return (*named, *others)


def _speaks(text: str, words: Sequence[str]) -> bool:
    return all(word in text.lower() for word in words)


def as_page() -> str:
    """The table of all codes in Markdown, with what helps."""
    rows = [
        f"| `{rule.code}` | {rule.severity} | {rule.what} | {rule.help} |" for rule in hazard_rules().values()
    ]
    return "\n".join(
        ["# Hazards", "| code | severity | what it is | what helps |", "|---|---|---|---|", *rows, ""]
    )
