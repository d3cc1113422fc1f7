"""What a message about faster kernels says: what is gained, what it costs to review, and why."""

from __future__ import annotations

from pathlib import Path

import pytest
from evokernel_server.offers.announcement import Review, notice, review_of
from evokernel_server.offers.pending import Offer

from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.verdict import Latency, LatencySource

REGION = Region("r", "model.py", "Model.forward", Span(1, 0, 1, 9), "", "", "softmax", RegionStatus.CANDIDATE)


def latency(us: float, source: LatencySource = LatencySource.MODELLED) -> Latency:
    return Latency(us, source, "ascend910b1", 48, (), "MTE2", 40.0, 412.0)


def offer(old: float | None, new: float, source: LatencySource = LatencySource.MODELLED) -> Offer:
    installed = None if old is None else latency(old, source)
    return Offer("file:///m/model.py", Path("/m/model.py"), REGION, "softmax_1", "s", installed,
                 latency(new, source), "twin 0.1.0")  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "lines", "files"),
    [
        ({"a": "1\n2\n3\n", "b": "x\n"}, {"a": "1\n5\n3\n", "b": "x\n"}, 1, 1),
        ({"a": "1\n", "b": "x\n"}, {"a": "1\n2\n3\n", "b": ""}, 3, 2),
        ({}, {"a": "1\n2\n", "b": "x\n"}, 3, 2),
        ({"a": "1\n"}, {"a": "1\n"}, 0, 0),
    ],
)
def test_the_cost_of_a_review_is_what_differs(
    before: dict[str, str], after: dict[str, str], lines: int, files: int
) -> None:
    assert review_of(before, after, "") == Review(lines, files, "")


def test_one_refined_kernel() -> None:
    assert notice([(offer(60.0, 45.0), Review(12, 2, "Two rows a tile"))]) == (
        "EvoKernel: softmax in Model.forward (model.py) takes 25% less: 60.0 µs → 45.0 µs estimated on "
        "ascend910b1. To review: 12 lines in 2 files. Why: “Two rows a tile” was changed; it takes 1.1 "
        "times its roofline limit now."
    )


@pytest.mark.parametrize(
    ("new", "said"), [(30.9, "takes 48% less"), (59.4, "takes 1% less"), (59.8, "takes 0.3% less")]
)
def test_a_small_gain_is_not_said_to_be_none(new: float, said: str) -> None:
    assert said in notice([(offer(60.0, new), Review(1, 1, ""))])


def test_one_new_kernel() -> None:
    said = notice([(offer(None, 50.0, LatencySource.MEASURED), Review(180, 2, ""))])
    assert said.startswith(
        "EvoKernel: A kernel for softmax in Model.forward (model.py) is ready: 50.0 µs measured on ascend910"
    )
    assert "To review: 180 lines in 2 files." in said and "1.2 times its roofline limit" in said


def test_a_group_begins_with_the_greatest_gain_and_says_how_many_more() -> None:
    group = [(offer(60.0, 60.0 - n), Review(n, 1, "")) for n in range(10, 15)]
    said = notice(group)
    assert said.startswith(
        "EvoKernel: 5 kernels are pending. (1) softmax in Model.forward (model.py) takes 23%"
    )
    assert said.count("To review") == 3
    assert said.endswith("2 more are in the list.")


def test_words_of_others_are_one_line() -> None:
    assert "\n" not in notice([(offer(60.0, 45.0), review_of({}, {"a": "1"}, "a\nstep\n" * 100))])
