"""Kernels that are wrong at certain sizes, or with certain values at certain sizes, and right at all others.
Each is an honest kernel with a few words changed, and must fail wherever a draw has what it is wrong for;
such draws are not rare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice, product

import pytest
from attrs import evolve

from evokernel_core.capture.reference import INFINITIES, NANS, base_of
from evokernel_core.domain.task import KernelTask, Symbol
from evokernel_core.hardware.ascend.chip import load_chip
from evokernel_core.targets.ascendc.target import ascendc
from evokernel_core.verifier.draw import Draw
from evokernel_core.verifier.gates import cases, full_size
from evokernel_core.verifier.gates.cases import CasePlan, total_bytes
from evokernel_core.verifier.gates.one_case import is_random
from tests.attacks.correctness.test_learned import (
    DRAWS,
    NUMERIC,
    RELU,
    SCALE,
    Cheat,
    changed,
    home,
    task_of,
    verdict_of,
)
from tests.tables import few
from tests.verifier.conftest import make_task, read_source

__all__ = ["home"]

Holds = Callable[[CasePlan], bool]
TILE, MEMBER = "tile_ = tiling.tile;", "uint32_t tile_ = 0;"
BARRIER = "AscendC::PipeBarrier<PIPE_V>();"


def _relu(condition: str, instead: str = "AscendC::Abs(y, x, length);") -> dict[str, str]:
    """Another instruction where the condition on the number of elements holds."""
    return {
        RELU: f"if (wrong_) {{ {instead} }} else {{ {RELU} }}",
        TILE: f"{TILE} const uint32_t total = tiling.total; wrong_ = {condition};",
        MEMBER: f"{MEMBER} bool wrong_ = false;",
    }


def _softmax(condition: str) -> dict[str, str]:
    return {SCALE: f"Muls(values, values, ({condition} ? 1.1f : 1.0f) / sum, columns);"}


def _power(size: int) -> bool:
    return size > 64 and size & (size - 1) == 0


def _sizes(holds: Callable[[dict[str, int]], bool]) -> Holds:
    """Cases of such sizes with values of both signs: of others a relu has the same result as an abs."""
    return lambda plan: (
        holds(dict(plan.sizes))
        and is_random(plan.distribution)
        and base_of(plan.distribution) != "uniform"
        and "+2^" not in plan.distribution
    )


OWN = {"relu": {"s0": 100_000}, "softmax": {"s0": 256, "s1": 4096}}


def _own(name: str, *distributions: str) -> Holds:
    return lambda plan: dict(plan.sizes) == OWN[name] and plan.distribution in distributions


CLAMPED = f"AscendC::Mins(x, x, %s, length); {BARRIER} {RELU}"
ZEROED = {
    "float sum = result.GetValue(0);": "float sum = result.GetValue(0); if (sum != sum && columns == 4096) { "
    "Duplicate(values, 0.0f, columns); PipeBarrier<PIPE_V>(); sum = 1.0f; }"
}
CHEATS: list[tuple[Cheat, Holds, int]] = [
    (Cheat("powers of two", "relu", _relu("total > 64 && (total & (total - 1)) == 0"), NUMERIC),
     _sizes(lambda sizes: _power(sizes["s0"])), 5),
    (Cheat("rows of powers of two that are not the file's", "softmax",
           _softmax("(columns > 64 && columns < 4096 && (columns & (columns - 1)) == 0)"), NUMERIC),
     _sizes(lambda sizes: _power(sizes["s1"]) and sizes["s1"] < 4096), 4),
    (Cheat("many rows that are shorter than a vector, of even length", "softmax",
           _softmax("(rows > 100 && columns <= 16 && columns % 2 == 0)"), NUMERIC),
     _sizes(lambda sizes: sizes["s0"] > 100 and sizes["s1"] in (2, 4, 6, 8, 12, 16)), 16),
    (Cheat("few rows, where cores have none", "softmax",
           _softmax("(rows < 24 && rows % 2 == 0 && columns > 100)"), NUMERIC),
     _sizes(lambda sizes: sizes["s0"] in (2, 4, 6, 8, 12, 16) and sizes["s1"] > 100), 16),
    (Cheat("large values at the file's own size", "relu",
           _relu("total == 100000", CLAMPED % "60.0f"), NUMERIC),
     _own("relu", "mixed"), 1),
    (Cheat("infinities at the file's own size", "relu",
           _relu("total == 100000", CLAMPED % "3.4e38f"), NUMERIC),
     _own("relu", INFINITIES), 4),
    (Cheat("NaN at the file's own size", "softmax", ZEROED, NUMERIC), _own("softmax", NANS), 4),
]  # fmt: skip


def _draws(task: KernelTask, holds: Holds) -> Iterator[tuple[int, Draw]]:
    """The draws that have such a case, with their numbers."""
    for number in range(1, 200):
        draw = Draw(f"{number:032x}")
        if any(map(holds, cases.plan_cases(task, draw))):
            yield number, draw


@pytest.mark.parametrize(("cheat", "holds", "one_in"), CHEATS, ids=lambda item: getattr(item, "wants", ""))
def test_sizes_at_which_a_kernel_may_be_wrong_are_drawn_often(
    cheat: Cheat, holds: Holds, one_in: int
) -> None:
    found = list(islice(_draws(task_of(cheat), holds), 12))
    assert found[-1][0] <= 12 * one_in


@few(
    ("cheat", "holds", "place"),
    [(cheat, holds, place) for (cheat, holds, _), place in product(CHEATS, range(2))],
    keep=(0, 7, 12),
    ids=lambda item: getattr(item, "wants", ""),
)
def test_what_is_wrong_at_certain_sizes_fails_where_they_are_drawn(
    cheat: Cheat, holds: Holds, place: int
) -> None:
    _, draw = list(islice(_draws(task_of(cheat), holds), 2))[place]
    failed = verdict_of(task_of(cheat), changed(cheat), draw).failed_gate
    assert failed is not None and failed.code in cheat.codes, failed
    assert verdict_of(task_of(cheat), read_source(cheat.kernel), draw).feasible


NAMED = [
    Cheat("a row of exactly one tile", "relu", _relu("total == tiling.tile"), NUMERIC),
    Cheat("the primes next to 256", "relu", _relu("total == 251 || total == 257"), NUMERIC),
    Cheat("the primes next to 256, hidden", "softmax",
          _softmax("(columns == (1 << 8) - 5 || (columns ^ 0x101) == 0)"), NUMERIC),
    Cheat("one row more than cores", "softmax", _softmax("(rows == uint32_t(%d) + 1)"), NUMERIC),
    Cheat("one row fewer than cores, and one more than twice", "softmax",
          _softmax("(rows + 1 == uint32_t(%d) || rows == 2 * uint32_t(%d) + 1)"), NUMERIC),
    Cheat("aligned sizes beyond 4,096", "relu", _relu("total > 4096 && total < 60000 && total % 64 == 0"),
          NUMERIC),
    Cheat("long aligned rows", "softmax", _softmax("(columns > 4096 && columns % 64 == 0)"), NUMERIC),
]  # fmt: skip
"""Sizes that the text, the tiling data or the number of cores tell: all are wrong in every draw."""


@few("cheat", NAMED, keep=(0, 2, 3, 6), ids=lambda cheat: cheat.wants)
def test_sizes_that_a_kernel_names_are_wrong_in_every_draw(cheat: Cheat) -> None:
    cores = ascendc(load_chip()).device.parallel
    named = evolve(cheat, changes={old: new.replace("%d", str(cores)) for old, new in cheat.changes.items()})
    for draw in DRAWS:
        failed = verdict_of(task_of(named), changed(named), draw).failed_gate
        assert failed is not None and failed.code in cheat.codes, failed


TWICE = Cheat("two tiles exactly", "relu", _relu("total == 2 * tiling.tile"), NUMERIC)


@pytest.mark.thorough
def test_twice_a_word_of_the_tiling_data_is_met_in_some_draws() -> None:
    """A class whose floor is a third of the verifications: eight draws miss it once in thirty times."""
    draws = (Draw(f"{number:032x}") for number in range(8))
    assert any(verdict_of(task_of(TWICE), changed(TWICE), draw).failed_gate for draw in draws)


FAR = Cheat("ten times the file's size", "relu", _relu("total > 1000000"), NUMERIC)


def test_what_is_wrong_far_beyond_the_files_sizes_fails_in_every_draw() -> None:
    """Wants sizes of more than eight times the file's to be wrong; each draw has one of 8 to 64 times."""
    task = make_task("relu")
    for draw in DRAWS:
        failed = verdict_of(task, changed(FAR), draw).failed_gate
        assert failed is not None and "beyond the sizes of the file" in failed.feedback
    far = [full_size.far_sizes(task, Draw(f"{n:032x}")) for n in range(40)]
    found = sorted(sizes["s0"] / 100_000 for sizes in far if sizes is not None)
    assert len(found) == 40 and found[0] >= 8 and 40 < found[-1] <= 65
    assert all(total_bytes(task, sizes) >= full_size.MANY_TURNS for sizes in far if sizes is not None)


def test_far_sizes_are_left_out_where_they_take_long() -> None:
    task = evolve(make_task("add"), symbols=(Symbol("s0", 4096), Symbol("s1", 40_000)))
    assert full_size.far_sizes(task, DRAWS[0]) is None
