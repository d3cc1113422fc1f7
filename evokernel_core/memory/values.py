"""Q-values: how much an item of the memory has been worth, per stage and op category."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.connection import Connection, marks
from evokernel_core.memory.rows import Row, decoded, number, text, whole
from evokernel_core.memory.statistics import RunningStatistics

ALPHA = 0.3
"""Step size of Q; the paper states none, MemRL's configurations use 0.3."""
INITIAL_Q = 0.0
"""Value of what was never tried: between a success and a failure, so it is optimistic after one."""
_MOST_COUNTED = 2**53
"""Rewards of one statistic; SQLite and floats count further than anybody has tried kernels."""
ANY_CATEGORY = ""
"""The op category under which the back-off value over all categories is kept."""


@frozen
class Value:
    """A Q-value and the number of updates behind it."""

    stage: Stage
    op_category: str
    item: str
    q: float
    n: int


def start_item(source_id: str) -> str:
    """The memory item that stands for a kernel as a start point of refinement."""
    return f"start:{source_id}"


def step(q: float, reward: float, alpha: float = ALPHA) -> float:
    """Q <- Q + alpha (r - Q). Stays between the least and the greatest reward."""
    return q + alpha * (reward - q)


class Values(Connection):
    """Q-values and the running statistics of rewards."""

    def q(self, stage: Stage, op_category: str, item: str) -> float:
        """The value in this category, else over all categories, else the initial one."""
        return self.q_of(stage, op_category, (item,))[item]

    def q_of(self, stage: Stage, op_category: str, items: Iterable[str]) -> dict[str, float]:
        """``q`` of many items."""
        names = tuple(items)
        found = dict.fromkeys(names, INITIAL_Q)
        # the category's own row sorts after the back-off row, so it wins
        rows = self.rows(
            f"SELECT item, q FROM q_values WHERE stage = ? AND op_category IN (?, ?)"
            f" AND item IN ({marks(names)}) ORDER BY op_category",
            (stage, ANY_CATEGORY, op_category, *names),
        )
        return found | dict(self.readable(_item_q, rows))

    def update_q(self, stage: Stage, op_category: str, items: Iterable[str], reward: float) -> None:
        """One step of every item towards ``reward``, in its category and over all categories."""
        with self.transaction():
            for item in dict.fromkeys(items):
                for category in dict.fromkeys((op_category, ANY_CATEGORY)):
                    self._step(stage, category, item, reward)

    def seed_q(self, stage: Stage, op_category: str, item: str, q: float) -> None:
        """Gives an item a first value unless it has one; it counts as no update."""
        with self.transaction():
            for category in dict.fromkeys((op_category, ANY_CATEGORY)):
                self.seed_value(stage, category, item, q, 0)

    def seed_value(self, stage: Stage, op_category: str, item: str, q: float, n: int) -> None:
        """Puts one value in place unless there is one."""
        row = {"stage": stage.value, "op_category": op_category, "item": item, "q": q, "n": n}
        self.insert("q_values", row, "ON CONFLICT (stage, op_category, item) DO NOTHING")

    def _step(self, stage: Stage, op_category: str, item: str, reward: float) -> None:
        key = (stage, op_category, item)
        where = "WHERE stage = ? AND op_category = ? AND item = ?"
        before = self.readable_row(_item_q, f"SELECT item, q FROM q_values {where}", key)
        q = step(before[1] if before else INITIAL_Q, reward)
        self.execute(
            "INSERT INTO q_values (stage, op_category, item, q, n) VALUES (?, ?, ?, ?, 1)"
            " ON CONFLICT (stage, op_category, item) DO UPDATE SET q = excluded.q, n = n + 1",
            (*key, q),
        )

    def values(self, stage: Stage | None = None, limit: int = -1) -> tuple[Value, ...]:
        """Values of all categories, best first."""
        where, given = ("WHERE stage = ?", (stage,)) if stage else ("", ())
        found = self.rows(f"SELECT * FROM q_values {where} ORDER BY q DESC, n DESC LIMIT ?", (*given, limit))
        return self.readable(_value, found)

    def statistics(self, name: str) -> RunningStatistics:
        found = self.readable_row(_statistics, "SELECT * FROM statistics WHERE name = ?", (name,))
        return found or RunningStatistics()

    def standardise(self, name: str, reward: float) -> float:
        """The reward against the statistics before it; then the statistics take it in."""
        with self.transaction():
            before = self.statistics(name)
            after = before.push(reward)
            self.insert(
                "statistics",
                {"name": name, "count": after.count, "mean": after.mean, "m2": after.m2},
                "ON CONFLICT (name) DO UPDATE SET"
                " count = excluded.count, mean = excluded.mean, m2 = excluded.m2",
            )
            return before.standardise(reward)


@decoded
def _value(row: Row) -> Value:
    stage, category = Stage(row["stage"]), text(row, "op_category")
    return Value(stage, category, text(row, "item"), number(row, "q"), whole(row, "n"))


@decoded
def _item_q(row: Row) -> tuple[str, float]:
    return text(row, "item"), number(row, "q")


@decoded
def _statistics(row: Row) -> RunningStatistics:
    count, m2 = whole(row, "count"), number(row, "m2")
    if not 0 <= count < _MOST_COUNTED or m2 < 0:
        raise ValueError("statistics")
    return RunningStatistics(count, number(row, "mean"), m2)
