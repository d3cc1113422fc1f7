"""Steps that paid one after the other, kept as one: what a single step does not gain, two may."""

from __future__ import annotations

import json
from functools import reduce

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.kernel import after, steps_in
from evokernel_core.domain.sentence import Sentence
from evokernel_core.memory.experiences import make_experience
from evokernel_core.synthesis.lessons import bottleneck_pipe, step_title
from evokernel_core.synthesis.proposers.base import Candidate
from evokernel_core.synthesis.search import LEAST_GAIN, Search

ANALYTIC = Sentence("analytic schedule")
"""The step to the schedule that estimates like best, from any other: a beginning, whatever was before."""
LONGEST = 3
"""Steps of a sequence at most."""


def gained_by_steps(candidate: Candidate, search: Search) -> tuple[Experience, float] | None:
    """The steps that led to a new best kernel, where there was more than one, with how many times faster it
    is than the kernel before them. None for a draft, a single step, and what gained nothing; ``search`` is
    the state before it."""
    is_best = candidate.latency_us <= (1 - LEAST_GAIN) * search.best_us
    if not (candidate.verdict.feasible and is_best):
        return None
    steps: tuple[Sentence, ...] = ()
    start: Candidate = candidate
    while (move := start.source.strategy.move) and move != ANALYTIC:
        parent = search.known(start.parent)
        made = (*steps_in(move), *steps)
        if parent is None or not parent.verdict.feasible or len(made) > LONGEST:
            break
        start, steps = parent, made
    if len(steps) < 2:
        return None
    return _sequence(steps, start), start.latency_us / candidate.latency_us


def steps_of(experience: Experience) -> tuple[str, ...]:
    """The names of an item's steps; empty for one that holds none."""
    if experience.kind is not ExperienceKind.SEQUENCE:
        return ()
    try:
        steps = json.loads(experience.payload)["steps"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return ()
    return tuple(steps) if isinstance(steps, list) and all(isinstance(step, str) for step in steps) else ()


def _sequence(steps: tuple[Sentence, ...], start: Candidate) -> Experience:
    """It names no task, so that its value is shared by all tasks whose kernels it fits."""
    family, pipe = start.source.strategy.family, bottleneck_pipe(start.verdict.latency)
    words = reduce(after, steps)
    return make_experience(
        ExperienceKind.SEQUENCE,
        step_title(words, pipe, family),
        f"In a {family} kernel whose busiest pipe is {pipe or 'unknown'}: {words}.",
        bottleneck=pipe,
        payload=json.dumps({"family": family, "steps": steps}, sort_keys=True),
    )
