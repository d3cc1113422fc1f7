"""The table of a suite's operators: which cases are taken, and what is counted."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("yaml")

from benchmarks.silicon.cases import model_file
from benchmarks.silicon.rows import Row
from benchmarks.suite_tasks import CHIP, cases, elements, page, summarised, told
from evokernel_core.hardware.ascend.chip import load_chip

CASES = """
cases:
- {case_id: 1, input_shape: [[8192, 8192]], dtype: [float16], attrs: {by: 2.0}}
- {case_id: 2, input_shape: [[16, 8]], dtype: [float32], attrs: {by: 0.5}, value_range: [-1, 1]}
- {case_id: 3, input_shape: [[4, 4]], dtype: [float16], attrs: {by: 1.0}}
- {case_id: 4, input_shape: [[2]], dtype: [float16], attrs: {by: 1.0}}
"""
GOLDEN = """
import torch

def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks/level1/scaled"
    folder.mkdir(parents=True)
    (folder / "cases.yaml").write_text(CASES)
    (folder / "golden.py").write_text(GOLDEN)
    return tmp_path


def test_the_first_cases_that_are_small_enough_are_taken(suite: Path) -> None:
    taken = list(cases(suite, "sc*", 2))
    assert [case.id for case in taken] == ["scaled_2", "scaled_3"]
    assert not list(cases(suite, "other", 2))
    case = taken[0]
    file = model_file(
        Row(case.id, case.level, 1.0, load_chip(CHIP), op=case.op, data=case.data), suite, suite, suite
    )
    assert "scaled(x=x, by=0.5)" in file.read_text()


def test_elements_are_those_of_all_tensors() -> None:
    assert elements([[2, 3], None, [[4], [5, 2]]]) == 20


def _region(status: str, best: float | None, reason: str = "") -> dict[str, object]:
    return {"status": status, "reason": reason, "best_latency_us": best, "baseline_us": 2.0}


def test_a_case_is_verified_where_all_of_its_regions_are() -> None:
    both = {"regions": [_region("verified", 1.0), _region("applied", 2.5)]}
    assert told(both)["best_us"] == 3.5
    one = told({"regions": [_region("verified", 1.0), _region("infeasible", None, "why")]})
    assert (one["status"], one["reason"], one["best_us"]) == ("infeasible", "why", None)
    assert told({"regions": []})["status"] == "error"


def test_what_depends_on_data_is_counted_apart() -> None:
    rows = [
        {"op": "a", "status": "verified", "reason": ""},
        {"op": "a", "status": "timeout", "reason": "not ready"},
        {"op": "b", "status": "verified", "reason": ""},
        {"op": "c", "status": "unsupported", "reason": "Line 3 depends on the values of a tensor."},
    ]
    summary = summarised(rows)
    assert (summary["cases"], summary["verified"], summary["data_dependent"]) == (3, 2, 1)
    assert (summary["operators"], summary["verified_operators"], summary["failed"]) == (2, 1, ["a"])


def test_the_page_says_what_is_slower_and_why() -> None:
    rows = [
        {
            "id": "a_1",
            "op": "a",
            "status": "verified",
            "reason": "",
            "best_us": 10.0,
            "commit": "c",
            "budget": 1,
        },
        {
            "id": "b_1",
            "op": "b",
            "status": "verified",
            "reason": "",
            "best_us": 10.0,
            "commit": "c",
            "budget": 1,
        },
        {"id": "b_2", "op": "b", "status": "timeout", "reason": "not ready", "commit": "c", "budget": 1},
    ]
    text = page(rows, {"a_1": 40.0, "b_1": 5.0}, {"b": "it is small"})
    assert "2 of 3 cases" in text
    assert "geometric mean of 2 cases: 1.41; 1 below 0.8" in text
    assert "| b_1 | verified | 5.00 | 10.00 | 0.50 |" in text
    assert "- b: it is small" in text
    assert "- b_2: not ready" in text
