"""Which regions are offered: single kernels, or programs where these save more."""

from __future__ import annotations

from typing import Any

import pytest

from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.synthesis.offers import Estimate, Offer, choose


def offer(name: str, lines: tuple[int, int], saved: float | None) -> Offer:
    """A region of whole lines that saves so many microseconds of 100; None: unsupported."""
    status = RegionStatus.UNSUPPORTED if saved is None else RegionStatus.CANDIDATE
    span = Span(lines[0], 0, lines[1] + 1, 0)
    region = Region(name, "m.py", "M.forward", span, "", "", "{call}", "other", status)
    estimate = None if saved is None else Estimate(100.0, 100.0 - saved, 1.0, "ascend910b1")
    return Offer(region, estimate)


@pytest.mark.parametrize(
    ("single", "programs", "expected"),
    [
        # a program that saves more than what it overlaps stands in its place
        ([("a", (1, 1), 10), ("b", (2, 2), 20)], [("ab", (1, 3), 31)], ["ab"]),
        # one that saves less does not
        ([("a", (1, 1), 10), ("b", (2, 2), 20)], [("ab", (1, 3), 29)], ["a", "b"]),
        # a kernel that is slower is not applied: it takes nothing from the others
        ([("a", (1, 1), -50), ("b", (2, 2), 20)], [("ab", (1, 3), 19)], ["a", "b"]),
        # what no single kernel covers is covered by a program, worthwhile or not
        ([("a", (1, 1), 10), ("x", (2, 2), None)], [("ax", (1, 2), 11)], ["ax"]),
        ([("a", (1, 1), 10), ("x", (2, 2), None)], [("ax", (1, 2), 9)], ["a"]),
        ([("x", (2, 2), None)], [("x2", (2, 2), -3)], ["x2"]),
        # what no family covers stays, with its reason
        ([("a", (1, 1), 10), ("x", (5, 5), None)], [("a", (1, 1), 10), ("y", (5, 5), None)], ["a", "x"]),
        # what lies in a function that a program's calls is no longer said, what it leaves open is
        ([("a", (1, 1), 10), ("x", (9, 9), None)], [("ab", (1, 3), 31)], ["ab"]),
        ([("a", (1, 1), 10), ("x", (9, 9), None)], [("ab", (1, 3), 31), ("y", (9, 9), None)], ["ab", "x"]),
        # programs apart from each other are chosen one by one
        ([("a", (1, 1), 5), ("b", (7, 7), 5)], [("p", (1, 2), 6), ("q", (6, 7), 4)], ["p", "b"]),
    ],
)
def test_what_is_offered(single: list[Any], programs: list[Any], expected: list[str]) -> None:
    found = choose([offer(*item) for item in single], [offer(*item) for item in programs])
    assert [item.region.id for item in found] == expected
