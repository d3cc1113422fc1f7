"""The figures of benchmarks/latency_model.py, and which rows it can run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.latency import operators
from benchmarks.latency.analytic import analytic_us
from benchmarks.latency.page import page
from benchmarks.latency.picture import SIZE, Point, draw
from benchmarks.latency.rows import Row, chip_name, read_rows
from benchmarks.latency.samples import read_run, sample_of
from benchmarks.latency_model import PUBLISHED, Compared, _figures, direction, summarise
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.run import ExitStatus, LaunchReport, RunResult


def row(value: float = 10.0, series: str = "s", **data: Any) -> Row:
    return Row(f"r{value}", series, value, "us", "Task Duration", data.pop("tier", "A"), load_chip(), data)


def test_direction_counts_pairs_whose_measurements_differ() -> None:
    items = [
        Compared(row(value), "executed", predicted) for value, predicted in [(10, 1), (10.1, 9), (20, 5)]
    ]
    assert direction(items) == (1, 2)


def test_the_summary_tells_kinds_and_held_out_series_apart() -> None:
    good = [Compared(row(value, "a"), "executed", value) for value in (1.0, 2.0, 4.0)]
    bad = [Compared(row(value, "b"), "executed", 49.0 - value) for value in (2.0, 4.0, 40.0)]
    rough = [Compared(row(3.0, "b"), "analytic", 3.0)]
    found = summarise([*good, *bad, *rough], frozenset({"b"}))
    assert found["by_kind"]["analytic"]["rows"] == 1
    assert found["held_out"]["rows"] == 3 and found["held_out"]["spearman"] == -1.0
    assert found["held_out"]["below_30_us"]["rows"] == 2
    assert {key: found["fitted"][key] for key in ("rows", "median_abs_error", "spearman")} == {
        "rows": 3,
        "median_abs_error": 0.0,
        "spearman": 1.0,
    }
    assert found["rows"] == 7


def test_the_picture_has_a_dot_for_each_row(tmp_path: Path) -> None:
    points = [Point(10.0, 12.0, "fitted", "one"), Point(900.0, 400.0, "held out", "two & three")]
    draw(points, tmp_path / "picture.svg")
    root = ElementTree.parse(tmp_path / "picture.svg").getroot()
    dots = [item for item in root if item.tag.endswith("circle")]
    assert [item[0].text for item in dots] == [
        "one: 10 us measured, 12 us estimated",
        "two & three: 900 us measured, 400 us estimated",
    ]
    places = [(float(item.get("cx", "")), float(item.get("cy", ""))) for item in dots]
    assert places[0][0] + places[0][1] < SIZE  # above the line of equality
    assert places[1][0] + places[1][1] > SIZE


def test_a_public_operator_is_run_with_its_own_tiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row in the format of the published ones, of the operator that the tests have."""
    monkeypatch.setitem(
        operators.SIGNATURES, "own", operators.Signature("ScaleRows", ("x",), {"factor": "factor"})
    )
    source = "hicann/some-project:own/op_kernel/scale_rows.cpp"
    data = {"kernel_source": source, "dtype": ["float32"], "counters": {"attrs": {}}}
    projects = [Path(__file__).parent / "data" / "operators"]
    short, long = (operators.run_operator(row(shapes=[[rows, 64]], **data), projects) for rows in (2, 4096))
    assert short is not None and short.value is not None, short
    assert long is not None and long.value is not None and long.value > short.value
    assert operators.run_operator(row(shapes=[[2, 64]], **data), []) is None


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
    ran = RunResult(ExitStatus.OK, launches=(launch,), latency_us=5.0, instructions=instructions)
    found = read_run(row(block_dim=24), ran)
    assert (found.value, found.why) == (None if words else 5.0, words)


def test_the_page_has_split_rows_and_constants(tmp_path: Path) -> None:
    """Series that are held out are told apart from those that constants were fitted to."""
    file = tmp_path / "chip.toml"
    file.write_text("[launch]\nlaunch_us = 0.5   # case 0 | 1\n[eager]\ncore_us = 0.1   # fitted\n")
    executed = [
        Compared(row(value, series), "executed", 11.0) for value, series in ((10.0, "a"), (44.0, "b"))
    ]
    text = page(executed, frozenset({"a"}), _figures, file)
    assert "| held out | 1 | 10.0% |" in text and "| fitted, below 30 us | 0 | | |" in text
    assert "| b | fitted | 1 | 75.0% |" in text and "| r44.0 | ascend910b1 | us | 44 | 11 | -75% |" in text
    assert "| launch.launch_us | 0.5 | case 0 / 1 |" in text and "core_us" not in text
