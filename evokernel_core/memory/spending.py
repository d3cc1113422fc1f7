"""What models cost: one row for each day, job and model."""

from __future__ import annotations

from attrs import frozen

from evokernel_core.memory.connection import Connection
from evokernel_core.memory.rows import Row, counted, decoded, number


@frozen
class Spent:
    """Tokens, read and written together, and what they cost in the currency of the prices."""

    tokens: int = 0
    money: float = 0.0


@frozen
class Cost:
    """What questions took."""

    input_tokens: int
    output_tokens: int
    money: float = 0.0


class Spending(Connection):
    """The books of every process that uses this memory."""

    def spend(self, day: str, job: str, model: str, cost: Cost) -> None:
        """Adds a cost to a day (``2026-01-31``) and a job."""
        with self.transaction():
            before = self.readable_row(
                _cost, "spending", "day = ? AND job_id = ? AND model = ?", (day, job, model)
            )
            known = before or Cost(0, 0)
            row = {
                "day": day,
                "job_id": job,
                "model": model,
                "input_tokens": known.input_tokens + cost.input_tokens,
                "output_tokens": known.output_tokens + cost.output_tokens,
                "money": known.money + cost.money,
            }
            self.upsert("spending", row)

    def spent_by(self, job: str) -> Spent:
        """What a job cost on all of its days."""
        return self._spent("job_id = ?", job)

    def spent_on(self, day: str) -> Spent:
        """What all jobs of a day cost."""
        return self._spent("day = ?", day)

    def _spent(self, where: str, value: str) -> Spent:
        costs = self.readable(_cost, self.rows("spending", where, (value,)))
        tokens = sum(cost.input_tokens + cost.output_tokens for cost in costs)
        return Spent(tokens, sum(cost.money for cost in costs))


@decoded
def _cost(row: Row) -> Cost:
    return Cost(counted(row, "input_tokens"), counted(row, "output_tokens"), number(row, "money"))
