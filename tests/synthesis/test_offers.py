"""Which regions are offered: single kernels, or programs where these save more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.verdict import Baseline, Latency, LatencySource
from evokernel_core.hardware.accuracy import (
    ANY_SPREAD,
    EAGER_SPREAD,
    MODEL_ERROR,
    eager_spread,
    error_of_quotient,
)
from evokernel_core.synthesis.offers import Estimate, Offer, choose, side_by_side, why_left_alone
from tests.synthesis.conftest import make_task

ERROR = 100 * error_of_quotient(ANY_SPREAD[0])
"""What a saving of 100 microseconds has to exceed."""


def offer(name: str, lines: tuple[int, int], saved: float | None) -> Offer:
    """A region of whole lines that saves so many microseconds of 100; None: unsupported."""
    status = RegionStatus.UNSUPPORTED if saved is None else RegionStatus.CANDIDATE
    span = Span(lines[0], 0, lines[1] + 1, 0)
    region = Region(name, "m.py", "M.forward", span, "", "", "other", status)
    estimate = None if saved is None else Estimate(100.0, 100.0 - saved, 1.0, "ascend910b1")
    return Offer(region, estimate)


@pytest.mark.parametrize(
    ("single", "programs", "expected"),
    [
        # a program that saves more than what it overlaps stands in its place
        ([("a", (1, 1), 30), ("b", (2, 2), 40)], [("ab", (1, 3), 72)], ["ab"]),
        # one that saves less does not
        ([("a", (1, 1), 30), ("b", (2, 2), 40)], [("ab", (1, 3), 68)], ["a", "b"]),
        # a kernel that is slower is not applied: it takes nothing from the others
        ([("a", (1, 1), -50), ("b", (2, 2), 40)], [("ab", (1, 3), 38)], ["a", "b"]),
        # what no single kernel covers is covered by a program, worthwhile or not
        ([("a", (1, 1), 30), ("x", (2, 2), None)], [("ax", (1, 2), 32)], ["ax"]),
        ([("a", (1, 1), 30), ("x", (2, 2), None)], [("ax", (1, 2), 28)], ["a"]),
        ([("x", (2, 2), None)], [("x2", (2, 2), -3)], ["x2"]),
        # what no family covers stays, with its reason
        ([("a", (1, 1), 30), ("x", (5, 5), None)], [("a", (1, 1), 30), ("x", (5, 5), None)], ["a", "x"]),
        # what lies in a function that a program's calls is no longer said, what it leaves open is
        ([("a", (1, 1), 30), ("x", (9, 9), None)], [("ab", (1, 3), 72)], ["ab"]),
        ([("a", (1, 1), 30), ("x", (9, 9), None)], [("ab", (1, 3), 72), ("y", (9, 9), None)], ["ab", "y"]),
        ([("a", (1, 1), 30), ("x", (9, 9), None)], [("ab", (1, 3), 72), ("y", (8, 9), None)], ["ab", "x"]),
        # a program in the place of a single kernel that cannot be had: the command line lost these
        ([("x", (2, 2), None)], [("x", (2, 2), 40)], ["x"]),
        # programs apart from each other are chosen one by one
        ([("a", (1, 1), 30), ("b", (7, 7), 40)], [("p", (1, 2), 34), ("q", (6, 7), 36)], ["p", "b"]),
        # a gain within the model's own error counts as none
        ([("a", (1, 1), ERROR / 2)], [("ab", (1, 2), ERROR - 1)], ["a"]),
        ([("a", (1, 1), ERROR - 1), ("b", (2, 2), ERROR - 1)], [("ab", (1, 2), ERROR + 1)], ["ab"]),
    ],
)
def test_what_is_offered(single: list[Any], programs: list[Any], expected: list[str]) -> None:
    found = choose(side_by_side([offer(*item) for item in single], [offer(*item) for item in programs]))
    assert [item.region.id for item in found] == expected


@pytest.mark.parametrize(
    ("single", "programs", "expected"),
    [
        # the smaller first, and a program stays beside what lies in it
        ([("a", (1, 1), 10), ("b", (2, 2), 20)], [("ab", (1, 3), 31)], ["a", "ab", "b"]),
        # one that is modelled slower is a person's choice too
        ([("a", (1, 1), 10)], [("ab", (1, 3), -5)], ["a", "ab"]),
        # the same lines are offered once
        ([("a", (1, 1), 10)], [("p", (1, 1), 12)], ["a"]),
        # what a program computes is not said to be unsupported, there and in the functions that it calls
        ([("x", (2, 2), None), ("helper", (9, 9), None)], [("p", (1, 3), 4)], ["p"]),
        # what none computes is, with the reason of the program where that is of the same code
        ([("x", (5, 5), None)], [("p", (1, 3), 4), ("y", (5, 5), None)], ["p", "y"]),
        ([("x", (5, 5), None)], [("p", (1, 3), 4), ("y", (4, 5), None)], ["p", "x"]),
        # and where no single kernel is refused, the program's own refusal
        ([("a", (1, 1), 20)], [("y", (4, 5), None)], ["a", "y"]),
        ([("x", (5, 5), None)], [], ["x"]),
    ],
)
def test_what_a_person_may_choose(single: list[Any], programs: list[Any], expected: list[str]) -> None:
    found = side_by_side([offer(*item) for item in single], [offer(*item) for item in programs])
    assert [item.region.id for item in found] == expected


@pytest.mark.parametrize(
    ("number", "lines", "expected"),
    [
        (1, (1, 3), ["a"]),  # the kernel of its only expression
        (2, (1, 3), ["a", "p"]),
        (1, (5, 7), ["a", "p"]),  # the same code elsewhere
    ],
)
def test_the_same_kernel_is_no_choice(number: int, lines: tuple[int, int], expected: list[str]) -> None:
    """A method that only returns one expression was offered twice, with the same figures."""
    single, program = (
        evolve(item, region=evolve(item.region, task=make_task(number)))
        for item, number in ((offer("a", (2, 2), 20), 1), (offer("p", lines, 20), number))
    )
    assert sorted(item.region.id for item in side_by_side([single], [program])) == expected


@pytest.mark.parametrize(
    ("now", "after", "source", "wins"),
    [
        (100.0, 100.0 - ERROR - 0.1, "modelled", True),
        (100.0, 100.0 - ERROR + 0.1, "modelled", False),
        (100.0, 99.0, "measured", True),
        (100.0, 101.0, "measured", False),
        (100.0, 130.0, "modelled", False),
        (0.0, 1.0, "modelled", False),
    ],
)
def test_winners_gain_more_than_the_error_of_their_figures(
    now: float, after: float, source: str, wins: bool
) -> None:
    assert Estimate(now, after, 1.0, "ascend910b1", source).wins == wins
    latency = Latency(after, LatencySource(source), "ascend910b1", 1, (), "MTE2", 1.0, now)
    assert (why_left_alone(latency) == "") == wins


def test_the_models_error_is_the_documented_one() -> None:
    """The page that benchmarks/latency_model.py writes."""
    page = (Path(__file__).parents[2] / "docs" / "results" / "latency.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| held out |")]
    assert f"| {MODEL_ERROR:.1%} |" in row


def test_what_a_program_displaces_is_left_to_offer() -> None:
    single = [offer("a", (1, 1), 30), offer("x", (2, 2), None)]
    (found,) = choose(side_by_side(single, [offer("ax", (1, 2), 32)]))
    assert [item.region.id for item in found.instead] == ["a"]


@pytest.mark.parametrize(
    ("baseline", "after", "wins"),
    [
        (Baseline(100.0, 97.0, 120.0), 84.0, True),
        (Baseline(100.0, 69.0, 111.0), 84.0, False),  # a category whose figures are known worse
        (Baseline(100.0, 69.0, 111.0), 60.0, True),
        (Baseline(100.0, 100.0, 100.0, "a row"), 85.0, True),  # measured: the kernel's own error is left
        (Baseline(100.0, 100.0, 100.0, "a row"), 89.0, False),
    ],
)
def test_what_is_offered_follows_from_both_errors(baseline: Baseline, after: float, wins: bool) -> None:
    estimate = Estimate(100.0, after, 1.0, "ascend910b1", baseline=baseline)
    assert estimate.wins == wins
    latency = Latency(
        after, LatencySource.MODELLED, "ascend910b1", 1, (), "MTE2", 1.0, 100.0, baseline=baseline
    )
    assert (why_left_alone(latency) == "") == wins


@pytest.mark.parametrize("category", [*EAGER_SPREAD, "loss", "no such category"])
def test_a_figure_lies_in_its_own_interval(category: str) -> None:
    low, high = eager_spread(category)
    assert 0 < low <= 1.0 <= high
    assert error_of_quotient(1.0) <= error_of_quotient(low) < 1.0
