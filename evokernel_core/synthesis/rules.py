"""What speaks for a rule: which of the judged kernels broke it, where, and what these have in common."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.kernel import Setting
from evokernel_core.domain.task import KernelTask
from evokernel_core.memory.experiences import RULE_TASKS
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.history import tried
from evokernel_core.synthesis.lessons import is_refuted, rules
from evokernel_core.synthesis.preconditions import preconditions
from evokernel_core.synthesis.residual import MOST

MOST_CONDITIONS = 3
"""Conditions of a precondition; more fit the kernels that were seen and say nothing of the next one."""
WORTH_SAYING = 0.5
"""The largest share of the other kernels that a condition may leave; one that leaves more may be chance."""
CATEGORY = "op category"
"""The condition that is about the task and not about the schedule."""


@frozen
class SettingRange:
    """A setting that lies in a range, or has a value: then ``least`` and ``most`` are that value."""

    setting: str
    least: Setting | None
    most: Setting | None

    def holds(self, settings: Mapping[str, Setting]) -> bool:
        value: Any = settings.get(self.setting)
        if value is None or isinstance(value, bool | str) or self.least == self.most:
            return bool(value == self.least == self.most)
        least: Any = self.least
        most: Any = self.most
        return (least is None or value >= least) and (most is None or value <= most)

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.setting} is {self.least}"
        return f"{self.setting} >= {self.least}" if self.most is None else f"{self.setting} <= {self.most}"


@frozen
class Precondition:
    """Where kernels of a schedule family broke a rule: under all of ``conditions`` (none: anywhere) were
    ``held`` judged kernels, of which ``failed`` broke it. No kernel of the family outside them did."""

    family: str
    conditions: tuple[SettingRange, ...]
    held: int
    failed: int


@frozen
class Rule:
    """``broken`` of ``judged`` kernels broke it (a kernel counts once for each task and verifier), on
    ``tasks``, by name; ``known`` says whether it is an item of the memory, which takes two tasks.
    ``first_at`` and ``last_at`` are seconds since the epoch, 0.0 where nothing here broke it."""

    id: str
    text: str
    known: bool
    broken: int
    judged: int
    tasks: tuple[str, ...] = ()
    first_at: float = 0.0
    last_at: float = 0.0
    preconditions: tuple[Precondition, ...] = ()
    values: tuple[tuple[Stage, float], ...] = ()


@frozen
class _Judged:
    """A kernel of a task, the rules that it broke, and when it was tried first."""

    task: KernelTask
    family: str
    settings: Mapping[str, Setting]
    broke: frozenset[str]
    at: float


def learned_rules(memory: Memory, *, schedules: bool = True) -> tuple[Rule, ...]:
    """Every rule that the memory holds or has met once, those that were broken most often first; with
    ``schedules`` those too that its records teach about schedules. Raises ExtraMissing where these take the
    statistics and they are not installed."""
    held = memory.experiences((ExperienceKind.RULE,))
    texts: dict[str, Experience] = {entry.id: entry for entry in held if not is_refuted(entry)}
    known = frozenset(texts)
    forbidden = _forbidden(memory) if schedules else {}
    kernels = tuple(_judged(memory, texts, forbidden))
    values = {(value.stage, value.item): value.q for value in memory.values() if not value.op_category}
    says_where = {rule.id for rules_of in forbidden.values() for rule in rules_of}
    result = []
    for id, member in texts.items():
        broke = [kernel for kernel in kernels if id in kernel.broke]
        q = tuple((stage, values[stage, id]) for stage in Stage if (stage, id) in values)
        result.append(
            Rule(
                id=id,
                text=member.body,
                known=id in known or id in says_where,
                broken=len(broke),
                judged=len(kernels),
                tasks=tuple(dict.fromkeys(kernel.task.name for kernel in broke)),
                first_at=min((kernel.at for kernel in broke), default=0.0),
                last_at=max((kernel.at for kernel in broke), default=0.0),
                preconditions=() if id in says_where else tuple(_preconditions(id, kernels)),
                values=q,
            )
        )
    return tuple(sorted(result, key=lambda rule: (-rule.broken, rule.text)))


def _forbidden(memory: Memory) -> dict[tuple[str, str], list[Experience]]:
    """By task and kernel, the rules about schedules that a failed one speaks for."""
    result: dict[tuple[str, str], list[Experience]] = {}
    for chip, verifier in dict.fromkeys((attempt.chip, attempt.verifier) for attempt in memory.attempts()):
        records = memory.tuning_records(chip, verifier, MOST)
        for precondition in preconditions(records):
            for record in filter(precondition.holds, records):
                result.setdefault((record.task_id, record.source_id), []).append(precondition.rule())
    return result


def _judged(
    memory: Memory,
    texts: dict[str, Experience],
    forbidden: Mapping[tuple[str, str], Sequence[Experience]],
) -> Iterator[_Judged]:
    """Judged kernels of all tasks; rules that they broke are added to ``texts``."""
    for task in memory.tasks():
        seen: set[tuple[str, str, str]] = set()
        for attempt in tried(memory, task.task_id):
            key = (attempt.attempt.source_id, attempt.attempt.verifier, attempt.attempt.chip)
            if attempt.source is None or attempt.verdict is None or key in seen:
                continue
            seen.add(key)
            also = forbidden.get((task.task_id, attempt.attempt.source_id), ())
            broke = _broken((*rules(attempt.verdict, attempt.source.target), *also), texts)
            strategy = attempt.source.strategy
            settings = {CATEGORY: task.op_category, **strategy.all_settings()}
            yield _Judged(task, strategy.family, settings, broke, attempt.attempt.created)


def _broken(experiences: Sequence[Experience], texts: dict[str, Experience]) -> frozenset[str]:
    for rule in experiences:
        texts.setdefault(rule.id, rule)
    return frozenset(rule.id for rule in experiences)


def _preconditions(rule: str, kernels: Sequence[_Judged]) -> Iterator[Precondition]:
    """One for each family whose kernels broke the rule."""
    for family in dict.fromkeys(kernel.family for kernel in kernels if rule in kernel.broke):
        mine = [kernel for kernel in kernels if kernel.family == family]
        broke = [kernel.settings for kernel in mine if rule in kernel.broke]
        kept = [kernel.settings for kernel in mine if rule not in kernel.broke]
        conditions, inside = _narrowed(broke, kept)
        yield Precondition(family, conditions, len(broke) + inside, len(broke))


def _narrowed(
    broke: Sequence[Mapping[str, Setting]], kept: Sequence[Mapping[str, Setting]]
) -> tuple[tuple[SettingRange, ...], int]:
    """Conditions that all of ``broke`` meet, each the one that excludes most of what is left of ``kept``, at
    least half; and how many of those meet them all."""
    chosen: list[SettingRange] = []
    left = list(kept)
    candidates = tuple(_common(broke))
    while left and len(chosen) < MOST_CONDITIONS:
        rest = {candidate: [one for one in left if candidate.holds(one)] for candidate in candidates}
        best = min(rest, key=lambda condition: len(rest[condition]), default=None)
        if best is None or len(rest[best]) > WORTH_SAYING * len(left):
            break
        chosen.append(best)
        left = rest[best]
    return tuple(chosen), len(left)


def _common(settings: Sequence[Mapping[str, Setting]]) -> Iterator[SettingRange]:
    """Everything that can be said of each setting which all have."""
    for name in settings[0]:
        if not all(name in setting for setting in settings):
            continue
        values: list[Any] = [setting[name] for setting in settings]
        if len(set(values)) == 1:
            yield SettingRange(name, values[0], values[0])
        if not any(isinstance(value, bool | str) for value in values):
            yield SettingRange(name, min(values), None)
            yield SettingRange(name, None, max(values))


def in_words(rule: Rule) -> Iterator[str]:
    """Sentences about a rule, its own first."""
    yield rule.text
    if not rule.broken:
        yield "No kernel here broke it: it came with a pack, or its kernels were forgotten."
    else:
        yield (
            f"{rule.broken} of {rule.judged} judged kernels broke it, first at {_when(rule.first_at)}, "
            f"last at {_when(rule.last_at)}, on {_tasks(rule.tasks)}."
        )
    yield from map(_where, rule.preconditions)
    if not rule.known:
        yield f"It is not used yet: a rule takes {RULE_TASKS} different tasks."
    for stage, q in rule.values:
        yield f"Shown to a proposer in the {stage.value} stage it is worth {q:+.3f}."


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _tasks(names: Iterable[str], most: int = 5) -> str:
    all_names = tuple(names)
    more = f" and {len(all_names) - most} more" if len(all_names) > most else ""
    number = "1 task" if len(all_names) == 1 else f"{len(all_names)} tasks"
    return f"{number}: {', '.join(all_names[:most])}{more}"


def _where(precondition: Precondition) -> str:
    where = " and ".join(map(str, precondition.conditions))
    under = f" where {where}" if where else ""
    return f"Of {precondition.held} {precondition.family} kernels{under}, {precondition.failed} broke it."
