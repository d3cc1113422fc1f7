"""Numbers at which a kernel in Triton may do something else are seen in its text and in its launch record."""

from __future__ import annotations

import pytest
from attrs import evolve

from evokernel_core.targets.triton.backends.interpreter_case import decisions
from evokernel_core.targets.triton.launch import read_launches
from evokernel_core.targets.triton.source import LAUNCH
from evokernel_core.verifier.gates.landmarks import landmarks_of
from tests.targets.triton.written import SOFTMAX, softmax_source, softmax_task


@pytest.mark.parametrize(
    "condition", ["rows == 1757", "rows // 3 == 1757", "(rows // 2) * 2 != 1757", "1757 == rows"]
)
def test_a_size_that_a_function_asks_for_is_a_landmark(condition: str) -> None:
    text = SOFTMAX.replace("    powers =", f"    if {condition}:  # doesn't say\n        pass\n    powers =")
    assert 1757 in landmarks_of(softmax_task().graph, softmax_source(text)).equal


@pytest.mark.parametrize(
    ("condition", "sizes"),
    [
        ("rows // 2 == 33", {66, 67}),
        ("rows * 7 == 679", {97}),
        ("columns > 3 and (rows + 3) // 4 == 25", {97, 98, 99, 100}),
        ("rows * 7 != 1757 * 7 - 7 * 1660", {97}),
    ],
)
def test_a_size_behind_arithmetic_is_solved(condition: str, sizes: set[int]) -> None:
    text = SOFTMAX.replace("    powers =", f"    if {condition}:\n        pass\n    powers =")
    assert sizes <= set(landmarks_of(softmax_task().graph, softmax_source(text)).solved)


@pytest.mark.parametrize(
    "changed", [{"grid": ("s0 - (s0 == 1757)",)}, {"constants": {"BLOCK": "1 + (s1 // 4 == 1757)"}}]
)
def test_a_size_that_a_launch_asks_for_is_a_landmark(changed: dict[str, object]) -> None:
    record = read_launches(softmax_source().files[LAUNCH])
    record = evolve(record, launches=(evolve(record.launches[0], **changed),))
    kernel = softmax_source().with_files({LAUNCH: record.text()})
    assert 1757 in landmarks_of(softmax_task().graph, kernel).equal


def test_a_record_tells_what_it_decides_at_some_sizes() -> None:
    record = read_launches(softmax_source().files[LAUNCH])
    record = evolve(record, requires=("s0 < 9",))
    table = decisions(record, [(3, 5), (9, 5), (8, 100)])
    assert table.tolist() == [[1, 8, 3, 1, 1], [0, 0, 0, 0, 0], [1, 128, 8, 1, 1]]
