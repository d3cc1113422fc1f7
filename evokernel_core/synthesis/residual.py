"""How far estimates are from verdicts, learned from a few of them, and how sure that is.

A Gaussian process over the features of task and schedule, of log(verdict / estimate): a constant that all
share, a linear part that carries over to what was never tried, and a smooth part that remembers what lies
near. Its prior says that an estimate is right within a fifth; noise is what verdicts of one schedule under
other names differ by. Scales are fitted once there are enough samples for it. Predictions are those of
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

from evokernel_core.domain.sample import Sample

FEWEST = 3
"""Samples below which estimates are taken as they are."""
MOST = 300
"""The latest samples that are looked at: the work grows with their cube."""
_ENOUGH = 20
"""Samples from which the scales are fitted, again after as many more."""
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
    """What samples of one chip say of estimates."""

    samples: tuple[Sample, ...] = ()
    _model: Any = field(default=None, eq=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether there are enough samples to say anything."""
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


def learned(samples: Sequence[Sample]) -> Residual:
    """Fits the latest samples, given newest first."""
    latest = tuple(sample for sample in samples if not sample.failure)[:MOST]
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


def trust(samples: Sequence[Sample]) -> tuple[Trust, ...]:
    """Of each family with a latency, most verdicts first."""
    model = learned(samples)
    families = Counter(sample.family for sample in model.samples)
    return tuple(_trust(model, family, count) for family, count in families.most_common())


def _trust(model: Residual, family: str, count: int) -> Trust:
    found = model.of([dict(sample.features) for sample in model.samples if sample.family == family])
    mean = math.fsum(item.mean for item in found) / count
    spread = CONFIDENCE * math.fsum(item.deviation for item in found) / count
    return Trust(family, count, *map(math.exp, (mean, mean - spread, mean + spread)))


@lru_cache(maxsize=4)
def _fitted(samples: tuple[Sample, ...]) -> Any:
    """Feature names in their columns, and the regression."""
    from sklearn.gaussian_process import GaussianProcessRegressor  # a second to load: only with samples

    rows = [dict(sample.features) for sample in samples]
    names = tuple(sorted({name for row in rows for name in row}))
    kernel = _scales(samples, names) if len(samples) >= _ENOUGH else _prior()
    model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
    return names, model.fit(_matrix(rows, names), _targets(samples))


def _prior() -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    shared, linear = ConstantKernel(0.2**2), ConstantKernel(0.1**2) * DotProduct(0.0, "fixed")
    near = ConstantKernel(0.1**2) * RBF(1.0)
    return shared + linear + near + WhiteKernel(0.03**2, (0.005**2, 0.5**2))


def _scales(samples: tuple[Sample, ...], names: tuple[str, ...]) -> Any:
    """The prior with scales under which the samples are most likely; those of the newest full batch stay
    until there is another."""
    whole = samples[len(samples) % _ENOUGH :]
    return _most_likely(whole, names)


@lru_cache(maxsize=4)
def _most_likely(samples: tuple[Sample, ...], names: tuple[str, ...]) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor

    rows = [dict(sample.features) for sample in samples]
    model = GaussianProcessRegressor(_prior(), alpha=0.0, random_state=0)
    with _quiet():
        return model.fit(_matrix(rows, names), _targets(samples)).kernel_


@contextmanager
def _quiet() -> Iterator[None]:
    """A scale at the end of its range is no news: the data say nothing about it."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _targets(samples: Sequence[Sample]) -> np.ndarray[Any, Any]:
    return np.array([sample.residual for sample in samples])


def _matrix(rows: Sequence[Features], names: Sequence[str]) -> np.ndarray[Any, Any]:
    """A row of weights each; what a name was never seen for says nothing."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows])
