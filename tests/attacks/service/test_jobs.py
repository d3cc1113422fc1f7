"""Other people's jobs, and more than one's share. Each docstring: what it wants; what must happen."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from evokernel_core.verifier.serving.users import Priority, Scope


def until(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError("it did not come about")


def submit(town: Any, token: str, name: str, script: str = "", **more: Any) -> str:
    with town.client(token) as http:
        answer = http.post("/v1/jobs", json=town.body(name, script, **more))
        assert answer.is_success, answer.text
        identity: str = answer.json()["id"]
        return identity


def order(town: Any) -> list[str]:
    return [name for event, name, _ in town.server.journal if event == "start"]


@pytest.mark.parametrize("scope", [Scope.SUBMIT, Scope.READ])
def test_read_another_users_job(square: Any, scope: Scope) -> None:
    """Saw an id in a log and wants the verdict. To others the job does not exist."""
    job = submit(square, square.token(f"victim-{scope}"), f"secret-{scope}")
    with square.client(square.token(f"thief-{scope}", scope)) as http:
        for query in ("", "?wait=0.5"):
            assert http.get(f"/v1/jobs/{job}{query}").status_code == 404


def test_cancel_another_users_job(town: Any) -> None:
    """Wants a rival's work gone. 404, and the work goes on."""
    owner = town.token("victim")
    job = submit(town, owner, "long", "sleep 0.7", client="c1")
    with town.client(town.token("thief")) as http:
        for client in ("", "c1"):
            assert http.delete(f"/v1/jobs/{job}", params={"client": client}).status_code == 404
    with town.client(owner) as http:
        assert http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]


def test_join_a_job_to_cancel_it(town: Any) -> None:
    """Asks for the same kernel, so that the job is theirs too, and takes it back. The other keeps it."""
    first, second = town.token("victim"), town.token("thief")
    job = submit(town, first, "shared", "sleep 0.7", client="same")
    assert submit(town, second, "shared", "sleep 0.7", client="same") == job
    with town.client(second) as http:
        assert not http.delete(f"/v1/jobs/{job}", params={"client": "same"}).json()["cancelled"]
        assert http.get(f"/v1/jobs/{job}").status_code == 404
    with town.client(first) as http:
        assert http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]


def test_an_administrator_may_cancel(town: Any) -> None:
    """Not an attack: whoever runs the service can end what should not run."""
    job = submit(town, town.token("user"), "long", "sleep 60")
    with town.client(town.token("boss", Scope.ADMIN)) as http:
        assert http.delete(f"/v1/jobs/{job}").json()["cancelled"]
        assert http.get(f"/v1/jobs/{job}").status_code == 404


def test_replay_a_request(town: Any) -> None:
    """Recorded a request and sends it 30 times at once. One job, one judgement, one of the day's jobs."""
    token = town.token("user", jobs_a_day=1)
    jobs: set[str] = set()
    threads = [
        threading.Thread(target=lambda: jobs.add(submit(town, token, "once", "sleep 0.2", client="same")))
        for _ in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (job,) = jobs
    with town.client(token) as http:
        assert http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]
    assert order(town) == ["once"]


def test_use_one_key_for_two_kernels(town: Any) -> None:
    """Sends another kernel under the name of one that passed. A job is named after all that is judged."""
    token = town.token("user")
    first = submit(town, token, "good", client="key")
    second = submit(town, token, "bad", client="key")
    assert first != second
    with town.client(token) as http:
        found = {
            http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]["source_id"]
            for job in (first, second)
        }
    assert len(found) == 2


def test_have_a_kernel_judged_around_settings_that_hide_its_error(town: Any) -> None:
    """Asks first, with a factor of zero, so that the victim is given that verdict. They are two jobs."""
    body = town.body("scale")
    number = {"shape": [], "dtype": "float32", "contiguous": True}
    ids = []
    for value in (0.0, 0.125):
        given = {"name": "factor", "spec": number, "kind": "scalar", "expression": "", "value": value}
        inputs = [body["task"]["graph"]["inputs"][0], given]
        task = {**body["task"], "graph": {**body["task"]["graph"], "inputs": inputs}}
        with town.client(town.token(f"user-{len(ids)}")) as http:
            answer = http.post("/v1/jobs", json={**body, "task": task})
            assert answer.status_code == 201, answer.text
            ids.append(answer.json()["id"])
    assert ids[0] != ids[1]


def test_exceed_the_day_in_parallel(town: Any) -> None:
    """Forty requests at once with six jobs left, over two tokens. Six are taken; 429 says when to return."""
    tokens = [town.token("user", jobs_a_day=6) for _ in range(2)]
    answers: list[Any] = []

    def ask(number: int) -> None:
        with town.client(tokens[number % 2]) as http:
            answers.append(http.post("/v1/jobs", json=town.body(f"n{number}")))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(answer.status_code for answer in answers) == {201: 6, 429: 34}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 0 < int(refused.headers["retry-after"]) <= 86_401
    assert "limit" in refused.json()["error"]


def test_cancel_to_get_the_job_back(town: Any) -> None:
    """Submits and cancels in turn, to be counted never. What was asked for counts."""
    token = town.token("user", jobs_a_day=3)
    for number in range(3):
        job = submit(town, token, f"n{number}", "sleep 5")
        with town.client(token) as http:
            assert http.delete(f"/v1/jobs/{job}").json()["cancelled"]
    with town.client(token) as http:
        assert http.post("/v1/jobs", json=town.body("n9")).status_code == 429


def test_fill_the_queue(town: Any) -> None:
    """Wants nobody else to get a place. A user's waiting jobs are bounded, and others' are taken."""
    flood = town.token("flood", queued=5)
    submit(town, flood, "running", "sleep 2")
    until(lambda: order(town))
    with town.client(flood) as http:
        codes = [http.post("/v1/jobs", json=town.body(f"f{n}")).status_code for n in range(10)]
    assert codes == [201] * 5 + [429] * 5
    submit(town, town.token("honest"), "mine")


def test_starve_the_other_users(town: Any) -> None:
    """Fifteen jobs of one user wait before another's first. Turns go round: it is among the next two."""
    greedy, honest = town.token("greedy"), town.token("honest")
    submit(town, greedy, "g", "sleep 1")
    until(lambda: order(town))
    for number in range(15):
        submit(town, greedy, f"g{number}", "sleep 0.1")
    submit(town, honest, "mine")
    until(lambda: "mine" in order(town))
    assert order(town).index("mine") <= 2


def test_starve_interactive_work_by_background_work(town: Any) -> None:
    """Fifteen background jobs wait before an interactive one. It goes next, and they are not starved."""
    back = town.token("back", only=Priority.BACKGROUND)
    submit(town, back, "b", "sleep 1")
    until(lambda: order(town))
    for number in range(15):
        submit(town, back, f"b{number}", "sleep 0.02")
    front = town.token("front")
    for number in range(4):
        submit(town, front, f"i{number}", "sleep 0.02")
    until(lambda: "i3" in order(town))
    names = order(town)
    assert names.index("i0") <= 2
    assert names.index("i3") <= 6
    until(lambda: len(order(town)) == 20)


def test_join_in_the_background_to_slow_a_job(town: Any) -> None:
    """Asks for a rival's waiting job in the background. It stays as urgent as it was."""
    submit(town, town.token("busy"), "busy", "sleep 1")
    until(lambda: order(town))
    back = town.token("back", only=Priority.BACKGROUND)
    for number in range(8):
        submit(town, back, f"b{number}", "sleep 0.1")
    submit(town, town.token("front"), "mine")
    submit(town, back, "mine")
    until(lambda: "mine" in order(town))
    assert order(town).index("mine") <= 2


def test_use_more_cpu_than_a_day_gives(make_town: Callable[..., Any]) -> None:
    """Sends kernels that run until they are ended. The time counts, the rest waits, others go on.

    The first one alone uses the day, however busy this machine is, and what another user is told may be that
    a worker could not even start in a second.
    """
    town = make_town(options={"job_timeout_s": 1.0})
    token = town.token("user", cpu_s_a_day=1)
    first, *rest = [submit(town, token, f"n{number}", "sleep 60") for number in range(3)]
    with town.client(token) as http:
        until(lambda: http.get(f"/v1/jobs/{first}").json()["state"] == "done", 60)
        assert "longer than" in http.get(f"/v1/jobs/{first}").json()["error"]
        other = submit(town, town.token("other"), "mine")
        with town.client() as boss:
            until(lambda: boss.get(f"/v1/jobs/{other}").json()["state"] == "done", 60)
        assert [http.get(f"/v1/jobs/{job}").json()["state"] for job in rest] == ["queued", "queued"]
        answer = http.post("/v1/jobs", json=town.body("more"))
    assert answer.status_code == 429 and "CPU seconds" in answer.json()["error"]


def test_wait_with_more_requests_than_anybody_needs(town: Any) -> None:
    """Opens 150 waits for one job. Some are refused, and another user is answered at once."""
    token = town.token("user")
    job = submit(town, token, "long", "sleep 2.5")
    codes: list[int] = []

    def wait() -> None:
        with town.client(token) as http:
            codes.append(http.get(f"/v1/jobs/{job}", params={"wait": 2}).status_code)

    threads = [threading.Thread(target=wait) for _ in range(150)]
    for thread in threads:
        thread.start()
    started = time.monotonic()
    with town.client(town.token("other")) as http:
        assert http.get("/v1/status").status_code == 200
    assert time.monotonic() - started < 2
    for thread in threads:
        thread.join()
    assert set(codes) == {200, 429} and codes.count(200) >= 120


def test_kill_the_worker_for_ever(town: Any) -> None:
    """A kernel that ends its judge each time. It is given up, and the next one is judged."""
    token = town.token("user")
    job, after = submit(town, token, "killer", "die"), submit(town, token, "after")
    with town.client(token) as http:
        assert "died 3 times" in http.get(f"/v1/jobs/{job}", params={"wait": 15}).json()["error"]
        assert http.get(f"/v1/jobs/{after}", params={"wait": 10}).json()["verdict"]
