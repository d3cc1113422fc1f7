"""A mock of a paid model: an HTTP server on loopback that speaks both OpenAI protocols with prepared answers.

    python -m tests.synthesis.endpoint PORT NAME...

serves the recordings of those names in turn, the last one for ever. A recording is a JSON file in
``endpoint_recordings``: ``status``, ``headers``, and either ``body`` (JSON) or ``raw`` (text);
``content`` stands for a chat completion with that text, whose usage is ``tokens``; ``kernel`` for a
completion whose text is the JSON of the two files. ``delay`` is seconds before the answer.

A completion is sent in the protocol that is asked for, and as a stream where one is asked for: ``thoughts``
before its words, ``pause`` seconds after each event, ``whole`` for an endpoint that does not stream,
``events`` for so many and then the end of the connection.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from evokernel_core.targets.ascendc.source import KERNEL, TILING
from tests.synthesis import wire

RECORDINGS = Path(__file__).parent / "endpoint_recordings"

Recording = dict[str, Any]


def recording(name: str) -> Recording:
    """The prepared answer of that name."""
    loaded: Recording = json.loads((RECORDINGS / f"{name}.json").read_text())
    return loaded


def completion(
    content: str | None, tokens: int | None = 1000, finish: str = "stop", others: Iterable[str] = ()
) -> Recording:
    """A chat completion, with further choices where there are ``others``; ``tokens`` None: no usage."""
    body: dict[str, Any] = {
        "id": "chatcmpl-recorded",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": "recorded",
        "choices": [
            {"index": index, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
            for index, text in enumerate((content, *others))
        ],
    }
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens}
    return {"body": body}


def kernel_text(tiling: str, kernel: str, notes: Iterable[str] = ()) -> str:
    """The text of a good answer with these files."""
    return json.dumps({"files": {TILING: tiling, KERNEL: kernel}, "notes": list(notes)})


class RecordedEndpoint:
    """Serves ``answers`` in turn; keeps what it was asked in ``requests``, ``asked`` (paths) and ``headers``.
    ``protocols`` are the paths that it has; ``left`` is set once a client closed its connection early."""

    def __init__(
        self, *answers: Recording, port: int = 0, protocols: Iterable[str] = ("chat/completions", "responses")
    ) -> None:
        self.answers = [_complete(answer) for answer in answers]
        self.paths = tuple(f"/v1/{name}" for name in protocols)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.asked: list[str] = []
        self.left = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> RecordedEndpoint:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def next(self) -> Recording:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def _complete(answer: Recording) -> Recording:
    if "kernel" in answer:
        answer = answer | {"content": json.dumps(answer["kernel"])}
    if "content" in answer:
        return answer | completion(answer["content"], answer.get("tokens", 1000))
    return answer


def _handler(endpoint: RecordedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            if len(body) < length:
                endpoint.left.set()
                self.close_connection = True
                return
            request = json.loads(body)
            endpoint.asked.append(self.path)
            if self.path not in endpoint.paths:
                self._send({"status": 404, "body": {"error": {"message": "no such path"}}})
                return
            endpoint.requests.append(request)
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = endpoint.next()
            if not self._stays(answer.get("delay", 0)):
                return
            if answer.get("status", 200) == 200 and wire.is_completion(answer.get("body")):
                self._complete(request, answer)
            else:
                self._send(answer)

        def _complete(self, request: dict[str, Any], answer: Recording) -> None:
            body, thoughts = answer["body"], answer.get("thoughts", "")
            chat = self.path == "/v1/chat/completions"
            if not request.get("stream") or answer.get("whole"):
                self._send({"body": body if chat else wire.responses_body(body, thoughts)})
            elif chat:
                counted = bool((request.get("stream_options") or {}).get("include_usage"))
                self._stream(wire.chat_stream(body, thoughts=thoughts, counted=counted), answer)
            else:
                self._stream(wire.responses_stream(body, thoughts=thoughts), answer)

        def _stream(self, events: Iterable[str], answer: Recording) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for number, event in enumerate(events):
                    if number == answer.get("events") or not self._stays(answer.get("pause", 0)):
                        self.close_connection = True
                        return
                    self._chunk(event.encode())
                self._chunk(b"")
            except OSError:
                endpoint.left.set()
                self.close_connection = True

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _stays(self, seconds: float) -> bool:
            """Waits; whether the client is still there then."""
            with contextlib.suppress(OSError):
                readable, _, _ = select.select([self.connection], [], [], seconds)
                if not readable or self.connection.recv(1, socket.MSG_PEEK):
                    return True
            endpoint.left.set()
            self.close_connection = True
            return False

        def _send(self, answer: Recording) -> None:
            raw = answer["raw"] if "raw" in answer else json.dumps(answer["body"])
            data = raw if isinstance(raw, bytes) else raw.encode()
            self.send_response(answer.get("status", 200))
            headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
            for name, value in (headers | answer.get("headers", {})).items():
                self.send_header(name, value)
            self.end_headers()
            for _ in range(answer.get("repeat", 1)):
                self._write(data, answer.get("drip", 0))

        def _write(self, data: bytes, drip: float) -> None:
            """All at once, or a byte every ``drip`` seconds; the other side may leave at any time."""
            try:
                if not drip:
                    self.wfile.write(data)
                for byte in data if drip else b"":
                    time.sleep(drip)
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler


if __name__ == "__main__":
    with RecordedEndpoint(*map(recording, sys.argv[2:]), port=int(sys.argv[1])) as served:
        print(served.url, flush=True)
        threading.Event().wait()
