"""How far estimates are from verdicts, learned from a few of them, and how sure that is.

A Gaussian process over the features of task and schedule, of log(verdict / estimate): a constant that all
share, a linear part that carries over to what was never tried, and a smooth part that remembers what lies
near. Its prior says that an estimate is right within a fifth; noise is what verdicts of one schedule under
other names differ by. Scales are fitted once there are enough records for it. Predictions are those of
Rasmussen and Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import field, frozen

from evokernel_core.domain.tuning_record import TuningRecord

FEWEST = 3
"""Records below which estimates are taken as they are."""
MOST = 300
"""The latest records that are looked at: the work grows with their cube."""
_ENOUGH = 20
"""Records from which the scales are fitted, again after as many more."""
CONFIDENCE = 1.0
"""Standard deviations below the mean at which an untried schedule is ranked (ours; GP-UCB leaves it open)."""

Features = Mapping[str, float]


@frozen
class Expected:
    """log(verdict / estimate) of a schedule: its mean, and the standard deviation of that mean."""

    mean: float = 0.0
    deviation: float = 0.0

    @property
    def factor(self) -> float:
        """What to multiply an estimate by."""
        return math.exp(self.mean)

    @property
    def hopeful(self) -> float:
        """The same at the lower end of what is likely."""
        return math.exp(self.mean - CONFIDENCE * self.deviation)


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
        names, model = self._model
        mean, deviation = model.predict(_matrix(many, names), return_std=True)
        return tuple(Expected(float(m), float(d)) for m, d in zip(mean, deviation, strict=True))


UNTAUGHT = Residual()
"""Takes estimates as they are."""


def learned(records: Sequence[TuningRecord]) -> Residual:
    """Fits the latest records, given newest first."""
    latest = tuple(record for record in records if not record.failure)[:MOST]
    if len(latest) < FEWEST:
        return Residual(latest)
    return Residual(latest, _fitted(latest))


@frozen
class Trust:
    """How far estimates of one family's schedules are from their ``verdicts``: ``mean`` as it is expected of
    the next one, in times the estimate, and the ends of what is likely."""

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
    spread = CONFIDENCE * math.fsum(item.deviation for item in found) / count
    return Trust(family, count, *map(math.exp, (mean, mean - spread, mean + spread)))


@lru_cache(maxsize=4)
def _fitted(records: tuple[TuningRecord, ...]) -> Any:
    """Feature names in their columns, and the regression."""
    from sklearn.gaussian_process import GaussianProcessRegressor  # a second to load: only with records

    rows = [dict(record.features) for record in records]
    names = tuple(sorted({name for row in rows for name in row}))
    kernel = _scales(records, names) if len(records) >= _ENOUGH else _prior()
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    return names, model.fit(_matrix(rows, names), _targets(records))


def _prior() -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    shared, linear = ConstantKernel(0.2**2), ConstantKernel(0.1**2) * DotProduct(0.0, "fixed")
    near = ConstantKernel(0.1**2) * RBF(1.0)
    return shared + linear + near + WhiteKernel(0.03**2, (0.005**2, 0.5**2))


def _scales(records: tuple[TuningRecord, ...], names: tuple[str, ...]) -> Any:
    """The prior with scales under which the records are most likely; those of the newest full batch stay
    until there is another."""
    whole = records[len(records) % _ENOUGH :]
    return _most_likely(whole, names)


@lru_cache(maxsize=4)
def _most_likely(records: tuple[TuningRecord, ...], names: tuple[str, ...]) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor

    rows = [dict(record.features) for record in records]
    model = GaussianProcessRegressor(_prior(), alpha=0.0, random_state=0)
    with _quiet():
        return model.fit(_matrix(rows, names), _targets(records)).kernel_


@contextmanager
def _quiet() -> Iterator[None]:
    """A scale at the end of its range is no news: the data say nothing about it."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _targets(records: Sequence[TuningRecord]) -> np.ndarray[Any, Any]:
    return np.array([record.residual for record in records])


def _matrix(rows: Sequence[Features], names: Sequence[str]) -> np.ndarray[Any, Any]:
    """A row of weights each; what a name was never seen for says nothing."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])
