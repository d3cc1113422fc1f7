"""A recorded endpoint: an HTTP server on loopback that speaks the OpenAI protocol with prepared answers.

    python -m tests.synthesis.endpoint PORT NAME...

serves the recordings of those names in turn, the last one for ever. A recording is a JSON file in
``endpoint_recordings``: ``status``, ``headers``, and either ``body`` (JSON) or ``raw`` (text);
``content`` stands for a chat completion with that text, whose usage is ``tokens``; ``kernel`` for a
completion whose text is the JSON of the two files. ``delay`` is seconds before the answer.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RECORDINGS = Path(__file__).parent / "endpoint_recordings"

Recording = dict[str, Any]


def recording(name: str) -> Recording:
    """The prepared answer of that name."""
    loaded: Recording = json.loads((RECORDINGS / f"{name}.json").read_text())
    return loaded


def completion(
    content: str | None, tokens: int | None = 1000, finish: str = "stop", **message: Any
) -> Recording:
    """A chat completion as the protocol has it; ``tokens`` None leaves the usage out."""
    body: dict[str, Any] = {
        "id": "chatcmpl-recorded",
        "object": "chat.completion",
        "created": 1_767_225_600,
        "model": "recorded",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content},
            }
        ],
    }
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens}
    return {"body": body}


def kernel_text(
    tiling_h: str, op_kernel_cpp: str, notes: Iterable[str] = (), used: Iterable[int] = ()
) -> str:
    """The text of a good answer with these files."""
    return json.dumps(
        {"tiling_h": tiling_h, "op_kernel_cpp": op_kernel_cpp, "notes": list(notes), "used": list(used)}
    )


class RecordedEndpoint:
    """Serves ``answers`` in turn and keeps what it was asked in ``requests`` and ``headers``."""

    def __init__(self, *answers: Recording, port: int = 0) -> None:
        self.answers = [_complete(answer) for answer in answers]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
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
        answer = answer | {"content": kernel_text(**answer["kernel"])}
    if "content" in answer:
        return answer | completion(answer["content"], answer.get("tokens", 1000))
    return answer


def _handler(endpoint: RecordedEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            endpoint.requests.append(json.loads(self.rfile.read(length)))
            endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
            answer = endpoint.next()
            time.sleep(answer.get("delay", 0))
            if self.path != "/v1/chat/completions":
                answer = {"status": 404, "body": {"error": {"message": "no such path"}}}
            self._send(answer)

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
