"""What kept a launch from being faster, in one sentence made of the figures that the twin counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from evokernel_core.domain.sentence import Sentence
from evokernel_core.hardware.ascend.chip import Chip

_SCALAR = "S"


@frozen
class Overhead:
    """What a launch takes before anything is issued: ``launch`` percent of its whole time, of which ``start``
    percent of the slowest core's own. ``own`` is that core's time as a share of the whole."""

    launch: float = 0.0
    start: float = 0.0
    own: float = 1.0


def overhead_of(chip: Chip, latency_us: float, cores: int) -> Overhead:
    """Of a launch that started so many cores and took ``latency_us`` by the time model."""
    launch = chip.launch_of(max(1, cores))
    own = latency_us - launch + chip.launch.start_us
    if latency_us <= 0 or own <= 0:
        return Overhead()
    return Overhead(100 * min(1.0, launch / latency_us), 100 * chip.launch.start_us / own, own / latency_us)


def bottleneck_words(counted: Mapping[str, Any], overhead: Overhead = Overhead()) -> Sentence:
    """``counted`` is what ``time/bottleneck.cpp`` writes; "" where it is empty.

    As in "MTE2-bound: 81 % busy; V idle 64 % waiting for copies of 2.0 KB, below the efficient 16 KB." What a
    core takes before its first instruction is no waiting for the scalar unit. A pipe
    that is busy for less than the launch takes, or than it waits to be issued, binds nothing.
    """
    if not counted:
        return Sentence()
    busy = float(counted["busy"])
    if overhead.launch > busy * overhead.own and overhead.launch > 100 - overhead.launch:
        return Sentence(
            "launch-bound: {launch} % of the time is the launch, {pipe} busy {busy} %.",
            launch=f"{overhead.launch:.0f}",
            pipe=str(counted["pipe"]),
            busy=int(busy),
        )
    first, *others = _facts(counted, overhead)
    for other in others:
        first = Sentence("{facts}; {fact}", facts=first, fact=other)
    return Sentence("{facts}.", facts=first)


def _facts(counted: Mapping[str, Any], overhead: Overhead) -> Iterator[Sentence]:
    busy = int(counted["busy"])
    told = {"pipe": str(counted["pipe"]), "busy": busy}
    to_issue = float(counted.get("idle", 0)) - overhead.start if counted.get("for") == _SCALAR else 0.0
    if to_issue > busy:
        yield Sentence(
            "issue-bound: {pipe} busy {busy} %, idle {idle} % waiting for the scalar unit to issue",
            idle=f"{to_issue:.0f}",
            **told,
        )
    elif "for" in counted and (counted["for"] != _SCALAR or to_issue >= 1):
        idle = int(to_issue if counted["for"] == _SCALAR else counted["idle"])
        waiting = {"idle": idle, "cause": _cause(counted)}
        yield Sentence("{pipe}-bound: {busy} % busy, idle {idle} % waiting for {cause}", **told, **waiting)
    else:
        yield Sentence("{pipe}-bound: {busy} % busy", **told)
    size, worker = counted.get("copies_kb"), counted.get("worker")
    blamed = size is not None and worker is not None and worker["for"] == counted["pipe"]
    if worker is not None:
        cause = _small(size) if size is not None and blamed else _cause(worker)
        idle = int(worker["idle"])
        yield Sentence(
            "{pipe} idle {idle} % waiting for {cause}", pipe=worker["pipe"], idle=idle, cause=cause
        )
    if size is not None and not blamed:
        yield Sentence("its copies of {size} KB, below the efficient 16 KB", size=f"{float(size):.1f}")


def _small(size: float) -> Sentence:
    return Sentence("copies of {size} KB, below the efficient 16 KB", size=f"{size:.1f}")


def _cause(waiting: Mapping[str, Any]) -> Sentence:
    if waiting["for"] == _SCALAR:
        return Sentence("the scalar unit to issue")
    return Sentence(str(waiting["for"]))
