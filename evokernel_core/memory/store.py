"""The memory: one SQLite file per person, shared by every process of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Set

from evokernel_core.domain.outcome import OutcomeKind
from evokernel_core.memory.connection import marks
from evokernel_core.memory.estimates import Estimates
from evokernel_core.memory.experiences import Experiences
from evokernel_core.memory.jobs import Jobs
from evokernel_core.memory.outcomes import Outcomes
from evokernel_core.memory.placements import Placements
from evokernel_core.memory.spending import Spending
from evokernel_core.memory.values import items_row, numbered_reward, start_item

TABLES = (
    "tasks",
    "sources",
    "attempts",
    "verdicts",
    "uses",
    "outcomes",
    "placements",
    "jobs",
    "q_values",
    "statistics",
    "rewards",
    "tuning",
    "estimates",
    "evidence",
    "experiences",
    "spending",
)

_OF_TASKS = ("experiences", "attempts", "verdicts", "uses", "outcomes", "placements", "evidence", "estimates")


class Memory(Experiences, Outcomes, Placements, Jobs, Estimates, Spending):
    """Everything that is kept. ``Memory(path)`` opens or creates the file; close it after use.

    Every method is one short transaction; ``with memory.transaction():`` joins several into one.
    """

    def counts(self) -> Mapping[str, int]:
        """Number of rows of each table, and of experiences by kind."""
        result = {table: self.count(table) for table in TABLES}
        for row in self.query("SELECT kind, count(*) AS n FROM experiences GROUP BY kind ORDER BY kind"):
            result[f"experiences.{row['kind']}"] = row["n"]
        return result

    def forget_experience(self, id: str) -> bool:
        """Removes one item and its values. Returns whether it was there."""
        with self.transaction():
            self._forget_items({id})
            self.delete("uses", "item = ?", (id,))
            return self.delete("experiences", "id = ?", (id,))

    def forget_task(self, task_id: str) -> bool:
        """Removes a task with its kernels, verdicts, outcomes, the items learned from it and the rewards that
        it gave: values that other tasks share are what those make of them. Returns whether it was there.
        """
        with self.transaction():
            learned = [row["id"] for row in self.rows("experiences", "task_id = ?", (task_id,), select="id")]
            for table in (*_OF_TASKS, "rewards"):
                self.delete(table, "task_id = ?", (task_id,))
            orphans = "source_id NOT IN (SELECT source_id FROM attempts)"
            starts = [
                start_item(row["source_id"]) for row in self.rows("sources", orphans, select="source_id")
            ]
            self._forget_items({*learned, *starts})
            self.forget_sources(orphans)
            self.rebuild()
            return self.delete("tasks", "task_id = ?", (task_id,))

    def _forget_items(self, items: Set[str]) -> None:
        """Removes their values, and their ids from the log."""
        names = tuple(items)
        self.delete("q_values", f"item IN ({marks(names)})", names)
        for seq, event in self.readable(numbered_reward, self.rows("rewards")):
            if not items.isdisjoint((*event.used, *event.shown)):
                kept = ([entry for entry in held if entry not in items] for held in (event.used, event.shown))
                self.update("rewards", seq, items_row(*kept))

    def forget_decisions(self) -> None:
        """Removes what the person did with kernels, and the rewards that it gave: values are what the
        verifier alone makes of them, and a kernel that was rejected may come again."""
        causes = tuple(kind.value for kind in OutcomeKind)
        with self.transaction():
            self.delete("outcomes")
            self.delete("placements")
            self.delete("rewards", f"cause IN ({marks(causes)})", causes)
            self.rebuild()
        self.compact()

    def forget_everything(self) -> None:
        """Empties every table; the schema stays."""
        with self.transaction():
            for table in TABLES:
                self.delete(table)
        self.compact()
