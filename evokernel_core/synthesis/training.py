"""Fits a step model to the steps of a memory, and judges it on operations that it was not fitted to.

Rows are what ``memory export --format steps`` tells of one device and verifier. Kernel-Smith imitates the
steps that gained alone; an order needs the others too, so a step that failed counts as one that lost most.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Any

import numpy as np
from attrs import define, field, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.features import schedule_features
from evokernel_core.domain.errors import UsageError
from evokernel_core.domain.kernel import STRATEGY_VERSION, KernelSource
from evokernel_core.domain.step import Purpose, Result, Step
from evokernel_core.extras import TRAINING, needed
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.proposers.moves import estimated_us
from evokernel_core.synthesis.sample import judge_of
from evokernel_core.synthesis.search import LEAST_GAIN
from evokernel_core.synthesis.step_model import (
    DEPTH,
    SCHEMA,
    Features,
    HeldOut,
    StepModel,
    Tree,
    matrix,
    step_features,
)
from evokernel_core.synthesis.steps import Dropped, SampleChoice, Tally, steps

FEWEST = 100
"""Steps that a model is fitted to, unless somebody asks for others."""
_OPERATIONS = 2
"""Operations with steps to compare: one is held out, and another learned from."""
_FOLDS = 5
_LOST, _GAINED = -0.5, 1.5
"""The logarithms between which gains are learned: a failure has lost ``_LOST``."""
_TREES, _RATE, _LEAF, _SAMPLED = 120, 0.08, 10, 0.7
_RESAMPLES = 1000


class Unfit(StrEnum):
    """Why a sample is no row, beside what makes an attempt no sample (``Dropped``)."""

    DRAFT = "a draft, which gains on nothing"
    NO_ESTIMATE = "its start is no schedule that can be estimated"
    PACK = "an experience from a pack, which is no attempt"


@frozen(eq=False)
class GainRow:
    """A step: the ops of its graph, its task, the id of the kernel that it began from, its features, and the
    logarithms of its gain, as it came and as it was estimated."""

    operation: str
    task_id: str
    start: str
    features: Features
    gain: float
    estimated: float


@define
class Lessons:
    """The rows of a memory for one device and verifier, and what is no row, by reason."""

    author: KernelAuthor
    verifier: str
    rows: list[GainRow] = field(factory=list)
    left_out: Counter[str] = field(factory=Counter)

    def take(self, step: Step) -> None:
        why = self._unfit(step) or self._learn(step)
        if why is not None:
            self.left_out[why.value] += 1

    def _unfit(self, step: Step) -> Unfit | Dropped | None:
        if step.state.parent is None:
            return Unfit.DRAFT
        is_timed = step.outcome.result is Result.FAILED or step.outcome.speedup is not None
        return None if is_timed else Dropped.NOT_COMPARABLE

    def _learn(self, step: Step) -> Unfit | None:
        task, parent, action = step.state.task, step.state.parent, step.action
        assert parent is not None
        before_us = estimated_us(task, parent.strategy, self.author)
        after_us = estimated_us(task, action.strategy, self.author)
        if not (math.isfinite(before_us) and math.isfinite(after_us)):
            return Unfit.NO_ESTIMATE
        start = schedule_features(task, parent.strategy, before_us)
        after = schedule_features(task, action.strategy, after_us)
        speedup = step.outcome.speedup
        self.rows.append(
            GainRow(
                operation=" ".join(sorted({node.op for node in task.graph.nodes})),
                task_id=task.task_id,
                start=KernelSource(parent.target, parent.files, parent.strategy).source_id,
                features=step_features(task.op_category, str(action.strategy.move), start, after),
                gain=_LOST if speedup is None else min(max(math.log(speedup), _LOST), _GAINED),
                estimated=math.log(before_us / after_us),
            )
        )
        return None


def lessons(memory: Memory, author: KernelAuthor) -> Lessons:
    """What the memory tells of a device, by the word of the verifier that judged there last."""
    chip = author.device.name
    last = max(
        (attempt for attempt in memory.attempts() if attempt.chip == chip),
        key=lambda attempt: attempt.created,
        default=None,
    )
    result, tally = Lessons(author, judge_of(last.verifier) if last else ""), Tally()
    choice = SampleChoice(Purpose.REINFORCEMENT, 0, models=False, chip=chip, verifier=result.verifier)
    for step in steps(memory, choice, tally):
        result.take(step)
    result.left_out.update({why.value: count for why, count in tally.dropped.items()})
    if packed := _from_packs(memory):
        result.left_out[Unfit.PACK.value] = packed
    return result


def _from_packs(memory: Memory) -> int:
    """Experiences whose values came with packs."""
    events = (event for event in memory.rewards() if event.cause.startswith("pack "))
    return len({id for event in events for id in event.used})


def trained(known: Lessons, fewest: int = FEWEST) -> StepModel:
    """Raises UsageError, with what is needed, where there is too little to learn from, and ExtraMissing
    where the statistics are not installed."""
    rows, chip = known.rows, known.author.device.name
    if len(rows) < fewest:
        raise UsageError(
            "The memory has {count} steps on {chip} to learn from, and {needed} are needed: search more "
            "tasks there.",
            count=len(rows),
            chip=chip,
            needed=fewest,
        )
    if len({one.operation for pair in _pairs(rows) for one in pair}) < _OPERATIONS:
        raise UsageError(
            "A step model is tested on operations that it never saw: steps of {needed} operations are needed "
            "that gained differently from one kernel.",
            needed=_OPERATIONS,
        )
    foretold = _foretold(rows)
    names, forest = _fitted(rows)
    return StepModel(
        schema=SCHEMA,
        chip=chip,
        verifier=known.verifier,
        strategies=STRATEGY_VERSION,
        rows=len(rows),
        tasks=len({row.task_id for row in rows}),
        held_out=_held_out(rows, foretold),
        names=names,
        base=float(forest.init_.constant_[0, 0]),
        spread=math.sqrt(sum((row.gain - foretold[row]) ** 2 for row in rows) / len(rows)),
        trees=tuple(_tree(one.tree_, forest.learning_rate) for one in forest.estimators_[:, 0]),
    )


def _fitted(rows: Sequence[GainRow]) -> tuple[tuple[str, ...], Any]:
    """The names of features, and the trees over them."""
    with needed(TRAINING):
        from sklearn.ensemble import GradientBoostingRegressor

    names = tuple(sorted({name for row in rows for name in row.features}))
    forest = GradientBoostingRegressor(
        n_estimators=_TREES,
        learning_rate=_RATE,
        max_depth=DEPTH,
        min_samples_leaf=_LEAF,
        subsample=_SAMPLED,
        max_features="sqrt",
        random_state=0,
    )
    forest.fit(matrix([row.features for row in rows], names), [row.gain for row in rows])
    return names, forest


def _tree(tree: Any, rate: float) -> Tree:
    own = np.arange(tree.node_count)
    is_leaf = tree.children_left < 0
    return Tree(
        feature=tuple(np.where(is_leaf, 0, tree.feature).tolist()),
        threshold=tuple(np.where(is_leaf, 0.0, tree.threshold).tolist()),
        left=tuple(np.where(is_leaf, own, tree.children_left).tolist()),
        right=tuple(np.where(is_leaf, own, tree.children_right).tolist()),
        value=tuple((rate * tree.value[:, 0, 0]).tolist()),
    )


# --- on operations that were held out


def _foretold(rows: Sequence[GainRow]) -> dict[GainRow, float]:
    """The gain of each step by a model of other operations."""
    operations = sorted({row.operation for row in rows})
    random.Random(0).shuffle(operations)
    found: dict[GainRow, float] = {}
    for fold in range(min(_FOLDS, len(operations))):
        held = set(operations[fold::_FOLDS])
        mine = [row for row in rows if row.operation in held]
        names, forest = _fitted([row for row in rows if row.operation not in held])
        said = forest.predict(matrix([row.features for row in mine], names)).tolist()
        found |= dict(zip(mine, said, strict=True))
    return found


def _pairs(rows: Sequence[GainRow]) -> Iterator[tuple[GainRow, GainRow]]:
    """Steps from one kernel of which one gained more, the better first."""
    by_start: dict[tuple[str, str], list[GainRow]] = defaultdict(list)
    for row in rows:
        by_start[row.task_id, row.start].append(row)
    for group in by_start.values():
        for one, other in combinations(sorted(group, key=lambda row: -row.gain), 2):
            if one.gain - other.gain > LEAST_GAIN:
                yield one, other


def _held_out(rows: Sequence[GainRow], foretold: dict[GainRow, float]) -> HeldOut:
    counts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for better, worse in _pairs(rows):
        count = counts[better.operation]
        count[0] += 1
        count[1] += _in_order(foretold[better], foretold[worse])
        count[2] += _in_order(better.estimated, worse.estimated)
    table = np.array(list(counts.values()))
    pairs, right, estimated = table.sum(axis=0)
    drawn = np.random.default_rng(0).integers(len(table), size=(_RESAMPLES, len(table)))
    sums = table[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 1] / sums[:, 0], (0.025, 0.975))
    return HeldOut(
        len(table), int(pairs), float(right / pairs), (float(low), float(high)), float(estimated / pairs)
    )


def _in_order(better: float, worse: float) -> float:
    """1 where the better is said to be so, 0 where the other is, a half where neither."""
    return 0.5 if better == worse else float(better > worse)
