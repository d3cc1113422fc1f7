"""Each policy chooses as its paper says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.descriptor import Descriptor
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.settings import PolicyName
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.verdict import (
    SLOWER,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)
from evokernel_core.synthesis.engine import Engine
from evokernel_core.synthesis.policies import open_policy
from evokernel_core.synthesis.policies.archive import ArchivePolicy, archive
from evokernel_core.synthesis.policies.base import SearchState
from evokernel_core.synthesis.policies.islands import IslandsPolicy, islands
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.policies.tree import TreePolicy, node_reward
from evokernel_core.synthesis.proposers.base import Begun, Candidate
from evokernel_core.targets.ascendc.source import KERNEL, ascendc_source


def candidate(
    text: str, us: float | None, parent: Candidate | None = None, cell: int = 1, gate: str = "compile"
) -> Candidate:
    source = ascendc_source("", text, Strategy("toy", descriptor=Descriptor(kernels=cell)))
    if us is None:
        verdict = Verdict("t", source.source_id, "v", (GateResult(GateName(gate), GateStatus.FAILED),))
    else:
        latency = Latency(us, LatencySource.MODELLED, "chip", 1, (), "", 1.0, 100.0)
        verdict = Verdict("t", source.source_id, "v", (), latency)
    return Candidate(source, verdict, parent.source.source_id if parent else "")


def state(
    candidates: Sequence[Candidate], values: dict[str, float] | None = None, can_draft: bool = True
) -> SearchState:
    starts = tuple(item for item in candidates if item.verdict.feasible)
    return SearchState(tuple(candidates), starts, values or {}, can_draft)


def counts(choose: Callable[[random.Random], Candidate | None], times: int = 400) -> Counter[str]:
    rng = random.Random(0)
    chosen = (choose(rng) for _ in range(times))
    return Counter(item.source.files[KERNEL] if item else "draft" for item in chosen)


@pytest.mark.parametrize("name", PolicyName)
def test_nothing_feasible_means_draft(name: PolicyName) -> None:
    policy = open_policy(name)
    # a model orders the steps of starts that values choose
    assert policy.name == (PolicyName.QVALUE if name is PolicyName.MODEL else name).value
    assert policy.choose(state([candidate("bad", None)]), random.Random(0)).start is None


def test_qvalue_takes_the_most_valued_and_explores() -> None:
    slow, fast = candidate("slow", 50.0), candidate("fast", 10.0)
    valued = state([slow, fast], {slow.source.source_id: 1.0})
    found = counts(lambda rng: QValuePolicy(speed=0.0).choose(valued, rng).start)
    assert 0.9 < found["slow"] / 400 < 1.0
    mixed = counts(lambda rng: QValuePolicy().choose(valued, rng).start)
    assert 0.9 < mixed["fast"] / 400 < 1.0, "one point of Q against five times the speed"
    assert counts(lambda rng: QValuePolicy(0.0).choose(state([slow, fast]), rng).start) == {"fast": 400}


@pytest.mark.parametrize(
    ("us", "gate", "reward"),
    [
        (None, "compile", 0.0),
        (None, "audit", 0.0),
        (None, "correctness", 0.05),
        (1000.0, "", 0.4),
        (10.0, "", 1.6),
        (1.0, "", 1.6),
    ],
)
def test_tree_rewards(us: float | None, gate: str, reward: float) -> None:
    assert node_reward(candidate("k", us, gate=gate or "compile")) == pytest.approx(reward)


def timed_only(text: str, us: float, parent: Candidate) -> Candidate:
    item = candidate(text, us, parent)
    gate = GateResult(GateName.LATENCY, GateStatus.FAILED, SLOWER)
    return evolve(item, verdict=evolve(item.verdict, gates=(gate,)))


def test_tree_values_kernels_that_were_timed_only_by_their_time() -> None:
    slower = timed_only("slower", 125.0, candidate("start", 100.0))
    assert node_reward(slower) == pytest.approx(node_reward(candidate("verified", 125.0)))


def test_tree_takes_large_steps_after_two_small_ones() -> None:
    root = candidate("root", 50.0)
    children = [candidate("a", 60.0, root), candidate("b", 70.0, root)]
    closed = SearchState((root, *children), (root,), {}, True)
    assert counts(lambda rng: TreePolicy().choose(closed, rng).start) == {"draft": 400}
    cannot = SearchState((root, *children), (root,), {}, False)
    assert counts(lambda rng: TreePolicy().choose(cannot, rng).start) == {"root": 400}


def test_tree_goes_down_the_promising_branch() -> None:
    root = candidate("root", 50.0)
    good, bad = candidate("good", 12.0, root), candidate("bad", 90.0, root)
    found = counts(lambda rng: TreePolicy(0.1).choose(state([root, good, bad], can_draft=False), rng).start)
    assert found == {"good": 400}


def test_archive_keeps_one_elite_a_cell() -> None:
    cells = [candidate("a", 9.0, cell=1), candidate("b", 8.0, cell=1), candidate("c", 30.0, cell=2)]
    assert {item.source.files[KERNEL] for item in archive(cells).values()} == {"b", "c"}
    found = counts(lambda rng: ArchivePolicy().choose(state(cells), rng).start)
    assert set(found) == {"b", "c"}
    assert found["b"] > found["c"] > 50


def test_a_large_step_of_the_tree_keeps_away_from_all_that_was_tried() -> None:
    root = candidate("root", 50.0, cell=2)
    children = [candidate("a", 60.0, root, cell=3), candidate("b", None, root, cell=4)]
    awaited = Begun(ascendc_source("", "c", Strategy("toy", descriptor=Descriptor(kernels=5))), "x")
    seen = SearchState((root, *children), (root,), {}, True, (awaited,))
    step = TreePolicy().choose(seen, random.Random(0))
    assert step.start is None
    assert step.away_from == tuple(Descriptor(kernels=cell) for cell in (2, 3, 4, 5))


def test_steps_that_are_awaited_count() -> None:
    """Else several workers would all take the same small step, or fill one cell of the archive."""
    root = candidate("root", 50.0)
    awaited = tuple(Begun(ascendc_source("", text, Strategy("toy")), root.source.source_id) for text in "ab")
    busy = evolve(state([root]), begun=awaited)
    assert counts(lambda rng: TreePolicy().choose(busy, rng).start) == {"draft": 400}
    cells = state([root, candidate("other", 50.0, cell=2)])
    alone = counts(lambda rng: ArchivePolicy().choose(cells, rng).start)
    found = counts(lambda rng: ArchivePolicy().choose(evolve(cells, begun=awaited), rng).start)
    assert found["root"] < alone["root"]


def test_islands_begin_in_other_cells() -> None:
    first = candidate("first", 50.0, cell=2)
    step = IslandsPolicy().choose(state([first]), random.Random(0))
    assert (step.start, step.away_from) == (None, (Descriptor(kernels=2),))
    assert IslandsPolicy().choose(state([first], can_draft=False), random.Random(0)).start is first
    awaited = tuple(Begun(ascendc_source("", text, Strategy("toy"))) for text in "ab")
    full = evolve(state([first]), begun=awaited)
    assert IslandsPolicy().choose(full, random.Random(0)).start is first, "its islands are on their way"
    failed = [candidate(text, None) for text in "abcde"]
    assert IslandsPolicy().choose(state([first, *failed]), random.Random(0)).start is first


def test_islands_take_turns_and_refine_their_fastest() -> None:
    seen = [candidate("fast", 10.0), candidate("slow", 50.0), candidate("third", 60.0)]
    for n, expected in enumerate(["fast", "slow", "third", "a0", "slow", "third"]):
        found = IslandsPolicy(epsilon=0.0).choose(state(seen), random.Random(0)).start
        assert found is not None and found.source.files[KERNEL] == expected
        seen.append(candidate(f"a{n}", 9.0 if n == 0 else 99.0, found))


def test_the_best_of_an_island_comes_to_the_next_one() -> None:
    """And what is made of it there is of that island: the slow one goes on from the fast kernel."""
    fast, slow = candidate("fast", 10.0), candidate("slow", 50.0)
    policy = IslandsPolicy(number=2, interval=4, epsilon=0.0)
    seen = [fast, slow, candidate("a", 11.0, fast), candidate("b", 51.0, slow)]
    found = [set(island.members) for island in islands(state(seen), 2, 4)]
    members = ((fast, seen[2], slow), (slow, seen[3], fast))
    assert found == [{item.source.source_id for item in each} for each in members]
    for n in range(4):
        start = policy.choose(state(seen), random.Random(0)).start
        assert start is fast
        seen.append(candidate(f"c{n}", 90.0, start))
    assert [island.made for island in islands(state(seen), 2, 4)] == [3, 3]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.none() | st.floats(1, 99)), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_every_start_lives_on_an_island(
    steps: list[tuple[int, float | None]], number: int, interval: int
) -> None:
    """Whatever came of which attempts: parents that failed, or that are not known, included."""
    seen: list[Candidate] = []
    for n, (parent, us) in enumerate(steps):
        seen.append(candidate(str(n), us, seen[parent] if parent < n else None))
    found = islands(state(seen), number, interval)
    assert len(found) <= number
    living = {id for island in found for id in island.members}
    assert living == {item.source.source_id for item in seen if item.verdict.feasible}
    step = IslandsPolicy(number, interval).choose(state(seen, can_draft=False), random.Random(0))
    assert (step.start is None) == (not living)


@pytest.mark.parametrize(
    ("name", "finds"),
    [
        (PolicyName.QVALUE, False),
        (PolicyName.ARCHIVE, False),
        (PolicyName.TREE, True),
        (PolicyName.ISLANDS, True),
    ],
)
def test_who_finds_what_only_another_draft_leads_to(
    name: PolicyName,
    finds: bool,
    toy_engine: Callable[..., Engine],
    toy_task: Callable[..., KernelTask],
    toy_verifier: Callable[..., object],
) -> None:
    """No move leads from the first draft to the last, which is a hundred times as fast; between them lie
    drafts of the first one's cell. Epsilon-greedy and the archive refine what they have."""
    rows = frozenset({"rows"})
    alike = tuple(rows | {word} for word in ("a1", "a3", "b1", "c1"))
    engine = toy_engine(
        verifier=toy_verifier(pair=frozenset({"stream"})),
        policy=open_policy(name),
        start=rows,
        others=(*alike, frozenset({"stream"})),
    )
    result = engine.run(toy_task(1), 12)
    assert result.best is not None
    assert (result.best.latency_us < 20) == finds
