"""Q-values: how much an item of the memory has been worth, per stage and op category; and the log of the
rewards that they come from."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from itertools import starmap

from attrs import evolve, frozen

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.connection import Connection, marks
from evokernel_core.memory.ledger import ALPHA, ANY_CATEGORY, INITIAL_Q, Key, Ledger, Reward, Worth
from evokernel_core.memory.migrations.dictionaries import COMMON
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.rows import Row, columns, counted, decoded, number, record, text, whole
from evokernel_core.memory.statistics import RunningStatistics

_LARGEST = 1.0 + 1e-9
"""Of a reward, with what adding up rounds."""


@frozen
class Value:
    """A Q-value and the number of updates behind it."""

    stage: Stage
    op_category: str
    item: str
    q: float
    n: int


@frozen
class Rebuilt:
    """``events`` of the log gave ``values``; the one that changed most did so by ``moved``."""

    events: int
    values: int
    moved: float


def start_item(source_id: str) -> str:
    """The memory item that stands for a kernel as a start point of refinement."""
    return f"start:{source_id}"


class Values(Connection):
    """Q-values, the running statistics of rewards, and the log that both are a fold of."""

    def q(self, stage: Stage, op_category: str, item: str) -> float:
        """The value in this category, else over all categories, else the initial one."""
        return self.q_of(stage, op_category, (item,))[item]

    def q_of(self, stage: Stage, op_category: str, items: Iterable[str]) -> dict[str, float]:
        """``q`` of many items."""
        names = tuple(items)
        result = dict.fromkeys(names, INITIAL_Q)
        # the category's own row sorts after the back-off row, so it wins
        known = sorted(self._known(stage, op_category, names), key=lambda value: value.op_category)
        return result | {value.item: value.q for value in known}

    def pay(self, event: Reward) -> float:
        """Appends an event to the log and moves what it moves; returns the reward that was paid."""
        event = evolve(event, at=event.at or time.time())
        with self.transaction():
            ledger = Ledger(self.alpha)
            for value in self._known(event.stage, event.op_category, event.used):
                ledger.worths[value.stage, value.op_category, value.item] = Worth(value.q, value.n)
            if event.scale:
                ledger.scales[event.scale] = self.statistics(event.scale)
            before = ledger.scales.get(event.scale, RunningStatistics())
            reward = ledger.take(event)
            self.upsert("q_values", *(_value_row(key, ledger.worths[key]) for key in event.places()))
            if event.scale:
                self.upsert("statistics", _statistics_row(event.scale, ledger.scales[event.scale]))
            self._log(event, reward, before)
        return reward

    @property
    def alpha(self) -> float:
        """The step size that values are moved by."""
        result = self.readable_row(_tuned, "tuning", "name = ?", ("alpha",))
        return ALPHA if result is None else result

    def rebuild(self, alpha: float | None = None) -> Rebuilt:
        """Values and statistics again from the log, with another step size from now on where one is given."""
        with self.transaction():
            if alpha is not None:
                self.upsert("tuning", {"name": "alpha", "value": alpha})
            ledger = Ledger(self.alpha)
            events = ledger.take_all(self.rewards())
            before = {(item.stage, item.op_category, item.item): item.q for item in self.values()}
            for table in ("q_values", "statistics"):
                self.delete(table)
            self.insert("q_values", *starmap(_value_row, ledger.worths.items()))
            self.insert("statistics", *starmap(_statistics_row, ledger.scales.items()))
        after = {key: worth.q for key, worth in ledger.worths.items()}
        moves = (abs(after.get(key, INITIAL_Q) - before.get(key, INITIAL_Q)) for key in before | after)
        return Rebuilt(events, len(ledger.worths), max(moves, default=0.0))

    def rewards(self, task_id: str = "") -> tuple[Reward, ...]:
        """The log, oldest first; of one task where it is given."""
        rows = self.rows("rewards", "? = '' OR task_id = ?", (task_id, task_id), order_by="seq")
        return self.readable(_reward, rows)

    def rewards_of(self, causes: Iterable[str], most: int) -> tuple[Reward, ...]:
        """The last ``most`` events with one of these causes, newest first."""
        names = tuple(causes)
        where = f"cause IN ({marks(names)})"
        return self.readable(_reward, self.rows("rewards", where, names, order_by="seq DESC", limit=most))

    def values(self, stage: Stage | None = None, limit: int = -1) -> tuple[Value, ...]:
        """Values of all categories, best first."""
        where = "? = '' OR stage = ?"
        named = stage or ""
        result = self.rows("q_values", where, (named, named), order_by="q DESC, n DESC", limit=limit)
        return self.readable(_value, result)

    def statistics(self, name: str) -> RunningStatistics:
        result = self.readable_row(_statistics, "statistics", "name = ?", (name,))
        return result or RunningStatistics()

    def _known(self, stage: Stage, op_category: str, items: Iterable[str]) -> tuple[Value, ...]:
        names = tuple(dict.fromkeys(items))
        where = f"stage = ? AND op_category IN (?, ?) AND item IN ({marks(names)})"
        rows = self.rows("q_values", where, (stage, ANY_CATEGORY, op_category, *names))
        return self.readable(_value, rows)

    def _log(self, event: Reward, reward: float, before: RunningStatistics) -> None:
        items = items_row(event.used, event.shown)
        self.insert("rewards", columns(event) | columns(before) | items | {"reward": reward})


def _value_row(key: Key, worth: Worth) -> Row:
    stage, category, item = key
    return {"stage": stage.value, "op_category": category, "item": item, "q": worth.q, "n": worth.n}


def _statistics_row(name: str, running_statistics: RunningStatistics) -> Row:
    return {"name": name, **columns(running_statistics)}


@decoded
def _value(row: Row) -> Value:
    stage, category = Stage(row["stage"]), text(row, "op_category")
    return Value(stage, category, text(row, "item"), _bounded(row, "q"), counted(row, "n"))


@decoded
def _tuned(row: Row) -> float:
    alpha = number(row, "value")
    if not 0 < alpha <= 1:
        raise ValueError("alpha")
    return alpha


@decoded
def numbered_reward(row: Row) -> tuple[int, Reward]:
    """With the row's key."""
    return whole(row, "seq"), _reward(row)


@decoded
def _reward(row: Row) -> Reward:
    used = unpacked(row["used"])
    return record(
        Reward,
        row,
        used=_items(used),
        raw=_bounded(row, "raw"),
        trials=counted(row, "trials"),
        shown=_items(unpacked(row["shown"], COMMON + used)),
    )


def items_row(used: Iterable[str], shown: Iterable[str]) -> Row:
    """The columns of a reward that name items: what was used was mostly shown."""
    written = json.dumps(tuple(used))
    return {"used": packed(written), "shown": packed(json.dumps(tuple(shown)), COMMON + written)}


def _items(written: str) -> tuple[str, ...]:
    result = json.loads(written)
    if not isinstance(result, list) or not all(isinstance(element, str) for element in result):
        raise TypeError("items")
    return tuple(result)


@decoded
def _statistics(row: Row) -> RunningStatistics:
    count, m2 = counted(row, "count"), number(row, "m2")
    if m2 < 0:
        raise ValueError("statistics")
    return RunningStatistics(count, _bounded(row, "mean"), m2)


def _bounded(row: Row, name: str) -> float:
    """A reward or a mean of rewards."""
    value = number(row, name)
    if abs(value) > _LARGEST:
        raise ValueError(name)
    return value
