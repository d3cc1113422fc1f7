"""The shared agent: its processes end when nobody needs them, and start again without a word."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evokernel_core.domain.errors import InterpreterUnavailable
from evokernel_core.synthesis import agent as module
from evokernel_core.synthesis.agent import SharedAgent

PATIENCE_S = 30.0


class Client:
    """Stands in for an agent's process: what was done to it, in order."""

    done: list[str]

    def __init__(self, interpreter: str, *, evaluation: bool) -> None:
        self.runs = False

    def ping(self) -> None:
        self.calls(Path())

    def calls(self, path: Path) -> str:
        Client.done.append("work" if self.runs else "start")
        self.runs = True
        return "calls"

    def close(self) -> None:
        if self.runs:
            Client.done.append("end")
        self.runs = False


@pytest.fixture(autouse=True)
def clients(monkeypatch: pytest.MonkeyPatch) -> None:
    Client.done = []
    monkeypatch.setattr(module, "AgentClient", Client)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, Client.done
        time.sleep(0.01)


def shared(idle_s: float | None, interpreter: str = sys.executable) -> SharedAgent:
    return SharedAgent(interpreter, None, idle_s=idle_s)


def test_it_ends_when_it_is_idle_and_starts_again_at_the_next_call(tmp_path: Path) -> None:
    agent = shared(0.1)
    agent.calls(tmp_path)
    until(lambda: Client.done == ["start", "end"])
    assert agent.calls(tmp_path) == "calls"  # type: ignore[comparison-overlap]
    assert Client.done[:3] == ["start", "end", "start"]
    agent.close()


def test_a_call_in_time_keeps_it(tmp_path: Path) -> None:
    agent = shared(PATIENCE_S)
    for _ in range(3):
        agent.calls(tmp_path)
    assert agent._rest is not None
    agent._end_idle()  # as a timer that had run out while a call was at work
    assert Client.done == ["start", "work", "work"]
    agent.close()
    assert Client.done[-1] == "end" and agent._rest is None


def test_it_stays_where_nobody_says_how_long(tmp_path: Path) -> None:
    before = threading.active_count()
    shared(None).calls(tmp_path)
    assert threading.active_count() <= before  # those of earlier tests may end meanwhile


def test_it_starts_before_it_is_asked(tmp_path: Path) -> None:
    agent = shared(None)
    agent.start_soon(tmp_path)
    until(lambda: Client.done == ["start"])
    agent.calls(tmp_path)
    assert Client.done == ["start", "work"]


def test_why_it_cannot_start_is_said_by_the_call(tmp_path: Path) -> None:
    agent = shared(None, str(tmp_path / "no-python"))
    agent.start_soon(tmp_path)
    with pytest.raises(InterpreterUnavailable):
        agent.calls(tmp_path)
    assert not Client.done
