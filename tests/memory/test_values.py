"""Q-values move by alpha, back off over categories, and stay within the rewards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import ALPHA, step


@given(st.lists(st.floats(-3.0, 3.0)))
def test_q_stays_within_the_rewards(rewards: list[float]) -> None:
    q = 0.0
    for reward in rewards:
        q = step(q, reward)
    assert -3.0 <= q <= 3.0


def test_one_step(memory: Memory) -> None:
    memory.update_q(Stage.DRAFT, "softmax", ["a", "a", "b"], 1.0)
    assert memory.q(Stage.DRAFT, "softmax", "a") == pytest.approx(ALPHA), "an item steps once"
    assert memory.q(Stage.REFINE, "softmax", "a") == 0.0, "stages are apart"


def test_back_off(memory: Memory) -> None:
    memory.update_q(Stage.REFINE, "softmax", ["a"], 1.0)
    memory.update_q(Stage.REFINE, "loss", ["a"], -1.0)
    both = step(step(0.0, 1.0), -1.0)
    found = {category: memory.q(Stage.REFINE, category, "a") for category in ("softmax", "loss", "pooling")}
    assert found == pytest.approx({"softmax": ALPHA, "loss": -ALPHA, "pooling": both})


def test_a_seed_gives_way_to_what_is_there(memory: Memory) -> None:
    memory.seed_q(Stage.REFINE, "loss", "a", 0.5)
    memory.seed_q(Stage.REFINE, "loss", "a", 0.9)
    assert memory.q(Stage.REFINE, "loss", "a") == 0.5
    assert [value.n for value in memory.values()] == [0, 0]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), max_size=8))
def test_stored_statistics_equal_those_in_hand(rewards: list[float]) -> None:
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        before = memory.statistics("refine")
        for reward in rewards:
            assert memory.standardise("refine", reward) == pytest.approx(before.standardise(reward))
            before = before.push(reward)
        assert memory.statistics("refine") == before
