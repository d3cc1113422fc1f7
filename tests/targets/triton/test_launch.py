"""Launch records: what is written is read again, and what is none is refused in one sentence."""

from __future__ import annotations

import pytest

from evokernel_core.domain.errors import UsageError
from evokernel_core.targets.triton.expressions import evaluate
from evokernel_core.targets.triton.launch import Launch, LaunchRecord, Scratch, read_launches

RECORD = LaunchRecord(
    inputs=("x",),
    outputs=("output",),
    launches=(
        Launch("rows", ("s0 * 4",), ("x", "partial", "s0", "s1"), {"BLOCK": "next_power_of_2(s1)"}),
        Launch("put_together", ("cdiv(s0, 128)",), ("partial", "output", "s0"), {"PARTS": "4"}, warps=8),
    ),
    symbols=("s0", "s1"),
    scratch=(Scratch("partial", "float32", "s0 * 4"),),
    requires=("s1 <= 65536",),
)


def test_a_record_is_read_as_it_was_written() -> None:
    assert read_launches(RECORD.text()) == RECORD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"inputs": [], "outputs": [], "launches": [{"kernel": 1}]}',
        '{"inputs": ["x"], "outputs": ["x"], "launches": []}',
        '{"inputs": ["x y"], "outputs": [], "launches": []}',
        '{"inputs": [], "outputs": [], "launches": [], "cubin": ""}',
        '{"inputs": [], "outputs": [], "launches": [{"kernel": "k", "grid": [], "warps": 1.5}]}',
        "[" * 100_000,
    ],
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"launch\.json"):
        read_launches(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("s0 * s1 + 1", 211),
        ("cdiv(s1, 64)", 2),
        ("next_power_of_2(s1)", 128),
        ("next_power_of_2(0)", 1),
        ("-(s0 - 10) // 2", 3),
        ("min(s0, s1) % 2", 1),
        ("s1 <= 70", 1),
        ("s1 != 70", 0),
    ],
)
def test_expressions(text: str, number: int) -> None:
    assert evaluate(text, {"s0": 3, "s1": 70}) == number


@pytest.mark.parametrize(
    "text",
    [
        *("", "s2", "s0 / 2", "s0 // 0", "s0 ** 9", "'a'", "1.5", "True + f(1)", "__import__('os')"),
        *("s0 if s1 else 0", "9223372036854775807 + 1", "(" * 5000 + "1" + ")" * 5000, "cdiv(1)", "min()"),
        *("s0.real", "[s0][0]"),
    ],
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no number over the sizes s0, s1"):
        evaluate(text, {"s0": 3, "s1": 70})


def test_a_grid_that_no_device_has_is_refused() -> None:
    launch = Launch("rows", ("s0", "70000"), ("x",))
    with pytest.raises(UsageError, match="no device launches that"):
        launch.programs({"s0": 1})
    assert Launch("rows", ("s0",), ("x",)).programs({"s0": 0}) == (0, 1, 1)
