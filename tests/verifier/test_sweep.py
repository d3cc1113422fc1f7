"""Sizes at which a kernel's host code decides otherwise than at most: they are found by asking it alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from attrs import evolve

from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates.landmarks import Landmarks, small_cases
from evokernel_core.verifier.gates.sweep import MOST_ASKED, MOST_UNUSUAL, RANKED, sweep_of, unusual_sizes
from tests.verifier.conftest import make_task

TASK = make_task("softmax")
STEP, CORES = 64, 48
Holds = Callable[[int, int], bool]


def words_of(sizes: Sequence[tuple[int, ...]], flag: Callable[[int, int], int]) -> npt.NDArray[np.uint32]:
    """The words of an honest tiling and those of ``flag``."""
    rows = []
    for first, second in sizes:
        share = -(-first // CORES)
        pitch = -(-second // STEP) * STEP
        rows.append((1, -(-first // share), first, second, share, pitch, flag(first, second)))
    return np.array(rows, np.uint32)


def found(flag: Callable[[int, int], int], number: int = 1) -> list[tuple[int, int]]:
    draw = Draw(f"{number:032x}")
    sweep = sweep_of(TASK, draw)
    seen = unusual_sizes(TASK, draw, sweep, words_of(sweep.sizes, flag))
    return [(sizes["s0"], sizes["s1"]) for sizes in seen]


HIDDEN: dict[str, Holds] = {
    "a product that is one number": lambda _, n: n * 7 == 1393,
    "a remainder": lambda _, n: n % 97 == 13 and n > 97,
    "digits": lambda _, n: n > 10 and sum(map(int, str(n))) == 19,
    "a square": lambda m, n: m == n and m > 9,
    "one twice the other": lambda m, n: m == 2 * n and n > 9,
    "one bit": lambda m, _: m.bit_count() == 7,
    "of the first dimension": lambda m, _: (m ^ 85) == 0,
}


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", HIDDEN)
def test_sizes_that_arithmetic_hides_are_found_where_a_word_tells_them(name: str, number: int) -> None:
    holds = HIDDEN[name]
    seen = found(lambda m, n: int(holds(m, n)), number)
    assert seen and holds(*seen[0]) and len(seen) <= RANKED + MOST_UNUSUAL


def test_a_number_that_the_text_asks_for_comes_first() -> None:
    """Left out for three sharers: a word that is no decision, among others that are rare."""
    draw = Draw("0" * 32)
    sweep = sweep_of(TASK, draw)
    words = words_of(sweep.sizes, lambda _, n: -(-n // 512))
    first = unusual_sizes(TASK, draw, sweep, words, (3,))[:MOST_ASKED]
    assert any(1024 < sizes["s1"] <= 1536 for sizes in first)


OFF: dict[str, Callable[[int, int], int]] = {
    "one element less": lambda _, n: n - (n == 199),
    "a row more": lambda m, n: m * 64 + 64 * (m == 77),
}


@pytest.mark.parametrize("name", OFF)
def test_words_off_the_line_of_their_neighbours_are_found(name: str) -> None:
    assert {"one element less": 199, "a row more": 77}[name] in found(OFF[name])[0]


def test_an_ordinary_tiling_has_nothing_unusual() -> None:
    assert found(lambda m, n: 0) == found(lambda m, n: m * n) == []


@pytest.mark.parametrize("most", [320, 1000, 4096])
def test_the_largest_size_that_is_taken_comes_first(most: int) -> None:
    """Wants the border at which a kernel declines, where its last tile is full, to be left out."""
    draw = Draw("0" * 32)
    sweep = sweep_of(TASK, draw, (8, 64, most, 10496))
    words = words_of(sweep.sizes, lambda _, n: 0)
    words[[n > most for _, n in sweep.sizes]] = 0
    first = unusual_sizes(TASK, draw, sweep, words)[0]
    assert first["s1"] == most and first["s0"] < 10
    assert len(sweep.sizes) < 2000


def test_what_is_found_is_run_with_data() -> None:
    unusual = [{"s0": 4, "s1": 199}, {"s0": 1 << 20, "s1": 1 << 12}]
    plans = small_cases(TASK, Draw("0" * 32), Landmarks(), (), CORES, unusual)
    assert [dict(plan.sizes) for plan in plans].count(unusual[0]) == 1
    assert unusual[1] not in [dict(plan.sizes) for plan in plans]


def test_a_host_code_that_crashes_tells_nothing() -> None:
    draw = Draw("0" * 32)
    sweep = sweep_of(TASK, draw)
    assert (
        unusual_sizes(TASK, draw, sweep, None)
        == unusual_sizes(TASK, draw, sweep, np.empty((0, 9), "u4"))
        == ()
    )
    assert sweep_of(evolve(TASK, symbols=()), draw).sizes == ()


def test_a_word_that_the_text_asks_for_is_found() -> None:
    draw = Draw("0" * 32)
    sweep = sweep_of(TASK, draw)
    words = words_of(sweep.sizes, lambda m, n: m * n // 50)
    seen = unusual_sizes(TASK, draw, sweep, words, (77,))
    assert any(sizes["s0"] * sizes["s1"] // 50 == 77 for sizes in seen[:3])


def _neighbours(run: Sequence[tuple[int, ...]]) -> Iterator[bool]:
    for one, other in itertools.pairwise(run):
        yield sum(abs(a - b) for a, b in zip(one, other, strict=True)) == 1


def test_a_sweep_has_runs_of_neighbours_of_each_dimension() -> None:
    sweep = sweep_of(TASK, Draw("0" * 32))
    assert len(sweep.runs) == len(TASK.symbols) and all(all(_neighbours(run)) for run in sweep.runs)
    assert sum(first == second for first, second in sweep.apart) > 10
    assert len(sweep.sizes) < 2000
