"""Kernels as clients, services and queues of before a source named its target write and read them."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evokernel_core.domain.earlier_sources import FIELDS, flat
from evokernel_core.domain.errors import VerifierError
from evokernel_core.domain.kernel import KernelSource
from evokernel_core.domain.serial import to_data
from evokernel_core.domain.verdict import Verdict
from evokernel_core.targets.sources import FILES
from evokernel_core.verifier.client import RemoteVerifier
from evokernel_core.verifier.service_worker import Judge

Kernel = Callable[..., tuple[Any, Any]]


def test_both_forms_ask_for_one_job(shared_server: Any, make_kernel: Kernel) -> None:
    task, source = make_kernel("forms")
    with shared_server.client() as http_client:
        forms = [{"task": to_data(task), "source": form(to_data(source))} for form in (flat, dict)]
        answers = [http_client.post("/v1/jobs", json=body) for body in forms]
        assert [answer.status_code for answer in answers] == [201, 200]
        first, second = (answer.json()["id"] for answer in answers)
        assert first == second
        assert http_client.get("/v1/status").json()["targets"] == list(FILES)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tiling_h": 3}, "source.files.tiling.h"),
        ({"op_kernel_cpp": ""}, "source.files.op_kernel.cpp"),
        ({"more": "x"}, "source.more"),
        ({"target": "ascendc", "files": {}}, "source.files"),
    ],
)
def test_what_is_wrong_in_the_earlier_form_is_said(
    shared_server: Any, make_kernel: Kernel, change: dict[str, Any], words: str
) -> None:
    task, source = make_kernel()
    with shared_server.client() as http_client:
        body = {"task": to_data(task), "source": {**flat(to_data(source)), **change}}
        answer = http_client.post("/v1/jobs", json=body)
    said = answer.json()["error"]
    assert (answer.status_code, words in said, said.count("\n"), said[-1]) == (422, True, 0, "."), said


def test_a_job_that_waits_since_before_is_judged(make_kernel: Kernel, tmp_path: Any) -> None:
    task, source = make_kernel()
    judge = Judge("tests.verifier.service.fake_verifier:Scripted", {"journal": str(tmp_path / "journal")})
    answer = judge.answer(json.dumps({"task": to_data(task), "source": flat(to_data(source))}))
    assert answer["verdict"]["source_id"] == source.source_id


class Earlier(http.server.BaseHTTPRequestHandler):
    """A service of before: its status names no targets, and it refuses fields that it does not know."""

    def do_GET(self) -> None:
        status = dict.fromkeys(("queued", "running", "done"), 0)
        words = dict.fromkeys(("name", "backend", "chip", "version"), "x")
        self._answer(200, {**words, **status, "workers": 1})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["source"].keys() != {*FIELDS, "strategy"}:
            self._answer(422, {"error": "The request does not fit the schema at body.source."})
            return
        ids = self.server.ids  # type: ignore[attr-defined]
        self._answer(200, {"id": "0" * 64, "state": "done", "verdict": to_data(Verdict(*ids, "v", ()))})

    def _answer(self, status: int, data: dict[str, Any]) -> None:
        content = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def earlier() -> Iterator[Any]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Earlier)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_service_of_before_judges_kernels_of_ascendc(earlier: Any, make_kernel: Kernel) -> None:
    task, source = make_kernel()
    earlier.ids = task.task_id, source.source_id
    verifier = RemoteVerifier(f"http://127.0.0.1:{earlier.server_port}", "token", patience=0.5)
    assert verifier.verify(task, source).source_id == source.source_id
    python = KernelSource("triton", {"kernel.py": "x"}, source.strategy)
    with pytest.raises(VerifierError, match="takes no kernels for triton; update it, or name another"):
        verifier.verify(task, python)
