"""How far estimates are from verdicts, learned from a few of them, and how sure that is.

A Gaussian process over the features of task and schedule, of log(verdict / estimate): a constant that all
share, a linear part that carries over to what was never tried, and a smooth part that remembers what lies
near. Its prior says that an estimate is right within a fifth; noise is what verdicts of one schedule under
other names differ by. Once there are enough records, the likeliest of a few scales are taken. Predictions
are those of Rasmussen and Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from attrs import field, frozen

from evokernel_core.domain.tuning_record import TuningRecord

FEWEST = 3
"""Records below which estimates are taken as they are."""
MOST = 120
"""The latest records that are looked at: the work grows with their cube."""
_ENOUGH = 8
"""Records from which scales are chosen by how likely they make the newest ``_WEIGHED``, ``_AGAIN`` after as
many more."""
_AGAIN = 20
_WEIGHED = 60
_SHARED = 0.2
"""Standard deviation of what all estimates of a chip are off by."""
_NOISES = (0.03, 0.1, 0.3, 0.8)
_SCALES = tuple(product((0.1, 0.5, 2.0), (0.1, 0.5), (1.0, 0.3, 0.1), _NOISES))
"""Standard deviations of the linear and the smooth part, how far the latter reaches, and the standard
deviation of noise; the first of each are the prior."""
CONFIDENCE = 1.0
"""Standard deviations that are likely (ours)."""

Features = Mapping[str, float]


@frozen
class Expected:
    """log(verdict / estimate) of a schedule: its mean, the standard deviation of that mean, and by how much
    verdicts scatter around it."""

    mean: float = 0.0
    deviation: float = 0.0
    noise: float = 0.0

    @property
    def factor(self) -> float:
        """What to multiply an estimate by."""
        return math.exp(self.mean)

    @property
    def spread(self) -> float:
        """How many times as long, or as short, a schedule may take as is expected."""
        return math.exp(CONFIDENCE * math.hypot(self.deviation, self.noise))


AS_ESTIMATED = Expected()


@frozen
class Residual:
    """What records of one chip say of estimates."""

    records: tuple[TuningRecord, ...] = ()
    _model: Any = field(default=None, eq=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether there are enough records to say anything."""
        return self._model is not None

    def of(self, many: Sequence[Features]) -> tuple[Expected, ...]:
        """What to expect of schedules with these features."""
        if self._model is None or not many:
            return (AS_ESTIMATED,) * len(many)
        names, model, noise = self._model
        mean, deviation = model.predict(_matrix(many, names), return_std=True)
        known = np.sqrt(np.maximum(deviation**2 - noise**2, 0.0))  # the prediction's has the noise in it
        return tuple(Expected(float(m), float(d), noise) for m, d in zip(mean, known, strict=True))


UNTAUGHT = Residual()
"""Takes estimates as they are."""


def learned(records: Sequence[TuningRecord]) -> Residual:
    """Fits the latest records, given newest first."""
    latest = tuple(record for record in records if not record.failure)[:MOST]
    if len(latest) < FEWEST or not _names(latest):
        return Residual(latest)
    return Residual(latest, _fitted(latest))


@frozen
class Trust:
    """How far estimates of one family's schedules are from their ``verdicts``: ``mean`` as it is expected of
    the next one, in times the estimate, and one standard deviation about it."""

    family: str
    verdicts: int
    mean: float
    low: float
    high: float


def trust(records: Sequence[TuningRecord]) -> tuple[Trust, ...]:
    """Of each family with a latency, most verdicts first."""
    model = learned(records)
    families = Counter(record.family for record in model.records)
    return tuple(_trust(model, family, count) for family, count in families.most_common())


def _trust(model: Residual, family: str, count: int) -> Trust:
    found = model.of([dict(record.features) for record in model.records if record.family == family])
    mean = math.fsum(item.mean for item in found) / count
    spread = math.fsum(math.hypot(item.deviation, item.noise) for item in found) / count
    return Trust(family, count, *map(math.exp, (mean, mean - spread, mean + spread)))


@lru_cache(maxsize=4)
def _fitted(records: tuple[TuningRecord, ...]) -> Any:
    """Feature names in their columns, and the regression."""
    names = _names(records)
    settled = records[0].seq - records[0].seq % _AGAIN
    weighed = tuple(record for record in records if record.seq <= settled)[:_WEIGHED]
    scales = _likeliest(weighed) if len(weighed) >= _ENOUGH else _of_few(records)
    return names, _regression(records, names, scales), scales[-1]


def _of_few(records: tuple[TuningRecord, ...]) -> tuple[float, ...]:
    """The prior, with as much noise as makes them likely."""
    names, prior = _names(records), _SCALES[0][:-1]
    return max(((*prior, noise) for noise in _NOISES), key=lambda one: _likelihood(records, names, one))


@lru_cache(maxsize=4)
def _likeliest(records: tuple[TuningRecord, ...]) -> tuple[float, ...]:
    """The scales under which the records are most likely."""
    names = _names(records)
    return max(_SCALES, key=lambda one: _likelihood(records, names, one))


def _likelihood(records: Sequence[TuningRecord], names: Sequence[str], scales: tuple[float, ...]) -> float:
    return float(_regression(records, names, scales).log_marginal_likelihood_value_)


def _names(records: Iterable[TuningRecord]) -> tuple[str, ...]:
    return tuple(sorted({name for record in records for name, _ in record.features}))


def _regression(records: Sequence[TuningRecord], names: Sequence[str], scales: tuple[float, ...]) -> Any:
    """Gaussian process regression with one of ``_SCALES``."""
    from sklearn.gaussian_process import GaussianProcessRegressor  # a second to load: only with records
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    linear, near, reach, noise = scales
    kernel = (
        ConstantKernel(_SHARED**2)
        + ConstantKernel(linear**2) * DotProduct(0.0, "fixed")
        + ConstantKernel(near**2) * RBF(reach)
        + WhiteKernel(noise**2)
    )
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    return model.fit(_matrix([dict(record.features) for record in records], names), _targets(records))


def _targets(records: Sequence[TuningRecord]) -> np.ndarray[Any, Any]:
    return np.array([record.residual for record in records])


def _matrix(rows: Sequence[Features], names: Sequence[str]) -> np.ndarray[Any, Any]:
    """A row of weights each; what a name was never seen for says nothing."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])
