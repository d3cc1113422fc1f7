"""Device time of calls on a GPU: with a cold L2, at other addresses each time, by CUPTI or by events.

A run is: the system lays out fresh inputs; the L2 is flushed; a mark keeps the device busy while the host
enqueues the call; the call; a second mark. CUPTI, which torch's profiler reads, says when each kernel began
and ended; those between the two marks are the call's. Its time is that in which at least one of them ran.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

MARK = "spin_kernel"
"""The kernel of ``torch.cuda._sleep``, as CUPTI names it."""
LEAD_CYCLES, END_CYCLES = 60_000, 200
"""Some 30 us in which the host enqueues a call, and as little as may be."""
FLUSHES = 2
"""The buffer that flushes the L2 has so many times its size."""
_MOST_NAMES = 20
READINGS = 3
"""Readings of clocks and power in a session."""


class System(Protocol):
    """What is timed."""

    def stage(self) -> None:
        """Lays out the next run's inputs and outputs, at other addresses."""

    def go(self) -> None:
        """Enqueues the call."""

    def finish(self) -> None:
        """Enqueues what tells afterwards whether the results were right."""


class Times:
    """Microseconds of runs in their order. ``busy``: at least one kernel ran; ``span``: from the first's
    begin to the last's end; ``events``: between CUDA events around the call. ``how`` names the source of
    ``busy``: "cupti", or "events" where CUPTI told nothing that fits."""

    def __init__(self, busy: list[float], span: list[float], events: list[float]) -> None:
        self.busy, self.span, self.events = busy, span, events
        self.how, self.kernels = "cupti", dict[str, int]()

    def data(self, which: Callable[[int], bool] = lambda place: True) -> dict[str, Any]:
        """As JSON: those runs whose place is wanted."""
        chosen = [place for place in range(len(self.busy)) if which(place)]
        lists = {"busy_us": self.busy, "span_us": self.span, "event_us": self.events}
        return {name: [round(values[place], 3) for place in chosen] for name, values in lists.items()}


class Clock:
    """Times sequences of runs on the current device and stream."""

    def __init__(self, torch: Any, monitor: Any = None) -> None:
        self._torch, self._monitor = torch, monitor
        about = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._flush = torch.empty(FLUSHES * about.L2_cache_size, dtype=torch.uint8, device="cuda")
        self.readings: list[dict[str, Any]] = []

    def run(self, systems: Sequence[System]) -> Times:
        """One run of each in turn. Raises what the systems do, and torch's errors."""
        torch, pairs = self._torch, [self._events() for _ in systems]
        self.readings = []
        watched = {len(systems) * turn // READINGS for turn in range(READINGS)}
        torch.cuda.synchronize()
        with profile() as profiler:
            for place, (system, (begin, end)) in enumerate(zip(systems, pairs, strict=True)):
                system.stage()
                self._flush.zero_()
                torch.cuda._sleep(LEAD_CYCLES)
                begin.record()
                system.go()
                end.record()
                torch.cuda._sleep(END_CYCLES)
                system.finish()
                if place in watched and self._monitor is not None:
                    self.readings.append(self._monitor.reading())
            torch.cuda.synchronize()
        taken = [1000.0 * begin.elapsed_time(end) for begin, end in pairs]
        return times_of(device_events(torch, profiler), taken)

    def _events(self) -> tuple[Any, Any]:
        make = self._torch.cuda.Event
        return make(enable_timing=True), make(enable_timing=True)


def profile() -> Any:
    """Of the device alone; the context in which it is on."""
    profiler: Any = importlib.import_module("torch.profiler")
    return profiler.profile(activities=[profiler.ProfilerActivity.CUDA])


Event = tuple[int, int, str]
"""Nanoseconds at which it began and ended, and its name."""


def device_events(torch: Any, profiler: Any) -> list[Event]:
    """What ran on the device, in order of beginning."""
    cuda = torch._C._autograd.DeviceType.CUDA
    found = [
        (event.start_ns(), event.start_ns() + event.duration_ns(), event.name())
        for event in profiler.profiler.kineto_results.events()
        if event.device_type() == cuda
    ]
    return sorted(found)


def times_of(events: Sequence[Event], taken: list[float]) -> Times:
    """Times from what CUPTI saw, or, where its marks are not those of so many runs, from the microseconds
    that CUDA events took. ``kernels`` of it are the names of what ran, with how often."""
    windows = between_marks(events, len(taken))
    if windows is None:
        times = Times(taken, taken, taken)
        times.how = "events"
    else:
        times = Times([busy_us(window) for window in windows], [span_us(window) for window in windows], taken)
    seen = [event for window in windows for event in window] if windows is not None else events
    times.kernels = dict(Counter(name[:100] for _, _, name in seen).most_common(_MOST_NAMES))
    return times


def between_marks(events: Sequence[Event], runs: int) -> list[list[Event]] | None:
    """The kernels of each run, None where the marks are not two for each."""
    marks = [place for place, event in enumerate(events) if MARK in event[2]]
    if len(marks) != 2 * runs:
        return None
    pairs = zip(marks[::2], marks[1::2], strict=True)
    return [list(events[first + 1 : last]) for first, last in pairs]


def busy_us(events: Sequence[Event]) -> float:
    """Microseconds in which at least one of them ran; they are in order of beginning."""
    total, reached = 0, 0
    for begin, end, _ in events:
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total / 1000


def span_us(events: Sequence[Event]) -> float:
    """Microseconds from the first's begin to the last's end."""
    return (max(end for _, end, _ in events) - events[0][0]) / 1000 if events else 0.0


def abba(first: System, second: System, pairs: int) -> Iterator[System]:
    """Both in pairs, every second pair the other way around, so that a drift hits both alike."""
    for pair in range(pairs):
        yield from (first, second) if pair % 2 == 0 else (second, first)


def is_first(place: int) -> bool:
    """Whether the run at that place of ``abba`` is the first system's."""
    return place % 4 in (0, 3)


class CubinSystem:
    """A candidate's launches on an arena."""

    def __init__(
        self, device: Any, launches: Any, arena: Any, masters: dict[str, Any], outputs: Sequence[str]
    ) -> None:
        self._device, self._launches, self.arena = device, launches, arena
        self._masters, self._outputs = masters, tuple(outputs)
        self._call: Any = None
        self._runs = 0
        self.digests: list[list[Any]] = []

    def stage(self) -> None:
        self._call = None
        self.arena.restart(self._runs, self._masters)
        self._runs += 1
        self._call = self._launches.prepare(self.arena, self._device.stream())

    def go(self) -> None:
        self._call()

    def finish(self) -> None:
        self.digests.append([self.arena.digest(self.tensor(name)) for name in self._outputs])

    def tensor(self, name: str) -> Any:
        """The bytes of a tensor after a run."""
        return self._call.results.tensor(name)

    def unwritten(self, name: str) -> Any:
        """Which bytes of a tensor are as they were before the run; none of what a library made."""
        if name in self._call.results.names:
            return self._device.torch.zeros_like(self.tensor(name), dtype=self._device.torch.bool)
        return self.arena.poisoned(name)

    def changed_runs(self) -> int:
        """How many of the runs had other results than the first; the digests are forgotten."""
        rows = [[int(number) for number in row] for row in self.digests]
        self.digests = []
        return sum(row != rows[0] for row in rows)

    def strays(self) -> str | None:
        """What the last run did beside its outputs: an input that it changed, or a tensor that it wrote
        around, as ``input NAME`` or ``around NAME``; None for nothing."""
        for name, master in self._masters.items():
            if not self._device.torch.equal(self.arena.tensor(name), master):
                return f"input {name}"
        near = self.arena.strays()
        return f"around {near}" if near else None
