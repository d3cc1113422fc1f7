"""What people did with offered kernels, turned into delayed, graded rewards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evokernel_core.domain.experience import Stage
from evokernel_core.domain.outcome import Outcome, OutcomeKind
from evokernel_core.memory.candidates import Candidates
from evokernel_core.memory.connection import marks
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.rows import Row, columns, decoded, record, text

REWARDS: Mapping[OutcomeKind, float] = {
    OutcomeKind.ACCEPTED: 1.0,
    OutcomeKind.PARTIALLY_ACCEPTED: 0.5,
    OutcomeKind.OPENED_DIFF: 0.1,
    OutcomeKind.READY: 0.0,
    OutcomeKind.SHOWN: 0.0,
    OutcomeKind.EXPIRED: 0.0,
    OutcomeKind.SNOOZED: 0.0,
    OutcomeKind.EXPLAINED: 0.0,
    OutcomeKind.NEVER: 0.0,
    OutcomeKind.OFFERED_AGAIN: 0.0,
    OutcomeKind.REVERTED: -0.7,
    OutcomeKind.REJECTED: -1.0,
}
"""Reward of each reaction, on the scale of the verifier's -1 to 1. Our own grading: a rejection is as
bad as an infeasible kernel; a revert a little less, since people also revert for reasons of their
own; being ignored says nothing."""

SURVIVAL: Mapping[str, float] = {"30s": 0.25, "5m": 0.5, "15m": 0.75, "commit": 1.0}
"""Reward of a kernel that was still in the file after a time: the longer, the surer."""


def outcome_reward(outcome: Outcome) -> float:
    """The reward of an outcome; 0 means that it teaches nothing."""
    if outcome.kind is OutcomeKind.SURVIVED:
        return SURVIVAL.get(outcome.detail, SURVIVAL["30s"])
    return REWARDS[outcome.kind]


class Outcomes(Candidates):
    """Records outcomes and pays their rewards."""

    def record_outcome(self, outcome: Outcome) -> bool:
        """Records it and moves the Q-values of what the kernel's proposal used, in one transaction.

        The same outcome given twice counts once; returns whether it was new.
        """
        row = columns(outcome)
        with self.transaction():
            new = self.add("outcomes", row, *row)
            if new:
                self._pay(outcome)
            return new

    def _pay(self, outcome: Outcome) -> None:
        reward = outcome_reward(outcome)
        if not reward:
            return
        category = self.readable_row(_category, "tasks", "task_id = ?", (outcome.task_id,))
        used: dict[Stage, list[str]] = {}
        for stage, item in self.kernel_uses(outcome.source_id, outcome.task_id):
            used.setdefault(stage, []).append(item)
        for stage, items in used.items():
            self.pay(
                Reward(
                    stage,
                    category or "",
                    tuple(items),
                    reward,
                    cause=outcome.kind.value,
                    task_id=outcome.task_id,
                    source_id=outcome.source_id,
                    at=outcome.at,
                )
            )

    def move_outcomes(self, before: str, after: str) -> None:
        """Renames regions whose ids end with ``before``, as those of a file that has another name now. What
        another record says already is not said twice."""
        escaped = re.sub(r"([%_~])", r"~\1", before)
        renamed = "UPDATE OR IGNORE outcomes SET region_id = substr(region_id, 1, length(region_id) - ?) || ?"
        with self.transaction():
            self.execute(f"{renamed} WHERE region_id LIKE ? ESCAPE '~'", (len(before), after, f"%{escaped}"))

    def outcomes(self, region_id: str = "") -> tuple[Outcome, ...]:
        """All outcomes, or those of a region, oldest first."""
        where = "? = '' OR region_id = ?"
        rows = self.rows("outcomes", where, (region_id, region_id), order_by="seq")
        return self.readable(_outcome, rows)

    def outcomes_of(self, kinds: Sequence[OutcomeKind]) -> tuple[Outcome, ...]:
        """All outcomes of some kinds, oldest first."""
        names = tuple(kind.value for kind in kinds)
        rows = self.rows("outcomes", f"kind IN ({marks(names)})", names, order_by="seq")
        return self.readable(_outcome, rows)


@decoded
def _category(row: Row) -> str:
    return text(row, "op_category")


@decoded
def _outcome(row: Row) -> Outcome:
    return record(Outcome, row)
