"""Searches without a memory on a recorded task: what a learned one has to beat. Each tries points until it
is told to stop; ``seen`` are the times that it saw, endless for failures."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.landscape.world import Point, Scene

Search = Iterator[Point]
Seen = dict[Point, float]
"""Times of the points that were tried, which the search reads after each point that it yields."""

POPULATION = 8
"""Points of a first population, the draft among them."""
SHIPPED = 100
"""Helion's first population (LFBOPatternSearch, ``initial_population``), of points by chance."""
QUANTILE, COPIES, RADIUS, SELECTED = 0.1, 5, 2, 0.1
"""Of Helion's search: which times count as good, from how many points a generation goes on, how far, and the
share of a generation's neighbours that is timed."""
TREES = 60
PARENTS, MUTATIONS = 8, 2


def random_order(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """By chance."""
    yield from rng.sample(list(scene.points), len(scene.points))


def top_estimate(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """By estimates alone."""
    yield from sorted(scene.points, key=scene.estimate_us)


def formula(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """The first draft, then neighbours of the fastest that has any left, the lowest estimate first."""
    yield scene.draft
    while fresh := _open_neighbours(scene, seen):
        yield min(fresh, key=scene.estimate_us)
    yield from (point for point in random_order(scene, seen, rng) if point not in seen)


def _open_neighbours(scene: Scene, seen: Seen) -> list[Point]:
    for point in sorted(seen, key=seen.__getitem__):
        fresh = [one for one in scene.near[point] if one not in seen]
        if fresh and math.isfinite(seen[point]):
            return fresh
    return []


def evolution(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """A first population, then children of the fastest, up to two steps from their parent."""
    yield from _population(scene, rng)
    while len(seen) < len(scene.points):
        parents = [one for one in sorted(seen, key=seen.__getitem__)[:PARENTS] if math.isfinite(seen[one])]
        child = _mutated(scene, rng.choice(parents or [scene.draft]), rng)
        yield child if child not in seen else rng.choice([one for one in scene.points if one not in seen])


def _mutated(scene: Scene, point: Point, rng: random.Random) -> Point:
    for _ in range(rng.randint(1, MUTATIONS)):
        point = rng.choice(scene.near[point] or [point])
    return point


def _population(scene: Scene, rng: random.Random) -> list[Point]:
    others = [point for point in scene.points if point != scene.draft]
    return [scene.draft, *rng.sample(others, POPULATION - 1)]


def lfbo(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """Likelihood-free Bayesian optimisation as Helion's, from the first draft and a small population."""
    yield from _population(scene, rng)
    yield from _generations(scene, seen, rng)


def lfbo_shipped(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """The same from as many points by chance as Helion begins with."""
    yield from islice(random_order(scene, seen, rng), SHIPPED)
    yield from _generations(scene, seen, rng)


def _generations(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """Neighbours of the fastest, those that a forest takes for good first, a share of them a generation."""
    while len(seen) < len(scene.points):
        fastest = sorted(seen, key=seen.__getitem__)[:COPIES]
        fresh = [one for one in _around(scene, fastest) if one not in seen]
        fresh = fresh or [one for one in scene.points if one not in seen]
        good = _likely_good(scene, seen, fresh, rng)
        ranked = sorted(range(len(fresh)), key=lambda place: -good[place])
        yield from [fresh[place] for place in ranked[: max(1, round(SELECTED * len(fresh)))]]


def _around(scene: Scene, points: Sequence[Point]) -> list[Point]:
    found = dict.fromkeys(points)
    for _ in range(RADIUS):
        found |= dict.fromkeys(other for point in list(found) for other in scene.near[point])
    return list(found)


def _likely_good(scene: Scene, seen: Seen, fresh: Sequence[Point], rng: random.Random) -> Sequence[float]:
    """How likely each is among the best, by a classifier that weighs the good by how good they are."""
    from sklearn.ensemble import RandomForestClassifier

    times = np.array(list(seen.values()))
    threshold = np.quantile(times, QUANTILE, method="higher")
    labels = times <= threshold
    if labels.all() or not np.isfinite(threshold):
        return [rng.random() for _ in fresh]
    weights = np.where(labels, np.maximum(threshold - times, 0.0) + 1e-9 * threshold, 0.0)
    weights = np.where(labels, weights / weights[labels].mean() * (~labels).sum() / labels.sum(), 1.0)
    forest = RandomForestClassifier(TREES, min_samples_leaf=1, random_state=rng.randrange(1 << 30), n_jobs=1)
    forest.fit(_rows(scene, list(seen)), labels, sample_weight=weights)
    return [float(one) + 1e-6 * rng.random() for one in forest.predict_proba(_rows(scene, fresh))[:, 1]]


def gaussian_process(scene: Scene, seen: Seen, rng: random.Random) -> Search:
    """A Gaussian process of the logarithms of times, by expected improvement over all that is untried."""
    yield from _population(scene, rng)
    process: Any = None
    while len(seen) < len(scene.points):
        fresh = [one for one in scene.points if one not in seen]
        process, mean, deviation = _foretold(scene, seen, fresh, process)
        gain = _improvement(mean, deviation, min(_logs(seen)))
        yield fresh[int(np.argmax(gain))]


_REFITTED = 8
"""Points after which a process chooses its scales anew."""


def _foretold(scene: Scene, seen: Seen, fresh: Sequence[Point], process: Any) -> tuple[Any, Any, Any]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    rows = _rows(scene, list(seen))
    if process is None or len(seen) % _REFITTED == 0:
        scales = Matern(np.full(rows.shape[1], 0.5), (0.05, 20.0), nu=2.5)
        kernel = ConstantKernel(1.0, (0.01, 100.0)) * scales + WhiteKernel(1e-3, (1e-6, 0.1))
        process = GaussianProcessRegressor(kernel, normalize_y=True)
    else:
        process = GaussianProcessRegressor(process.kernel_, optimizer=None, normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a field that says nothing has no scale
        process.fit(rows, _logs(seen))
    return process, *process.predict(_rows(scene, fresh), return_std=True)


def _logs(seen: Seen) -> Any:
    """Logarithms of times; a failure counts as the slowest that was seen."""
    finite = [us for us in seen.values() if math.isfinite(us)]
    slowest = max(finite, default=1.0)
    return np.log([min(us, slowest) for us in seen.values()])


def _improvement(mean: Any, deviation: Any, best: float) -> Any:
    from scipy.stats import norm

    z = (best - mean) / np.maximum(deviation, 1e-9)
    return (best - mean) * norm.cdf(z) + deviation * norm.pdf(z)


def _rows(scene: Scene, points: Sequence[Point]) -> Any:
    """Places of settings among the values of their fields, from 0 to 1."""
    most = np.array([max(len(values) - 1, 1) for values in scene.grid.values.values()], float)
    return np.array([scene.places(point) for point in points], float) / most


BASELINES: dict[str, Callable[[Scene, Seen, random.Random], Search]] = {
    "random": random_order,
    "formula": formula,
    "top_estimate": top_estimate,
    "lfbo": lfbo,
    "lfbo_shipped": lfbo_shipped,
    "gp": gaussian_process,
    "evolution": evolution,
}
