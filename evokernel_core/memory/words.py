"""BM25 of every experience in memory, from the postings that SQLite's full-text index keeps.

FTS5's own bm25() looks at every row that shares a word with the query, and in a memory of kernels nearly all
rows do: 60 ms for ten words and 30,000 rows, where arrays take 0.6. What counts as a word, and as the same
word, is FTS5's affair here too; so is what is counted, so that the scores are those of bm25().
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import numpy as np

from evokernel_core.memory.connection import Connection
from evokernel_core.memory.ranking import Column, Floats, Growing, Ints

MAX_TERMS = 40
"""Words of a query that are looked for."""
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6
"""Constants of FTS5's bm25(), from SQLite's documentation; words of most rows have the last."""
_MOST_KEPT = 512
"""Words whose postings are kept; those of 40 queries without a common word."""
_MOST_ADDED = 500
"""New rows that are split into words one by one; for more, postings are read again when they are needed."""
_COLUMNS = 3
"""Columns of the full-text index: title, body, category."""
_OFFSETS = 24
"""Bits of a word's place in its column."""
_KEY = f"(doc << 2 | CASE col WHEN 'title' THEN 0 WHEN 'body' THEN 1 ELSE 2 END) << {_OFFSETS} | offset"
"""One number for a word's place: row, column, place in the column."""
_TABLES = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.held_words"
    " USING fts5vocab('main', 'experiences_fts', 'instance')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.split"
    " USING fts5(title, body, op_category, content='', tokenize='porter')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS temp.split_words USING fts5vocab('temp', 'split', 'instance')",
)


class Words:
    """Mutable, owned by one index; rows have the index's places, and ``seqs`` are their keys in the file."""

    def __init__(self, memory: Connection, seqs: Growing) -> None:
        self._memory = memory
        self._seqs = seqs
        self._lengths = Growing(np.float64)
        self._total = 0
        self._postings: OrderedDict[tuple[str, ...], Column] = OrderedDict()
        self._split: dict[str, tuple[str, ...]] = {}
        self._last: tuple[tuple[str, int], Floats] = ("", 0), np.zeros(0)
        for statement in _TABLES:
            memory.execute(statement)

    def append(self, sizes: list[bytes], first: int) -> None:
        """Takes the rows from place ``first`` on, of which the file's index says ``sizes``."""
        lengths = [_length(size) for size in sizes]
        self._lengths.extend(np.array(lengths, np.float64))
        self._total += sum(lengths)
        if len(sizes) > _MOST_ADDED:
            self._postings.clear()
        elif self._postings and sizes:
            self._count(first)

    def relevance(self, text: str) -> Floats:
        """BM25 of every row; 0 for those that share no word with the text."""
        asked = text, len(self._lengths)
        if self._last[0] != asked:  # the searches of one attempt ask with the same words
            terms = list(dict.fromkeys(re.findall(r"\w+", text.lower())))[:MAX_TERMS]
            self._last = asked, self._scores(terms)
        return self._last[1]

    def _scores(self, terms: Iterable[str]) -> Floats:
        scores = np.zeros(len(self._lengths))
        if not self._total:
            return scores
        lengths = _K1 * (1 - _B + _B * self._lengths.array / (self._total / len(scores)))
        room = np.empty(len(scores))
        for term in terms:
            column = self._column(self._tokens(term))
            if len(column):
                rarity = math.log((len(scores) - len(column) + 0.5) / (len(column) + 0.5))
                weight = (max(rarity, 0.0) or _LEAST_IDF) * (_K1 + 1.0)
                places, counts = column.over(len(scores))
                # in place, since fresh arrays of a megabyte for every word cost more than the sums
                shares = np.add(counts, lengths[places], out=room[: len(counts)])
                np.divide(counts, shares, out=shares)
                np.multiply(shares, weight, out=shares)
                scores[places] += shares
        return scores

    def _tokens(self, term: str) -> tuple[str, ...]:
        """What FTS5 makes of a word: several where it holds an underscore, none where it is no word."""
        if term not in self._split:
            result = sorted((key, token) for token, key in self._parts([(1, term, "", "")]))
            if len(self._split) >= _MOST_KEPT:
                self._split.clear()
            self._split[term] = tuple(token for _, token in result)
        return self._split[term]

    def _column(self, tokens: tuple[str, ...]) -> Column:
        """How often each row has these words, one behind the other."""
        if tokens not in self._postings:
            self._postings[tokens] = column = Column()
            self._extend(column, tokens, {token: self._held(token) for token in tokens})
        self._postings.move_to_end(tokens)
        if len(self._postings) > _MOST_KEPT:
            self._postings.popitem(last=False)
        return self._postings[tokens]

    def _held(self, token: str) -> Ints:
        return _keys(self._memory.tuples(f"SELECT {_KEY} FROM temp.held_words WHERE term = ?", (token,)))

    def _count(self, first: int) -> None:
        """Adds the rows from a place on to the postings that are kept."""
        least = int(self._seqs.array[first])
        new = self._memory.rows("experiences", "seq >= ?", (least,), select="seq, title, body, op_category")
        result: dict[str, list[tuple[int]]] = {}
        for token, key in self._parts(tuple(row.values()) for row in new):
            result.setdefault(token, []).append((key,))
        kept = {token for tokens in self._postings for token in tokens}
        keys = {token: _keys(result[token]) for token in kept & result.keys()}
        for tokens, known in self._postings.items():
            if keys.keys() >= set(tokens):
                self._extend(known, tokens, keys)

    def _parts(self, rows: Iterable[tuple[object, ...]]) -> list[tuple[str, int]]:
        """Every word of texts (row, title, body, category), with the number of its place."""
        for row in rows:
            self._memory.execute(
                "INSERT INTO temp.split (rowid, title, body, op_category) VALUES (?, ?, ?, ?)", row
            )
        result = self._memory.tuples(f"SELECT term, {_KEY} FROM temp.split_words")
        self._memory.execute("INSERT INTO temp.split (split) VALUES ('delete-all')")
        return result

    def _extend(self, column: Column, tokens: tuple[str, ...], keys: Mapping[str, Ints]) -> None:
        if not tokens:
            return
        starts = keys[tokens[0]]
        for place, token in enumerate(tokens[1:], 1):
            starts = starts[np.isin(starts + place, keys[token])]
        seqs, counts = np.unique(starts >> (_OFFSETS + 2), return_counts=True)
        places = np.asarray(np.searchsorted(self._seqs.array, seqs))
        if len(seqs) and (places[-1] >= len(self._seqs) or (self._seqs.array[places] != seqs).any()):
            raise sqlite3.DatabaseError("words of rows that are not there")
        column.extend(places, counts)


def _keys(rows: list[tuple[int]]) -> Ints:
    return np.sort(np.fromiter((key for (key,) in rows), np.int64, len(rows)))


def _length(size: object) -> int:
    """Words of a row, of the variable-length numbers that FTS5 keeps for its columns.

    Raises sqlite3.DatabaseError for what are none.
    """
    if not isinstance(size, bytes):
        raise sqlite3.DatabaseError("a row without its words")
    total = number = columns = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            total, number, columns = total + number, 0, columns + 1
    if columns != _COLUMNS or (size and size[-1] >= 0x80):
        raise sqlite3.DatabaseError("a row's words cannot be counted")
    return total
