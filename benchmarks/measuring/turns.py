"""Device times of several systems that take turns, forwards and backwards, with a cold L2."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define

from benchmarks.measuring import flags
from evokernel_core.targets.triton.backends.child.timing import (
    END_CYCLES,
    FLUSHES,
    LEAD_CYCLES,
    between_marks,
    device_events,
    profile,
    span_us,
)

CYCLES_A_US = 2000
"""At the least as many as a GPU of today has."""
_MOST_LEAD = 10_000_000
WARM_UPS = 3
_WARM_SECONDS = 0.5
"""After which nothing more is warmed up, two runs at the least."""
FEWEST, MOST = 20, 100
"""Rounds of a session."""


@define
class Turn:
    """A system that takes turns, and the flags that it runs under."""

    name: str
    system: Any
    flags: Mapping[str, bool]
    lead: int = LEAD_CYCLES
    wall_us: float = 0.0
    round_us: float = 0.0
    """Of a run with everything around it."""


class Turns:
    """Times on the current device and stream."""

    def __init__(self, torch: Any, monitor: Any) -> None:
        self._torch, self._monitor = torch, monitor
        about = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._flush = torch.empty(FLUSHES * about.L2_cache_size, dtype=torch.uint8, device="cuda")

    def warm(self, turn: Turn) -> None:
        """Runs a system a few times, and looks how long the host needs to enqueue it and how long it takes.
        Raises what it raises."""
        hosts, walls, rounds = [], [], []
        for _ in range(WARM_UPS + 1):
            self._torch.cuda.synchronize()
            first = time.perf_counter()
            turn.system.stage()
            self._torch.cuda.synchronize()
            begun = time.perf_counter()
            self._go(turn)
            hosts.append(time.perf_counter() - begun)
            self._torch.cuda.synchronize()
            walls.append(time.perf_counter() - begun)
            turn.system.finish()
            self._torch.cuda.synchronize()
            rounds.append(time.perf_counter() - first)
            if len(rounds) > 1 and sum(rounds) > _WARM_SECONDS:
                break
        turn.wall_us = 1e6 * min(walls[1:])
        turn.round_us = 1e6 * min(rounds[1:])
        turn.lead = min(max(LEAD_CYCLES, int(1.5e6 * min(hosts[1:]) * CYCLES_A_US)), _MOST_LEAD)

    def rounds(self, turns: Sequence[Turn], seconds: float) -> int:
        """An even number of rounds that takes about so many seconds."""
        each = sum(turn.round_us + turn.lead / CYCLES_A_US + 50 for turn in turns)
        return min(max(FEWEST, int(1e6 * seconds / each) // 10 * 10), MOST)

    def session(self, turns: Sequence[Turn], rounds: int) -> dict[str, Any]:
        """``{"how", "times": {name: [us of each round]}, "kernels": {name: {kernel: us}}, "readings"}``."""
        torch, order = self._torch, [
            turn for number in range(rounds) for turn in (turns if number % 2 == 0 else reversed(turns))
        ]  # fmt: skip
        pairs = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in order]
        readings = []
        torch.cuda.synchronize()
        with profile() as profiler:
            for place, (turn, (begin, end)) in enumerate(zip(order, pairs, strict=True)):
                turn.system.stage()
                self._flush.zero_()
                torch.cuda._sleep(turn.lead)
                begin.record()
                self._go(turn)
                end.record()
                torch.cuda._sleep(END_CYCLES)
                turn.system.finish()
                if place % max(1, len(order) // 4) == 0:
                    readings.append(self._monitor.reading())
            torch.cuda.synchronize()
        kernels: Mapping[str, Mapping[str, float]] = {}
        windows = between_marks(device_events(torch, profiler), len(order))
        if windows is None or not all(windows):
            taken, how = [1000.0 * begin.elapsed_time(end) for begin, end in pairs], "events"
        else:
            taken, how = [span_us(window) for window in windows], "cupti"
            kernels = _kernels(order, windows)
        times = {
            turn.name: [us for us, other in zip(taken, order, strict=True) if other is turn] for turn in turns
        }
        return {"how": how, "times": times, "kernels": kernels, "readings": readings}

    def _go(self, turn: Turn) -> None:
        flags.write(self._torch, turn.flags)
        turn.system.go()


def _kernels(order: Sequence[Turn], windows: Sequence[Sequence[Any]]) -> Mapping[str, Mapping[str, float]]:
    """Microseconds of each system's kernels in its last run."""
    result = {}
    for turn, window in zip(order, windows, strict=True):
        counted: Counter[str] = Counter()
        for begin, end, name in window:
            counted[name[:80]] += (end - begin) / 1000
        result[turn.name] = {name: round(us, 2) for name, us in counted.items()}
    return result
