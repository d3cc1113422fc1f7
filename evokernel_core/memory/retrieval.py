"""Two-phase retrieval: a pool of K = lambda N by similarity, then N of it by epsilon-greedy on Q.

EvoKernel names the phases and not the constants; N = 4, lambda = 3 and epsilon = 0.1 are those of public
re-implementations, and the equal mix of two z-scores, of words and of structure, is MemRL's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.settings import RetrievalName

NUMBER = 4
OVER_RETRIEVAL = 3
EPSILON = 0.1


@frozen
class Query:
    """What is looked for. ``features`` are those of the task, ``text`` its words: ops, dtypes, the
    last error. Only ``kinds`` are considered; of those with a bottleneck only those with
    ``bottleneck`` where one is given; only ``ids`` where some are given."""

    text: str
    features: Mapping[str, float]
    stage: Stage
    op_category: str
    kinds: tuple[ExperienceKind, ...]
    bottleneck: str = ""
    ids: tuple[str, ...] = ()


@frozen
class RetrievalChoice:
    """How to choose: N items of a pool of K, with exploration ``epsilon``, by ``mode``."""

    n: int = NUMBER
    k: int = NUMBER * OVER_RETRIEVAL
    epsilon: float = EPSILON
    mode: RetrievalName = RetrievalName.Q


@frozen
class Retrieved:
    """The chosen experiences, best first, and the Q-values of the whole pool they came from."""

    experiences: tuple[Experience, ...] = ()
    values: Mapping[str, float] = field(factory=dict)


def z_scores(numbers: Sequence[float]) -> list[float]:
    """Each number's distance from the mean in standard deviations; all 0 where they are equal."""
    if not numbers:
        return []
    mean = math.fsum(numbers) / len(numbers)
    deviation = math.sqrt(math.fsum((number - mean) ** 2 for number in numbers) / len(numbers))
    return [(number - mean) / deviation if deviation > 1e-12 else 0.0 for number in numbers]


def epsilon_greedy(
    pool: Sequence[str], values: Mapping[str, float], n: int, epsilon: float, rng: random.Random
) -> list[str]:
    """N distinct items; each place is a random one with probability ``epsilon``, else the best left.

    Equal values keep the order of the pool, so similarity breaks ties.
    """
    left = sorted(pool, key=lambda scored: -values.get(scored, 0.0))
    chosen: list[str] = []
    while left and len(chosen) < n:
        place = rng.randrange(len(left)) if rng.random() < epsilon else 0
        chosen.append(left.pop(place))
    return chosen
