"""The experiences: stored once by content, found by words, structure and value."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from evokernel_core.domain.errors import StoreError
from evokernel_core.domain.experience import Experience, ExperienceKind
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory.connection import marks
from evokernel_core.memory.retrieval import Choice, Query, Retrieved, cosine, epsilon_greedy, mix
from evokernel_core.memory.rows import Row, decoded, text
from evokernel_core.memory.values import Values

log = logging.getLogger(__name__)

T = TypeVar("T")

_FIELDS = "id, kind, title, body, op_category, task_id, bottleneck, payload, features"
_MOST_FEATURE = 1e100
"""Features are counts and logarithms; squares of larger ones would be infinite."""
MAX_TERMS = 40
"""Words of a query that the full-text index is asked for."""
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

    def add_experience(self, experience: Experience) -> bool:
        """Adds the item unless it is there. Returns whether it was new."""
        row = {
            "id": experience.id,
            "kind": experience.kind.value,
            "title": experience.title,
            "body": experience.body,
            "op_category": experience.op_category,
            "task_id": experience.task_id,
            "bottleneck": experience.bottleneck,
            "payload": experience.payload,
            "features": json.dumps(dict(experience.features), sort_keys=True),
            "created": time.time(),
        }
        return self._indexed(lambda: self.insert("experiences", row, "ON CONFLICT (id) DO NOTHING"))

    def experience(self, id: str) -> Experience | None:
        return self.readable_row(_experience, f"SELECT {_FIELDS} FROM experiences WHERE id = ?", (id,))

    def experiences(
        self, kinds: Iterable[ExperienceKind] = tuple(ExperienceKind), task_id: str = ""
    ) -> tuple[Experience, ...]:
        """Items of the kinds, oldest first; of one task where it is given."""
        names = [kind.value for kind in kinds]
        sql = f"SELECT {_FIELDS} FROM experiences WHERE kind IN ({marks(names)}) AND (? = '' OR task_id = ?)"
        rows = self.rows(f"{sql} ORDER BY seq", (*names, task_id, task_id))
        return self.readable(_experience, rows)

    def add_evidence(self, rule: Experience, task_id: str) -> bool:
        """Notes that a task met a failure; from the second distinct task on, the rule is an item.

        Returns whether the rule is known from now on.
        """
        with self.transaction():
            self.insert(
                "evidence", {"rule": rule.id, "task_id": task_id}, "ON CONFLICT (rule, task_id) DO NOTHING"
            )
            row = self.row("SELECT count(*) FROM evidence WHERE rule = ?", (rule.id,))
            known = row is not None and row[0] >= RULE_TASKS
            if known:
                self.add_experience(rule)
            return known

    def retrieve(self, query: Query, choice: Choice, rng: random.Random) -> Retrieved:
        """The N most useful experiences for a query, by the mode of ``choice``."""
        if choice.mode is RetrievalName.NONE or choice.n <= 0:
            return Retrieved()
        ids = self._matching(query)
        if choice.mode is RetrievalName.RANDOM:
            return Retrieved(self._load(rng.sample(sorted(ids), min(choice.n, len(ids)))))
        if choice.mode is RetrievalName.SIMILARITY:
            return Retrieved(self._load(self._most_similar(query, ids)[: choice.n]))
        pool = self._pool(query, ids)[: choice.k]
        values = self.q_of(query.stage, query.op_category, pool)
        chosen = epsilon_greedy(pool, values, choice.n, choice.epsilon, rng)
        return Retrieved(self._load(chosen), values)

    def _matching(self, query: Query) -> dict[str, Mapping[str, float]]:
        """Id to features of the items that a query may return."""
        kinds = [kind.value for kind in query.kinds]
        sql = f"SELECT id, features FROM experiences WHERE kind IN ({marks(kinds)})"
        given: tuple[str, ...] = tuple(kinds)
        if query.bottleneck:
            sql += " AND bottleneck IN ('', ?)"
            given = (*given, query.bottleneck)
        if query.ids:
            sql += f" AND id IN ({marks(query.ids)})"
            given = (*given, *query.ids)
        return dict(self.readable(_features, self.rows(f"{sql} ORDER BY seq DESC", given)))

    def _pool(self, query: Query, features: Mapping[str, Mapping[str, float]]) -> list[str]:
        """The most similar items; items asked for by id need no search and keep their order."""
        if query.ids:
            return [id for id in query.ids if id in features]
        return self._most_similar(query, features)

    def _most_similar(self, query: Query, features: Mapping[str, Mapping[str, float]]) -> list[str]:
        words = self._relevance(query.text)
        ids = list(features)
        scores = mix(
            [words.get(id, 0.0) for id in ids],
            [cosine(query.features, features[id]) for id in ids],
        )
        return [id for _, id in sorted(zip(scores, ids, strict=True), key=lambda pair: -pair[0])]

    def _relevance(self, text: str) -> dict[str, float]:
        """BM25 of the items that share a word with the text; more is better."""
        terms = list(dict.fromkeys(re.findall(r"\w+", text.lower())))[:MAX_TERMS]
        if not terms:
            return {}
        match = " OR ".join(f'"{term}"' for term in terms)
        sql = (
            "SELECT e.id, -bm25(experiences_fts) AS score FROM experiences_fts"
            " JOIN experiences e ON e.seq = experiences_fts.rowid WHERE experiences_fts MATCH ?"
        )
        rows = self._indexed(lambda: self.rows(sql, (match,)))
        return {row["id"]: row["score"] for row in rows}

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
                self.execute("INSERT INTO experiences_fts (experiences_fts) VALUES (?)", (command,))
        return work()

    def _load(self, ids: Iterable[str]) -> tuple[Experience, ...]:
        found = [self.experience(id) for id in ids]
        return tuple(item for item in found if item is not None)


@lru_cache(maxsize=4096)
def _parse(features: str) -> dict[str, float]:
    data: dict[str, float] = json.loads(features)
    if not isinstance(data, dict) or not all(_is_number(value) for value in data.values()):
        raise TypeError("features")
    return data


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < _MOST_FEATURE


@decoded
def _features(row: Row) -> tuple[str, Mapping[str, float]]:
    return text(row, "id"), _parse(text(row, "features"))


@decoded
def _experience(row: Row) -> Experience:
    return Experience(
        id=text(row, "id"),
        kind=ExperienceKind(row["kind"]),
        title=text(row, "title"),
        body=text(row, "body"),
        op_category=text(row, "op_category"),
        task_id=text(row, "task_id"),
        bottleneck=text(row, "bottleneck"),
        payload=text(row, "payload"),
        features=tuple(sorted(_parse(text(row, "features")).items())),
    )
