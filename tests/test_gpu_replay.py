"""Searches replayed on made-up landscapes: what they may see, what they try, and what is counted."""

from __future__ import annotations

import itertools
import json
import math
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.landscape import replay, rows
from benchmarks.landscape.baselines import BASELINES, Seen
from benchmarks.landscape.page import page
from benchmarks.landscape.replay import FOLDS, Job, Outcome, Stage, ratios, summary
from benchmarks.landscape.world import Player, Scene, grid_author, scenes_of
from evokernel_core.memory.store import Memory
from tests.landscapes import made_up

pytest.importorskip("sklearn")
NAMES = ("layer_norm", "embedding", "softmax")
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("landscape") / "made_up.xz"
    made_up(path, NAMES)
    return path


@pytest.fixture(scope="module")
def scenes(file: Path) -> list[Scene]:
    return scenes_of(rows.read(file), "nvidia_h200")


def _stage(scenes: list[Scene], *policies: str) -> Stage:
    return Stage(tuple(scenes), grid_author("nvidia_h200", scenes), "nvidia_h200", 12, policies)


def test_a_scene_has_what_the_rules_admit_and_their_neighbours(scenes: list[Scene]) -> None:
    for scene in scenes:
        rules = [one for one in scene.line["points"] if one.get("why", "").startswith("rule")]
        assert len(scene.points) + len(rules) == len(scene.line["points"])
        assert set(scene.times) == {point for point, one in scene.points.items() if "why" not in one}
        assert scene.best_us == min(scene.times.values()) and 0 < scene.close_share < 0.5
        for point, near in scene.near.items():
            assert all(point in scene.near[other] for other in near)
            assert all(sum(a != b for a, b in zip(point, other, strict=True)) == 1 for other in near)


def test_steps_of_the_author_stay_in_the_grid(scenes: list[Scene]) -> None:
    author = grid_author("nvidia_h200", scenes)
    for scene in scenes:
        task = scene.grid.task
        for point in random.Random(0).sample(list(scene.points), 12):
            found = {
                scene.grid.point_of(one.strategy) for one in author.moves(task, scene.grid.strategy(point))
            }
            assert found <= set(scene.points)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_tries_every_point_once(name: str, scenes: list[Scene]) -> None:
    scene, seen = scenes[0], Seen()
    for point in itertools.islice(BASELINES[name](scene, seen, random.Random(1)), 40):
        assert point not in seen and point in scene.points
        seen[point] = scene.times.get(point, math.inf)
    assert len(seen) == 40
    if name not in ("random", "top_estimate", "lfbo_shipped"):
        assert next(iter(seen)) == scene.draft


def test_a_search_sees_one_draw_or_a_failure(scenes: list[Scene]) -> None:
    scene = scenes[0]
    author, player = grid_author("nvidia_h200", scenes), Player(scene, random.Random(0), "nvidia_h200")
    failing = next(point for point in scene.points if point not in scene.times)
    for point in (scene.draft, failing):
        source = author.write(scene.grid.task, scene.grid.strategy(point))
        verdict = player.verify(scene.grid.task, source)
        assert verdict.feasible == (point in scene.times)
        if verdict.latency:
            assert verdict.latency.us in scene.points[point]["us"]
    assert [us < math.inf for _, us in player.tried] == [True, False]


def test_no_operation_is_taught_that_is_asked_for(scenes: list[Scene]) -> None:
    stage = _stage(scenes)
    held = [stage.held_out(fold) for fold in range(FOLDS)]
    assert sorted(scene.name for mine, _ in held for scene in mine) == sorted(NAMES)
    for mine, others in held:
        assert not {one.grid.operation for one in mine} & {one.grid.operation for one in others}


@pytest.mark.parametrize("policy", ["q", "none", "shuffled", "model"])
def test_a_search_of_ours_tries_no_point_twice(
    policy: str, scenes: list[Scene], monkeypatch: pytest.MonkeyPatch
) -> None:
    players: list[Player] = []
    outcome = replay._outcome

    def kept(policy: str, player: Player, seed: int) -> Outcome:
        players.append(player)
        return outcome(policy, player, seed)

    monkeypatch.setattr(replay, "_outcome", kept)
    monkeypatch.setattr(replay, "TAUGHT", 4)
    stage = _stage(scenes, policy)
    found = [one for fold in range(FOLDS) for one in stage.outcomes(Job(fold, 0))]
    assert {one.task for one in found} == set(NAMES) and len(players) == 3
    for player, one in zip(players, found, strict=True):
        points = [point for point, _ in player.tried]
        assert 8 <= len(points) == len(set(points)) <= 12
        assert one.evaluations <= 12 or one.evaluations == len(player.scene.points)
        assert one.at_8 >= 1.0


def test_values_are_dealt_out_anew_and_none_is_lost(scenes: list[Scene], tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    stage = _stage(scenes)
    stage._teach(path, scenes[:1], 0)
    before = _values(path)
    replay.shuffle_values(path, 1)
    after = _values(path)
    assert before != after and before.keys() == after.keys()
    assert sorted(before.values()) == sorted(after.values())
    with Memory(path) as memory:
        assert memory.counts()


def _values(path: Path) -> dict[tuple[str, str, str], float]:
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT stage, op_category, item, q FROM q_values").fetchall()
    database.close()
    return {row[:3]: row[3] for row in found}


OUTCOMES = [
    Outcome(policy, task, seed, evaluations, at)
    for policy, task, evaluations, at in (
        ("q", "a", 2, 1.0), ("q", "b", 8, 1.2), ("random", "a", 8, 1.1), ("random", "b", 32, 1.3)
    )
    for seed in range(2)
]  # fmt: skip


def test_means_are_geometric_over_tasks() -> None:
    found = summary(OUTCOMES)
    assert found["q"] == found["default"]
    assert found["q"]["evaluations_to_2pct"] == 4.0 and found["q"]["interval"] == [2.0, 8.0]
    assert found["q"]["at_8"] == pytest.approx(1.1)
    value, low, high = ratios(OUTCOMES, "q")["random"]
    assert (value, low, high) == pytest.approx((0.25, 0.25, 0.25))


def test_a_page_says_what_was_recorded_and_what_searches_need(file: Path) -> None:
    found = rows.read(file)
    for one in found.values():
        one.machine.update(torch="2", triton="3", driver="5")  # type: ignore[attr-defined]
    text = page(found, "nvidia_h200", [Outcome(policy, "softmax", 0, 5, 1.01) for policy in ("q", "random")])
    assert "seeds (1 of each)" in text
    assert "| softmax | 92 |" in text and "| random | 5.0 | 5.0 to 5.0 | 1.010 |" in text
    assert "| random | 1.00 | 1.00 to 1.00 |" in text


def test_the_script_writes_a_summary(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_search.py"), "--landscape", str(file)]
    options = ["--policies", "random,formula", "--seeds", "2", "--jobs", "1", "--json", str(out)]
    subprocess.run([*command, *options], check=True, capture_output=True)
    found = json.loads(out.read_text())["summary"]
    assert set(found) == {"random", "formula"}
    assert set(found["random"]) == {"evaluations_to_2pct", "interval", "at_8"}
