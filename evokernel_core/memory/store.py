"""The memory: one SQLite file per person, shared by every process of theirs."""

from __future__ import annotations

from collections.abc import Mapping

from evokernel_core.memory.connection import marks
from evokernel_core.memory.experiences import Experiences
from evokernel_core.memory.jobs import Jobs
from evokernel_core.memory.outcomes import Outcomes

TABLES = (
    "tasks",
    "sources",
    "attempts",
    "verdicts",
    "uses",
    "outcomes",
    "jobs",
    "q_values",
    "statistics",
    "evidence",
    "experiences",
)


class Memory(Experiences, Outcomes, Jobs):
    """Everything that is kept. ``Memory(path)`` opens or creates the file; close it after use.

    Every method is one short transaction; ``with memory.transaction():`` joins several into one.
    """

    def counts(self) -> Mapping[str, int]:
        """Number of rows of each table, and of experiences by kind."""
        found = {table: self._count(f"SELECT count(*) FROM {table}") for table in TABLES}
        for row in self.rows("SELECT kind, count(*) AS n FROM experiences GROUP BY kind ORDER BY kind"):
            found[f"experiences.{row['kind']}"] = row["n"]
        return found

    def _count(self, sql: str) -> int:
        row = self.row(sql)
        return int(row[0]) if row else 0

    def forget_experience(self, id: str) -> bool:
        """Removes one item and its values. Returns whether it was there."""
        with self.transaction():
            self.execute("DELETE FROM q_values WHERE item = ?", (id,))
            self.execute("DELETE FROM uses WHERE item = ?", (id,))
            return self.execute("DELETE FROM experiences WHERE id = ?", (id,)) > 0

    def forget_task(self, task_id: str) -> bool:
        """Removes a task with its kernels, verdicts, outcomes and the items learned from it.

        Values of items that other tasks share stay. Returns whether the task was there.
        """
        with self.transaction():
            learned = self.rows("SELECT id FROM experiences WHERE task_id = ?", (task_id,))
            items = tuple(row["id"] for row in learned)
            self.execute(f"DELETE FROM q_values WHERE item IN ({marks(items)})", items)
            for table in ("experiences", "attempts", "verdicts", "uses", "outcomes", "evidence"):
                self.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))
            orphans = "sources WHERE source_id NOT IN (SELECT source_id FROM attempts)"
            self.execute(f"DELETE FROM q_values WHERE item IN (SELECT 'start:' || source_id FROM {orphans})")
            self.execute(f"DELETE FROM {orphans}")
            return self.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,)) > 0

    def forget_everything(self) -> None:
        """Empties every table; the schema stays."""
        with self.transaction():
            for table in TABLES:
                self.execute(f"DELETE FROM {table}")
