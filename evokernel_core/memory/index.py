"""What a search looks at, in memory: kind, bottleneck, vector and words of every experience.

The file is the truth. Before each search the rows that were added meanwhile, by this process or another, are
taken; where one was forgotten or changed (triggers count it), everything is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from evokernel_core.domain.experience import ExperienceKind
from evokernel_core.memory.connection import Connection
from evokernel_core.memory.features import features_of
from evokernel_core.memory.ranking import Array, Growing, Ints, Vectors, best, mix
from evokernel_core.memory.retrieval import Query
from evokernel_core.memory.rows import Row, decoded, text
from evokernel_core.memory.words import Words

_CHUNK = 10_000
"""Rows that are read at a time."""
_KINDS = {kind.value: place for place, kind in enumerate(ExperienceKind)}
_UNREADABLE = (255, 0, 0)
"""Of a row that cannot be read: no kind, so that nothing finds it; its words count as they do for FTS5."""
_ROWS = (
    "SELECT e.id, seq, kind, bottleneck, features, sz FROM experiences e"
    " LEFT JOIN experiences_fts_docsize d ON d.id = seq WHERE seq > ? ORDER BY seq LIMIT ?"
)


class Index:
    """Mutable, owned by one memory. Items have places in the order of their rows in the file."""

    def __init__(self, memory: Connection) -> None:
        self._memory = memory
        self._read = decoded(self._features)
        self._clear()

    def _clear(self) -> None:
        self._revision: object = None
        self._seqs = Growing(np.int64)
        self._kinds = Growing(np.uint8)
        self._bottlenecks = Growing(np.int32)
        self._vectors_of = Growing(np.int32)
        self._pipes = {"": 0}
        self._known: dict[bytes, int] = {}
        self._vectors = Vectors()
        self._words = Words(self._memory, self._seqs)

    def refresh(self) -> None:
        """Takes what changed since the last time; to be called in one snapshot with what asks.

        Raises sqlite3.DatabaseError where the file's index of words is damaged.
        """
        revision = self._memory.rows("revision")
        if revision != self._revision:
            self._clear()
            self._revision = revision
        while rows := self._newer():
            first = len(self._seqs)
            self._seqs.extend(np.array([row["seq"] for row in rows]))
            self._words.append([row["sz"] for row in rows], first)
            self._take(rows)

    def matching(self, query: Query, among: Collection[int] | None = None) -> Ints:
        """The places of items of the query's kinds and bottleneck; of some rows of the file where given."""
        is_asked = np.zeros(_UNREADABLE[0] + 1, bool)
        is_asked[[_KINDS[kind.value] for kind in query.kinds]] = True
        wanted = is_asked[self._kinds.array]
        if query.bottleneck:
            own = self._pipes.get(query.bottleneck, 0)
            wanted &= (self._bottlenecks.array == 0) | (self._bottlenecks.array == own)
        if among is not None:
            wanted &= np.isin(self._seqs.array, list(among))
        return np.flatnonzero(wanted)

    def similar(self, query: Query, places: Ints, number: int) -> list[int]:
        """The rows of the items among ``places`` that are most similar to the query, best first; of items
        that are equally so, the newest first."""
        words = self._words.relevance(query.text)[places]
        structure = self._vectors.cosines(query.features)[self._vectors_of.array[places]]
        return self.rows(places[best(mix(words, structure), number)])

    def rows(self, places: Array) -> list[int]:
        """The keys in the file."""
        result: list[int] = self._seqs.array[places].tolist()
        return result

    def _newer(self) -> list[Row]:
        last = int(self._seqs.array[-1]) if len(self._seqs) else -(2**62)
        return self._memory.query(_ROWS, (last, _CHUNK))

    def _take(self, rows: Sequence[Row]) -> None:
        read = dict(self._memory.readable(self._read, rows))
        result = np.array([read.get(row["seq"], _UNREADABLE) for row in rows])
        for column, values in zip((self._kinds, self._bottlenecks, self._vectors_of), result.T, strict=True):
            column.extend(values)

    def _features(self, row: Row) -> tuple[int, tuple[int, int, int]]:
        """The key of a row, and what is kept of it."""
        text(row, "id")
        kind, pipe, kept = _KINDS[row["kind"]], text(row, "bottleneck"), row["features"]
        if kept not in self._known:
            self._known[kept] = self._vectors.append(features_of(kept))
        return row["seq"], (kind, self._pipes.setdefault(pipe, len(self._pipes)), self._known[kept])
