"""docs/hazards.md names every code that the twin reports, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.targets.ascendc.lessons import RULES
from evokernel_core.twin.build import INCLUDE, SOURCES
from evokernel_core.twin.hazards import HazardRule, as_page, explain, find, hazard_rules
from tests.chinese import in_chinese, left_in_english

TABLE = Path(__file__).parents[2] / "docs" / "hazards.md"
_CALL = re.compile(r"\b(?:Report\w*|Fail|RaceReport)\s*\)?\(\s*\"([a-z0-9-]+)\"")
_LITERAL = re.compile(r"\"([a-z0-9]+(?:-[a-z0-9]+)+)\"")


def documented() -> set[str]:
    rows = [line for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    return {code for row in rows for code in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])}


def reported() -> set[str]:
    """What a report names, and every literal of the library that has the form of a code."""
    found = set()
    for path in (*SOURCES.rglob("*.cpp"), *INCLUDE.rglob("*.h")):
        text = path.read_text()
        found |= set(_CALL.findall(text))
        if path.is_relative_to(SOURCES):
            found |= set(_LITERAL.findall(text))
    return found


def test_the_table_is_complete() -> None:
    assert documented() == reported()


def test_rules_are_about_codes_that_exist() -> None:
    assert set(RULES) <= documented()


def test_the_data_is_the_table() -> None:
    cells = [line.split("|") for line in TABLE.read_text().splitlines() if line.startswith("| `")]
    said = {
        code: (row[2].strip(), row[3].strip())
        for row in cells
        for code in re.findall(r"`([a-z0-9-]+)`", row[1])
    }
    assert said == {code: (rule.severity, rule.what) for code, rule in hazard_rules().items()}


def test_each_rule_says_what_helps_in_one_line() -> None:
    helps = [rule.help for rule in hazard_rules().values()]
    assert all(text.endswith(".") and "\n" not in text for text in helps)
    assert all(rule.help in as_page() for rule in hazard_rules().values())


def test_a_code_that_is_none_names_the_closest() -> None:
    with pytest.raises(UsageError, match="missing-sync"):
        explain("missing-synk")


@pytest.mark.parametrize("rule", hazard_rules().values(), ids=lambda rule: rule.code)
def test_a_hazard_is_explained_in_chinese(rule: HazardRule) -> None:
    for said in (rule.what, rule.help):
        assert left_in_english(said) == "" and re.search("[\u4e00-\u9fff]", in_chinese(said))


@pytest.mark.parametrize(
    ("words", "first", "among"),
    [
        ("missing-sync", ("missing-sync",), ()),
        ("race", ("cross-core-race", "cache-line-race"), ("missing-sync",)),
        ("Race", ("cross-core-race", "cache-line-race"), ()),
        ("cross-core race", ("cross-core-race",), ()),
        ("capacity", ("ub-capacity", "l1-capacity"), ()),
        ("data race", ("missing-sync",), ()),
        ("WAR", (), ("missing-sync",)),
        ("missing-synk", (), ()),
        ("qqq", (), ()),
    ],
)
def test_words_find_codes(words: str, first: tuple[str, ...], among: tuple[str, ...]) -> None:
    codes = [rule.code for rule in find(words)]
    assert tuple(codes[: len(first)]) == first
    assert set(among) <= set(codes)
    assert len(set(codes)) == len(codes)


def test_no_words_list_all_codes() -> None:
    assert find("") == find("  ") == tuple(hazard_rules().values())
