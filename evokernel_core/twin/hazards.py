"""What each hazard's code means, and what helps: the data behind docs/hazards.md."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from attrs import frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.sentence import Sentence

_DATA = Path(__file__).parent / "hazards.toml"


@frozen
class HazardRule:
    """One code. ``severity`` in words, with what makes it another one; ``what`` says what was seen, ``help``
    what mends it: both are sentences, for an editor shows them."""

    code: str
    severity: str
    what: Sentence
    help: Sentence


@cache
def hazard_rules() -> Mapping[str, HazardRule]:
    """All rules by their codes, in the order of the page."""
    rows = tomllib.loads(_DATA.read_text(encoding="utf-8"))["hazard"]
    return {
        code: HazardRule(code, row["severity"], Sentence(row["what"]), Sentence(row["help"]))
        for row in rows
        for code in row["codes"]
    }


def explain(code: str) -> HazardRule:
    """The rule of a code. Raises UsageError that names the closest ones."""
    rules = hazard_rules()
    if code not in rules:
        near = difflib.get_close_matches(code[:64], rules, n=3, cutoff=0.3) or sorted(rules)[:3]
        raise UsageError(f"There is no hazard {code[:64]!r}; the closest codes are {', '.join(near)}.")
    return rules[code]


def as_page() -> str:
    """The table of all codes in Markdown, with what helps."""
    rows = [
        f"| `{rule.code}` | {rule.severity} | {rule.what} | {rule.help} |" for rule in hazard_rules().values()
    ]
    return "\n".join(
        ["# Hazards", "| code | severity | what it is | what helps |", "|---|---|---|---|", *rows, ""]
    )
