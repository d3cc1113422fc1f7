"""Writes an attempt down: kernel, verdict, lessons and value updates in one transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping

from attrs import evolve, frozen

from evokernel_core.domain.experience import Experience, Stage
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import Latency, LatencySource
from evokernel_core.memory.candidates import Attempt
from evokernel_core.memory.ledger import Effect, Reward, gain_scale
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import start_item
from evokernel_core.synthesis.lessons import Trial, bottleneck_pipe, error_class, failure, lessons, rules
from evokernel_core.synthesis.proposers.base import Candidate, Priced, Proposal
from evokernel_core.synthesis.rewards import draft_reward, refine_reward
from evokernel_core.synthesis.search import Search
from evokernel_core.synthesis.sequences import gained_by_steps


@frozen
class Recorder:
    """The durable side of one job on one task. ``n`` below is the attempt's number, from 1."""

    memory: Memory
    task: KernelTask
    features: Mapping[str, float]
    job_id: str
    proposer: str
    verifier: str
    chip: str

    def attempt(
        self, n: int, candidate: Candidate, proposal: Proposal, start: Candidate | None, search: Search
    ) -> None:
        """A proposed and judged kernel; ``search`` is the state before it."""
        stage = Stage.REFINE if start else Stage.DRAFT
        verdict = candidate.verdict
        raw = refine_reward(verdict, _rival_us(search, start)) if start else draft_reward(verdict)
        used = (*proposal.used, start_item(start.source.source_id)) if start else proposal.used
        with self.memory.transaction():
            for experience in proposal.learned:
                self.memory.add_experience(experience)
            self._keep(n, candidate, stage, used, raw, proposal.tokens)
            self._learn(candidate, stage, start, search)
            self._value(candidate, stage, proposal, used, raw, search)
            self._compare(candidate, proposal.priced)

    def known(self, n: int, candidate: Candidate) -> None:
        """An attempt that took up a kernel of an earlier run; it teaches nothing new."""
        with self.memory.transaction():
            self._keep(n, candidate, Stage.DRAFT, (), 0.0, 0)

    def no_change(
        self, n: int, stage: Stage, proposal: Proposal, start: Candidate | None, feedback: str
    ) -> None:
        """An attempt whose kernel is one that was judged before, but for its comments."""
        parent = start.source.source_id if start else ""
        used = (*proposal.used, start_item(parent)) if start else proposal.used
        row = self._row(n, stage, parent, 0.0, tokens=proposal.tokens, feedback=feedback)
        with self.memory.transaction():
            for experience in proposal.learned:
                self.memory.add_experience(experience)
            self.memory.record_attempt(row, ())
            self.memory.pay(
                Reward(
                    stage=stage,
                    op_category=self.task.op_category,
                    used=used,
                    raw=0.0,
                    cause="no change",
                    task_id=self.task.task_id,
                    shown=proposal.shown,
                )
            )

    def nothing(self, n: int, stage: Stage, parent: str, feedback: str, tokens: int = 0) -> None:
        """An attempt in which the proposer gave no kernel; ``tokens`` were paid for it."""
        row = self._row(n, stage, parent, -1.0, tokens=tokens, feedback=feedback)
        self.memory.record_attempt(row, ())

    def _keep(
        self, n: int, candidate: Candidate, stage: Stage, used: tuple[str, ...], raw: float, tokens: int
    ) -> None:
        verdict = candidate.verdict
        self.memory.record_candidate(candidate.source)
        self.memory.record_verdict(verdict, self.chip)
        row = self._row(
            n,
            stage,
            candidate.parent,
            raw,
            source_id=candidate.source.source_id,
            feasible=verdict.feasible,
            tokens=tokens,
            feedback=failure(verdict),
        )
        self.memory.record_attempt(row, used)

    def _row(  # noqa: PLR0913 - the fields of an Attempt
        self,
        n: int,
        stage: Stage,
        parent: str,
        reward: float,
        *,
        source_id: str = "",
        feasible: bool = False,
        tokens: int = 0,
        feedback: str = "",
    ) -> Attempt:
        return Attempt(
            job_id=self.job_id,
            n=n,
            task_id=self.task.task_id,
            source_id=source_id,
            parent=parent,
            stage=stage,
            proposer=self.proposer,
            verifier=self.verifier,
            chip=self.chip,
            feasible=feasible,
            reward=reward,
            tokens=tokens,
            feedback=feedback,
        )

    def _learn(self, candidate: Candidate, stage: Stage, start: Candidate | None, search: Search) -> None:
        trial = Trial(
            task=self.task,
            features=self.features,
            stage=stage,
            source=candidate.source,
            verdict=candidate.verdict,
            best_us=search.best_us,
            bottleneck=bottleneck_pipe(start.verdict.latency) if start else "",
            seen_errors=search.seen_errors,
        )
        for lesson in lessons(trial):
            self.memory.add_experience(lesson)
        result = gained_by_steps(candidate, search)
        if result is not None:
            self._begin(*result)
        for rule in rules(candidate.verdict, candidate.source.target):
            self.memory.add_evidence(rule, self.task.task_id)

    def _begin(self, sequence: Experience, gain: float) -> None:
        """A sequence of steps that has no value yet begins at what it gained."""
        self.memory.add_experience(sequence)
        event = Reward(
            stage=Stage.REFINE,
            op_category=self.task.op_category,
            used=(sequence.id,),
            raw=math.tanh(math.log(gain)),
            effect=Effect.SEED,
            cause="steps in a row",
            trials=1,
            task_id=self.task.task_id,
        )
        self.memory.pay(event)

    def _compare(self, candidate: Candidate, priced: Priced | None) -> None:
        """Keeps what an estimate said beside what the verdict gave."""
        latency = candidate.verdict.latency
        failure = "" if latency is not None else error_class(candidate.verdict)
        if priced is None or not (latency or failure) or not priced.estimate_us < math.inf:
            return
        record = TuningRecord(
            task_id=self.task.task_id,
            source_id=candidate.source.source_id,
            chip=self.chip,
            verifier=self.verifier,
            family=priced.family,
            estimate_us=priced.estimate_us,
            latency_us=latency.us if latency else None,
            features=priced.features,
            failure=failure,
            source=latency.source if latency else None,
        )
        self.memory.record_tuning(record)

    def _value(
        self,
        candidate: Candidate,
        stage: Stage,
        proposal: Proposal,
        used: tuple[str, ...],
        raw: float,
        search: Search,
    ) -> None:
        """Q <- Q + alpha (r - Q) for what was used; a new start point begins at its own plain reward. Gains
        are standardised by those of their category and source; a failure is what it is."""
        category, verdict = self.task.op_category, candidate.verdict
        is_gain = stage is Stage.REFINE and (verdict.feasible or verdict.is_slower)
        source = _latency_source(search.best.verdict.latency if search.best else None)
        event = Reward(
            stage=stage,
            op_category=category,
            used=used,
            raw=raw,
            scale=gain_scale(stage, source.value, category) if is_gain else "",
            cause=stage.value,
            task_id=self.task.task_id,
            source_id=candidate.source.source_id,
            shown=proposal.shown,
        )
        self.memory.pay(event)
        if verdict.feasible:
            start = start_item(candidate.source.source_id)
            begins = raw if stage is Stage.REFINE else 0.0
            self.memory.pay(
                evolve(
                    event,
                    stage=Stage.REFINE,
                    used=(start,),
                    raw=begins,
                    scale="",
                    effect=Effect.SEED,
                    shown=(),
                )
            )


def _rival_us(search: Search, start: Candidate) -> float:
    """What a refinement has to beat: the best, or its start where people want none of those so far."""
    return search.best_us if search.best else start.latency_us


def _latency_source(latency: Latency | None) -> LatencySource:
    return latency.source if latency else LatencySource.MODELLED
