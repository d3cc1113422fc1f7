"""The page docs/results/gpu_search.md: what was recorded, and what each search needs on it."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.landscape.replay import AT, FOLDS, TAUGHT, Outcome, ratios, summary
from benchmarks.landscape.rows import Recorded
from benchmarks.landscape.world import Scene, scenes_of

EASY = 0.15
"""A larger share of a grid within 2 % of its best makes a task that chance solves."""
_HEAD = """# Searches on a recorded GPU
The times of all schedules of {tasks} tasks on one {device} ({date}, commit {commit}; torch {torch}, triton
{triton}, driver {driver}), and searches that were replayed on them. `benchmarks/gpu_search.py` makes both;
`benchmarks/landscape/` has the tasks and their grids, `benchmarks/data/landscape/h200.xz` every sample.

A grid is all combinations of the values of a schedule's fields. Each kernel was compared with PyTorch and
timed 20 times with a cold L2. What the author's own rules refuse is in no search's way; what fails later
costs an evaluation as any other.
"""
_RULE = """
## What searches need
A search sees of a schedule a failure, or one draw of its samples. Counted are evaluations until a schedule
was tried that is within 2 % of the best known; a search of {budget} that does not arrive counts as the size
of the grid.

The last column is how far the kernel that is held for the best after {at} is from the best
known, of the median task. Means are geometric, over seeds ({seeds}) and the tasks of which at most
15 % are that close; intervals are of 95 %, over tasks.

Ours (`default` is `q`) had learned from {taught} evaluations of each task of other operations; operations are
held out in {folds} parts, one at a time, so that no memory has seen the operation of its task.
"""

_CAUSES = """
## What the records say of estimates
First drafts take {now:.2f} times as long as the best known (geometric mean); those of the commit that was
recorded took {then:.2f}. Estimates learned from these very grids; nothing else was measured with them:

- No launch begins more than 0.84 programs a cycle, whatever they compute, and a multiprocessor holds 32.
- Threads beyond a tile's elements do the same work again; a warp needs instructions for the places of a tile.
- Half types take their operands from shared memory in tiles of any size; a step waits 0.55 us where no stage
  is ahead. Instructions behind a product (GELU) come on top of it, and their registers with them.
- Weights of a convolution tap by tap lie apart, so that all taps at once are several times as fast.
- Windows over several lines of an image fall into few sets of L1: low tiles are faster.

The kernels of linear_gelu, sigmoid_scores and tanh_gate were recorded with an exact division, which branches
for each element; their text has a plain one by now.
"""


def page(found: Mapping[str, Recorded], device: str, outcomes: Sequence[Outcome], budget: int = 64) -> str:
    """The whole page."""
    scenes = scenes_of(found, device)
    machine = next(iter(found.values())).machine
    hard = {scene.name for scene in scenes if scene.close_share <= EASY}
    counted = [one for one in outcomes if one.task in hard]
    lines = [_HEAD.format(tasks=len(scenes), **machine), *tasks_table(scenes)]
    lines += [_RULE.format(budget=budget, at=AT, seeds=_seeds(outcomes), taught=TAUGHT, folds=FOLDS)]
    lines += table(summary(counted))
    if any(one.policy == "q" for one in counted):
        lines += ["", "Evaluations of `default` over those of others, of the same tasks:", ""]
        lines += ratio_table(counted)
    causes = _CAUSES.format(now=_over_best(scenes, today=True), then=_over_best(scenes, today=False))
    return "\n".join(lines) + "\n" + causes


def _over_best(scenes: Sequence[Scene], *, today: bool) -> float:
    """The geometric mean of first drafts over the best known, of today's estimates or of those recorded."""
    drafts = (scene.draft if today else tuple(scene.line["draft"]) for scene in scenes)
    pairs = zip(drafts, scenes, strict=True)
    return statistics.geometric_mean(scene.times[draft] / scene.best_us for draft, scene in pairs)


def _seeds(outcomes: Sequence[Outcome]) -> str:
    """How many seeds each policy has, those together that have as many."""
    counts = {one.policy: len({o.seed for o in outcomes if o.policy == one.policy}) for one in outcomes}
    groups = {count: [name for name in counts if counts[name] == count] for count in counts.values()}
    if len(groups) == 1:
        return f"{next(iter(groups))} of each"
    return "; ".join(f"{count} of {', '.join(names)}" for count, names in groups.items())


def tasks_table(scenes: Sequence[Scene]) -> Iterator[str]:
    """A row a task."""
    yield "| task | schedules | that fail | best us | first draft over best | within 2 % |"
    yield "|---|---|---|---|---|---|"
    for scene in scenes:
        failed = Counter(one["why"].partition(":")[0] for one in scene.points.values() if "why" in one)
        whys = ", ".join(f"{count} {why}" for why, count in failed.most_common()) or "0"
        draft = scene.times[scene.draft] / scene.best_us
        share = f"{100 * scene.close_share:.0f} %{' (apart)' if scene.close_share > EASY else ''}"
        yield f"| {scene.name} | {len(scene.points)} | {whys} | {scene.best_us:.1f} | {draft:.3f} | {share} |"


def table(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A row a policy, the fewest evaluations first."""
    yield "| policy | evaluations to within 2 % | 95 % interval | median task after 8 |"
    yield "|---|---|---|---|"
    for name, row in sorted(found.items(), key=lambda item: item[1]["evaluations_to_2pct"]):
        low, high = row["interval"]
        yield f"| {name} | {row['evaluations_to_2pct']:.1f} | {low:.1f} to {high:.1f} | {row['at_8']:.3f} |"


def ratio_table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A row for each other policy."""
    yield "| over | ratio | 95 % interval |"
    yield "|---|---|---|"
    for name, (value, low, high) in sorted(ratios(outcomes, "q").items(), key=lambda item: item[1]):
        yield f"| {name} | {value:.2f} | {low:.2f} to {high:.2f} |"
