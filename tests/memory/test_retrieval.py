"""The pool is what is similar; the choice is what was worth it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.experience import Experience, ExperienceKind, Stage
from evokernel_core.domain.settings import RetrievalName
from evokernel_core.memory.experiences import make_experience
from evokernel_core.memory.ledger import Reward
from evokernel_core.memory.ranking import Vectors, best, standardised
from evokernel_core.memory.retrieval import Query, RetrievalChoice, epsilon_greedy, z_scores
from evokernel_core.memory.store import Memory
from tests.memory.exact import cosine

vectors = st.dictionaries(st.sampled_from("abcdef"), st.floats(-10, 10), max_size=6)


@given(st.lists(vectors, max_size=30), vectors)
def test_cosines(kept: list[dict[str, float]], asked: dict[str, float]) -> None:
    found = Vectors()
    assert [found.append(vector) for vector in kept] == list(range(len(kept)))
    cosines = found.cosines(asked)
    assert cosines == pytest.approx([cosine(asked, vector) for vector in kept], abs=1e-9)
    assert all(abs(cosines) <= 1.0 + 1e-9)


@given(st.lists(st.floats(-100, 100), max_size=20))
def test_z_scores_are_centred(numbers: list[float]) -> None:
    assert sum(z_scores(numbers)) == pytest.approx(0.0, abs=1e-6)
    assert standardised(np.array(numbers)) == pytest.approx(z_scores(numbers), abs=1e-6)


@given(st.lists(st.sampled_from((-1.0, 0.0, 0.5, 2.0)), max_size=12), st.integers(0, 14))
def test_the_best_are_the_first_of_all_sorted(scores: list[float], number: int) -> None:
    """Of equal ones the later, as the newer items of a memory."""
    every = sorted(range(len(scores)), key=lambda place: (-scores[place], -place))
    assert best(np.array(scores), number).tolist() == every[:number]


@given(st.integers(0, 8), st.floats(0, 1), st.integers(0, 100))
def test_the_choice_is_of_distinct_items(n: int, epsilon: float, seed: int) -> None:
    chosen = epsilon_greedy("abcdef", {"c": 1.0}, n, epsilon, random.Random(seed))
    assert len(chosen) == len(set(chosen)) == min(n, 6)


def test_greedy_takes_the_best_and_breaks_ties_by_similarity() -> None:
    values = {"b": -1.0, "d": 2.0}
    assert epsilon_greedy("abcd", values, 4, 0.0, random.Random(0)) == ["d", "a", "c", "b"]


def item(title: str, body: str, kind: ExperienceKind = ExperienceKind.SUCCESS, **rest: str) -> Experience:
    return make_experience(kind, title, body, features={title.split(maxsplit=1)[0]: 1.0}, **rest)


SOFTMAX = item("softmax rows", "aten._softmax.default double buffering")
RELU = item("relu elements", "aten.relu.default wide tiles")
LOSS = item("loss sums", "aten.mse_loss.default split rows")
ITEMS = (SOFTMAX, RELU, LOSS)
QUERY = Query(
    text="softmax aten._softmax.default",
    features={"softmax": 1.0},
    stage=Stage.DRAFT,
    op_category="softmax",
    kinds=(ExperienceKind.SUCCESS,),
)


@pytest.fixture
def filled(memory: Memory) -> Memory:
    for experience in ITEMS:
        assert memory.add_experience(experience)
        assert not memory.add_experience(experience)
    return memory


def found(memory: Memory, mode: RetrievalName, query: Query = QUERY, n: int = 2, k: int = 3) -> list[str]:
    choice = RetrievalChoice(n, k, epsilon=0.0, mode=mode)
    return [item.title for item in memory.retrieve(query, choice, random.Random(1)).experiences]


def test_by_similarity(filled: Memory) -> None:
    assert found(filled, RetrievalName.SIMILARITY, n=1) == ["softmax rows"]


def test_by_value_within_the_pool(filled: Memory) -> None:
    filled.pay(Reward(Stage.DRAFT, "softmax", (LOSS.id,), 1.0))
    filled.pay(Reward(Stage.DRAFT, "softmax", (SOFTMAX.id,), -1.0))
    assert found(filled, RetrievalName.Q)[0] == "loss sums"
    assert found(filled, RetrievalName.Q, n=1, k=1) == ["softmax rows"], "a pool of one"
    assert found(filled, RetrievalName.Q, evolve(QUERY, stage=Stage.REFINE), n=1) == ["softmax rows"]


def test_blind_and_none(filled: Memory) -> None:
    assert len(found(filled, RetrievalName.RANDOM)) == 2
    assert found(filled, RetrievalName.NONE) == []


def test_filters(filled: Memory) -> None:
    matched = item("match", "mte2 text", ExperienceKind.PRACTICE, bottleneck="MTE2")
    other = item("other", "vector text", ExperienceKind.PRACTICE, bottleneck="V")
    for experience in (matched, other):
        filled.add_experience(experience)
    query = evolve(QUERY, kinds=(ExperienceKind.PRACTICE,), bottleneck="MTE2")
    assert found(filled, RetrievalName.Q, query) == ["match"]
    by_id = evolve(QUERY, ids=(RELU.id,))
    assert found(filled, RetrievalName.Q, by_id) == ["relu elements"]


@pytest.mark.parametrize(
    "text", ["", '"', "AND OR NOT", "a* NEAR(b)", "col:x", "-", "'; DROP", "ä\x00b", "(" * 99]
)
def test_any_text_is_a_query(filled: Memory, text: str) -> None:
    """Full-text syntax in a query is only words."""
    assert len(found(filled, RetrievalName.SIMILARITY, evolve(QUERY, text=text))) == 2
