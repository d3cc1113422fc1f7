"""What benchmarks/gpu.py and gpu_truth.py make of figures: rows, means, tables; turns on a made-up GPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.measuring import flags
from benchmarks.measuring import turns as turns_module
from benchmarks.measuring.classes import AS_LEFT, COMPILE, EAGER, HALF, OURS, STRICT, TUNED
from benchmarks.measuring.gpu_devices import devices_table
from benchmarks.measuring.gpu_rows import rows_of, ruled
from benchmarks.measuring.gpu_table import figures, merged, summary, table
from benchmarks.measuring.gpu_truth_page import OWN, SHARED, page, recorded
from benchmarks.measuring.turns import Turn, Turns
from evokernel_core.targets.triton.backends.child.timing import MARK
from evokernel_core.targets.triton.backends.intervals import RESOLUTION

RESULTS = Path(__file__).parents[1] / "docs" / "results"
CONDITIONS = {"device": "NVIDIA H200", "torch": "2.11", "triton": "3.6.0", "driver": "580"}
OTHER = "adaexplore"
Row = dict[str, Any]


def times(us: Mapping[str, float], kernels: tuple[str, ...] = ("ours_kernel",)) -> dict[str, Any]:
    numbers = np.random.default_rng(3)
    return {
        "how": "cupti",
        "times": {name: list(value * np.exp(numbers.normal(0, 0.002, 20))) for name, value in us.items()},
        "kernels": {OURS: dict.fromkeys(kernels, us.get(OURS, 0.0) / len(kernels))},
        "readings": [{"clock_mhz": 1980, "power_w": 400.0, "throttle": []}],
    }


def rows(
    decision: Mapping[str, float],
    figure: Mapping[str, float],
    *,
    number: int = 7,
    errors: Mapping[str, float] | None = None,
    **changed: Any,
) -> dict[str, Row]:
    """Our rows and PyTorch's of one problem, by system."""
    kernels = changed.pop("kernels", ("ours_kernel",))
    timed = {
        "decision": times(decision, kernels), "figure": times(figure, kernels),
        "errors": errors or dict.fromkeys((OURS, EAGER, COMPILE), 1e-7),
        "changed": changed.pop("changed", 0), "wall_us": {EAGER: 120.0},
    }  # fmt: skip
    answer = {
        "classes": {AS_LEFT: timed},
        "reference": "float64",
        "drawn": False,
        "exact": False,
        "strays": None,
        "parameters": {OTHER: "copied by name"},
        "flags": {OTHER: {"tf32_matmul": True}},
    }
    systems = [system for system in (TUNED, OTHER) if system in figure]
    about = {"systems": systems, "why": {}, "kernels": ["ours_kernel"], "roofline_us": 50.0}
    problem = SimpleNamespace(level=1, name=f"{number}_thing")
    made = rows_of(problem, about, {**answer, **changed}, CONDITIONS, {"commit": "c", "date": "2026-11-30"})
    return {row["system"] + (" half" if row["class"] == HALF else ""): row for row in made}


FAST = {OURS: 100.0, EAGER: 150.0, COMPILE: 120.0}
SLOW = {OURS: 100.0, EAGER: 95.0, COMPILE: 120.0}


def test_a_row_that_is_edited_has_the_figure_of_the_second_session() -> None:
    ours = rows(FAST, {OURS: 100.0, EAGER: 130.0, COMPILE: 140.0})[OURS]
    assert ours["edited"] and ours["offered"] and ours["right"] and ours["own_share"] == 1.0
    assert ours["best_of"] == EAGER and ours["speed_up"] == pytest.approx(1.3, rel=0.01)
    assert ours["roofline"] == pytest.approx(0.5, rel=0.01)
    _, low, high = ours["interval"][EAGER]
    assert high - low >= 2 * 1.95 * RESOLUTION * ours["speed_up"]


@pytest.mark.parametrize(
    ("decision", "figure", "changed"),
    [
        (SLOW, FAST, {}),  # one session decides, whatever the other says
        ({**FAST, OURS: 119.95}, FAST, {}),  # within what pairs tell
        (FAST, FAST, {"drawn": True}),
        (FAST, FAST, {"kernels": ("ampere_gemm",)}),  # nothing of ours ran
    ],
)
def test_a_row_without_an_edit_is_exactly_one(
    decision: dict[str, float], figure: dict[str, float], changed: dict[str, Any]
) -> None:
    ours = rows(decision, figure, **changed)[OURS]
    assert not ours["edited"] and ours["speed_up"] == 1.0
    assert ours["draft_over_best"] == pytest.approx(min(figure[EAGER], figure[COMPILE]) / 100.0, rel=0.01)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"errors": {OURS: 2e-4, EAGER: 1e-7, COMPILE: 1e-7}}, ""),
        ({"strays": "around y"}, "it wrote where it must not: around y"),
        ({"changed": 3}, "3 timed runs had other results than the one that was verified"),
    ],
)
def test_what_is_wrong_is_neither_edited_nor_timed(changed: dict[str, Any], said: str) -> None:
    ours = rows(FAST, FAST, **changed)[OURS]
    assert not ours["right"] and not ours["edited"] and ours["interval"] is None
    assert (ours["speed_up"], ours["why"]) == (1.0, said)


def test_what_is_as_far_off_as_eager_is_right() -> None:
    errors = {OURS: 2e-3, EAGER: 1.1e-3, COMPILE: 3e-3}
    made = rows(FAST, FAST, errors=errors)
    assert made[OURS]["right"] and made[EAGER]["right"] and not made[COMPILE]["right"]
    assert not rows(FAST, FAST, errors=errors, exact=True)[COMPILE]["right"]


def test_ours_that_was_timed_alone_has_no_interval() -> None:
    ours = rows({EAGER: 10.0, COMPILE: 20.0}, {OURS: 1000.0, EAGER: 10.0, COMPILE: 20.0})[OURS]
    assert ours["interval"][EAGER][1:] == [None, None] and not ours["edited"]
    assert ours["draft_over_best"] == pytest.approx(0.01, rel=0.02) and ours["speed_up"] == 1.0


def some_rows() -> list[Row]:
    made = [
        rows(FAST, FAST, number=2),  # 1.2
        rows(SLOW, SLOW, number=10),  # 1.0
        rows(*[{OURS: 1.0, EAGER: 40.0, COMPILE: 20.0}] * 2, number=3),  # apart
        rows(FAST, SLOW, number=4),  # 0.95
    ]
    return [row for one in made for row in one.values()]


def test_means_count_rows_without_an_edit_as_one_and_shortcuts_apart() -> None:
    one = figures([row for row in some_rows() if row["system"] == OURS])
    assert (one["problems"], one["edited"], one["shortcuts"], one["below_1"]) == (4, 3, 1, 1)
    assert one["speed_up"] == pytest.approx((1.2 * 0.95) ** (1 / 3), rel=0.01)
    assert one["speed_up_edited"] == pytest.approx((1.2 * 0.95) ** (1 / 2), rel=0.01)
    assert set(summary(some_rows())) == {f"level1 {AS_LEFT}", f"level1 {STRICT}"}


def test_rows_of_an_earlier_run_follow_the_rules_of_today() -> None:
    new = rows(SLOW, SLOW)[OURS]
    old = {name: value for name, value in new.items() if name not in ("resolution", "draft_over_best")}
    old |= {"speed_up": 0.95, "interval": {EAGER: [0.95, 0.95, 0.95]}}
    today = ruled(old)
    assert (today["speed_up"], today["draft_over_best"]) == (1.0, 0.95)
    assert today["interval"][EAGER] == [0.95, 0.9488, 0.9512]
    assert ruled(today) == today
    edited = {**old, "edited": True, "speed_up": 1.2}
    assert ruled(edited)["speed_up"] == 1.2


def test_the_newest_row_of_a_kind_stays_and_numbers_give_the_order() -> None:
    old, newer = some_rows(), [{**row, "date": "2026-12-01", "commit": "d"} for row in some_rows()[:3]]
    all_rows = merged(old, newer)
    assert [row["problem"] for row in all_rows[::3]] == ["2_thing", "3_thing", "4_thing", "10_thing"]
    assert [row["commit"] for row in all_rows[:4]] == ["d", "d", "d", "c"]


def test_the_page_names_what_is_missing_and_what_no_device_ran() -> None:
    words = table(some_rows(), {"level1/5_Late": "not reached", "level1/2_thing": "memory"}, None)
    assert "- level1/5_Late: not reached" in words and "memory" not in words
    assert "- level 1, not run: 1, 6 to 9, 11 to 100" in words
    assert "| 4 of 100 problems |" in words and "| NVIDIA L40S | nothing | estimated" in words
    assert "kernels in Triton | NVIDIA H200" not in words
    assert "kernels in Triton | NVIDIA H200" in "\n".join(devices_table([], None))


def test_the_recorded_pages_are_those_of_the_recorded_figures() -> None:
    truth = json.loads((RESULTS / "gpu_truth.json").read_text())
    assert page(truth) == (RESULTS / "gpu_truth.md").read_text()
    recorded_rows = [json.loads(line) for line in (RESULTS / "h200.jsonl").read_text().splitlines()]
    lines = set((RESULTS / "h200.md").read_text().splitlines())
    for line in table(recorded_rows, {}, truth).partition("## Missing")[0].splitlines():
        assert line in lines
    ours = [row for row in recorded_rows if row["system"] == OURS]
    assert all(row["speed_up"] == 1.0 for row in ours if not row["edited"])


BESIDE = {**FAST, TUNED: 110.0, OTHER: 80.0}
RIGHT = dict.fromkeys((OURS, EAGER, COMPILE, TUNED), 1e-7)


def test_the_fastest_mode_of_the_original_counts_and_others_stand_beside_ours() -> None:
    made = rows(BESIDE, BESIDE, errors={**RIGHT, OTHER: 2e-5})
    assert made[OURS]["best_of"] == TUNED and made[OURS]["speed_up"] == pytest.approx(1.1, rel=0.01)
    theirs = made[OTHER]
    assert theirs["right"] and theirs["interval"][OURS][0] == pytest.approx(0.8, rel=0.01)
    assert theirs["flags"]["tf32_matmul"] and not made[EAGER]["flags"].get("tf32_matmul")
    assert made[TUNED]["interval"][OURS][0] == pytest.approx(1.1, rel=0.01)


@pytest.mark.parametrize(
    ("error", "exact", "half"), [(1e-3, False, True), (2e-2, False, False), (1e-3, True, False)]
)
def test_what_is_as_far_off_as_half_types_is_right_in_that_class_alone(
    error: float, exact: bool, half: bool
) -> None:
    made = rows(BESIDE, BESIDE, errors={**RIGHT, OTHER: error}, exact=exact)
    assert made[OTHER]["right"] is False and f"{error:.1e}" in made[OTHER]["why"]
    assert (f"{OTHER} half" in made) is half
    lines = [line for line in table(list(made.values()), {}, None).splitlines() if f"| {OTHER} |" in line]
    assert lines[0] == f"| {OTHER} | 1, as left | 0 of 1 | 0 | no rows | no rows (0) |"
    counted = "1 of 1 | 1 | 0.8" if half else "0 of 0 | 0 | no rows"
    assert lines[2].startswith(f"| {OTHER} | 1, half | {counted}")


def test_where_ours_is_wrong_or_theirs_is_missing_nothing_is_compared() -> None:
    made = rows(BESIDE, BESIDE, errors={**RIGHT, OTHER: 2e-5, OURS: 1.0})
    assert made[OTHER]["right"] and made[OTHER]["interval"] is None
    lost = rows(BESIDE, BESIDE, errors=RIGHT)[OTHER]
    assert lost["right"] is False and "0 of 1 | 0 |" in "".join(table([lost], {}, None).split(OTHER)[1:])
    words = table([*made.values()], {}, None)
    assert f"| {OTHER} | 1, as left | 1 of 1 | 0 | no rows | no rows (0) |" in words
    assert "| kernelagent | no rows |" in words


def test_a_half_row_of_an_earlier_run_goes_with_its_run() -> None:
    old = rows(BESIDE, BESIDE, errors={**RIGHT, OTHER: 1e-3}).values()
    new = [
        {**row, "date": "2026-12-02"} for row in rows(BESIDE, BESIDE, errors={**RIGHT, OTHER: 1e-5}).values()
    ]
    assert HALF not in {row["class"] for row in merged(list(old), new)}


def session(memory: str | None, ratio: float) -> Row:
    low, high = 0.999 * ratio, 1.001 * ratio
    row = {"us": 100, "median_us": 100.0, "ratio": ratio, "low": low, "high": high, "how": "cupti"}
    return row if memory is None else {**row, "memory": memory, "bootstrap": [low, high]}


def test_sessions_are_recorded_by_memory_and_the_longest_run_stays() -> None:
    hack = {"hack": "h", "what": "w", "outcome": "not seen", "gain": 1.0, "caught": True, "seconds": 1}
    runs: list[dict[str, Any]] = [
        {"conditions": CONDITIONS, "self": [session(None, 1.0)] * 3, "planted": [], "hacks": [hack]},
        {"conditions": CONDITIONS, "self": {"error": "it failed"}, "planted": [session(SHARED, 1.03)] * 2},
        {"conditions": CONDITIONS, "self": [session(SHARED, 1.002)] * 2 + [session(OWN, 1.1)]},
    ]
    told = json.loads(recorded(runs))
    assert [(row["memory"], row["ratio"]) for row in told["self"]] == [(OWN, 1.0)] * 3 + [(SHARED, 1.002)] * 2
    assert told["self"][0]["bootstrap"] == [0.999, 1.001] and len(told["planted"]) == 2
    words = page(told)
    assert "| 100 us | own | 100.0 | 3 | 3 |" in words and "| 2 of 2 |" in words


class FakeCuda:
    """What ``Turns`` asks of torch.cuda; each mark and each system's launch takes its time on a clock."""

    def __init__(self) -> None:
        self.now, self.events = 0, list[tuple[int, int, str]]()

    def passing(self, nanoseconds: int, name: str) -> None:
        self.events.append((self.now, self.now + nanoseconds, name))
        self.now += nanoseconds + 10

    def current_device(self) -> int:
        return 0

    def get_device_properties(self, device: int) -> Any:
        return SimpleNamespace(L2_cache_size=64)

    def synchronize(self) -> None:
        pass

    def _sleep(self, cycles: int) -> None:
        self.passing(cycles, MARK)

    def Event(self, enable_timing: bool) -> Any:
        began = SimpleNamespace(at=0)
        began.record = lambda: setattr(began, "at", self.now)
        began.elapsed_time = lambda end: (end.at - began.at) / 1e6
        return began


class FakeSystem:
    """Takes so many nanoseconds, in two launches, and notes under which flag."""

    def __init__(self, torch: Any, name: str, nanoseconds: int) -> None:
        self._torch, self.name, self._nanoseconds = torch, name, nanoseconds
        self.log: list[tuple[str, bool]] = torch.log

    def stage(self) -> None:
        pass

    def go(self) -> None:
        self.log.append((self.name, self._torch.backends.cudnn.allow_tf32))
        for _ in range(2):
            self._torch.cuda.passing(self._nanoseconds // 2, f"{self.name}_kernel")

    def finish(self) -> None:
        self._torch.cuda.passing(5, "digest")


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    cuda = FakeCuda()
    buffer = SimpleNamespace(zero_=lambda: cuda.passing(7, "memset"))
    made = SimpleNamespace(
        cuda=cuda, uint8="uint8", empty=lambda *shape, **options: buffer, log=[],
        backends=SimpleNamespace(cudnn=SimpleNamespace(), cuda=SimpleNamespace(matmul=SimpleNamespace())),
        set_float32_matmul_precision=lambda name: None,
    )  # fmt: skip
    profiler = SimpleNamespace(__enter__=lambda: None)

    class Profile:
        def __enter__(self) -> Any:
            cuda.events.clear()
            return profiler

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(turns_module, "profile", Profile)
    monkeypatch.setattr(turns_module, "device_events", lambda torch, profiler: list(cuda.events))
    return made


def taking_turns(torch: Any) -> tuple[Turns, list[Turn]]:
    systems = [FakeSystem(torch, name, us * 1000) for name, us in ((OURS, 10), (EAGER, 30))]
    classes = {OURS: STRICT, EAGER: AS_LEFT}
    turns = [Turn(system.name, system, flags.of_class(classes[system.name])) for system in systems]
    return Turns(torch, SimpleNamespace(reading=lambda: {"clock_mhz": 1})), turns


def test_systems_take_turns_forwards_and_backwards_under_their_flags(torch: Any) -> None:
    clock, turns = taking_turns(torch)
    seen = clock.session(turns, 4)
    there, back = [(OURS, False), (EAGER, True)], [(EAGER, True), (OURS, False)]
    assert torch.log == 2 * (there + back)
    assert seen["how"] == "cupti" and seen["times"] == {OURS: [10.01] * 4, EAGER: [30.01] * 4}
    assert seen["kernels"] == {OURS: {"ours_kernel": 10.0}, EAGER: {"eager_kernel": 30.0}}
    assert seen["readings"]


def test_without_the_profilers_marks_events_tell_the_time(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, turns = taking_turns(torch)
    monkeypatch.setattr(turns_module, "device_events", lambda torch, profiler: [])
    seen = clock.session(turns, 2)
    assert seen["how"] == "events" and seen["times"][OURS] == pytest.approx([10.02] * 2)
    assert seen["kernels"] == {}


def test_rounds_fill_the_seconds_within_bounds(torch: Any) -> None:
    clock, turns = taking_turns(torch)
    for turn in turns:
        clock.warm(turn)
    assert all(turn.lead >= turns_module.LEAD_CYCLES for turn in turns)
    assert clock.rounds(turns, 0.0) == turns_module.FEWEST and clock.rounds(turns, 1e6) == turns_module.MOST
    for turn in turns:
        turn.round_us, turn.lead = 10_000.0, turns_module.LEAD_CYCLES
    assert clock.rounds(turns, 1.0) == 40
