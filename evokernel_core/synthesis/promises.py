"""How much of what estimates say of one step comes true, and how much they leave open.

Estimates of a task's schedules are compared with their verdicts, both as logarithms beside the task's mean:
a slope through zero, and the scatter around it. What all tasks say is where each task begins, so that a
few promises that did not come true on one task weigh there at once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import NormalDist

from attrs import frozen

from evokernel_core.domain.tuning_record import TuningRecord

_SPREAD = 0.05
"""What estimates leave open where nothing is known (ours; on KernelBench it was 0.075 beside the twin, most
of it by a few schedules, and the median 0.013)."""
_SAID, _VERDICTS = 0.05, 8.0
"""What is known before weighs as much as promises with this sum of squares, and as this many verdicts:
promises of 20 % on one task that gain nothing come to halve what is believed there."""
_NORMAL = NormalDist()


@frozen
class Promise:
    """Of a step that is said to take ``exp(x)`` of its start's time, ``exp(slope * x)`` is to be expected;
    ``spread`` is the standard deviation of the logarithm around it."""

    slope: float = 1.0
    spread: float = _SPREAD

    def learned(self, pairs: Sequence[tuple[float, float]], tasks: int = 1) -> Promise:
        """What to believe after ``pairs`` of logarithms (estimate, verdict) beside their tasks' means."""
        squares = math.fsum(said * said for said, _ in pairs)
        products = math.fsum(said * came for said, came in pairs)
        slope = (_SAID * self.slope + products) / (_SAID + squares)
        slope = min(max(slope, 0.0), 1.0)
        apart = math.fsum((came - slope * said) ** 2 for said, came in pairs)
        known = _VERDICTS + max(len(pairs) - tasks, 0)
        return Promise(slope, math.sqrt((_VERDICTS * self.spread**2 + apart) / known))


def expected_gain(mean: float, deviation: float) -> float:
    """What is gained on average where a loss counts as nothing: the expected improvement of Jones et al.,
    "Efficient Global Optimization of Expensive Black-Box Functions", equation 15."""
    if deviation <= 0.0 or not math.isfinite(mean):
        return max(mean, 0.0)
    z = mean / deviation
    return mean * _NORMAL.cdf(z) + deviation * _NORMAL.pdf(z)


def promise_of(records: Sequence[TuningRecord], task_id: str) -> Promise:
    """What records of one chip, none of them a failure, say of the next step on a task."""
    logs: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in records:
        said = math.log(record.estimate_us)
        logs[record.task_id].append((said, said + record.residual))
    centred = {id: _centred(pairs) for id, pairs in logs.items()}
    own = centred.pop(task_id, [])
    others = [pair for pairs in centred.values() for pair in pairs]
    return Promise().learned(others, len(centred)).learned(own)


def _centred(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    said, came = (math.fsum(column) / len(pairs) for column in zip(*pairs, strict=True))
    return [(one - said, other - came) for one, other in pairs]
