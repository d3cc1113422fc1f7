"""What indices, divisors and truth values are drawn: each pattern that a kernel may treat apart, in the
values that every verification has (``mixed``)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from evokernel_core.capture.agent.reference.index_ranges import Range
from evokernel_core.capture.agent.reference.patterns import draw_integers, draw_truths
from evokernel_core.verifier.gates.mixture import MIXED

SEEDS = range(20)
Holds = Callable[[torch.Tensor], bool]


def _in_a_row(step: int) -> Holds:
    """Whether some eight neighbours are each so far from the one before."""
    return lambda values: bool((values.diff() == step).unfold(0, 7, 1).all(-1).any())


INDICES: dict[str, Holds] = {
    "eight that rise by one": _in_a_row(1),
    "eight that fall by one": _in_a_row(-1),
    "eight that are equal": _in_a_row(0),
    "pairs of equal ones that rise": lambda values: bool(
        ((values[2:] == values[:-2] + 1) & (values[1:-1] == values[:-2])).any()
    ),
    "the first": lambda values: 0 in values,
    "the last": lambda values: 499 in values,
}
TRUTHS: dict[str, Holds] = {
    "a row all true": lambda rows: bool(rows.all(-1).any()),
    "a row all false": lambda rows: bool((~rows).all(-1).any()),
    "a row whose first half is true": lambda rows: bool((rows[:, :50].all(-1) & ~rows.all(-1)).any()),
    "a row whose last half is true": lambda rows: bool((rows[:, 50:].all(-1) & ~rows.all(-1)).any()),
    "a row with few that are true": lambda rows: bool(((rows.sum(-1) > 0) & (rows.sum(-1) < 12)).any()),
    "a row with few that are false": lambda rows: bool(((rows.sum(-1) > 88) & (rows.sum(-1) < 100)).any()),
}
DIVISORS: dict[str, Holds] = {
    "negative": lambda values: bool((values < 0).any()),
    "positive": lambda values: bool((values > 0).any()),
    "beyond 16 bits": lambda values: bool((values.abs() > 1 << 17).any()),
    "of one digit": lambda values: bool((values.abs() < 10).any()),
}


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("name", INDICES)
def test_indices_come_in_every_pattern(name: str) -> None:
    drawn = (draw_integers((2000,), Range(0, 500), MIXED, _generator(seed)) for seed in SEEDS)
    assert all(INDICES[name](values) for values in drawn)


@pytest.mark.parametrize("name", TRUTHS)
def test_truth_values_come_in_rows_of_every_kind(name: str) -> None:
    assert all(TRUTHS[name](draw_truths((128, 100), MIXED, _generator(seed))) for seed in SEEDS)


@pytest.mark.parametrize("name", DIVISORS)
@pytest.mark.parametrize("distribution", [MIXED, "normal"])
def test_divisors_are_of_every_width_and_never_0(name: str, distribution: str) -> None:
    limit = Range(-(1 << 31), 1 << 31, divides=True)
    drawn = [draw_integers((500,), limit, distribution, _generator(seed)) for seed in SEEDS]
    assert all(DIVISORS[name](values) and 0 not in values for values in drawn)


@pytest.mark.parametrize("distribution", [MIXED, "normal", "structured", "sorted", "rows", "ties"])
def test_indices_are_in_range(distribution: str) -> None:
    for seed in SEEDS:
        values = draw_integers((3, 400), Range(-7, 7), distribution, _generator(seed))
        assert int(values.min()) >= -7 and int(values.max()) == 6
        assert draw_integers((), Range(0, 1), distribution, _generator(seed)) == 0


def test_few_classes_may_all_be_ignored() -> None:
    limit = Range(0, 9, extra=-100)
    drawn = [draw_integers((3,), limit, "normal", _generator(seed)) for seed in range(40)]
    assert 8 < sum(bool((values == -100).all()) for values in drawn) < 32
    assert all(draw_integers((1,), limit, "uniform", _generator(seed)) == -100 for seed in SEEDS)
