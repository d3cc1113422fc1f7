"""Weighted round robin: shares are as the weights say, nobody waits for ever, and pauses earn nothing."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.verifier.queue import Turns


def serve(turns: Turns, waiting: set[str], times: int) -> list[str]:
    served = []
    for _ in range(times):
        served.append(turns.next(waiting))
        turns.take(served[-1])
    return served


def test_equals_take_turns() -> None:
    assert "".join(serve(Turns(), {"a", "b", "c"}, 7)) == "abcabca"


def test_weights_are_shares() -> None:
    counts = Counter(serve(Turns({"a": 4.0}), {"a", "b"}, 50))
    assert counts == {"a": 40, "b": 10}


def test_who_was_away_gains_nothing_by_it() -> None:
    turns = Turns()
    serve(turns, {"a"}, 100)
    assert Counter(serve(turns, {"a", "b"}, 10)) == {"a": 5, "b": 5}


def test_a_crowd_that_left_is_forgotten() -> None:
    turns = Turns()
    for number in range(5000):
        turns.take(f"user{number}")
        serve(turns, {"a"}, 1)
    assert len(turns._places) <= 1001


@given(
    st.lists(st.sets(st.sampled_from("abcd"), min_size=1), min_size=1, max_size=60),
    st.fixed_dictionaries({name: st.sampled_from([0.5, 1.0, 2.0, 4.0]) for name in "abcd"}),
)
def test_nobody_who_waits_is_passed_over_for_long(rounds: list[set[str]], weights: dict[str, float]) -> None:
    """Between two turns of a waiting user the others have at most their weights' share, and one more each."""
    turns = Turns(weights)
    passed: Counter[str] = Counter()
    for waiting in rounds:
        (who,) = serve(turns, waiting, 1)
        for name in "abcd":
            passed[name] = passed[name] + 1 if name in waiting and name != who else 0
            others = sum(weights[other] for other in "abcd" if other != name)
            assert passed[name] <= others / weights[name] + 3
