"""The count itself: an attack that is not caught, or cannot be tried, never counts as caught."""

from __future__ import annotations

import pytest

from tests.attacks import Attack, each
from tests.attacks.report import Tally, class_of


@pytest.mark.parametrize(
    ("nodeid", "name"),
    [
        ("tests/attacks/editor/test_uris.py::test_a[x]", "editor"),
        ("tests/attacks/service/deep/test_b.py::test_b", "service"),
        ("tests/attacks/test_report.py::test_c", ""),
        ("tests/server/test_text.py::test_d[tests/attacks/editor/x]", ""),
    ],
)
def test_the_folder_is_the_class(nodeid: str, name: str) -> None:
    assert class_of(nodeid) == name


@pytest.mark.parametrize(
    ("reports", "caught"),
    [
        ([("setup", "passed"), ("call", "passed"), ("teardown", "passed")], 1),
        ([("setup", "passed"), ("call", "failed"), ("teardown", "passed")], 0),
        ([("setup", "failed"), ("teardown", "passed")], 0),
        ([("setup", "passed"), ("call", "passed"), ("teardown", "failed")], 0),
        ([("setup", "skipped"), ("teardown", "passed")], 0),
        ([("setup", "passed"), ("teardown", "passed")], 0),
    ],
)
def test_only_what_passed_is_caught(reports: list[tuple[str, str]], caught: int) -> None:
    tally = Tally()
    for phase, outcome in reports:
        tally.hear("tests/attacks/task/test_ops.py::test_popen", phase, outcome)
    assert len(tally.caught["task"]) == caught


def test_the_table_names_what_was_missed() -> None:
    tally = Tally()
    tally.hear("tests/attacks/task/test_ops.py::test_a", "call", "passed")
    tally.hear("tests/attacks/task/test_ops.py::test_b", "call", "failed")
    tally.hear("tests/attacks/sandbox/test_c.py::test_c", "setup", "skipped", "needs root")
    lines = list(tally.lines())
    assert lines[:3] == [
        "sandbox         0 of    1 caught",
        "task            1 of    2 caught",
        "all             1 of    3 caught",
    ]
    assert "NOT CAUGHT tests/attacks/task/test_ops.py::test_b" in lines
    assert any("needs root" in line for line in lines)


def test_a_name_stands_for_one_attack() -> None:
    with pytest.raises(ValueError, match="twice"):
        each([Attack("a", "x", "y"), Attack("a", "x", "y")])
