"""When schedules of a family fail, learned from those that did and those that did not.

A small decision tree over the settings and sizes of a family's schedules separates the ones that failed in
one way from those that passed; a leaf in which nearly all failed is a precondition that was not met. It
is a rule, in words, for as long as the records hold it up; schedules that it speaks of are tried last.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

from attrs import frozen

from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.extras import STATISTICS, needed
from evokernel_core.memory.experiences import make_experience

FEWEST = 3
"""Failures in a leaf, below which they may be chance."""
PURITY = 0.9
"""The share of a leaf's schedules that failed."""
DEPTH = 2
"""Conditions of a rule at most: one that needs more is too special to be shown to anybody."""


@frozen
class Condition:
    """A feature at least or below a weight."""

    name: str
    weight: float
    is_least: bool

    def holds(self, features: Mapping[str, float]) -> bool:
        """A number that a schedule does not have is neither large nor small; a mark that it does not have is
        no mark."""
        weight = features.get(self.name)
        if weight is None:
            return self.name.partition("=")[1] == "=" and not self.is_least
        return (weight >= self.weight) is self.is_least

    def words(self, family: str) -> Sentence:
        """``rows of 128 or more``: a setting's number again, from its logarithm."""
        owner, dot, name = self.name.rpartition(".")
        name, equals, value = name.partition("=")
        mine = not dot or owner == family
        of = "" if mine else Sentence(" of its {family} kernel", family=Sentence(owner))
        if equals or name.startswith(_MARKS):
            mark = f"{_plain(name)} {value}".strip()
            if self.is_least:
                return Sentence("{mark}{of}", mark=mark, of=of)
            return Sentence("no {mark}{of}", mark=mark, of=of)
        told = {"name": _plain(name.removeprefix("log_")), "of": of, "number": _number(name, self.weight)}
        if self.is_least:
            return Sentence("{name}{of} of {number} or more", **told)
        return Sentence("{name}{of} below {number}", **told)


_MARKS = ("dtype:", "rank:", "family:")


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _number(name: str, weight: float) -> str:
    """The least whole number at or above a threshold, for numbers that are whole; of an estimate its
    microseconds. Inverse of what ascendc/features.py makes of numbers."""
    size = 2 ** (10 * abs(weight)) - (0 if name.startswith("log_") else 1)
    if name == "log_estimate":
        return f"{2 ** (10 * weight):.3g} us"
    return str(math.ceil(math.copysign(size, weight) - 1e-6))


@frozen
class Precondition:
    """Schedules of ``family`` for which all ``conditions`` hold fail with ``failure``: ``failed`` of
    ``tried`` did, on ``tasks`` tasks."""

    family: str
    failure: str
    conditions: tuple[Condition, ...]
    failed: int
    tried: int
    tasks: int

    def holds(self, record: TuningRecord) -> bool:
        """Of a record that failed so."""
        fails_so = record.failure == self.failure and record.family == self.family
        return fails_so and _meets(record, self.conditions)

    def forbids(self, family: str, features: Mapping[str, float]) -> bool:
        return family == self.family and all(condition.holds(features) for condition in self.conditions)

    def rule(self) -> Experience:
        """The rule in AdaExplore's form, one prohibition; counts are its evidence and no part of it."""
        gate, _, code = self.failure.partition(":")
        told = {"family": Sentence(self.family), "failure": code or gate}
        words = Sentence("You cannot use a {family} schedule: {failure}.", **told)
        if self.conditions:
            where = reduce(_both, (condition.words(self.family) for condition in self.conditions))
            words = Sentence(
                "You cannot use a {family} schedule with {where}: {failure}.", where=where, **told
            )
        return make_experience(ExperienceKind.RULE, words, str(words))


def _both(first: Sentence, second: Sentence) -> Sentence:
    return Sentence("{first} and {second}", first=first, second=second)


def preconditions(records: Iterable[TuningRecord]) -> tuple[Precondition, ...]:
    """What the records of one chip teach; a rule is about one family and one way to fail, on two tasks at
    least. Raises ExtraMissing where the statistics are not installed and there are failures enough."""
    by_family: dict[str, list[TuningRecord]] = {}
    for record in records:
        by_family.setdefault(record.family, []).append(record)
    result = (precondition for group in by_family.values() for precondition in _of_family(tuple(group)))
    return tuple(element for element in result if element.tasks > 1)


@lru_cache(maxsize=64)
def _of_family(records: tuple[TuningRecord, ...]) -> tuple[Precondition, ...]:
    failures = [record.failure for record in records if record.failure]
    often = [failure for failure in dict.fromkeys(failures) if failures.count(failure) >= FEWEST]
    return tuple(precondition for failure in often for precondition in _of_failure(records, failure))


def _of_failure(records: Sequence[TuningRecord], failure: str) -> Iterator[Precondition]:
    """Paths of a tree to leaves of failures."""
    with needed(STATISTICS):
        from sklearn.tree import DecisionTreeClassifier

    names = sorted({name for record in records for name, _ in record.features})
    rows = [[dict(record.features).get(name, 0.0) for name in names] for record in records]
    failed = [record.failure == failure for record in records]
    tree = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=FEWEST, random_state=0)
    tree.fit(rows or [[0.0]], failed)
    for conditions in _paths(tree.tree_, names):
        inside = [record for record in records if _meets(record, conditions)]
        bad = [record for record in inside if record.failure == failure]
        if len(bad) >= FEWEST and len(bad) >= PURITY * len(inside):
            tasks = len({record.task_id for record in bad})
            yield Precondition(records[0].family, failure, conditions, len(bad), len(inside), tasks)


def _meets(record: TuningRecord, conditions: tuple[Condition, ...]) -> bool:
    features = dict(record.features)
    return all(condition.holds(features) for condition in conditions)


def _paths(tree: Any, names: Sequence[str], node: int = 0) -> Iterator[tuple[Condition, ...]]:
    """The conditions that lead to each leaf."""
    left, right = tree.children_left[node], tree.children_right[node]
    if left < 0:
        yield ()
        return
    name, weight = names[tree.feature[node]], math.nextafter(float(tree.threshold[node]), math.inf)
    for child, is_least in ((left, False), (right, True)):
        for conditions in _paths(tree, names, child):
            yield Condition(name, weight, is_least), *conditions
