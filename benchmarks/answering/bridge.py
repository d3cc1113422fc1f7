"""An OpenAI-compatible endpoint on loopback whose answers are files (questions.py): chat completions.

``/TASK/v1`` is the endpoint for a task, so that those of several tasks may wait side by side. An answer is
known by the content of its question: who asks the same again, also after a restart, gets it at once.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.answering.questions import Answer, Questions, answers, text_of

PATH = re.compile(r"/([\w.-]+)/v1/chat/completions")
POLL_S, COMMENT_S = 0.2, 5.0
"""How often files are looked for, and a client is told that somebody still thinks."""
_PIECE = 4_000


@contextmanager
def serving(folder: Path, port: int = 0, *, structured: bool = False) -> Iterator[str]:
    """The address of the bridge, to which ``/TASK/v1`` is added. Without ``structured`` it says that it has
    no structured output, and questions ask for plain files, which are easier to write by hand than JSON."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(Questions(folder), structured))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(questions: Questions, structured: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            path = PATH.fullmatch(self.path)
            form = body.get("response_format")
            if path is None:
                self._send(404, {"error": {"message": "no such path; ask /TASK/v1/chat/completions"}})
            elif form and not structured:
                self._send(400, {"error": {"message": "response_format is not known"}})
            else:
                text = text_of(body["messages"], form and form["json_schema"]["schema"])
                self._answer(questions.add(path[1], text), body)

        def _answer(self, place: Path, body: dict[str, Any]) -> None:
            samples, stream = body.get("n", 1), bool(body.get("stream"))
            if stream:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
            try:
                given = self._awaited(place, samples, stream)
                if stream:
                    for event in _events(given):
                        self.wfile.write(f"data: {event}\n\n".encode())
                else:
                    self._send(200, {"choices": [_choice(n, answer) for n, answer in enumerate(given)]})
            except OSError:  # nobody waits any more; the answer will be there when it is asked for again
                pass
            self.close_connection = True

        def _awaited(self, place: Path, samples: int, stream: bool) -> tuple[Answer, ...]:
            """Raises OSError where the client of a stream has gone."""
            told = time.monotonic()
            while len(given := tuple(islice(answers(place), samples))) < samples:
                time.sleep(POLL_S)
                if stream and time.monotonic() - told > COMMENT_S:
                    told = time.monotonic()
                    self.wfile.write(b": waiting\n\n")
            return given

        def _send(self, status: int, body: dict[str, Any]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Says nothing: the files say what was asked."""

    return Handler


def _choice(index: int, answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text}
    return {"index": index, "finish_reason": answer.finish, "message": message}


def _events(given: tuple[Answer, ...]) -> Iterator[str]:
    """The chunks of a stream; tokens are not counted, and so the client estimates them."""
    for index, answer in enumerate(given):
        pieces = [answer.text[start : start + _PIECE] for start in range(0, len(answer.text), _PIECE)]
        for piece in pieces or [""]:
            yield json.dumps({"choices": [{"index": index, "delta": {"content": piece}}]})
        yield json.dumps({"choices": [{"index": index, "delta": {}, "finish_reason": answer.finish}]})
    yield "[DONE]"
