"""RemoteVerifier against a real service that is killed, away, strange or hostile."""

from __future__ import annotations

import http.server
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from evokernel_core.domain.errors import UsageError, VerifierError, VerifierUnavailable
from evokernel_core.domain.sentence import Sentence
from evokernel_core.verifier.client import RemoteVerifier
from evokernel_core.verifier.unjudged import TOO_DEEP, answered, jobs_used, queue_full, too_large, worker_died
from tests.chinese import in_chinese
from tests.verifier.service.conftest import until

Kernel = Callable[..., tuple[Any, Any]]


def remote(url: str, **options: Any) -> RemoteVerifier:
    return RemoteVerifier(url, options.pop("token", "right-token"), **({"patience": 0.5} | options))


def test_a_verdict_says_who_spoke_and_where(server: Any, make_kernel: Kernel) -> None:
    verifier = remote(server.url)
    task, source = make_kernel()
    verdict = verifier.verify(task, source)
    assert verdict.verifier == verifier.name == f"scripted 1@127.0.0.1:{server.port} (remote)"
    assert (verdict.task_id, verdict.source_id) == (task.task_id, source.source_id)
    assert verifier.verify(task, source) == verdict


def test_a_service_that_is_away_can_be_waited_for(server: Any, make_kernel: Kernel) -> None:
    server.kill()
    with pytest.raises(VerifierUnavailable, match=r"127\.0\.0\.1.*is away.*evokernel verifier serve"):
        remote(server.url).verify(*make_kernel())
    verifier = remote(server.url)
    assert verifier.name == f"verifier@127.0.0.1:{server.port} (remote)"
    server.start()
    assert verifier.name == f"scripted 1@127.0.0.1:{server.port} (remote)"


def test_the_service_says_how_many_kernels_it_judges_at_a_time(make_server: Any) -> None:
    verifier = remote(make_server(workers=3).url)
    assert verifier.workers == 1, "it was not asked yet"
    verifier.status()
    assert verifier.workers == 3


def test_one_client_may_be_asked_from_several_threads(make_server: Any, make_kernel: Kernel) -> None:
    """As a search does that has several candidates in flight."""
    verifier = remote(make_server(workers=3).url, patience=30.0)
    kernels = [make_kernel(f"k{number}", "sleep 0.1") for number in range(6)]
    with ThreadPoolExecutor(3) as threads:
        verdicts = list(threads.map(lambda kernel: verifier.verify(*kernel), kernels))
    assert [verdict.source_id for verdict in verdicts] == [source.source_id for _, source in kernels]


def test_a_wrong_token_is_said_at_once(server: Any, make_kernel: Kernel) -> None:
    started = time.monotonic()
    with pytest.raises(VerifierError, match="refused the token") as raised:
        remote(server.url, token="wrong", patience=30.0).verify(*make_kernel())
    assert not isinstance(raised.value, VerifierUnavailable)
    assert time.monotonic() - started < 5


def test_what_the_service_cannot_judge_is_an_error_not_a_verdict(server: Any, make_kernel: Kernel) -> None:
    with pytest.raises(VerifierError, match="could not verify: The reference cannot run here"):
        remote(server.url).verify(*make_kernel(script="raise"))


def test_a_cancel_reaches_the_worker(server: Any, make_kernel: Kernel) -> None:
    with pytest.raises(VerifierError, match="cancelled"):
        remote(server.url, wait=0.1).verify(
            *make_kernel(script="sleep 3"), cancelled=lambda: bool(server.journal)
        )
    with server.client() as http:
        status = http.get("/v1/status").json()
    assert (status["queued"], status["running"], status["done"]) == (0, 0, 0)


def test_killed_at_random_moments_nothing_is_lost_or_doubled(
    make_server: Callable[..., Any], make_kernel: Kernel
) -> None:
    """Clients keep asking while the service is killed and started again in the middle of their jobs."""
    server = make_server(workers=2)
    kernels = [make_kernel(f"k{number}", "sleep 0.2") for number in range(12)]
    answers: dict[str, set[str]] = {}

    def ask(kernel: tuple[Any, Any]) -> None:
        verifier = remote(server.url, patience=30.0)
        for _ in range(2):  # the second question must get the first one's answer
            verdict = verifier.verify(*kernel)
            answers.setdefault(kernel[0].name, set()).add(verdict.gates[0].feedback)

    threads = [threading.Thread(target=ask, args=(kernel,)) for kernel in kernels]
    for thread in threads:
        thread.start()
    rng = random.Random(5)
    for number in range(4):
        if number % 2:  # in the middle of a job, however slow its worker is to start
            seen = len(server.journal)
            until(lambda seen=seen: any(event == "start" for event, *_ in server.journal[seen:]), 60)
        time.sleep(rng.uniform(0.0, 0.15) if number % 2 else rng.uniform(0.1, 0.7))
        server.kill()
        server.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == sorted(task.name for task, _ in kernels), "lost"
    assert all(len(verdicts) == 1 for verdicts in answers.values()), "duplicated"
    ends = [name for event, name, _ in server.journal if event == "end"]
    starts = [name for event, name, _ in server.journal if event == "start"]
    assert len(starts) > len(kernels), "no job was interrupted"
    assert set(ends) == set(answers)


def test_a_job_that_the_service_forgot_is_asked_again(
    make_server: Callable[..., Any], make_kernel: Kernel
) -> None:
    server = make_server()
    forgotten: list[bool] = []

    def forget() -> bool:
        """Takes the service's data away once, in the middle of the job."""
        if server.journal and not forgotten:
            forgotten.append(True)
            server.kill()
            for path in server.folder.glob("queue.db*"):
                path.unlink()
            server.start()
        return False

    verdict = remote(server.url, wait=0.2, patience=20.0).verify(
        *make_kernel(script="sleep 1"), cancelled=forget
    )
    assert forgotten
    assert verdict.gates


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://example.org:8732", "readable over the network"),
        ("http://192.168.1.4:8732", "readable over the network"),
        ("http://127.0.0.1.example.org", "readable over the network"),
        ("ftp://127.0.0.1", "https://HOST:PORT"),
        ("127.0.0.1:8732", "https://HOST:PORT"),
        ("", "https://HOST:PORT"),
        ("https://", "https://HOST:PORT"),
        ("http://[::1", "https://HOST:PORT"),
        ("https://user:secret@example.org", "no user or password"),
    ],
)
def test_a_token_is_never_sent_where_others_can_read_it(url: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as raised:
        RemoteVerifier(url, "right-token")
    assert "right-token" not in str(raised.value)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1", "https://example.org"]
)
def test_these_urls_are_fine(url: str) -> None:
    RemoteVerifier(url, "right-token").close()


def test_plain_http_can_be_allowed() -> None:
    RemoteVerifier("http://example.org", "right-token", plain_http=True).close()


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "ü"])
def test_a_token_that_fits_no_header_is_refused(token: str) -> None:
    with pytest.raises(UsageError, match="empty or malformed"):
        RemoteVerifier("http://127.0.0.1:1", token)


def test_a_ca_bundle_that_is_none_is_refused(tmp_path: Any) -> None:
    (tmp_path / "ca.pem").write_text("nothing")
    for path in (tmp_path / "ca.pem", tmp_path / "missing.pem"):
        with pytest.raises(UsageError, match="CA bundle"):
            RemoteVerifier("https://127.0.0.1:1", "right-token", str(path))


class Strange(http.server.BaseHTTPRequestHandler):
    """Answers every request with the server's ``answers``, the last one for ever."""

    def do_GET(self) -> None:
        answers = self.server.answers  # type: ignore[attr-defined]
        status, content, *later = answers.pop(0) if len(answers) > 1 else answers[0]
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if later:
            self.send_header("Retry-After", later[0])
        if status in (301, 307):
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def strange() -> Iterator[Any]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Strange)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


STATUS = {
    "name": "n",
    "backend": "b",
    "chip": "c",
    "version": "1",
    "workers": 1,
    "queued": 0,
    "running": 0,
    "done": 0,
}
OK_STATUS = (200, json.dumps(STATUS).encode())


def done(**fields: Any) -> tuple[int, bytes]:
    return 200, json.dumps({"id": "0" * 64, "state": "done"} | fields).encode()


OTHER_KERNEL = {"task_id": "x", "source_id": "y", "verifier": "v", "gates": []}


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ([(200, b"<html>welcome</html>")], VerifierError, "does not answer like a verifier"),
        ([(200, b"")], VerifierError, "does not answer like a verifier"),
        ([(301, b"")], VerifierError, "HTTP status 301"),
        ([(404, b"nothing")], VerifierError, "check that the URL"),
        ([(500, b"oops")], VerifierUnavailable, "HTTP status 500"),
        ([(429, b'{"error": "The queue is full."}')], VerifierUnavailable, "The queue is full"),
        ([OK_STATUS, (422, b'{"error": "No such dtype."}')], VerifierError, "No such dtype."),
        ([OK_STATUS, done(verdict={"gates": 1})], VerifierError, "cannot read"),
        ([OK_STATUS, done(verdict=OTHER_KERNEL)], VerifierError, "another kernel"),
        ([OK_STATUS, done(error="Gone wrong.")], VerifierError, "could not verify: Gone wrong."),
        ([OK_STATUS, done(state="exploded")], VerifierError, "does not answer like a verifier"),
    ],
)
def test_a_server_that_is_no_verifier_is_named(
    strange: Any, make_kernel: Kernel, answers: list[tuple[int, bytes]], kind: type[Exception], words: str
) -> None:
    strange.answers = list(answers)
    with pytest.raises(VerifierError, match=words) as raised:
        remote(f"http://127.0.0.1:{strange.server_port}").verify(*make_kernel())
    assert type(raised.value) in (kind, *kind.__subclasses__())
    assert isinstance(raised.value, VerifierUnavailable) == (kind is VerifierUnavailable)


def test_a_passing_trouble_is_waited_out(strange: Any) -> None:
    strange.answers = [(503, b""), (502, b""), OK_STATUS]
    assert remote(f"http://127.0.0.1:{strange.server_port}", patience=10.0).status().name == "n"


def test_it_returns_when_the_service_says(strange: Any) -> None:
    strange.answers = [(429, b"", "1"), OK_STATUS]
    started = time.monotonic()
    assert remote(f"http://127.0.0.1:{strange.server_port}", patience=10.0).status().name == "n"
    assert 1.0 <= time.monotonic() - started < 2.0


@pytest.mark.parametrize("later", ["3600", "86400", "9" * 30])
def test_it_does_not_wait_for_tomorrow(strange: Any, later: str) -> None:
    strange.answers = [(429, b'{"error": "You have had what a day gives."}', later)]
    started = time.monotonic()
    with pytest.raises(VerifierUnavailable, match="what a day gives"):
        remote(f"http://127.0.0.1:{strange.server_port}", patience=20.0).status()
    assert time.monotonic() - started < 2.0


def test_background_jobs_say_so(server: Any, make_kernel: Kernel) -> None:
    remote(server.url, background=True).verify(*make_kernel("back"))
    remote(server.url).verify(*make_kernel("front", "// other"))
    lines = [json.loads(line) for line in (server.folder / "audit.jsonl").read_text().splitlines()]
    assert [line["priority"] for line in lines if line["what"] == "submitted"] == [
        "background",
        "interactive",
    ]


def test_a_certificate_that_nobody_trusts_is_named_at_once(strange: Any, make_certificate: Any) -> None:
    certificate, key = make_certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    strange.socket = context.wrap_socket(strange.socket, server_side=True)
    strange.answers = [OK_STATUS]
    url = f"https://localhost:{strange.server_port}"
    with pytest.raises(VerifierError, match=r"not trusted.*CA bundle"):
        remote(url, patience=30.0).status()
    assert remote(url, ca_bundle=str(certificate)).status().name == "n"


DIED = worker_died(3)
UNJUDGED = {
    "with what it is made of": (
        answered(DIED),
        "工作进程在该算子上异常退出 3 次；请附上服务的日志反馈此问题。",
    ),
    "without values": (answered(TOO_DEEP), "该任务的嵌套深度超过了任何可捕获的任务。"),
    "by an earlier version": ({"error": str(DIED)}, str(DIED)),
    "not as it reads": ({"error": "Gone wrong.", "said": DIED.data()}, "Gone wrong."),
    "beside what cannot be read": ({"error": "Gone wrong.", "said": {"say": 1}}, "Gone wrong."),
}


@pytest.mark.parametrize("how", UNJUDGED)
def test_why_a_service_could_not_judge_is_told_in_chinese(
    strange: Any, make_kernel: Kernel, how: str
) -> None:
    fields, why = UNJUDGED[how]
    strange.answers = [OK_STATUS, done(**fields)]
    url = f"http://127.0.0.1:{strange.server_port}"
    with pytest.raises(VerifierError, match="could not verify") as raised:
        remote(url).verify(*make_kernel())
    assert str(raised.value) == f"The verifier at {url} could not verify: {fields['error']}"
    assert in_chinese(raised.value.sentence) == f"位于 {url} 的校验器无法校验：{why}"


def test_what_a_service_says_of_a_kernel_travels_with_its_template(server: Any, make_kernel: Kernel) -> None:
    with pytest.raises(VerifierError) as raised:
        remote(server.url).verify(*make_kernel(script="refuse"))
    said = raised.value.sentence.values["error"]
    assert (said, said.template) == ("aten.x of int8 is not covered.", "{op} of {dtype} is not covered.")


REFUSED = {
    "a full queue": (429, queue_full(9), "现在不接收算子：队列中已有 9 个任务；请稍后再试。"),
    "a day's quota": (429, jobs_used("ann", 5), "现在不接收算子：ann 今天已提交 5 个任务，达到上限。"),
    "a large request": (413, too_large(10), "拒绝了请求：请求超过 10 字节；请一次发送一个算子。"),
    "something else": (502, Sentence(), "现在不接收算子：HTTP 状态码 502。"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_why_a_service_takes_no_kernel_is_told_in_chinese(
    strange: Any, make_kernel: Kernel, why: str
) -> None:
    status, sentence, chinese = REFUSED[why]
    body = json.dumps(answered(sentence)).encode() if sentence else b""
    strange.answers = [OK_STATUS, *[(status, body)] * 20]
    with pytest.raises(VerifierError) as raised:
        remote(f"http://127.0.0.1:{strange.server_port}").verify(*make_kernel())
    assert str(sentence) in str(raised.value)
    assert in_chinese(raised.value.sentence).endswith(chinese)
