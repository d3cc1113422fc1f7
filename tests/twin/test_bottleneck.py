"""What kept a launch from being faster, in one sentence of the figures that the twin's C++ counted."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.twin.bottleneck import bottleneck_words

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
