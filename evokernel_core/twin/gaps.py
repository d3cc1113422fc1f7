"""A timeline in few numbers: how busy each pipe of the slowest core is, and where it waits and for what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

FIELDS = 7
"""Numbers of an event: start, duration, name, place, bytes, idle time before it, pipe waited for."""
MOST_GAPS = 8
"""The longest waits that are told, of all pipes together."""


@frozen
class Gap:
    """A pipe had nothing to do for ``us`` from ``start_us`` of its launch, until ``waits_for`` (a pipe) let
    ``before`` (an instruction) begin; ``at`` is that one's place in the source."""

    pipe: str
    start_us: float
    us: float
    waits_for: str
    before: str
    at: str


@frozen
class PipeTime:
    """``busy_us`` is ``share`` of the launch; ``waits`` are microseconds by the pipe that was waited for."""

    pipe: str
    busy_us: float
    share: float
    waits: Mapping[str, float]


@frozen
class Summary:
    """Of the launch that takes longest, on its slowest core; all times are modelled. ``launches`` are all of
    them with their microseconds, in order; ``bottleneck`` is a sentence. ``templates`` are those of all that
    the page says, for whoever shows it in another language."""

    chip: str
    launches: tuple[tuple[str, float], ...]
    kernel: str
    us: float
    bottleneck: str
    core: str
    pipes: tuple[PipeTime, ...]
    gaps: tuple[Gap, ...]
    templates: tuple[str, ...] = ()


@frozen
class Timeline:
    """The page of a timeline, and what it comes to."""

    page: Path
    summary: Summary


def summarise(data: Mapping[str, Any]) -> Summary:
    """Of what a timeline's page shows (``timeline.write_timeline``)."""
    launches = data["launches"]
    number, longest = max(enumerate(launches), key=lambda launch: launch[1]["us"])
    cores = [core for core in data["cores"] if core["launch"] == number] or list(data["cores"])
    core = max(cores, key=lambda core: core["total"])
    total = max(core["total"], 1e-9)
    pipes = tuple(
        PipeTime(pipe["name"], pipe["busy"], pipe["busy"] / total, pipe["waits"]) for pipe in core["pipes"]
    )
    gaps = sorted(_gaps(core["pipes"], data), key=lambda gap: gap.us, reverse=True)
    return Summary(
        data["chip"],
        tuple((launch["kernel"], launch["us"]) for launch in launches),
        longest["kernel"],
        longest["us"],
        longest["bottleneck"],
        core["label"],
        pipes,
        tuple(gaps[:MOST_GAPS]),
    )


def _gaps(pipes: Iterable[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterator[Gap]:
    names, places, causes = data["names"], data["places"], data["pipes"]
    for pipe in pipes:
        flat = pipe["events"]
        for n in range(0, len(flat), FIELDS):
            start, duration, name, place, _bytes, idle, cause = flat[n : n + FIELDS]
            waits = names[name] == "wait"
            us = duration if waits else idle
            if us > 0:
                begin = start if waits else start - idle
                yield Gap(pipe["name"], begin, us, causes[cause], names[name], places[place])
