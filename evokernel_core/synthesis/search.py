"""The state of one run: what was tried on a task, what it gave, and what is still open."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.task import KernelTask
from evokernel_core.synthesis.code import code_id
from evokernel_core.synthesis.lessons import error_class, failure
from evokernel_core.synthesis.proposers.base import Begun, Candidate
from evokernel_core.synthesis.rewards import at_bound
from evokernel_core.synthesis.wishes import Wishes

LEAST_GAIN = 0.01
"""The share of the best latency that an improvement must save to count as one."""


@define
class Search:
    """Mutable, owned by one run of the engine. ``history`` is the best latency after each attempt of
    the budget, None before the first feasible kernel. ``reachable_us``: what the time model can
    reach for the task, 0 where that is not known. ``wishes``: what people ask of a kernel; those that are not
    as asked may lead to others, and are never the best."""

    task: KernelTask
    budget: int
    reachable_us: float = 0.0
    wishes: Wishes = field(factory=Wishes)
    tokens: int = 0
    history: list[float | None] = field(factory=list)
    feedback: Sentence = field(factory=Sentence)
    failed_gate: str = ""
    can_draft: bool = True
    begun: list[Begun] = field(factory=list)
    """Kernels whose verdicts are awaited, oldest first."""
    _candidates: dict[str, Candidate] = field(factory=dict)
    _by_code: dict[str, str] = field(factory=dict)
    _repeated: frozenset[str] = frozenset()
    _exhausted: set[str] = field(factory=set)
    _best: tuple[Wishes, Candidate | None] | None = field(default=None, init=False, eq=False)
    """The best under these wishes, None where a kernel was added since."""

    def add(self, candidate: Candidate) -> None:
        """Takes in a verified kernel; one that is known keeps its first parent."""
        id = candidate.source.source_id
        known = self._candidates.get(id)
        parent = known.parent if known else candidate.parent
        self._candidates[id] = Candidate(candidate.source, candidate.verdict, parent)
        self._best = None
        self._by_code.setdefault(code_id(candidate.source), id)
        verdict = candidate.verdict
        failed = verdict.failed_gate
        self.feedback = failure(verdict)
        self.failed_gate = failed.gate.value if failed else ""

    def known(self, source_id: str) -> Candidate | None:
        return self._candidates.get(source_id)

    def repeats(self, source: KernelSource) -> Candidate | None:
        """The known kernel of which a new text is a copy to the compiler; it is not proposed again."""
        id = self._by_code.get(code_id(source))
        if id is None or source.source_id in self._candidates:
            return None
        self._repeated |= {source.source_id}
        return self._candidates[id]

    def is_new(self, source: KernelSource) -> bool:
        """Whether it differs, to the compiler, from all kernels that are known or awaited."""
        id = code_id(source)
        return id not in self._by_code and id not in (code_id(start.source) for start in self.begun)

    def exhaust(self, start: Candidate | None) -> None:
        """Nothing new comes from this start point (None: from drafting)."""
        if start is None:
            self.can_draft = False
        else:
            self._exhausted.add(start.source.source_id)

    def spend(self, candidate: Candidate | None, tokens: int) -> None:
        """Counts an attempt that gave this kernel, or none."""
        latencies = (*self.history[-1:], self._offered_us(candidate))
        faster = [us for us in latencies if us is not None and us < float("inf")]
        self.history.append(min(faster, default=None))
        self.tokens += tokens

    def _offered_us(self, candidate: Candidate | None) -> float | None:
        """The latency of an attempt's kernel, endless where it is not as people ask."""
        if candidate is None:
            return None
        return candidate.latency_us if self.wishes.allow(candidate) else float("inf")

    @property
    def spent(self) -> int:
        """Attempts of the budget that are used up."""
        return len(self.history)

    @property
    def first_at(self) -> int:
        """The number of the attempt that gave the first feasible kernel, 0 before it."""
        return next((n for n, us in enumerate(self.history, 1) if us is not None), 0)

    @property
    def first_us(self) -> float | None:
        """The latency of the first feasible kernel of this job."""
        return next((us for us in self.history if us is not None), None)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(self._candidates.values())

    @property
    def tried(self) -> frozenset[str]:
        best_us = self.best_us
        judged = (id for id, value in self._candidates.items() if not value.verdict.is_open(best_us))
        return self._repeated.union(judged, (start.source.source_id for start in self.begun))

    @property
    def starts(self) -> tuple[Candidate, ...]:
        """Feasible kernels from which something may still come."""
        return tuple(
            value
            for id, value in self._candidates.items()
            if value.verdict.feasible and id not in self._exhausted
        )

    @property
    def timed(self) -> Candidate | None:
        """The fastest of the kernels that were timed only: what gains nothing itself may lead on."""
        timed = [candidate for candidate in self.candidates if candidate.verdict.is_slower]
        return min(
            timed,
            key=lambda candidate: candidate.verdict.latency.us if candidate.verdict.latency else 0.0,
            default=None,
        )

    @property
    def best(self) -> Candidate | None:
        if self._best is None or self._best[0] is not self.wishes:
            self._best = (
                self.wishes,
                fastest(candidate for candidate in self.candidates if self.wishes.allow(candidate)),
            )
        return self._best[1]

    @property
    def best_us(self) -> float:
        best = self.best
        return best.latency_us if best else float("inf")

    @property
    def seen_errors(self) -> frozenset[str]:
        return frozenset(error_class(candidate.verdict) for candidate in self.candidates)

    def at_bound(self) -> bool:
        best = self.best
        if best is None or best.verdict.latency is None:
            return False
        return at_bound(best.verdict.latency, self.reachable_us)

    def spent_reason(self, patience: int) -> Sentence:
        """Why no further attempt is worth its cost, empty where one is."""
        if self.at_bound():
            return Sentence("The best kernel is as close to the roofline limit as refining pays.")
        if self.spent >= self.budget:
            return Sentence("The attempt budget ({count}) is used up.", count=self.budget)
        if self.is_stagnant(patience):
            return Sentence("The last {count} attempts gained less than a percent.", count=patience)
        return Sentence()

    def is_stagnant(self, patience: int) -> bool:
        """Whether the last ``patience`` attempts together improved the best by less than a percent."""
        if not patience or self.spent <= patience:
            return False
        before, now = self.history[-1 - patience], self.history[-1]
        return before is not None and now is not None and now > (1 - LEAST_GAIN) * before

    def children(self, start: Candidate | None) -> tuple[Candidate, ...]:
        parent = start.source.source_id if start else ""
        return tuple(candidate for candidate in self.candidates if candidate.parent == parent)


def fastest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The fastest feasible kernel."""
    feasible = [candidate for candidate in candidates if candidate.verdict.feasible]
    return min(feasible, key=lambda candidate: candidate.latency_us, default=None)
