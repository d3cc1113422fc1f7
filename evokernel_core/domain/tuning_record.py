"""TuningRecord: a schedule's estimate beside its verdict."""

from __future__ import annotations

import math

from attrs import field, frozen

from evokernel_core.domain.verdict import LatencySource


@frozen
class TuningRecord:
    """``estimate_us`` is what the author said a schedule would take on ``chip``, ``latency_us`` what the
    verdict of ``verifier`` gave, measured or modelled as ``source`` says. ``features`` describe task and
    schedule, name to weight. ``failure`` is the class of error of a schedule that failed, which has neither
    latency nor source. ``seq`` is its place in the memory, 0 for none."""

    task_id: str
    source_id: str
    chip: str
    verifier: str
    family: str
    estimate_us: float
    latency_us: float | None
    features: tuple[tuple[str, float], ...] = ()
    failure: str = ""
    source: LatencySource | None = None
    seq: int = field(default=0, eq=False)

    @property
    def residual(self) -> float:
        """log(verdict / estimate): 0 for an estimate that was right. Raises ValueError for a failure."""
        if self.latency_us is None:
            raise ValueError("a schedule that failed has no residual")
        return math.log(self.latency_us / self.estimate_us)
