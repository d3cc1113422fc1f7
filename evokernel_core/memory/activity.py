"""What the memory says of the work and of a person's decisions, as a dashboard shows it: newest first, and
never more than is asked for, however much was ever done."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.memory.connection import marks
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.rows import Row, decoded, number, text, whole
from evokernel_core.memory.store import Memory

DECISIONS = (
    OutcomeKind.ACCEPTED,
    OutcomeKind.PARTIALLY_ACCEPTED,
    OutcomeKind.REJECTED,
    OutcomeKind.EXPLAINED,
    OutcomeKind.REVERTED,
    OutcomeKind.SURVIVED,
    OutcomeKind.SNOOZED,
)
"""What a person did, or left as it was; that something was shown or ran out is no decision."""
_SAME_VERDICT = (
    "v.task_id = a.task_id AND v.source_id = a.source_id AND v.verifier = a.verifier AND v.chip = a.chip"
)


@frozen
class Progress:
    """How far a job got: its last attempt, that one's stage, and its best verified latency in us, by measured
    ones where there are any; ``source`` is None where no kernel was verified."""

    attempt: int
    stage: Stage
    best_us: float | None
    source: LatencySource | None


@frozen
class Verified:
    """A verified kernel: the ``attempt``-th of its task, counted from 1, and its microseconds."""

    attempt: int
    us: float


@frozen
class Decision:
    """``name`` is the task's, "" where that was forgotten. ``at`` is seconds since the epoch."""

    at: float
    kind: OutcomeKind
    name: str
    detail: str


@frozen
class Lesson:
    """A decision that moved values: ``reward`` in [-1, 1] went to ``items``, each with title and value
    of now. The kernel itself as a start point has no title."""

    at: float
    kind: OutcomeKind
    name: str
    detail: str
    reward: float
    items: tuple[tuple[Sentence, float], ...]


def progress(memory: Memory, job_id: str) -> Progress | None:
    """Of a job; None before its first attempt."""
    best = "min(CASE WHEN v.feasible AND v.latency_source = '{0}' THEN v.latency_us END) OVER () AS {0}"
    measured, modelled = best.format(LatencySource.MEASURED), best.format(LatencySource.MODELLED)
    rows = memory.query(
        f"SELECT a.n AS n, a.stage AS stage, {measured}, {modelled}"
        f" FROM attempts a LEFT JOIN verdicts v ON {_SAME_VERDICT}"
        " WHERE a.job_id = ? ORDER BY a.n DESC LIMIT 1",
        (job_id,),
    )
    return next(iter(memory.readable(_progress, rows)), None)


def trajectory(
    memory: Memory, task_id: str, chip: str, source: LatencySource, most: int
) -> tuple[Verified, ...]:
    """The last ``most`` verified kernels of a task, oldest first, by latencies of one chip and source."""
    rows = memory.query(
        "SELECT a.place AS place, v.latency_us AS us FROM"
        " (SELECT *, row_number() OVER (ORDER BY seq) AS place FROM attempts WHERE task_id = ?) a"
        f" JOIN verdicts v ON {_SAME_VERDICT}"
        " WHERE a.chip = ? AND v.latency_source = ? AND v.feasible ORDER BY a.place DESC LIMIT ?",
        (task_id, chip, source.value, most),
    )
    return memory.readable(_verified, reversed(rows))


def decisions(memory: Memory, most: int) -> tuple[Decision, ...]:
    """The last ``most`` decisions, newest first."""
    rows = memory.query(
        "SELECT o.at AS at, o.kind AS kind, o.detail AS detail, coalesce(t.name, '') AS name"
        " FROM outcomes o LEFT JOIN tasks t ON t.task_id = o.task_id"
        f" WHERE o.kind IN ({marks(DECISIONS)}) ORDER BY o.seq DESC LIMIT ?",
        (*(kind.value for kind in DECISIONS), most),
    )
    return memory.readable(_decision, rows)


def lessons(memory: Memory, most: int) -> tuple[Lesson, ...]:
    """The last ``most`` rewards that a decision gave, newest first."""
    return tuple(_lesson(memory, event) for event in memory.rewards_of(DECISIONS, most))


def _lesson(memory: Memory, event: Reward) -> Lesson:
    task = memory.task(event.task_id)
    known = memory.q_of(event.stage, event.op_category, event.used)
    items = (
        (result.title if (result := memory.experience(key)) else Sentence(), q) for key, q in known.items()
    )
    kind = OutcomeKind(event.cause)
    reason = memory.rejections(event.task_id).get(event.source_id, "") if kind is OutcomeKind.REJECTED else ""
    moved = sorted(items, key=lambda item: item[1], reverse=event.raw > 0)
    return Lesson(event.at, kind, task.name if task else "", reason, event.raw, tuple(moved))


@decoded
def _progress(row: Row) -> Progress:
    known = [choice for choice in (LatencySource.MEASURED, LatencySource.MODELLED) if row[choice] is not None]
    source = known[0] if known else None
    return Progress(whole(row, "n"), Stage(row["stage"]), number(row, source) if source else None, source)


@decoded
def _verified(row: Row) -> Verified:
    return Verified(whole(row, "place"), number(row, "us"))


@decoded
def _decision(row: Row) -> Decision:
    return Decision(number(row, "at"), OutcomeKind(row["kind"]), text(row, "name"), text(row, "detail"))
