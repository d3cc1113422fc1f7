"""Loads that reach L2 but for the first time."""

from __future__ import annotations

import pytest

from evokernel_core.hardware.ascend.chip import Chip
from evokernel_core.targets.ascendc.kernels.reloads import with_hits


@pytest.mark.parametrize("times", [2.0, 3.5, 1000.0])
def test_loads_take_what_the_first_and_the_others_take(times: float, chip: Chip) -> None:
    once = 1 << 20
    found = with_hits(chip, once, times)
    first, again = once / chip.gm.memory_bytes_us, once / chip.gm.l2_bytes_us
    assert once * times / found.gm.memory_bytes_us == pytest.approx(first + (times - 1) * again)
    first, again = once / chip.mte.load_bytes_per_cycle, once / chip.mte.load_hit_bytes_per_cycle
    assert once * times / found.mte.load_bytes_per_cycle == pytest.approx(first + (times - 1) * again)


def test_what_is_loaded_once_or_does_not_stay_in_l2_comes_from_memory(chip: Chip) -> None:
    assert with_hits(chip, 1 << 20, 1.0) == chip
    assert with_hits(chip, chip.l2_bytes, 10.0) == chip
