"""Q-values move by alpha, back off over categories, and stay within the rewards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evokernel_core.domain.experience import Stage
from evokernel_core.memory.ledger import ALPHA, ANY_CATEGORY, Effect, Ledger, Reward, gain_scale, step
from evokernel_core.memory.store import Memory


@given(st.lists(st.floats(-3.0, 3.0)))
def test_q_stays_within_the_rewards(rewards: list[float]) -> None:
    q = 0.0
    for reward in rewards:
        q = step(q, reward)
    assert -3.0 <= q <= 3.0


def test_one_step(memory: Memory) -> None:
    memory.pay(Reward(Stage.DRAFT, "softmax", ("a", "a", "b"), 1.0))
    assert memory.q(Stage.DRAFT, "softmax", "a") == pytest.approx(ALPHA), "an item steps once"
    assert memory.q(Stage.REFINE, "softmax", "a") == 0.0, "stages are apart"


def test_back_off(memory: Memory) -> None:
    memory.pay(Reward(Stage.REFINE, "softmax", ("a",), 1.0))
    memory.pay(Reward(Stage.REFINE, "loss", ("a",), -1.0))
    both = step(step(0.0, 1.0), -1.0)
    found = {category: memory.q(Stage.REFINE, category, "a") for category in ("softmax", "loss", "pooling")}
    assert found == pytest.approx({"softmax": ALPHA, "loss": -ALPHA, "pooling": both})


def test_a_seed_gives_way_to_what_is_there(memory: Memory) -> None:
    memory.pay(Reward(Stage.REFINE, "loss", ("a",), 0.5, effect=Effect.SEED))
    memory.pay(Reward(Stage.REFINE, "loss", ("a",), 0.9, effect=Effect.SEED))
    assert memory.q(Stage.REFINE, "loss", "a") == 0.5
    assert [value.n for value in memory.values()] == [0, 0]


@settings(max_examples=10, deadline=None)
@given(st.lists(st.floats(-1.0, 1.0), max_size=8))
def test_stored_statistics_equal_those_in_hand(rewards: list[float]) -> None:
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        before = memory.statistics("gains")
        for reward in rewards:
            paid = memory.pay(Reward(Stage.REFINE, "", (), reward, "gains"))
            assert paid == pytest.approx(before.standardise(reward))
            before = before.push(reward)
        assert memory.statistics("gains") == before


@st.composite
def events(draw: st.DrawFn) -> Reward:
    return Reward(
        stage=draw(st.sampled_from(Stage)),
        op_category=draw(st.sampled_from(("softmax", "loss", ANY_CATEGORY))),
        used=tuple(draw(st.lists(st.sampled_from("abcd"), max_size=3))),
        raw=draw(st.floats(-1.0, 1.0)),
        scale=draw(st.sampled_from(("", "one", "two"))),
        effect=draw(st.sampled_from(Effect)),
        trials=draw(st.integers(0, 5)),
        task_id=draw(st.sampled_from(("t", "u"))),
        shown=tuple(draw(st.lists(st.sampled_from("abcd"), max_size=2))),
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(events(), max_size=12), st.floats(0.01, 1.0))
def test_values_and_statistics_are_a_fold_of_the_log(given: list[Reward], alpha: float) -> None:
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        paid = [memory.pay(event) for event in given]
        before = memory.values(), [memory.statistics(name) for name in ("one", "two")]
        assert memory.rebuild().moved == 0
        assert sorted(memory.values(), key=str) == sorted(before[0], key=str)
        assert [memory.statistics(name) for name in ("one", "two")] == before[1]
        assert [row["reward"] for row in memory.rows("rewards", order_by="seq")] == paid
        # with another step size: as if it had been so from the first reward on
        memory.rebuild(alpha)
        fold = Ledger(alpha)
        assert fold.take_all(memory.rewards()) == len(given)
        assert {(item.stage, item.op_category, item.item): item.q for item in memory.values()} == {
            key: worth.q for key, worth in fold.worths.items()
        }
        # and from then on
        more = Reward(Stage.DRAFT, "softmax", ("a",), 1.0)
        memory.pay(more)
        fold.take(more)
        assert memory.q(Stage.DRAFT, "softmax", "a") == fold.worths[Stage.DRAFT, "softmax", "a"].q


@settings(max_examples=15, deadline=None)
@given(st.lists(events(), max_size=10))
def test_a_forgotten_task_taught_nothing(given: list[Reward]) -> None:
    with TemporaryDirectory() as folder, Memory(Path(folder) / "m.db") as memory:
        for event in given:
            memory.pay(event)
        memory.forget_task("t")
        fold = Ledger()
        fold.take_all(event for event in given if event.task_id != "t")
        assert {(item.stage, item.op_category, item.item): item.q for item in memory.values()} == {
            key: worth.q for key, worth in fold.worths.items()
        }


def test_doing_nothing_is_worth_nothing(memory: Memory) -> None:
    """Most refinements lose: their mean must not make a kernel that changes nothing look like a gain."""
    scale = gain_scale(Stage.REFINE, "modelled", "softmax")
    for loss in (-0.4, -0.2, -0.3, -0.1):
        memory.pay(Reward(Stage.REFINE, "softmax", ("a move",), loss, scale))
    for _ in range(12):
        assert memory.pay(Reward(Stage.REFINE, "softmax", ("a comment",), 0.0, scale)) == 0.0
    assert memory.pay(Reward(Stage.REFINE, "softmax", ("a gain",), 0.02, scale)) > 0.0
    assert memory.q(Stage.REFINE, "softmax", "a comment") == 0.0
