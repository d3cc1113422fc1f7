"""Jobs that several want, and what one user may hold. Each docstring: what it wants; what must happen."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evokernel_core.verifier import queue as queue_module
from evokernel_core.verifier.queue import MOST_NAMES, Asker, JobQueue, QueueFull, QuotaUsed
from evokernel_core.verifier.serving.users import NO_LIMIT, Priority, Quota
from tests.attacks.service.test_jobs import order, submit, until

JOB, OTHER = "a" * 64, "b" * 64
POOR, RICH = Quota(cpu_s_a_day=1), Quota(cpu_s_a_day=1000)


@pytest.fixture
def jobs(tmp_path: Path) -> Any:
    queue = JobQueue(tmp_path)
    yield queue
    queue.close()


def ask(queue: JobQueue, user: str, quota: Quota = NO_LIMIT, job: str = JOB, **more: Any) -> None:
    urgent = Priority.BACKGROUND if more.pop("background", False) else Priority.INTERACTIVE
    queue.put(job, "{}", "{}", asker=Asker(user, more.pop("client", ""), urgent, quota))


def spend(queue: JobQueue, user: str, quota: Quota, cpu_s: float) -> None:
    """The user has a job judged that takes so long."""
    ask(queue, user, quota, job="f" * 64)
    claim = queue.claim()
    assert claim is not None and claim.user == user
    queue.finish(claim, verdict="{}", cpu_s=cpu_s)


def test_block_a_user_by_asking_before_them(jobs: JobQueue) -> None:
    """Asks in the background, with a day of one second, for the kernel that the victim will ask for, so that
    the victim's jobs wait by that day. They wait by the victim's own."""
    spend(jobs, "alice", RICH, 5.0)
    ask(jobs, "mallory", POOR, background=True)
    ask(jobs, "alice", RICH)
    ask(jobs, "alice", RICH, job=OTHER)
    assert [claim.user for claim in (jobs.claim(), jobs.claim()) if claim] == ["alice", "alice"]


@pytest.mark.parametrize("first", ["spends", "asks"])
def test_hold_a_job_with_a_day_that_is_used_up(jobs: JobQueue, first: str) -> None:
    """Asked first and has no time left, so that others who want it wait for tomorrow. It becomes theirs."""
    ask(jobs, "mallory", POOR, job=OTHER)
    claim = jobs.claim()
    assert claim is not None
    ask(jobs, "mallory", POOR)
    if first == "asks":
        ask(jobs, "alice", RICH)
    jobs.finish(claim, verdict="{}", cpu_s=5.0)
    if first == "spends":
        ask(jobs, "alice", RICH)
    claim = jobs.claim()
    assert claim is not None and claim.user == "alice"


def test_inherit_a_job_without_limits(jobs: JobQueue) -> None:
    """Joins the owner's job and inherits it with the owner's quota, its own day being used. It waits."""
    ask(jobs, "mallory", POOR, job=OTHER)
    (claim := jobs.claim()) and jobs.finish(claim, verdict="{}", cpu_s=5.0)
    ask(jobs, "owner")
    ask(jobs, "mallory", POOR)
    assert jobs.withdraw(JOB, user="owner") is False
    assert jobs.claim() is None


def test_join_others_jobs_for_nothing(jobs: JobQueue) -> None:
    """Asks for what others have asked for, without end: each is one of its day's jobs."""
    for number in range(4):
        ask(jobs, "alice", job=str(number) * 64)
    for number in range(3):
        ask(jobs, "mallory", Quota(jobs_a_day=3), job=str(number) * 64)
    with pytest.raises(QuotaUsed):
        ask(jobs, "mallory", Quota(jobs_a_day=3), job="3" * 64)
    assert jobs.used("mallory")[0] == 3


def test_want_one_job_under_names_without_end(jobs: JobQueue) -> None:
    """Wants rows on the disk that cost no job: the names of one user for one job are bounded."""
    for number in range(MOST_NAMES):
        ask(jobs, "mallory", client=f"c{number}")
    ask(jobs, "mallory", client="c0")
    with pytest.raises(QueueFull, match="clients"):
        ask(jobs, "mallory", client="one-more")
    ask(jobs, "alice")


def test_grow_the_queue_of_a_service_that_never_stops(
    jobs: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wants results to be kept for ever, for they were dropped at a start alone. The oldest go meanwhile."""
    monkeypatch.setattr(queue_module, "KEPT_RESULTS", 5)
    monkeypatch.setattr(queue_module, "TIDY_AFTER", 10)
    for number in range(40):
        ask(jobs, "mallory", job=f"{number:064}")
        (claim := jobs.claim()) and jobs.finish(claim, verdict="{}")
    assert sum(jobs.counts().values()) <= 5 + 10


def test_run_without_end_for_nothing(make_town: Callable[..., Any]) -> None:
    """Sends kernels that never end: what is killed with its watcher had cost its user nothing. It costs."""
    town = make_town(options={"job_timeout_s": 60.0})
    job = submit(town, town.token("mallory"), "endless", "overrun")
    with town.client() as boss:
        until(lambda: boss.get(f"/v1/jobs/{job}").json()["state"] == "done", 60)
    (line,) = until(lambda: [line for line in town.audit() if line["what"] == "judged"])
    assert line["cpu_s"] >= 0.5


def test_wash_the_log_out(square: Any) -> None:
    """Asks for the same again and again until the log has rotated over what others did. It is one line."""
    token = square.token("washer")
    with square.client(token) as http:
        for _ in range(30):
            assert http.post("/v1/jobs", json=square.body("washed")).is_success
    lines = [line for line in square.audit() if line.get("user") == "washer"]
    assert len(lines) <= 3, "asked, judged"


def test_stop_the_service_by_the_largest_task(square: Any) -> None:
    """Sends a task of 15,000 nodes again and again; each takes seconds to check. Others are answered."""
    data = square.body("large")
    graph = data["task"]["graph"]
    node = graph["nodes"][0]
    graph["nodes"] = [{**node, "name": f"n{number}"} for number in range(15_000)] + [node]
    content = json.dumps(data).encode()
    codes: list[int] = []

    def send() -> None:
        with square.client(square.token("mallory")) as http:
            answer = http.post("/v1/jobs", content=content, headers={"Content-Type": "application/json"})
            codes.append(answer.status_code)

    sending = [threading.Thread(target=send) for _ in range(2)]
    answered = 0
    for thread in sending:
        thread.start()
    with square.client() as http:
        while any(thread.is_alive() for thread in sending):
            assert http.get("/v1/status").status_code == 200
            answered += 1
    assert sorted(codes) == [200, 201]
    assert answered > 10, "it was answered a few times in each second that the check took"


def test_fill_the_memory_with_bodies(town: Any) -> None:
    """Holds 12 bodies of almost four megabytes that do not end. A user has four of the largest at a time."""
    head = (
        f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {town.token('mallory')}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {4 * 2**20}\r\n\r\n"
    )
    held = [town.raw() for _ in range(12)]
    try:
        for connection in held:
            connection.sendall(head.encode())
            connection.settimeout(5)
            try:
                connection.sendall(b" " * (4 * 2**20 - 10))
            except OSError:
                continue  # it was refused in the middle
        refused = until(lambda: [line for line in town.audit() if line.get("status") == 429])
        assert refused[0]["user"] == "mallory"
        with town.client() as http:
            assert http.post("/v1/jobs", json=town.body("honest")).is_success
    finally:
        for connection in held:
            connection.close()


def test_go_on_waiting_with_a_token_that_was_revoked(town: Any) -> None:
    """Began to wait before the token was revoked, to be told the verdict after it. 401."""
    token = town.token("leaver")
    job = submit(town, token, "long", "sleep 1.5")
    codes: list[int] = []

    def wait() -> None:
        with town.client(token) as http:
            codes.append(http.get(f"/v1/jobs/{job}", params={"wait": 20}).status_code)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: order(town))
    assert town.revoke("leaver") == 1
    waiting.join()
    assert codes == [401]


def test_read_the_hosts_paths_from_an_error(town: Any) -> None:
    """Wants names of files and accounts of the host from the words of an exception. They are in its log."""
    token = town.token("curious")
    job = submit(town, token, "broken", "bug")
    with town.client(token) as http:
        error = http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["error"]
    assert "a defect" not in error and "see the service's log" in error


def test_read_secrets_from_the_data_folder(town: Any) -> None:
    """Wants a token from any file that the service writes: hashes and ids alone are there."""
    token = town.token("careful")
    submit(town, token, "kept")
    time.sleep(0.1)
    secret = token.split("_", 2)[2].encode()
    for path in town.server.folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            assert secret not in text and b"right-token" not in text, path
    with sqlite3.connect(town.server.folder / "queue.db") as database:
        assert database.execute("SELECT count(*) FROM jobs").fetchone() == (1,)
