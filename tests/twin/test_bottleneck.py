"""What kept a launch from being faster, in one sentence of the figures that the twin's C++ counted."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.twin.bottleneck import Overhead, bottleneck_words, overhead_of

SMALL = "copies of 2.0 KB, below the efficient 16 KB"
CASES: dict[str, dict[str, Any]] = {
    "": {},
    "S-bound: 70 % busy.": {"pipe": "S", "busy": 70},
    "V-bound: 90 % busy, idle 8 % waiting for MTE2.": {"pipe": "V", "busy": 90, "for": "MTE2", "idle": 8},
    f"MTE2-bound: 81 % busy; V idle 64 % waiting for {SMALL}.": {
        "pipe": "MTE2", "busy": 81, "copies_kb": 2.0, "worker": {"pipe": "V", "idle": 64, "for": "MTE2"},
    },
    f"MTE2-bound: 81 % busy; V idle 64 % waiting for the scalar unit to issue; its {SMALL}.": {
        "pipe": "MTE2", "busy": 81, "copies_kb": 2.0, "worker": {"pipe": "V", "idle": 64, "for": "S"},
    },
    f"MTE3-bound: 60 % busy; its {SMALL}.": {"pipe": "MTE3", "busy": 60, "copies_kb": 2.0},
}  # fmt: skip


@pytest.mark.parametrize("sentence", CASES)
def test_the_figures_are_said_in_one_sentence(sentence: str) -> None:
    assert bottleneck_words(CASES[sentence]) == sentence


SMALL_KERNEL = Overhead(launch=86.0, start=84.0, own=0.85)
LARGE_KERNEL = Overhead(launch=5.0, start=4.0, own=0.99)
ISSUED = {"pipe": "V", "busy": 2, "for": "S", "idle": 92}


@pytest.mark.parametrize(
    ("counted", "overhead", "sentence"),
    [
        (ISSUED, SMALL_KERNEL, "launch-bound: 86 % of the time is the launch, V busy 2 %."),
        (
            {"pipe": "V", "busy": 0, "for": "MTE2", "idle": 98},
            SMALL_KERNEL,
            "launch-bound: 86 % of the time is the launch, V busy 0 %.",
        ),
        (
            ISSUED,
            LARGE_KERNEL,
            "issue-bound: V busy 2 %, idle 88 % waiting for the scalar unit to issue.",
        ),
        (
            ISSUED | {"pipe": "MTE2", "busy": 30, "copies_kb": 2.0},
            LARGE_KERNEL,
            f"issue-bound: MTE2 busy 30 %, idle 88 % waiting for the scalar unit to issue; its {SMALL}.",
        ),
        # it waits before the first instruction, which is the launch, and hardly after it
        (
            ISSUED | {"busy": 55, "idle": 45},
            Overhead(launch=45.0, start=40.0, own=0.9),
            "V-bound: 55 % busy, idle 5 % waiting for the scalar unit to issue.",
        ),
        (
            ISSUED | {"busy": 60, "idle": 40},
            Overhead(launch=45.0, start=40.0, own=0.9),
            "V-bound: 60 % busy.",
        ),
        ({"pipe": "S", "busy": 70}, LARGE_KERNEL, "S-bound: 70 % busy."),
    ],
)
def test_a_pipe_that_waits_to_be_issued_binds_nothing(
    counted: dict[str, Any], overhead: Overhead, sentence: str
) -> None:
    """ "V-bound: 2 % busy" was said of launches that were over before anything could be issued."""
    assert bottleneck_words(counted, overhead) == sentence


@pytest.mark.parametrize("busy", range(0, 101, 10))
@pytest.mark.parametrize("cause", ["S", "MTE2", None])
@pytest.mark.parametrize("latency_us", [3.1, 4.0, 8.0, 60.0, 4000.0])
def test_what_is_said_to_bind_takes_more_than_the_launch(
    busy: int, cause: str | None, latency_us: float
) -> None:
    waiting = {} if cause is None else {"for": cause, "idle": 100 - busy}
    overhead = overhead_of(load_chip(), latency_us, 48)
    said = bottleneck_words({"pipe": "V", "busy": busy, **waiting}, overhead)
    if said.startswith("V-bound"):
        assert overhead.launch <= max(50.0, busy * overhead.own)
        assert cause != "S" or 100 - busy - overhead.start <= busy


def test_a_launch_takes_no_more_than_all() -> None:
    chip = load_chip()
    assert overhead_of(chip, 0.0, 1) == overhead_of(chip, 0.1, 48) == Overhead()
    found = overhead_of(chip, 10.0, 1)
    assert 0 < found.start < 100 and 0 < found.launch < 100 and 0 < found.own < 1
