"""Step-centric training samples from stored attempts, with the filters of Kernel-Smith (arXiv 2603.28342).

Each attempt is a sample of its own: what its author was shown, the kernel, and what came of it. For
supervised training a first step is kept if it was verified, a later one only if it is faster than the
kernel that it began from, itself verified, by latencies of one verifier and chip. For reinforcement every
step is kept that a verifier rewarded. Either way only so many of one task are, the best, lest easy ones
crowd out the rest.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from attrs import define, field, frozen
from cattrs.errors import BaseValidationError

from evokernel_core.domain.errors import ProposerError, UsageError
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.step import SCHEMA, Author, Purpose, Step
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.code import code_id
from evokernel_core.synthesis.history import Payment, Tried, paid_for, tried, verifiers_payments
from evokernel_core.synthesis.sample import Samples, Taken, author, judge_of

PER_TASK = 16
"""Samples of one task that are kept."""
_LOOKING = (
    OutcomeKind.READY, OutcomeKind.SHOWN, OutcomeKind.OPENED_DIFF, OutcomeKind.EXPIRED, OutcomeKind.SNOOZED,
    OutcomeKind.NEVER, OutcomeKind.OFFERED_AGAIN,
)  # fmt: skip


class Dropped(StrEnum):
    """Why an attempt is no sample; the first reason that holds."""

    NO_KERNEL = "no kernel, or one that to the compiler had been verified before"
    NO_VERDICT = "no verdict that can be read"
    NO_TIME = "its time is none that a kernel can take"
    NO_REWARD = "no reward: a kernel of an earlier run was taken up, or nothing was logged then"
    DEVICE = "of another device"
    VERIFIER = "by another verifier, or another version of it"
    MODEL = "written by a language model"
    REPEATED = "the same kernel from the same start"
    NOT_VERIFIED = "not verified"
    NOT_COMPARABLE = "its start was not verified by the same verifier on the same chip"
    NO_GAIN = "no faster than its start"
    NAMED = "cannot be told without names of a file: this version writes another kernel for its schedule"
    CROWDED = "the task has better ones"


@frozen
class SampleChoice:
    """Which samples. ``per_task`` is the largest number of one task, 0 for all; ``models`` says whether
    kernels that language models wrote are among them; ``chip`` and ``verifier``, without the name of its
    host, where those of one alone are wanted."""

    purpose: Purpose = Purpose.SUPERVISED
    per_task: int = PER_TASK
    models: bool = True
    chip: str = ""
    verifier: str = ""


@define
class Tally:
    """What was kept and dropped so far. Mutable, filled by ``steps``."""

    attempts: int = 0
    kept: int = 0
    dropped: Counter[Dropped] = field(factory=Counter)
    counts: dict[str, Counter[str]] = field(factory=dict)

    def keep(self, step: Step, task_id: str) -> None:
        outcome = step.outcome
        source = f"{outcome.latency_source.value} on {outcome.chip}" if outcome.latency_source else "none"
        self.kept += 1
        for what, value in {
            "task": task_id,
            "category": step.state.task.op_category,
            "stage": step.state.stage.value,
            "result": outcome.result.value,
            "latency": source,
            "verifier": outcome.verifier,
            "author": step.action.author.value,
        }.items():
            self.counts.setdefault(what, Counter())[value] += 1


def steps(memory: Memory, choice: SampleChoice, tally: Tally) -> Iterator[Step]:
    """The samples, task by task, the best of a task first."""
    paid = verifiers_payments(memory)
    said: dict[str, dict[str, OutcomeKind]] = {}
    for outcome in memory.outcomes():
        if outcome.kind not in _LOOKING:
            said.setdefault(outcome.task_id, {})[outcome.source_id] = outcome.kind
    for task in memory.tasks():
        samples = Samples(memory, task, choice.purpose, said.get(task.task_id, {}))
        known = tried(memory, task.task_id)
        tally.attempts += len(known)
        taken = sorted(_wanted(known, paid.get(task.task_id, ()), choice, tally.dropped), key=_rank)
        yield from _written(task, samples, taken, choice, tally)


def _written(
    task: KernelTask, samples: Samples, taken: Iterable[Taken], choice: SampleChoice, tally: Tally
) -> Iterator[Step]:
    kept = 0
    for name in taken:
        if choice.per_task and kept == choice.per_task:
            tally.dropped[Dropped.CROWDED] += 1
            continue
        try:
            step = samples.sample(name)
        except ProposerError:
            tally.dropped[Dropped.NAMED] += 1
            continue
        kept += 1
        tally.keep(step, task.task_id)
        yield step


def _wanted(
    known: Sequence[Tried], paid: Sequence[Payment], choice: SampleChoice, dropped: Counter[Dropped]
) -> Iterator[Taken]:
    """Rewarded attempts on a task that the choice wants, each kernel once for each start and judge."""
    payments = paid_for([entry.attempt for entry in known], paid)
    attempts = {(entry.attempt.job_id, entry.attempt.n): entry for entry in known}
    judged = {
        (entry.attempt.source_id, entry.attempt.verifier, entry.attempt.chip): entry
        for entry in known
        if entry.verdict and _is_timed_soundly(entry.verdict)
    }
    seen: set[tuple[str, ...]] = set()
    for entry in known:
        attempt = entry.attempt
        payment = payments.get((attempt.job_id, attempt.n))
        if (
            (why := _unfit(entry, payment))
            or entry.source is None
            or entry.verdict is None
            or payment is None
        ):
            dropped[why or Dropped.NO_VERDICT] += 1
            continue
        parent = judged.get((attempt.parent, attempt.verifier, attempt.chip))
        before = attempts.get((attempt.job_id, attempt.n - 1))
        taken = Taken(entry, entry.source, entry.verdict, payment, before, parent)
        step = (attempt.parent, code_id(taken.source), attempt.verifier, attempt.chip)
        why = Dropped.REPEATED if step in seen else _unwanted(taken, choice)
        seen.add(step)
        if why:
            dropped[why] += 1
        else:
            yield taken


def _unfit(tried: Tried, payment: Payment | None) -> Dropped | None:
    """Why an attempt is a sample for nothing."""
    if not tried.attempt.source_id:
        return Dropped.NO_KERNEL
    if tried.verdict is None:
        return Dropped.NO_VERDICT
    if not _is_timed_soundly(tried.verdict):
        return Dropped.NO_TIME
    return Dropped.NO_REWARD if payment is None else None


def _is_timed_soundly(verdict: Verdict) -> bool:
    return verdict.latency is None or verdict.latency.is_sound


def _unwanted(taken: Taken, choice: SampleChoice) -> Dropped | None:
    """Why the choice does not want a step."""
    if why := _from_elsewhere(taken, choice):
        return why
    if choice.purpose is Purpose.REINFORCEMENT:
        return None
    if not taken.verdict.feasible:
        return Dropped.NOT_VERIFIED
    if taken.tried.attempt.stage is Stage.DRAFT:
        return None
    if taken.speedup is None:
        return Dropped.NOT_COMPARABLE
    return Dropped.NO_GAIN if taken.speedup <= 1.0 else None


def _from_elsewhere(taken: Taken, choice: SampleChoice) -> Dropped | None:
    """Why the choice wants nothing of who judged or wrote a step."""
    attempt = taken.tried.attempt
    if choice.chip not in ("", attempt.chip):
        return Dropped.DEVICE
    if choice.verifier not in ("", judge_of(attempt.verifier)):
        return Dropped.VERIFIER
    if not choice.models and author(taken.source) is Author.MODEL:
        return Dropped.MODEL
    return None


def _rank(taken: Taken) -> tuple[bool, float, float]:
    """Verified ones first, those of the greatest gain before others; a first step gains nothing."""
    return not taken.verdict.feasible, -math.log(taken.speedup or 1.0), -taken.payment.event.raw


def read_steps(lines: Iterable[str]) -> Iterator[Step]:
    """The samples of a file. Raises UsageError, naming the line, for one that is none of this version."""
    for number, line in enumerate(lines, 1):
        try:
            data = json.loads(line)
            schema, step = data["schema"], from_data(data, Step) if data["schema"] == SCHEMA else None
        except (BaseValidationError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise UsageError(
                f"Line {number} is no training sample; give a file of `memory export --format steps`."
            ) from error
        if step is None:
            raise UsageError(
                f"Line {number} has schema {str(schema)[:60]}, and this one reads {SCHEMA}; export again."
            )
        yield step
