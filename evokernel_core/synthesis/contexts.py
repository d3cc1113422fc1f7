"""What the memory has to say before an attempt: moves, examples and lessons, chosen by value."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import islice

from attrs import evolve, field, frozen

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tuning_record import TuningRecord
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.extras import STATISTICS
from evokernel_core.logs import get_logger
from evokernel_core.memory.retrieval import NUMBER, OVER_RETRIEVAL, Query, RetrievalChoice
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.lessons import bottleneck_pipe, is_refuted
from evokernel_core.synthesis.preconditions import preconditions
from evokernel_core.synthesis.proposers.base import Candidate, Context, MoveProposer, Precedent, Proposer
from evokernel_core.synthesis.residual import MOST, learned
from evokernel_core.synthesis.search import Search
from evokernel_core.synthesis.step_model import StepModel

log = get_logger(__name__)

EXAMPLES = (ExperienceKind.EXEMPLAR, ExperienceKind.SUCCESS)
LESSONS = (ExperienceKind.TRACE, ExperienceKind.FAILURE, ExperienceKind.RULE)
PRACTICES = (ExperienceKind.PRACTICE,)
SEQUENCES = (ExperienceKind.SEQUENCE,)
MOST_PRECEDENTS = 2
"""Kernels of other tasks in a context."""
GROWTH = 10
"""Attempts after which the pool has grown by another N: the paper grows lambda over the run."""


@frozen
class Librarian:
    """Builds the Context of each attempt on one task."""

    memory: Memory
    proposer: Proposer
    task: KernelTask
    features: Mapping[str, float]
    mode: RetrievalName
    rng: random.Random = field(eq=False)
    chip: str = ""
    verifier: str = ""
    job: str = ""
    order: StepModel | None = None

    def context(self, search: Search, start: Candidate | None) -> Context:
        """Moves first, then examples, then lessons."""
        records = self._records()
        bare = Context(
            start=start,
            children=search.children(start),
            candidates=search.candidates,
            feedback=search.feedback,
            tried=search.tried,
            unwanted=self.memory.turned_down(self.task.op_category),
            asked=search.wishes.words,
            residual=learned(records),
            preconditions=preconditions(records),
            order=self.order,
            job=self.job,
        )
        stage = Stage.REFINE if start else Stage.DRAFT
        chosen = [
            *(self._moves(bare) if start else ()),
            *self._retrieve(EXAMPLES, stage, bare, search.spent),
            *self._retrieve(LESSONS, stage, bare, search.spent),
            *(precondition.rule() for precondition in bare.preconditions[:NUMBER]),
        ]
        experiences = tuple({choice.id: choice for choice in chosen}.values())
        return evolve(
            bare,
            experiences=experiences,
            precedents=lambda: tuple(islice(self._precedents(experiences), MOST_PRECEDENTS)),
        )

    def _precedents(self, experiences: Iterable[Experience]) -> Iterator[Precedent]:
        """The best kernel of each other task that a success tells of."""
        seen = {self.task.task_id}
        for experience in experiences:
            if experience.kind is not ExperienceKind.SUCCESS or experience.task_id in seen:
                continue
            seen.add(experience.task_id)
            result = self._precedent(experience)
            if result is not None:
                yield result

    def _precedent(self, experience: Experience) -> Precedent | None:
        """None where the memory has no kernel of the task, as behind an experience from a pack."""
        task, timed = self.memory.task(experience.task_id), _timed_on(experience)
        best = self.memory.best(experience.task_id, *timed) if timed else None
        if task is None or timed is None or best is None:
            return None
        return Precedent(task, Candidate(best.source, best.verdict, best.parent))

    def _records(self) -> tuple[TuningRecord, ...]:
        """Verdicts on this chip beside estimates; none where the memory is not asked or cannot learn."""
        if self.mode is RetrievalName.NONE:
            return ()
        result = self.memory.tuning_records(self.chip, self.verifier, MOST)
        return result if not result or _can_learn() else ()

    def _moves(self, context: Context) -> tuple[Experience, ...]:
        """The practices of a proposer with named moves, all of them, most valued first; of any other
        proposer, those for the start's bottleneck."""
        if not isinstance(self.proposer, MoveProposer):
            return self._retrieve(PRACTICES, Stage.REFINE, context, 0)
        sequences = self._retrieve(SEQUENCES, Stage.REFINE, context, 0)
        offered = self.proposer.practices(self.task, evolve(context, experiences=sequences))
        if not offered:
            return ()
        with self.memory.transaction():
            for experience in offered:
                self.memory.add_experience(experience)
        query = self._query(
            PRACTICES + SEQUENCES, Stage.REFINE, context, tuple(experience.id for experience in offered)
        )
        choice = RetrievalChoice(len(offered), len(offered), mode=self.mode)
        return self.memory.retrieve(query, choice, self.rng).experiences

    def _retrieve(
        self, kinds: tuple[ExperienceKind, ...], stage: Stage, context: Context, spent: int
    ) -> tuple[Experience, ...]:
        pool = NUMBER * (OVER_RETRIEVAL + spent // GROWTH)
        query = self._query(kinds, stage, context)
        experiences = self.memory.retrieve(
            query, RetrievalChoice(NUMBER, pool, mode=self.mode), self.rng
        ).experiences
        return tuple(experience for experience in experiences if not is_refuted(experience))

    def _query(
        self,
        kinds: tuple[ExperienceKind, ...],
        stage: Stage,
        context: Context,
        ids: tuple[str, ...] = (),
    ) -> Query:
        ops = " ".join(dict.fromkeys(node.op for node in self.task.graph.nodes))
        pipe = bottleneck_pipe(context.start.verdict.latency) if context.start else ""
        return Query(
            text=f"{self.task.op_category} {ops} {pipe} {context.feedback}",
            features=self.features,
            stage=stage,
            op_category=self.task.op_category,
            kinds=kinds,
            bottleneck=pipe,
            ids=ids,
        )


@cache
def _can_learn() -> bool:
    """Whether the statistics are installed; where they are not, the log says so once."""
    if not STATISTICS.is_installed:
        log.info(str(STATISTICS.missing()))
    return STATISTICS.is_installed


def _timed_on(experience: Experience) -> tuple[str, LatencySource] | None:
    """The chip and the source of a success' latency; None where its payload is another's and says neither."""
    try:
        known = json.loads(experience.payload)
        return str(known["chip"]), LatencySource(known["latency_source"])
    except (ValueError, LookupError, TypeError):
        return None
