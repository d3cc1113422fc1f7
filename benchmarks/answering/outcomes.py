"""What came of searches: a row for each task, and their table."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from attrs import frozen

from benchmarks.answering.searches import Place
from evokernel_core.domain.settings import ProposerName
from evokernel_core.memory.candidates import Attempt, Stored
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis.privacy import MODEL

MOST_SLOWER = 0.98


@frozen
class Outcome:
    """A search; latencies in microseconds, None where no kernel was verified. ``right`` has for each of a
    model's attempts whether it was verified."""

    us: float | None = None
    model_us: float | None = None
    eager_us: float | None = None
    right: tuple[bool, ...] = ()
    tokens: int = 0


@frozen
class Row:
    """A task, searched by the author ``alone`` and by the proposer that asks."""

    task: str
    has_memory: bool
    alone: Outcome
    asked: Outcome
    reason: str = ""

    @property
    def gain(self) -> float | None:
        """How many times as fast as the author's kernel, None where one of the two is missing."""
        return self.alone.us / self.asked.us if self.alone.us and self.asked.us else None


def row_of(place: Place, proposer: ProposerName) -> Row:
    """What a task's memories say, with what ended the search, or that it is not over."""
    alone, asked = (_outcome(place, name) for name in (ProposerName.SCHEDULE, proposer))
    end = place.end(proposer)
    reason = end.read_text() if end.exists() else "under way"
    return Row(place.folder.name, place.has_memory, alone, asked, reason)


def _outcome(place: Place, proposer: ProposerName) -> Outcome:
    if not place.memory(proposer).exists():
        return Outcome()
    with Memory(place.memory(proposer)) as memory:
        attempts = memory.attempts(job_id=proposer.value)
        tasks = {attempt.task_id for attempt in attempts}
        known = {kernel.source.source_id: kernel for task in tasks for kernel in memory.candidates(task)}
    pairs = [(attempt, known.get(attempt.source_id)) for attempt in attempts]
    models = [pair for pair in pairs if pair[1] is None or pair[1].source.strategy.family == MODEL]
    latencies = [kernel.verdict.latency for attempt, kernel in pairs if kernel and attempt.feasible]
    return Outcome(
        us=_best(pairs),
        model_us=_best(models),
        eager_us=next((latency.baseline_us for latency in latencies if latency), None),
        right=tuple(attempt.feasible for attempt, _ in models),
        tokens=sum(attempt.tokens for attempt in attempts),
    )


def _best(pairs: Sequence[tuple[Attempt, Stored | None]]) -> float | None:
    latencies = (kernel.verdict.latency for attempt, kernel in pairs if kernel and attempt.feasible)
    return min((latency.us for latency in latencies if latency), default=None)


def table(rows: Sequence[Row]) -> str:
    """The rows and what they come to."""
    names = ("task", "memory", "eager", "author", "hybrid", "model", "gain", "first", "in 3", "tokens")
    asked = [row for row in rows if row.asked.right]
    first, within = sum(row.asked.right[0] for row in asked), sum(any(row.asked.right[:3]) for row in asked)
    gains = [gain for row in rows if (gain := row.gain)]
    mean = f"{statistics.geometric_mean(gains):.3f}" if gains else "none"
    tokens = sum(row.asked.tokens for row in rows)
    return "\n".join(
        [
            _cells(names),
            *(_cells(_texts(row)) for row in rows),
            f"{first} of {len(asked)} right at first, {within} within 3; author over hybrid {mean} "
            f"(geometric mean of {len(gains)}), {sum(gain < MOST_SLOWER for gain in gains)} more than 2 % "
            f"slower; {tokens:,} tokens (estimated).",
        ]
    )


def _texts(row: Row) -> tuple[str, ...]:
    right = row.asked.right
    latencies = (row.alone.eager_us or row.asked.eager_us, row.alone.us, row.asked.us, row.asked.model_us)
    return (
        row.task,
        "on" if row.has_memory else "off",
        *(f"{us:.2f}" if us else "-" for us in latencies),
        f"{row.gain:.3f}" if row.gain else "-",
        *(("yes" if any(part) else "no") if right else "-" for part in (right[:1], right[:3])),
        f"{row.asked.tokens:,}",
        row.reason,
    )


def _cells(texts: Sequence[str]) -> str:
    name, memory, *others = texts
    return f"{name:14} {memory:6} {' '.join(f'{text:>8}' for text in others)}".rstrip()
