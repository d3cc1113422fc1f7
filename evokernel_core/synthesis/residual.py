"""How far estimates are from verdicts, learned from a few of them, and how sure that is.

A Gaussian process over the features of task and schedule, of log(verdict / estimate): a constant that all
share, one for each task, a linear part that carries over to what was never tried, and a smooth part that
remembers what lies near. Without the task's own constant, what sets tasks apart would be taken for what sets
their schedules apart. Features are believed only where they would have helped on tasks that they were not
learned from; else estimates keep their order. The likeliest of a few scales are taken. Predictions are those
of Rasmussen and Williams, "Gaussian Processes for Machine Learning", algorithm 2.1; leaving a task out is
their equation 5.12 for blocks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
from attrs import field, frozen

from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.extras import STATISTICS, needed

FEWEST = 3
"""Records below which estimates are taken as they are."""
MOST = 120
"""The latest records that are looked at: the work grows with their cube."""
_ENOUGH = 8
"""Records from which scales are chosen by how likely they make the newest ``_WEIGHED``, ``_AGAIN`` after as
many more."""
_AGAIN = 20
_WEIGHED = 60
_HELPS = 0.8
"""Share of the error on tasks left out that features may leave, to be believed."""
_FEWEST_TASKS = 3
"""Tasks from which on tasks are left out, and below which single records are."""
_JITTER = 1e-10


@frozen
class Scales:
    """Standard deviations of the parts (``shared`` and ``task`` are constants), how far the smooth one
    reaches, and the standard deviation of noise."""

    linear: float
    smooth: float
    reach: float
    noise: float
    task: float
    shared: float


_CONSTANTS = tuple(product((0.01, 0.03, 0.1, 0.3, 0.8), (0.03, 0.1, 0.3), (0.05, 0.2)))
_PLAIN = tuple(Scales(0.0, 0.0, 1.0, *rest) for rest in _CONSTANTS)
_WITH_FEATURES = tuple(
    Scales(linear, smooth, reach, *rest)
    for linear, smooth, reach in product((0.0, 0.02, 0.1), (0.0, 0.1, 0.3), (1.0, 0.3, 0.1))
    for rest in _CONSTANTS
    if (linear or smooth) and (smooth or reach == 1.0)
)
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
    _model: _Fit | None = field(default=None, eq=False, repr=False)

    @property
    def is_known(self) -> bool:
        """Whether there are enough records to say anything."""
        return self._model is not None

    def of(self, many: Sequence[Features], task_id: str = "") -> tuple[Expected, ...]:
        """What to expect of a task's schedules with these features."""
        if self._model is None or not many:
            return (AS_ESTIMATED,) * len(many)
        mean, deviation = self._model.predict(many, task_id)
        noise = self._model.scales.noise
        return tuple(Expected(float(m), float(d), noise) for m, d in zip(mean, deviation, strict=True))


UNTAUGHT = Residual()
"""Takes estimates as they are."""


def learned(records: Sequence[TuningRecord]) -> Residual:
    """Fits the latest records, given newest first. Raises ExtraMissing where the statistics are not installed
    and there are records enough."""
    latest = tuple(record for record in records if not record.failure)[:MOST]
    return Residual(latest, _fitted(latest) if len(latest) >= FEWEST else None)


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
    """Of a task that none of the records is of."""
    result = model.of([dict(record.features) for record in model.records if record.family == family])
    mean = math.fsum(element.mean for element in result) / count
    spread = math.fsum(math.hypot(element.deviation, element.noise) for element in result) / count
    return Trust(family, count, *map(math.exp, (mean, mean - spread, mean + spread)))


Array = np.ndarray[Any, Any]


@frozen
class _Known:
    """Records as arrays: names of features in their columns, a row of weights and a residual a record."""

    names: tuple[str, ...]
    tasks: Array
    features: Array
    residuals: Array

    def covariance(self, scales: Scales, features: Array, tasks: Array) -> Array:
        """Of schedules with these features and tasks (rows) and the records (columns)."""
        both = np.full((len(features), len(self.features)), scales.shared**2)
        both += scales.task**2 * (tasks[:, None] == self.tasks[None, :])
        if scales.linear:
            both += scales.linear**2 * features @ self.features.T
        if scales.smooth:
            both += scales.smooth**2 * np.exp(-_distances(features, self.features) / (2 * scales.reach**2))
        return both


@frozen(slots=False, eq=False)
class _Fit:
    """The process with one set of scales, given the records."""

    known: _Known
    scales: Scales

    @cached_property
    def factor(self) -> Any:
        own = self.known.covariance(self.scales, self.known.features, self.known.tasks)
        own[np.diag_indices_from(own)] += self.scales.noise**2 + _JITTER
        with needed(STATISTICS):
            from scipy.linalg import cho_factor
        return cho_factor(own, lower=True)

    def solve(self, right: Array) -> Array:
        """The covariance of the records, inverted, times ``right``."""
        with needed(STATISTICS):
            from scipy.linalg import cho_solve
        return np.asarray(cho_solve(self.factor, right))

    @cached_property
    def weights(self) -> Array:
        return self.solve(self.known.residuals)

    @property
    def likelihood(self) -> float:
        """The logarithm of the marginal likelihood, but for a constant."""
        return float(-0.5 * self.known.residuals @ self.weights - np.log(np.diag(self.factor[0])).sum())

    def predict(self, many: Sequence[Features], task_id: str) -> tuple[Array, Array]:
        """Mean and standard deviation, without noise."""
        scales, features = self.scales, _matrix(many, self.known.names)
        tasks = np.full(len(many), task_id, dtype=object)
        across = self.known.covariance(scales, features, tasks)
        own = scales.shared**2 + scales.task**2 + scales.smooth**2
        prior = own + scales.linear**2 * (features**2).sum(axis=1)
        gained = (across * self.solve(across.T).T).sum(axis=1)
        mean: Array = across @ self.weights
        return mean, np.sqrt(np.maximum(prior - gained, 0.0))

    @property
    def error_elsewhere(self) -> float:
        """The sum of absolute errors on each task, as the others foretell it."""
        inverse = self.solve(np.eye(len(self.weights)))
        return sum(
            float(np.abs(np.linalg.solve(inverse[np.ix_(own, own)], self.weights[own])).sum())
            for own in _left_out(self.known.tasks)
        )


def _left_out(tasks: Array) -> list[Array]:
    """Places of the records that are left out together."""
    names = np.unique(tasks.astype(str))
    if len(names) < _FEWEST_TASKS:
        return [np.array([place]) for place in range(len(tasks))]
    return [np.flatnonzero(tasks == name) for name in names]


def _distances(one: Array, other: Array) -> Array:
    """Squares of distances."""
    apart = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None, :] - 2 * one @ other.T
    squares: Array = np.maximum(apart, 0.0)
    return squares


@lru_cache(maxsize=4)
def _fitted(records: tuple[TuningRecord, ...]) -> _Fit:
    settled = records[0].seq - records[0].seq % _AGAIN
    weighed = tuple(record for record in records if record.seq <= settled)[:_WEIGHED]
    return _Fit(_known(records), _likeliest(weighed if len(weighed) >= _ENOUGH else records[:_WEIGHED]))


@lru_cache(maxsize=4)
def _likeliest(records: tuple[TuningRecord, ...]) -> Scales:
    """The scales under which the records are most likely, with features only where they help elsewhere."""
    known = _known(records)
    plain = max((_Fit(known, scales) for scales in _PLAIN), key=_likelihood)
    if len(records) < _ENOUGH:
        return plain.scales
    rich = max((_Fit(known, scales) for scales in _WITH_FEATURES), key=_likelihood)
    return (rich if rich.error_elsewhere < _HELPS * plain.error_elsewhere else plain).scales


def _likelihood(fit: _Fit) -> float:
    return fit.likelihood


def _known(records: Sequence[TuningRecord]) -> _Known:
    names = tuple(sorted({name for record in records for name, _ in record.features}))
    return _Known(
        names,
        np.array([record.task_id for record in records], dtype=object),
        _matrix([dict(record.features) for record in records], names),
        np.array([record.residual for record in records]),
    )


def _matrix(rows: Sequence[Features], names: Sequence[str]) -> Array:
    """A row of weights each; what a name was never seen for says nothing."""
    return np.array([[row.get(name, 0.0) for name in names] for row in rows]).reshape(len(rows), len(names))
