"""One attempt as a training sample in which nothing is named as in a person's file."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.domain.errors import PlanError, ProposerError, UsageError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.serial import canonical_json
from evokernel_core.domain.step import (
    SCHEMA,
    Action,
    Author,
    Parent,
    Purpose,
    Result,
    ShownItem,
    State,
    Step,
    StepOutcome,
)
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import Verdict
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.history import Payment, Tried
from evokernel_core.synthesis.lessons import failure, summary
from evokernel_core.synthesis.privacy import MODEL, Privacy, neutral
from evokernel_core.targets import author_for


@frozen
class Taken:
    """A judged attempt with its reward, the attempt before it, and its parent as the same verifier judged it
    on the same chip."""

    tried: Tried
    source: KernelSource
    verdict: Verdict
    payment: Payment
    before: Tried | None
    parent: Tried | None

    @property
    def speedup(self) -> float | None:
        """The verified parent's latency over this one's; None where there are no two of one source."""
        before, after = self.parent.latency if self.parent else None, self.verdict.latency
        if before is None or after is None or before.source is not after.source:
            return None
        return before.us / after.us


def judge_of(verifier: str) -> str:
    """A verifier's name without that of its host."""
    return verifier.partition("@")[0]


def author(source: KernelSource) -> Author:
    return Author.MODEL if source.strategy.family == MODEL else Author.SCHEDULE


@define
class Samples:
    """Writes the samples of one task. ``said`` is what a person last did with a kernel, by its id."""

    memory: Memory
    task: KernelTask
    purpose: Purpose
    said: Mapping[str, OutcomeKind]
    _privacy: Privacy = field(init=False)
    _bare: dict[tuple[str, str], KernelSource] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self._privacy = Privacy(self.task)

    def sample(self, taken: Taken) -> Step:
        """Raises ProposerError for a kernel or words that cannot be told without names of the file."""
        attempt = taken.tried.attempt
        writer = _author_of(attempt.chip, taken.source.target)
        source = self._unnamed(taken.source, writer)
        parent = self._parent(attempt.parent, taken.parent, writer)
        context = tuple(self._context(taken.payment.event.shown))
        state = State(neutral(self.task), attempt.stage, parent, self._failure(taken.before), context)
        diff = _diff(parent, source)
        action = Action(source.target, source.files, diff, source.strategy, author(source))
        ids = _digest(state, action), _digest(state)
        return Step(SCHEMA, *ids, self.purpose, state, action, self._outcome(taken))

    def _parent(self, source_id: str, judged: Tried | None, writer: KernelAuthor) -> Parent | None:
        """None for a draft. Raises ProposerError where the kernel is not in the memory any more."""
        if not source_id:
            return None
        source = judged.source if judged else self.memory.source(source_id)
        if source is None:
            raise ProposerError("The kernel that the step began from was forgotten; export without the step.")
        bare = self._unnamed(source, writer)
        words = self._said(source, judged.verdict) if judged and judged.verdict else ""
        return Parent(bare.target, bare.files, bare.strategy, words)

    def _unnamed(self, source: KernelSource, writer: KernelAuthor) -> KernelSource:
        """The kernel under names of ours. That of a schedule is written again: a verdict is about it only
        where this version writes what was judged."""
        key = source.source_id, writer.device.name
        if key not in self._bare:
            if author(source) is Author.SCHEDULE and not _is_current(self.task, source, writer):
                raise ProposerError(
                    "This version writes another kernel for the schedule of one that was verified; "
                    "generate it again."
                )
            bare = self._privacy.files(source, writer)
            notes = tuple(map(self._privacy.words, bare.strategy.notes))
            self._bare[key] = evolve(bare, strategy=evolve(bare.strategy, notes=notes))
        return self._bare[key]

    def _failure(self, before: Tried | None) -> str:
        """What was wrong with the attempt before, in words."""
        if before is None or before.verdict is None:
            return self._privacy.words(before.attempt.feedback) if before else ""
        self._check(before.verdict)
        return self._privacy.words(failure(before.verdict))

    def _said(self, source: KernelSource, verdict: Verdict) -> str:
        """Words of a verdict about a kernel, of which those about a model's own text stay."""
        self._check(verdict)
        return self._privacy.verdict(summary(verdict), source, verdict)

    def _check(self, verdict: Verdict) -> None:
        """The task of a verdict may have been captured from another file than the one that the memory has it
        from, and a verdict names sizes as that file does: raises ProposerError where it has such a name."""
        case = verdict.failed_gate.case if verdict.failed_gate else None
        ours = self.task.sizes.keys() | neutral(self.task).sizes.keys()
        if case and any(len(name) > 1 and name not in ours for name, _ in case.sizes):
            raise ProposerError("A verdict has names of another file; verify the kernel again.")

    def _context(self, ids: Iterable[str]) -> Iterator[ShownItem]:
        """Experiences are kept without names of their own task."""
        for id in ids:
            experience = self.memory.experience(id)
            if experience is not None:
                yield ShownItem(experience.kind, *self._privacy.item(experience))

    def _outcome(self, taken: Taken) -> StepOutcome:
        verdict, attempt = taken.verdict, taken.tried.attempt
        failed, result = verdict.failed_gate, _result(verdict)
        timed = None if result is Result.FAILED else verdict.latency
        return StepOutcome(
            result=result,
            gate=failed.gate.value if failed else "",
            code=failed.code if failed else "",
            words=self._said(taken.source, verdict),
            chip=attempt.chip,
            verifier=judge_of(attempt.verifier),
            latency_source=timed.source if timed else None,
            latency_us=timed.us if timed else None,
            baseline_us=timed.baseline_us if timed else None,
            bound_us=timed.roofline_us if timed else None,
            speedup=None if result is Result.FAILED else taken.speedup,
            raw_reward=taken.payment.event.raw,
            reward=taken.payment.paid,
            person=self.said.get(taken.source.source_id),
        )


def _result(verdict: Verdict) -> Result:
    if verdict.feasible:
        return Result.VERIFIED
    return Result.TIMED_ONLY if verdict.is_slower else Result.FAILED


def _is_current(task: KernelTask, source: KernelSource, writer: KernelAuthor) -> bool:
    try:
        return writer.write(task, source.strategy).source_id == source.source_id
    except PlanError:
        return False


def _author_of(name: str, target: str) -> KernelAuthor:
    """Raises ProposerError for a device that this version does not know."""
    try:
        return author_for(name, target)
    except UsageError as error:
        raise ProposerError(
            "Kernels for {name} cannot be written again: {error}", name=name, error=error
        ) from error


def _diff(parent: Parent | None, source: KernelSource) -> str:
    """Unified, of all files; of nothing where there is no parent."""
    before: Mapping[str, str] = parent.files if parent else {}
    lines = (
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for name, text in source.files.items()
        for line in difflib.unified_diff(
            before.get(name, "").splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"a/{name}" if name in before else "/dev/null",
            f"b/{name}",
        )
    )
    return "".join(lines)


def _digest(*parts: Any) -> str:
    return hashlib.sha256("\n".join(map(canonical_json, parts)).encode()).hexdigest()
