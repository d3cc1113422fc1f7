"""What a kernel loads again and again comes from L2 where that holds it."""

from __future__ import annotations

from attrs import evolve

from evokernel_core.hardware.ascend.chip import Chip


def with_hits(chip: Chip, once: int, times: float) -> Chip:
    """The chip at the rates of loads that read ``once`` bytes so many times, of which the first reaches
    memory; the chip itself where L2 does not hold them beside what is written."""
    if once > chip.l2_bytes // 2 or times <= 1:
        return chip

    def mean(miss: float, hit: float) -> float:
        return times / (1 / miss + (times - 1) / hit)

    mte, gm = chip.mte, chip.gm
    loads = mean(mte.load_bytes_per_cycle, mte.load_hit_bytes_per_cycle)
    memory = mean(gm.hbm_achieved_gbps, gm.l2_gbps)
    return evolve(
        chip,
        mte=evolve(mte, load_bytes_per_cycle=loads),
        gm=evolve(gm, hbm_achieved_gbps=memory),
    )
