"""The time limit of a program of the file's own."""

from __future__ import annotations

import threading
import time

import pytest

from evokernel_core.capture.agent.loading import outside


def busy(seconds: float) -> None:
    """Code of Python, which an exception of another thread can interrupt."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_what_takes_longer_than_it_may_is_interrupted() -> None:
    with pytest.raises(outside.OutOfTime), outside.deadline() as limit:
        limit.set(0.02)
        busy(5)


def test_a_limit_that_is_ended_interrupts_nothing() -> None:
    with outside.deadline() as limit:
        limit.set(0.02)
    busy(0.1)


def test_an_interruption_that_has_begun_does_not_outlive_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is over just when the program ends: what is on its way to this thread arrives before the end
    does, not in what comes after it."""
    begun, raised = threading.Event(), outside._raise_in

    def late(thread: int, error: type[BaseException]) -> None:
        begun.set()
        time.sleep(0.05)
        raised(thread, error)

    monkeypatch.setattr(outside, "_raise_in", late)
    limit = outside.Deadline()
    limit.set(0.0)
    assert begun.wait(5)
    limit.end()
    busy(0.2)
