"""Each policy chooses as its paper says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from attrs import evolve

from evokernel_core.domain.kernel import Descriptor, KernelSource, Strategy
from evokernel_core.domain.verdict import (
    SLOWER,
    GateName,
    GateResult,
    GateStatus,
    Latency,
    LatencySource,
    Verdict,
)
from evokernel_core.synthesis.policies.archive import ArchivePolicy, archive
from evokernel_core.synthesis.policies.base import SearchState
from evokernel_core.synthesis.policies.qvalue import QValuePolicy
from evokernel_core.synthesis.policies.tree import TreePolicy, node_reward
from evokernel_core.synthesis.proposers.base import Candidate


def candidate(
    text: str, us: float | None, parent: Candidate | None = None, cell: int = 0, gate: str = "compile"
) -> Candidate:
    source = KernelSource("", text, Strategy("toy", descriptor=Descriptor(cell, 0, 0)))
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
    return Counter(item.source.op_kernel_cpp if item else "draft" for item in chosen)


@pytest.mark.parametrize("policy", [QValuePolicy(), TreePolicy(), ArchivePolicy()])
def test_nothing_feasible_means_draft(policy: QValuePolicy | TreePolicy | ArchivePolicy) -> None:
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
    assert {item.source.op_kernel_cpp for item in archive(cells).values()} == {"b", "c"}
    found = counts(lambda rng: ArchivePolicy().choose(state(cells), rng).start)
    assert set(found) == {"b", "c"}
    assert found["b"] > found["c"] > 50
