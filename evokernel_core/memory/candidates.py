"""The kernels that were tried: tasks, sources, attempts, verdicts, and what each attempt used."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping

from attrs import field, frozen

from evokernel_core.domain.admission import read_task
from evokernel_core.domain.experience import Stage
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.serial import dumps, loads
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import LatencySource, Verdict
from evokernel_core.memory.migrations.dictionaries import VERDICTS
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.rows import Row, columns, decoded, record, text
from evokernel_core.memory.sources import BASED, PARTS, Sources, kernel_of
from evokernel_core.memory.values import Values


@frozen
class Attempt:
    """One try of the budget: attempt ``n`` (from 1) of a job. ``source_id`` is empty where the
    proposer gave no kernel; ``parent`` is the start point, empty for a draft. ``reward`` is the
    reward before standardising; ``feedback`` the failure in words, empty after a success and where a kernel
    was timed only."""

    job_id: str
    n: int
    task_id: str
    source_id: str
    parent: str
    stage: Stage
    proposer: str
    verifier: str
    chip: str
    feasible: bool
    reward: float = 0.0
    tokens: int = 0
    feedback: Sentence = field(default=Sentence(), converter=Sentence)
    created: float = 0.0


@frozen
class Stored:
    """A kernel with a verdict of one verifier, and the start point it was made from."""

    source: KernelSource
    verdict: Verdict
    parent: str
    stage: Stage


class Candidates(Sources, Values):
    """Records attempts and finds what they gave."""

    def record_task(self, task: KernelTask, features: Mapping[str, float]) -> None:
        row = {
            "task_id": task.task_id,
            "name": task.name,
            "op_category": task.op_category,
            "task": packed(dumps(task)),
            "features": json.dumps(dict(features), sort_keys=True),
        }
        with self.transaction():
            if self.task(task.task_id) is None:  # new, or damaged
                self.upsert("tasks", row)

    def task(self, task_id: str) -> KernelTask | None:
        return self.readable_row(_task, "tasks", "task_id = ?", (task_id,))

    def tasks(self) -> tuple[KernelTask, ...]:
        return self.readable(_task, self.rows("tasks", order_by="name"))

    def record_verdict(self, verdict: Verdict, chip: str) -> None:
        """Keeps what a verifier found; a later word of the same verifier replaces it, unless that timed the
        kernel only: another search may have compared it meanwhile, and somebody may have it in a file."""
        latency = verdict.latency
        row = {
            "task_id": verdict.task_id,
            "source_id": verdict.source_id,
            "verifier": verdict.verifier,
            "chip": chip,
            "feasible": verdict.feasible,
            "latency_us": latency.us if latency else None,
            "latency_source": latency.source.value if latency else "",
            "verdict": packed(dumps(verdict), VERDICTS + verdict.task_id + verdict.source_id),
            "created": time.time(),
        }
        if verdict.is_slower:
            self.add("verdicts", row, "task_id", "source_id", "verifier", "chip")
        else:
            self.upsert("verdicts", row)

    def verdict(self, task_id: str, source_id: str, verifier: str, chip: str) -> Verdict | None:
        """What this verifier (its name holds its version) has found about this kernel on this chip."""
        where = "task_id = ? AND source_id = ? AND verifier = ? AND chip = ?"
        return self.readable_row(_verdict, "verdicts", where, (task_id, source_id, verifier, chip))

    def verdicts(self, source_id: str) -> tuple[Verdict, ...]:
        """All that was found about a kernel, the latest last."""
        return self.readable(
            _verdict, self.rows("verdicts", "source_id = ?", (source_id,), order_by="created")
        )

    def record_attempt(self, attempt: Attempt, used: Iterable[str]) -> None:
        """Keeps an attempt and the items that its kernel used (for rewards that come later)."""
        row = columns(attempt)
        row |= {"feedback": attempt.feedback.written(), "created": attempt.created or time.time()}
        with self.transaction():
            self.insert("attempts", row)
            if attempt.source_id:
                use = {name: row[name] for name in ("task_id", "source_id", "stage")}
                self.upsert("uses", *(use | {"item": item} for item in used))

    def attempts(self, *, job_id: str = "", task_id: str = "") -> tuple[Attempt, ...]:
        """The attempts of a job or a task (or all), in order."""
        where = "(? = '' OR job_id = ?) AND (? = '' OR task_id = ?)"
        rows = self.rows("attempts", where, (job_id, job_id, task_id, task_id), order_by="seq")
        return self.readable(_attempt, rows)

    def candidates(self, task_id: str, verifier: str = "", chip: str = "") -> tuple[Stored, ...]:
        """The task's kernels with the verdicts of this verifier and chip (or any), oldest first."""
        rows = self.query(
            f"SELECT a.task_id, a.parent, a.stage, {PARTS}, v.verdict, min(a.seq) AS first FROM attempts a"
            " JOIN sources s ON s.source_id = a.source_id"
            " JOIN verdicts v ON v.source_id = a.source_id AND v.task_id = a.task_id"
            f" {BASED}"
            " WHERE a.task_id = ? AND (? = '' OR v.verifier = ?) AND (? = '' OR v.chip = ?)"
            " GROUP BY a.source_id, v.verifier, v.chip ORDER BY first",
            (task_id, verifier, verifier, chip, chip),
        )
        return self.readable(_stored, rows)

    def best(self, task_id: str, chip: str, source: LatencySource) -> Stored | None:
        """The fastest feasible kernel of a task, by latencies of one chip and source; none rejected."""
        rejected = self.rejections(task_id)
        feasible = [
            candidate
            for candidate in self.candidates(task_id, chip=chip)
            if candidate.verdict.feasible
            and candidate.verdict.latency
            and candidate.verdict.latency.source is source
            if candidate.source.source_id not in rejected
        ]
        return min(feasible, key=lambda entry: entry.verdict.latency.us, default=None)  # type: ignore[union-attr]

    def rejections(self, task_id: str) -> Mapping[str, str]:
        """The kernels of a task about which a person's last word is a rejection, with the reason given."""
        given = task_id, OutcomeKind.REJECTED, OutcomeKind.EXPLAINED, OutcomeKind.ACCEPTED
        rows = self.rows("outcomes", "task_id = ? AND kind IN (?, ?, ?)", given, order_by="seq")
        rejected: dict[str, str] = {}
        for source_id, kind, detail in self.readable(_word, rows):
            if kind is OutcomeKind.ACCEPTED:
                rejected.pop(source_id, None)
            elif kind is OutcomeKind.REJECTED or source_id in rejected:
                rejected[source_id] = detail
        return rejected

    def turned_down(self, op_category: str) -> tuple[Strategy, ...]:
        """The strategies of kernels that were rejected for any task of a category."""
        rejected = (
            "s.source_id IN (SELECT o.source_id FROM outcomes o JOIN tasks t ON t.task_id = o.task_id"
            " WHERE o.kind = ? AND t.op_category = ?)"
        )
        result = self._sources(rejected, (OutcomeKind.REJECTED, op_category))
        return tuple(element.strategy for element in result)

    def kernel_uses(self, source_id: str, task_id: str = "") -> tuple[tuple[Stage, str], ...]:
        """The items and the start point that a kernel's proposal used, each with its stage."""
        where = "source_id = ? AND (? = '' OR task_id = ?)"
        rows = self.rows(
            "uses",
            where,
            (source_id, task_id, task_id),
            select="DISTINCT stage, item",
            order_by="stage, item",
        )
        return self.readable(_use, rows)


@decoded
def _task(row: Row) -> KernelTask:
    return read_task(json.loads(unpacked(row["task"])))


@decoded
def _verdict(row: Row) -> Verdict:
    ids = text(row, "task_id") + text(row, "source_id")
    return loads(unpacked(row["verdict"], VERDICTS + ids), Verdict)


@decoded
def _use(row: Row) -> tuple[Stage, str]:
    return Stage(row["stage"]), text(row, "item")


@decoded
def _word(row: Row) -> tuple[str, OutcomeKind, str]:
    return text(row, "source_id"), OutcomeKind(row["kind"]), text(row, "detail")


@decoded
def _stored(row: Row) -> Stored:
    return Stored(kernel_of(row), _verdict(row), text(row, "parent"), Stage(row["stage"]))


@decoded
def _attempt(row: Row) -> Attempt:
    return record(Attempt, row)
