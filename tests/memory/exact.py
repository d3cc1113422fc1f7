"""The similarity search in its plain form: every item is scored by itself, words by SQLite's own bm25()."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from evokernel_core.memory.features import features_of
from evokernel_core.memory.retrieval import Query, z_scores
from evokernel_core.memory.store import Memory
from evokernel_core.memory.words import MAX_TERMS


def cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    """Cosine of two sparse vectors, 0 where one is empty."""
    dot = sum(weight * right.get(name, 0.0) for name, weight in left.items())
    norm = math.hypot(*left.values()) * math.hypot(*right.values())
    return dot / norm if norm else 0.0


def bm25(memory: Memory, text: str) -> dict[str, float]:
    """BM25 of the items that share a word with the text; more is better."""
    terms = list(dict.fromkeys(re.findall(r"\w+", text.lower())))[:MAX_TERMS]
    if not terms:
        return {}
    sql = (
        "SELECT e.id, -bm25(experiences_fts) AS score FROM experiences_fts"
        " JOIN experiences e ON e.seq = experiences_fts.rowid WHERE experiences_fts MATCH ?"
    )
    rows = memory.query(sql, (" OR ".join(f'"{term}"' for term in terms),))
    return {row["id"]: row["score"] for row in rows}


def scores(memory: Memory, query: Query) -> dict[str, float]:
    """The items that a query may return, newest first, with their scores."""
    rows = [
        row
        for row in memory.rows("experiences", order_by="seq DESC")
        if row["kind"] in query.kinds
        and (not query.bottleneck or row["bottleneck"] in ("", query.bottleneck))
        and (not query.ids or row["id"] in query.ids)
    ]
    words = bm25(memory, query.text)
    text = z_scores([words.get(row["id"], 0.0) for row in rows])
    structure = z_scores([cosine(query.features, features_of(row["features"])) for row in rows])
    return {row["id"]: 0.5 * a + 0.5 * b for row, a, b in zip(rows, text, structure, strict=True)}


def most_similar(memory: Memory, query: Query) -> list[str]:
    """All of them, best first; of equally good ones the newest first."""
    found = scores(memory, query)
    return sorted(found, key=lambda id: -found[id])
