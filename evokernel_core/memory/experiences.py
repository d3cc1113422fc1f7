"""The experiences: stored once by content, found by words, structure and value."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.sentence import Sentence, read
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory.connection import marks
from evokernel_core.memory.features import features_of
from evokernel_core.memory.migrations.dictionaries import COMMON
from evokernel_core.memory.packed import packed, unpacked
from evokernel_core.memory.retrieval import Query, RetrievalChoice, Retrieved, epsilon_greedy
from evokernel_core.memory.rows import Row, columns, decoded, record, text
from evokernel_core.memory.values import Values

if TYPE_CHECKING:
    from evokernel_core.memory.index import Index

log = logging.getLogger(__name__)

T = TypeVar("T")

RULE_TASKS = 2
"""Distinct tasks that must have met a failure before it is a rule: counting failures alone promotes
lessons of one task (seen in the rules that AdaExplore published)."""


def experience_id(kind: ExperienceKind, title: str, body: str) -> str:
    """sha256 (hex) of kind, title and body, so that the same lesson is one item."""
    text = json.dumps([kind.value, title, body], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def make_experience(  # noqa: PLR0913 - the fields of an Experience
    kind: ExperienceKind,
    title: str,
    body: str,
    *,
    op_category: str = "",
    task_id: str = "",
    bottleneck: str = "",
    payload: str = "",
    features: Mapping[str, float] | None = None,
) -> Experience:
    """An Experience under its content's id."""
    return Experience(
        id=experience_id(kind, title, body),
        kind=kind,
        title=title,
        body=body,
        op_category=op_category,
        task_id=task_id,
        bottleneck=bottleneck,
        payload=payload,
        features=tuple(sorted((features or {}).items())),
    )


class Experiences(Values):
    """Adds, finds and forgets experiences."""

    _index: Index | None = None

    def add_experience(self, experience: Experience) -> bool:
        """Adds the item unless it is there. Returns whether it was new. One from before titles were sentences
        gets its title's."""
        row = experience_row(experience)

        def add() -> bool:
            with self.transaction():
                is_new = self.add("experiences", row, "id")
                if not is_new and row["said"] is not None:
                    self.execute("UPDATE experiences SET said = :said WHERE id = :id AND said IS NULL", row)
                return is_new

        return self._indexed(add)

    def experience(self, id: str) -> Experience | None:
        return self.readable_row(_experience, "experiences", "id = ?", (id,))

    def experiences(
        self, kinds: Iterable[ExperienceKind] = tuple(ExperienceKind), task_id: str = ""
    ) -> tuple[Experience, ...]:
        """Items of the kinds, oldest first; of one task where it is given."""
        names = [kind.value for kind in kinds]
        where = f"kind IN ({marks(names)}) AND (? = '' OR task_id = ?)"
        rows = self.rows("experiences", where, (*names, task_id, task_id), order_by="seq")
        return self.readable(_experience, rows)

    def add_evidence(self, rule: Experience, task_id: str) -> bool:
        """Notes that a task met a failure; from the second distinct task on, the rule is an item.

        Returns whether the rule is known from now on.
        """
        with self.transaction():
            self.upsert("evidence", {"rule": rule.id, "task_id": task_id})
            known = self.count("evidence", "rule = ?", (rule.id,)) >= RULE_TASKS
            if known:
                self.add_experience(rule)
            return known

    def retrieve(self, query: Query, choice: RetrievalChoice, rng: random.Random) -> Retrieved:
        """The N most useful experiences for a query, by the mode of ``choice``."""
        if choice.mode is RetrievalName.NONE or choice.n <= 0:
            return Retrieved()
        seqs = self._indexed(lambda: self._found(query, choice, rng))
        rows = {row["seq"]: row for row in self.rows("experiences", f"seq IN ({marks(seqs)})", tuple(seqs))}
        result = {rows[seq]["id"]: rows[seq] for seq in seqs if seq in rows}
        if choice.mode is not RetrievalName.Q:
            return Retrieved(self.readable(_experience, result.values()))
        values = self.q_of(query.stage, query.op_category, result)
        chosen = epsilon_greedy(tuple(result), values, choice.n, choice.epsilon, rng)
        return Retrieved(self.readable(_experience, map(result.__getitem__, chosen)), values)

    def _found(self, query: Query, choice: RetrievalChoice, rng: random.Random) -> list[int]:
        """The rows that retrieval is about: N of them, or the pool to choose from by value."""
        with self._searched() as index:
            named = self._named(query.ids) if query.ids else None
            places = index.matching(query, named)
            match choice.mode:
                case RetrievalName.RANDOM:
                    drawn = rng.sample(range(len(places)), min(choice.n, len(places)))
                    return index.rows(places[drawn])
                case RetrievalName.Q if named is not None:  # what is asked for by id needs no search
                    rows = set(index.rows(places))
                    return [row for row in named if row in rows][: choice.k]
                case RetrievalName.Q:
                    return index.similar(query, places, choice.k)
                case _:
                    return index.similar(query, places, choice.n)

    @contextmanager
    def _searched(self) -> Iterator[Index]:
        """The index of what the file holds. One that has seen what may yet be undone is not kept."""
        from evokernel_core.memory.index import Index  # with numpy, for those who search

        with self._lock:
            index, self._index = self._index or Index(self), None
            is_certain = not self.is_writing
            with self.snapshot():
                index.refresh()
                yield index
            if is_certain:
                self._index = index

    def _named(self, ids: tuple[str, ...]) -> list[int]:
        """The rows of these items, in their order."""
        rows = self.rows("experiences", f"id IN ({marks(ids)})", ids, select="id, seq")
        result = {row["id"]: row["seq"] for row in rows}
        return [result[id] for id in dict.fromkeys(ids) if id in result]

    def _indexed(self, work: Callable[[], T]) -> T:
        """What ``work`` gives; where the index of words is damaged it is made again of the rows first."""
        try:
            return work()
        except StoreError as error:
            if type(error.__cause__) not in (sqlite3.DatabaseError, sqlite3.IntegrityError):
                raise
        log.warning("The memory's index of words was damaged and is made again from its rows.")
        with self.transaction():
            for command in ("delete-all", "rebuild"):
                self.insert("experiences_fts", {"experiences_fts": command})
        return work()


def experience_row(experience: Experience) -> Row:
    title = experience.title
    return {
        **columns(experience),
        "title": str(title),
        "said": packed(title.written(), COMMON + title) if title.values else None,
        "payload": packed(experience.payload, COMMON + experience.body),
        "features": packed(json.dumps(dict(experience.features), sort_keys=True)),
        "created": time.time(),
    }


def _title(row: Row) -> Sentence:
    """The title with what it is made of, where that is kept and says the same."""
    written = text(row, "title")
    if row["said"] is not None:
        with suppress(ValueError, TypeError):
            said = read(unpacked(row["said"], COMMON + written))
            if said == written:
                return said
    return Sentence(written)


@decoded
def _experience(row: Row) -> Experience:
    return record(
        Experience,
        row,
        title=_title(row),
        payload=unpacked(row["payload"], COMMON + text(row, "body")),
        features=tuple(sorted(features_of(row["features"]).items())),
    )
