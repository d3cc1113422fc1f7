"""The worker's protocol, over real pipes with a session that needs no agent."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.settings import Settings
from tests import warm

FAKE = textwrap.dedent(
    """
    import subprocess, sys, time
    from evokernel_core.domain.errors import VerifierUnavailable
    from evokernel_core.domain.experience import Stage
    from evokernel_core.domain.region import Region, RegionStatus, Span
    from evokernel_core.synthesis import agent, session, worker
    from evokernel_core.synthesis.offers import Offer
    from evokernel_core.synthesis.engine import AttemptEvent, Status, SynthesisResult

    REGION = Region("r", "/m.py", "f", Span(1, 0, 1, 5), "x + 1", "hash", "other", RegionStatus.CANDIDATE)

    STARTED = []

    class Session:
        def __init__(self, settings, near, agent):
            self.agent, self.budget = agent, settings.budget
            self.child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

        def close(self):
            pass

        def offers(self, path, text, symbol, *, programs, apart, progress):
            if text == "two":
                progress(0, 2, None)
                progress(1, 2, Offer(REGION, None))
            print("user code prints")
            if text == "boom":
                raise ZeroDivisionError("boom")
            return ()

        def interpreter(self, path):
            return f"/usr/bin/python3, started for {' '.join(STARTED)}"

        def estimate(self, region):
            return None

        def synthesise(self, region, budget, *, job_id, kind, background, on_attempt, cancelled):
            if budget == 0:
                raise VerifierUnavailable("The verifier is away; start it.")
            n = 0
            while n < budget and not cancelled():
                n += 1
                on_attempt(AttemptEvent(n, budget, Stage.DRAFT, None, None, 0))
                time.sleep(0.05)
            status = Status.CANCELLED if cancelled() else Status.INFEASIBLE
            return SynthesisResult(status, f"{kind.value} {job_id}", None, n, None, 0)

    session.Session = Session
    agent.SharedAgent.start_soon = lambda self, path: STARTED.append(str(path))
    worker.main()
    """
)


class Client:
    """A worker over pipes."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the worker ended"
        data: dict[str, Any] = json.loads(line)
        return data

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


def started(python: str) -> Iterator[Client]:
    made = Client(python, "-c", FAKE)
    made.send(id=0, method="configure", params=to_data(Settings()))
    assert made.read() == {"id": 0, "result": {}}
    yield made
    if made.process.poll() is None:
        made.end()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOKERNEL_HOME", str(tmp_path))


@pytest.fixture
def client(home: None) -> Iterator[Client]:
    yield from started(warm.interpreter(*warm.COMMANDS, paths=warm.SOURCES))


@pytest.fixture
def own_client(home: None) -> Iterator[Client]:
    """Whose process is the worker's own."""
    yield from started(sys.executable)


def region(tmp_path: Path) -> Any:
    span = Span(1, 0, 1, 5)
    status = RegionStatus.CANDIDATE
    made = Region("r", str(tmp_path / "m.py"), "f", span, "x + 1", "hash", "other", status)
    return to_data(made)


def test_user_prints_do_not_disturb_the_protocol(client: Client) -> None:
    """The agent is started once, for the first file."""
    for number, path in enumerate(("/m.py", "/n.py"), 1):
        client.send(id=number, method="regions", params={"path": path, "text": "x"})
        found = {"regions": [], "interpreter": "/usr/bin/python3, started for /m.py"}
        assert client.read() == {"id": number, "result": found}


def test_it_tells_the_kernels_of_a_file_as_they_come(client: Client, tmp_path: Path) -> None:
    client.send(id=1, method="regions", params={"path": "/m.py", "text": "two"})
    began, first = client.read()["event"], client.read()["event"]
    assert began == {"kind": "regions", "done": 0, "total": 2, "offer": None}
    planned = {"region": {**region(tmp_path), "file": "/m.py"}, "estimate": None}
    assert first == {"kind": "regions", "done": 1, "total": 2, "offer": {**first["offer"], **planned}}
    assert client.read()["result"]["regions"] == []


def test_attempts_are_announced_and_the_result_follows(client: Client, tmp_path: Path) -> None:
    client.send(
        id=2,
        method="synthesise",
        params={"region": region(tmp_path), "budget": 2, "job_id": "j", "mode": "refine"},
    )
    events = [client.read()["event"] for _ in range(2)]
    assert [(event["kind"], event["n"], event["feasible"]) for event in events] == [
        ("attempt", 1, False),
        ("attempt", 2, False),
    ]
    result = client.read()["result"]
    assert result["status"] == "infeasible"
    assert result["reason"] == "refine j"
    assert result["best"] is None


def test_a_cancel_is_heard_during_a_synthesis(client: Client, tmp_path: Path) -> None:
    client.send(id=3, method="synthesise", params={"region": region(tmp_path), "budget": 10_000})
    client.read()
    client.send(method="cancel", params={"id": 3})
    message = client.read()
    while "event" in message:
        message = client.read()
    assert message["result"]["status"] == "cancelled"


@pytest.mark.parametrize(
    ("method", "params", "reason"),
    [
        ("regions", {"path": "/m.py", "text": "boom"}, "internal"),
        ("dance", {}, "usage_error"),
    ],
)
def test_errors_have_a_reason(client: Client, method: str, params: dict[str, Any], reason: str) -> None:
    client.send(id=4, method=method, params=params)
    answer = client.read()
    assert (answer["id"], answer["error"]["reason"]) == (4, reason)


def test_an_absent_verifier_has_its_own_reason(client: Client, tmp_path: Path) -> None:
    client.send(id=5, method="synthesise", params={"region": region(tmp_path), "budget": 0})
    assert client.read()["error"]["reason"] == "verifier_unavailable"


def test_a_line_that_is_no_request(client: Client) -> None:
    assert client.process.stdin
    client.process.stdin.write("nonsense\n")
    client.process.stdin.flush()
    assert client.read()["error"]["reason"] == "bad_request"


def test_the_end_of_input_ends_it_and_its_children(own_client: Client) -> None:
    client = own_client
    client.send(id=6, method="regions", params={"path": "/m.py", "text": "x"})
    client.read()
    children = psutil.Process(client.process.pid).children(recursive=True)
    assert children
    client.send(id=7, method="synthesise", params={"region": region(Path("/")), "budget": 10_000})
    client.read()
    client.end()
    assert client.process.returncode == 0
    deadline = time.monotonic() + 5
    while any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children):
        assert time.monotonic() < deadline
        time.sleep(0.02)
