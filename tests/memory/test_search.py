"""The search in memory finds what the plain search finds, whoever wrote or forgot meanwhile."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory import words
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.retrieval import Query, RetrievalChoice
from evokernel_core.memory.store import Memory
from tests.memory.exact import bm25, scores

KINDS = (ExperienceKind.TRACE, ExperienceKind.SUCCESS, ExperienceKind.PRACTICE)
VOCABULARY = (
    "softmax",
    "aten",
    "relu",
    "tiles",
    "tile",
    "tiling",
    "mse_loss",
    "rows",
    "ä",
    "loss mse",
    "fp16",
)
NAMES = ("rows", "kind:reduction", "dtype:float16", "op:relu", "rank:2")
texts = st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)
features = st.dictionaries(st.sampled_from(NAMES), st.sampled_from((0.5, 1.0, 1.7, 3.0)), max_size=4)


@st.composite
def items(draw: st.DrawFn) -> Experience:
    return make_experience(
        draw(st.sampled_from(KINDS)),
        draw(texts),
        draw(texts),
        op_category=draw(st.sampled_from(("softmax", "loss", ""))),
        bottleneck=draw(st.sampled_from(("", "", "MTE2", "V"))),
        features=draw(features),
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    return Query(
        text=draw(texts),
        features=draw(features),
        stage=Stage.REFINE,
        op_category="softmax",
        kinds=tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, unique=True))),
        bottleneck=draw(st.sampled_from(("", "MTE2", "unknown"))),
    )


def found(memory: Memory, query: Query, number: int) -> list[str]:
    choice = RetrievalChoice(number, number, epsilon=0.0, mode=RetrievalName.SIMILARITY)
    return [item.id for item in memory.retrieve(query, choice, random.Random(0)).experiences]


def assert_the_same(memory: Memory, query: Query, number: int = 5) -> None:
    """Item by item; where scores differ by rounding alone, either of two may be first."""
    exact = scores(memory, query)
    ids = found(memory, query, number)
    best = sorted(exact.values(), reverse=True)[:number]
    assert len(ids) == len(set(ids)) == len(best)
    assert [exact[id] for id in ids] == pytest.approx(best, abs=1e-9)
    ordered = sorted(exact, key=lambda id: -exact[id])[:number]
    gaps = [abs(a - b) for a, b in pairwise(best)]
    if all(gap > 1e-9 for gap in gaps):
        assert ids[: number - 1] == ordered[: number - 1]


@settings(max_examples=60, deadline=None)
@given(st.lists(items(), max_size=25), st.lists(queries(), min_size=1, max_size=4), st.data())
def test_it_finds_what_the_plain_search_finds(
    given: Sequence[Experience], asked: Sequence[Query], data: st.DataObject
) -> None:
    """Also after more was added, by this process and another, and after some was forgotten."""
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        for item in given:
            memory.add_experience(item)
        for query in asked:
            assert_the_same(memory, query)
        with Memory(memory.path) as other:
            for writer in (memory, other):
                for item in data.draw(st.lists(items(), max_size=4)):
                    writer.add_experience(item)
                if given and data.draw(st.booleans()):
                    writer.forget_experience(data.draw(st.sampled_from(given)).id)
                for query in asked:
                    assert_the_same(memory, query)


@settings(max_examples=30, deadline=None)
@given(st.lists(items(), max_size=20), texts)
def test_words_are_scored_as_sqlite_scores_them(given: Sequence[Experience], text: str) -> None:
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        for item in given:
            memory.add_experience(item)
        exact = bm25(memory, text)
        with memory._searched() as index:
            ours = index._words.relevance(text)
        rows = memory.rows("experiences", order_by="seq")
        assert dict(zip((row["id"] for row in rows), ours, strict=True)) == pytest.approx(
            {row["id"]: exact.get(row["id"], 0.0) for row in rows}, rel=1e-12
        )


def example(number: int, kind: ExperienceKind = ExperienceKind.TRACE) -> Experience:
    body = f"{VOCABULARY[number % 5]} rows of {number}"
    return make_experience(kind, f"item {number}", body, features={"rows": float(number % 7)})


QUERY = Query("softmax rows 3 7", {"rows": 3.0, "op:relu": 1.0}, Stage.DRAFT, "", KINDS)


@pytest.mark.parametrize("added", [1, 40])
def test_what_another_process_adds_is_found(
    memory: Memory, added: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are added to the postings one by one; after many these are read again."""
    monkeypatch.setattr(words, "_MOST_ADDED", 10)
    for number in range(30):
        memory.add_experience(example(number))
    assert_the_same(memory, QUERY)
    code = (
        "import sys; from tests.memory.test_search import example, Memory\n"
        "with Memory(sys.argv[1]) as memory:\n"
        "    for number in range(100, 100 + int(sys.argv[2])): memory.add_experience(example(number))"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", code, str(memory.path), str(added)], check=True, cwd=root)
    assert_the_same(memory, evolve(QUERY, text="softmax item 100"))
    assert_the_same(memory, QUERY)


def test_what_was_undone_is_not_found(memory: Memory) -> None:
    """A row that was searched for and then undone leaves its number to another."""
    for number in range(5):
        memory.add_experience(example(number))
    with pytest.raises(RuntimeError), memory.transaction():
        memory.add_experience(example(50))
        assert example(50).id in found(memory, QUERY, 9)
        raise RuntimeError
    memory.add_experience(example(60))
    assert set(found(memory, QUERY, 9)) == {example(number).id for number in (0, 1, 2, 3, 4, 60)}


def test_after_everything_was_forgotten(memory: Memory) -> None:
    with Memory(memory.path) as other:
        for number in range(5):
            memory.add_experience(example(number))
        assert len(found(memory, QUERY, 9)) == 5
        other.forget_everything()
        for number in range(10, 17):
            other.add_experience(example(number))
        assert_the_same(memory, QUERY, 9)
        assert len(found(memory, QUERY, 9)) == 7


def test_as_many_words_as_a_query_may_have(memory: Memory) -> None:
    for number in range(60):
        memory.add_experience(example(number))
    assert_the_same(memory, evolve(QUERY, text=" ".join(str(number) for number in range(60))))


def test_of_equally_similar_items_the_newest_come_first(memory: Memory) -> None:
    given = [
        make_experience(ExperienceKind.TRACE, f"t{number}", "", features={"rows": 1.0}) for number in range(9)
    ]
    for item in given:
        memory.add_experience(item)
    query = evolve(QUERY, text="nothing of these", features={"rows": 2.0})
    assert found(memory, query, 4) == [item.id for item in given[:-5:-1]]
