"""The memory: one SQLite file per person, shared by every process of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evokernel_core.memory.connection import marks
from evokernel_core.memory.estimates import Estimates
from evokernel_core.memory.experiences import Experiences
from evokernel_core.memory.jobs import Jobs
from evokernel_core.memory.outcomes import Outcomes
from evokernel_core.memory.spending import Spending
from evokernel_core.memory.values import start_item

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
    "rewards",
    "tuning",
    "estimates",
    "evidence",
    "experiences",
    "spending",
)

_OF_TASKS = ("experiences", "attempts", "verdicts", "uses", "outcomes", "evidence", "estimates")


class Memory(Experiences, Outcomes, Jobs, Estimates, Spending):
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
            self._forget_items((id,))
            self.execute("DELETE FROM uses WHERE item = ?", (id,))
            return self.execute("DELETE FROM experiences WHERE id = ?", (id,)) > 0

    def forget_task(self, task_id: str) -> bool:
        """Removes a task with its kernels, verdicts, outcomes, the items learned from it and the rewards that
        it gave: values that other tasks share are what those make of them. Returns whether it was there.
        """
        with self.transaction():
            learned = [
                row["id"] for row in self.rows("SELECT id FROM experiences WHERE task_id = ?", (task_id,))
            ]
            for table in (*_OF_TASKS, "rewards"):
                self.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))
            orphans = "sources WHERE source_id NOT IN (SELECT source_id FROM attempts)"
            starts = [start_item(row["source_id"]) for row in self.rows(f"SELECT source_id FROM {orphans}")]
            self._forget_items((*learned, *starts))
            self.execute(f"DELETE FROM {orphans}")
            self.rebuild()
            return self.execute("DELETE FROM tasks WHERE task_id = ?", (task_id,)) > 0

    def _forget_items(self, items: Sequence[str]) -> None:
        """Removes their values, and their ids from the log."""
        self.execute(f"DELETE FROM q_values WHERE item IN ({marks(items)})", tuple(items))
        for column in ("used", "shown"):
            kept = (
                f"SELECT json_group_array(value) FROM json_each({column}) WHERE value NOT IN ({marks(items)})"
            )
            held = f"SELECT 1 FROM json_each({column}) WHERE value IN ({marks(items)})"
            changed = f"UPDATE rewards SET {column} = ({kept}) WHERE json_valid({column}) AND EXISTS ({held})"
            self.execute(changed, (*items, *items))

    def forget_everything(self) -> None:
        """Empties every table; the schema stays."""
        with self.transaction():
            for table in TABLES:
                self.execute(f"DELETE FROM {table}")
