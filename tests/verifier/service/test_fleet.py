"""Judging on hosts of a Ray cluster: a real one on this machine, whose parts are killed."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.service_cluster import Cluster
from evokernel_core import extras
from evokernel_core.domain.errors import ExtraMissing
from evokernel_core.domain.serial import to_data
from evokernel_core.verifier.serving.fleet.pool import check_ray

Kernel = Callable[..., tuple[Any, Any]]
HERE = Path(__file__).parent


def submit(server: Any, kernel: tuple[Any, Any]) -> str:
    with server.client() as http:
        answer = http.post("/v1/jobs", json={"task": to_data(kernel[0]), "source": to_data(kernel[1])})
        identity: str = answer.json()["id"]
        return identity


def job_view(server: Any, job: str, seconds: float) -> dict[str, Any]:
    with server.client() as http:
        view: dict[str, Any] = http.get(f"/v1/jobs/{job}", params={"wait": seconds}).json()
        return view


def result(server: Any, job: str) -> dict[str, Any]:
    """The job once it is done, however busy the machine is."""
    done = until(lambda: (view := job_view(server, job, 50))["state"] == "done" and view, 300.0)
    return dict(done)


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise TimeoutError("it did not come about")


def seats(server: Any) -> int:
    with server.client() as http:
        return int(http.get("/v1/status").json()["workers"])


def family(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """Two nodes that can load the scripted verifier."""
    monkeypatch.setattr(Cluster, "paths", [str(HERE)])
    with Cluster(2) as cluster:
        yield cluster


def test_a_ray_of_its_own_judges_and_ends_with_the_service(
    make_server: Callable[..., Any], make_kernel: Kernel
) -> None:
    server = make_server(workers=2, options={"ray": "local", "job_timeout_s": 15.0})
    until(lambda: seats(server) == 2)
    jobs = [submit(server, make_kernel(name, "sleep 4")) for name in ("a", "b")]
    views = [result(server, job) for job in jobs]
    assert all(view["verdict"] for view in views), views
    assert [event for event, *_ in server.journal] == ["start", "start", "end", "end"]
    assert "died 3 times" in result(server, submit(server, make_kernel("killer", "die")))["error"]
    assert "longer than 15 s" in result(server, submit(server, make_kernel("slow", "sleep 60")))["error"]
    assert (
        "value=." in result(server, submit(server, make_kernel("env", "environment RAY_AUTH_TOKEN")))["error"]
    )
    long = submit(server, make_kernel("cancelled", "child\nsleep 60"))
    child = int(until(lambda: (path := server.folder / "journal.child").exists() and path.read_text()))
    with server.client() as http:
        assert http.delete(f"/v1/jobs/{long}").json()["cancelled"]
    until(lambda: not psutil.pid_exists(child))
    assert result(server, submit(server, make_kernel("after")))["verdict"]
    everything = family(server.process.pid)
    server.kill()
    until(lambda: all(gone(process) for process in everything))


@pytest.mark.thorough
def test_a_lost_host_and_a_killed_service_lose_no_job(
    make_server: Callable[..., Any], make_kernel: Kernel, cluster: Cluster
) -> None:
    server = make_server(options={"ray": cluster.address}, environment=cluster.environment)
    until(lambda: seats(server) == 2)
    jobs = [submit(server, make_kernel(f"k{number}", "sleep 1.5")) for number in range(2)]
    until(lambda: len(server.journal) == 2)
    cluster.kill(1)
    until(lambda: seats(server) == 1)
    views = [result(server, job) for job in jobs]
    assert all(view["verdict"] for view in views), views
    assert sum(event == "end" for event, *_ in server.journal) == 2
    last = submit(server, make_kernel("last", "sleep 2"))
    until(lambda: server.journal[-1][:2] == ["start", "last"])
    server.kill()
    server.start()
    assert result(server, last)["verdict"]
    assert [event for event, name, _ in server.journal if name == "last"] == ["start", "start", "end"]


@pytest.mark.thorough
def test_without_a_cluster_jobs_wait_for_it(
    make_server: Callable[..., Any], make_kernel: Kernel, cluster: Cluster
) -> None:
    """The head's loss ends every process that is connected to it, but not the service."""
    server = make_server(options={"ray": cluster.address}, environment=cluster.environment)
    until(lambda: seats(server) == 2)
    running = submit(server, make_kernel("running", "sleep 1.8"))
    until(lambda: server.journal)
    cluster.kill(0)
    cluster.kill(1)
    cluster.nodes.clear()
    until(lambda: seats(server) == 0)
    waiting = submit(server, make_kernel("waiting"))
    assert job_view(server, waiting, 0)["state"] == "queued"
    cluster.add()
    assert result(server, running)["verdict"] and result(server, waiting)["verdict"]
    assert [event for event, name, _ in server.journal if name == "running"] == ["start", "start", "end"]


def test_without_ray_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras.util, "find_spec", lambda _: None)
    with pytest.raises(ExtraMissing, match=r"install evokernel-lsp\[fleet\]"):
        check_ray()


def test_the_service_imports_no_ray(server: Any) -> None:
    files = {entry.path for entry in psutil.Process(server.process.pid).memory_maps()}
    assert not [path for path in files if "/ray/" in path]
    assert "ray" not in sys.modules or "evokernel_core.verifier.serving.fleet.driver" not in sys.modules


def test_hosts_are_sent_bytes_alone() -> None:
    """Bytes are what Ray hands over as they are; anything else it may pickle."""
    driver = ast.parse((HERE.parents[2] / "evokernel_core/verifier/serving/fleet/driver.py").read_text())
    calls = [
        node
        for node in ast.walk(driver)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "remote"
    ]
    sent = {ast.unparse(call.func): [ast.unparse(argument) for argument in call.args] for call in calls}
    assert sent["seat.actor.judge.remote"] == ["task", "source"]
    assert sent["seat.actor.stop.remote"] == sent["actor.version.remote"] == []
    assigned = {
        ast.unparse(node.targets[0]): ast.unparse(node.value)
        for node in ast.walk(driver)
        if isinstance(node, ast.Assign)
    }
    assert assigned["(task, source)"] == "(message['task'].encode(), message['source'].encode())"
