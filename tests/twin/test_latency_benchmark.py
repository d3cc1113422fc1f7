"""The figures of benchmarks/latency_model.py, and which rows it can run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.latency.analytic import analytic_us
from benchmarks.latency.rows import Row, chip_name, read_rows
from benchmarks.latency.samples import read_run, sample_of
from benchmarks.latency_model import PUBLISHED, Compared, direction, summarise
from evokernel_core.twin.chip import load_chip
from evokernel_core.twin.run import LaunchReport, RunResult, Status


def row(value: float = 10.0, series: str = "s", **data: Any) -> Row:
    return Row(f"r{value}", series, value, "us", "Task Duration", data.pop("tier", "A"), load_chip(), data)


def test_direction_counts_pairs_whose_measurements_differ() -> None:
    items = [
        Compared(row(value), "executed", predicted) for value, predicted in [(10, 1), (10.1, 9), (20, 5)]
    ]
    assert direction(items) == (1, 2)


def test_the_summary_tells_kinds_and_held_out_series_apart() -> None:
    good = [Compared(row(value, "a"), "executed", value) for value in (1.0, 2.0, 4.0)]
    bad = [Compared(row(value, "b"), "analytic", 9.0 - value) for value in (2.0, 4.0)]
    found = summarise([*good, *bad], frozenset({"b"}))
    assert found["by_kind"]["executed"] == {
        "rows": 3,
        "median_abs_error": 0.0,
        "spearman": 1.0,
        "series_direction_rate": 1.0,
    }
    assert found["held_out"]["spearman"] == -1.0
    assert found["fitted"]["rows"] == 3
    assert found["rows"] == 5


@pytest.mark.parametrize(
    ("words", "name"),
    [("Ascend 910B2 (24 AIC)", "ascend910b2"), ("unstated (20 AIC)", "ascend910b3"), ("A2", "ascend910b1")],
)
def test_the_chip_that_a_source_means(words: str, name: str) -> None:
    assert chip_name(words) == name


def test_published_rows_name_samples_that_run_unchanged() -> None:
    rows = read_rows(PUBLISHED)
    assert len(rows) == 15
    for item in rows:
        found = sample_of(item)
        assert found is not None
        assert f"SCENARIO_NUM={found[1]}" in str(item.data["kernel_source"])


def test_an_edited_sample_is_not_run_as_if_it_were_the_published_one() -> None:
    edited = row(kernel_source="x/add_high_performance/add.asc (-DSCENARIO_NUM=3)", tier="A-")
    assert sample_of(edited) is None


def test_analytic_predictions_grow_with_the_work() -> None:
    small, large = (
        analytic_us(row(op="SwiGlu", shapes=[[rows, 4096]], dtype=["float16"])) for rows in (256, 8192)
    )
    assert small is not None
    assert large is not None
    assert small < large
    assert analytic_us(row(op="an operation nobody knows", shapes=[], dtype="half")) is None


@pytest.mark.parametrize(
    ("instructions", "blocks", "words"),
    [(0, 24, "its cores did nothing"), (9, 1, "it launches 1 blocks, and 24 were measured"), (9, 24, "")],
)
def test_a_run_that_is_not_what_was_measured_predicts_nothing(
    instructions: int, blocks: int, words: str
) -> None:
    launch = LaunchReport("k", blocks, 5.0, (), "")
    ran = RunResult(Status.OK, launches=(launch,), latency_us=5.0, instructions=instructions)
    found = read_run(row(block_dim=24), ran)
    assert (found.value, found.why) == (None if words else 5.0, words)
