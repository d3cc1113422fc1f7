"""The HTTP surface: who may ask, what is refused and how, what a job goes through."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from evokernel_core.domain.sentence import sentence_of
from evokernel_core.domain.serial import to_data
from tests.verifier.service.conftest import until

Kernel = Callable[..., tuple[Any, Any]]


def body(kernel: tuple[Any, Any], client: str = "") -> dict[str, Any]:
    return {"task": to_data(kernel[0]), "source": to_data(kernel[1]), "client": client}


def finish(server: Any, kernel: tuple[Any, Any]) -> dict[str, Any]:
    with server.client() as http:
        job = http.post("/v1/jobs", json=body(kernel)).json()
        view: dict[str, Any] = http.get(f"/v1/jobs/{job['id']}", params={"wait": 20}).json()
        return view


@pytest.mark.parametrize(
    "header", ["", "Bearer wrong", "Basic right-token", "bearer right-token", "right-token"]
)
def test_without_the_token_nothing_is_told(shared_server: Any, header: str) -> None:
    with shared_server.client() as http:
        http.headers["Authorization"] = header
        for path in ("/v1/status", "/v1/openapi.json", "/nothing"):
            answer = http.get(path)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert "token" in answer.json()["error"]


def test_a_job_goes_from_question_to_verdict_and_asking_again_is_asking_once(
    server: Any, make_kernel: Kernel
) -> None:
    kernel = make_kernel(script="print")
    with server.client() as http:
        first = http.post("/v1/jobs", json=body(kernel))
        assert first.status_code == 201
        view = http.get(f"/v1/jobs/{first.json()['id']}", params={"wait": 20}).json()
        assert view["state"] == "done"
        assert view["verdict"]["source_id"] == kernel[1].source_id
        again = http.post("/v1/jobs", json=body(kernel))
        assert (again.status_code, again.json()) == (200, view)
        status = http.get("/v1/status").json()
        assert (status["name"], status["queued"], status["running"], status["done"]) == (
            "scripted 1",
            0,
            0,
            1,
        )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("raise", "The reference cannot run here; install torch."),
        ("bug", "ZeroDivisionError"),
        ("die", "died 3 times"),
        ("sleep 60", "longer than 3 s"),
        ("environment EVOKERNEL_VERIFIER_TOKEN", "value=."),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_the_service_goes_on(
    shared_server: Any, make_kernel: Kernel, script: str, sentence: str
) -> None:
    view = finish(shared_server, make_kernel(script=script))
    assert (view["state"], view["verdict"]) == ("done", None)
    assert sentence in view["error"]
    assert finish(shared_server, make_kernel(f"after {script}"))["verdict"]


def test_an_error_may_be_asked_again(server: Any, make_kernel: Kernel) -> None:
    kernel = make_kernel(script="raise")
    assert finish(server, kernel)["error"]
    assert finish(server, kernel)["error"]
    assert [event for event, *_ in server.journal] == ["start", "start"]


def test_a_verifier_that_cannot_open_says_why(make_server: Callable[..., Any], make_kernel: Kernel) -> None:
    server = make_server(factory="fake_verifier:broken")
    assert finish(server, make_kernel())["error"] == "No C++ compiler was found; install g++ 11 or newer."
    missing = make_server(factory="fake_verifier:missing")
    assert "cannot be loaded" in finish(missing, make_kernel())["error"]


def without(path: list[str | int]) -> Callable[[dict[str, Any]], None]:
    def edit(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        del data[path[-1]]

    return edit


def having(path: list[str | int], value: Any) -> Callable[[dict[str, Any]], None]:
    def edit(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("edit", "word"),
    [
        (without(["task"]), "body.task"),
        (without(["source", "files"]), "files"),
        (without(["source", "target"]), "target"),
        (without(["source", "files", "tiling.h"]), "has the files tiling.h and op_kernel.cpp"),
        (having(["source", "files", "more.h"], "x"), "has the files tiling.h and op_kernel.cpp"),
        (having(["source", "files"], {}), "files"),
        (having(["source", "files", "../x.h"], "x"), "files"),
        (having(["source", "target"], "cuda"), "target 'cuda' is not known here; update"),
        (having(["source", "target"], "../x"), "target"),
        (having(["source", "tiling_h"], "x"), "tiling_h"),
        (without(["task", "graph"]), "graph"),
        (without(["task", "graph", "inputs"]), "inputs"),
        (having(["task"], []), "body.task"),
        (having(["extra"], 1), "extra"),
        (having(["client"], "a b"), "client"),
        (having(["source", "files", "op_kernel.cpp"], ""), "op_kernel.cpp"),
        (having(["source", "files", "op_kernel.cpp"], "x" * 1_000_001), "op_kernel.cpp"),
        (having(["source", "files", "tiling.h"], "\ud800"), "request"),
        (having(["source", "strategy"], {}), "strategy"),
        (having(["task", "graph", "inputs", 0, "name"], "other"), "'x'"),
        (having(["task", "graph", "outputs"], [{"ref": "z", "index": 0}]), "'z'"),
        (having(["task", "graph", "nodes", 0, "outputs", 0, "dtype"], "float7"), "float7"),
        (having(["task", "graph", "nodes", 0, "args"], [{"strange": 1}]), "args"),
        (having(["task", "graph", "inputs", 0, "spec", "shape"], ["s0**9", 4]), "size expression"),
        (having(["task", "graph", "inputs", 0, "spec", "shape"], ["s0//0", 4]), "zero"),
        (having(["task", "graph", "inputs", 0, "spec", "shape"], ["-" * 5000 + "1", 4]), "size expression"),
        (having(["task", "graph", "inputs", 0, "spec", "shape"], [-1, 4]), "dimension"),
        (having(["task", "symbols"], []), "s0"),
    ],
)
def test_a_malformed_body_is_422_and_one_sentence(
    shared_server: Any, make_kernel: Kernel, edit: Callable[[Any], None], word: str
) -> None:
    data = body(make_kernel())
    edit(data)
    with shared_server.client() as http:
        answer = http.post("/v1/jobs", content=json.dumps(data), headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert word in answer.json()["error"]
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize(
    ("method", "path", "content", "status"),
    [
        ("POST", "/v1/jobs", b"", 422),
        ("POST", "/v1/jobs", b"{", 422),
        ("POST", "/v1/jobs", b"[]", 422),
        ("POST", "/v1/jobs", b"\xff\xfe", 422),
        ("POST", "/v1/jobs", b"[" * 100_000, 422),
        ("POST", "/v1/jobs", b" " * (4 * 2**20 + 1), 413),
        ("GET", "/v1/jobs/short", None, 422),
        ("GET", "/v1/jobs/" + "0" * 64, None, 404),
        ("DELETE", "/v1/jobs/" + "0" * 64, None, 404),
        ("GET", "/v1/jobs/" + "0" * 64 + "?wait=nan", None, 422),
        ("GET", "/v1/jobs/" + "0" * 64 + "?wait=61", None, 422),
        ("GET", "/v1/nothing", None, 404),
        ("PUT", "/v1/jobs", b"{}", 405),
        ("GET", "/../../etc/passwd", None, 404),
    ],
)
def test_every_refusal_is_json_with_a_sentence(
    shared_server: Any, method: str, path: str, content: bytes | None, status: int
) -> None:
    with shared_server.client() as http:
        answer = http.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"] and answer.json().keys() <= {"error", "said"}


def test_a_body_without_a_length_is_measured_as_it_comes(shared_server: Any) -> None:
    with shared_server.client() as http:
        answer = http.post("/v1/jobs", content=(b" " * 2**20 for _ in range(5)))
    assert answer.status_code == 413


def test_a_full_queue_is_429(server: Any, make_kernel: Kernel) -> None:
    with server.client() as http:
        http.post("/v1/jobs", json=body(make_kernel("slow", "sleep 2.5")))
        until(lambda: server.journal)
        for number in range(20):
            assert http.post("/v1/jobs", json=body(make_kernel(f"n{number}"))).status_code == 201
        answer = http.post("/v1/jobs", json=body(make_kernel("last")))
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
        assert sentence_of(answer.json()["said"]) == answer.json()["error"]


def test_a_cancel_stops_the_work_and_what_it_started(server: Any, make_kernel: Kernel) -> None:
    kernel = make_kernel(script="child\nsleep 60")
    with server.client() as http:
        job = http.post("/v1/jobs", json=body(kernel)).json()["id"]
        path = server.folder / "journal.child"
        child = int(until(lambda: path.exists() and path.read_text()))
        assert http.delete(f"/v1/jobs/{job}").json() == {"id": job, "cancelled": True}
        until(lambda: not psutil.pid_exists(child))
        assert http.get(f"/v1/jobs/{job}").status_code == 404
        assert finish(server, make_kernel("next"))["verdict"]


def test_time_counts_wherever_it_is_spent(server: Any, make_kernel: Kernel) -> None:
    """A process that lives on after the verdict, as the one with torch does, is not free."""
    assert finish(server, make_kernel(script="burn"))["verdict"]
    assert finish(server, make_kernel("idle", script="sleep 0.3"))["verdict"]
    lines = [json.loads(line) for line in (server.folder / "audit.jsonl").read_text().splitlines()]
    burnt, idle = (line["cpu_s"] for line in lines if line["what"] == "judged")
    assert 0.4 <= burnt < 3.0 and idle < 0.2


def test_one_client_cannot_cancel_what_another_wants(server: Any, make_kernel: Kernel) -> None:
    kernel = make_kernel(script="sleep 1")
    with server.client() as http:
        job = http.post("/v1/jobs", json=body(kernel, "first")).json()["id"]
        http.post("/v1/jobs", json=body(kernel, "second"))
        assert not http.delete(f"/v1/jobs/{job}", params={"client": "first"}).json()["cancelled"]
        assert http.get(f"/v1/jobs/{job}", params={"wait": 10}).json()["verdict"]
        assert not http.delete(f"/v1/jobs/{job}", params={"client": "second"}).json()["cancelled"]


def test_workers_judge_side_by_side(make_server: Callable[..., Any], make_kernel: Kernel) -> None:
    server = make_server(workers=2)
    with server.client() as http:
        jobs = [
            http.post("/v1/jobs", json=body(make_kernel(name, "sleep 1"))).json()["id"] for name in ("a", "b")
        ]
        for job in jobs:
            assert http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()["verdict"]
    assert [event for event, *_ in server.journal] == ["start", "start", "end", "end"]


def test_a_stop_by_signal_puts_the_work_back(server: Any, make_kernel: Kernel) -> None:
    with server.client() as http:
        job = http.post("/v1/jobs", json=body(make_kernel(script="sleep 2"))).json()["id"]
        until(lambda: server.journal)
    server.stop()
    server.start()
    with server.client() as http:
        assert http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()["verdict"]


def test_workers_end_with_the_service(server: Any, make_kernel: Kernel) -> None:
    with server.client() as http:
        http.post("/v1/jobs", json=body(make_kernel(script="child\nsleep 60")))
        path = server.folder / "journal.child"
        child = int(until(lambda: path.exists() and path.read_text()))
        worker = int(server.journal[0][2])
    server.kill()
    until(lambda: not psutil.pid_exists(worker) and not psutil.pid_exists(child))


def test_the_service_itself_has_no_torch(server: Any) -> None:
    assert server.process
    files = {entry.path for entry in psutil.Process(server.process.pid).memory_maps()}
    assert not [path for path in files if "torch" in path]
