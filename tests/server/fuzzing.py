"""Messages that no editor sends in an order that none chooses: edits, requests, malformed and cancelled ones,
ones said twice, answers to nothing. Afterwards each request has had exactly one answer, and the server knows
what a fresh one knows of the same documents.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from tests.attacks.editor.test_protocol import URI, said, span
from tests.server.conftest import MODEL, SCRIPTED_WORKER
from tests.server.scribe import Scribe, opened
from tests.server.wide_scribe import CELLS, OTHERS, WideScribe

PAUSE_S = 0.2
BATCH = 500
"""Messages between two questions that are waited for, so that pipes never fill."""
MIXES: Mapping[str, type[Scribe]] = {"plain": Scribe, "wide": WideScribe}
_BUSY = ("analysing", "busy", "queued")
_SCRIPTED = {"EVOKERNEL_WORKER_COMMAND": f"'{sys.executable}' '{SCRIPTED_WORKER}'"}
_CAPABILITIES = {
    "workspace": {
        "applyEdit": True,
        "inlayHint": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
        "diagnostics": {"refreshSupport": True},
    },
    "textDocument": {"diagnostic": {}},
}


class Wire:
    """A server and its pipe. Everything that it sends is read on a thread. ``answered`` counts its answers by
    id; its own requests are answered by ``answer_with``, which gives the messages to send for one."""

    def __init__(self, home: Path, capabilities: Mapping[str, Any] | None = None) -> None:
        own = {"EVOKERNEL_HOME": str(home), "EVOKERNEL_LOG": "CRITICAL"}
        environment = {**os.environ, **_SCRIPTED, **own}
        command = [str(Path(sys.executable).with_name("evokernel")), "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self.answered: Counter[Any] = Counter()
        self.answer_with: Any = lambda message: ()
        self._waiting: dict[str, queue.Queue[Any]] = {}
        self._asked = 0
        self._writing = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()
        options = {"settings": {"pauseS": PAUSE_S}, "trusted": True}
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": capabilities or {},
                                "initializationOptions": options})  # fmt: skip
        self.send(said("initialized", {}))

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        with self._writing:
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def ask(self, method: str, params: Any, seconds: float = 120.0) -> Any:
        """The result, or the error, of a request."""
        self._asked += 1
        number = f"own-{self._asked}"
        self._waiting[number] = queue.Queue()
        self.send(said(method, params, number))
        message = self._waiting[number].get(timeout=seconds)
        del self._waiting[number]
        return message.get("result", message.get("error"))

    def _read(self) -> None:
        assert self.process.stdout is not None
        while True:
            length = 0
            while (line := self.process.stdout.readline()).strip():
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self._take(json.loads(self.process.stdout.read(length)))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            for data in self.answer_with(message) if "id" in message else ():
                self.send(data)
        elif (waiting := self._waiting.get(str(message["id"]))) is not None:
            waiting.put(message)
        else:
            self.answered[message["id"]] += 1

    def status(self) -> Any:
        return self.ask("workspace/executeCommand", {"command": "evokernel.status", "arguments": []})

    def mib(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def fuzz(path: Path, home: Path, count: int, seed: int, mix: str = "plain") -> dict[str, Any]:
    """Sends ``count`` random messages about a file, which holds MODEL; counts what was answered, and compares
    everything that can be asked with a fresh server's answers."""
    scribe, wire = MIXES[mix](path.as_uri(), seed), Wire(home, _CAPABILITIES)
    wire.answer_with = scribe.answers
    wire.send(opened(URI, "import torch\n") + opened(scribe.uri, MODEL))
    before, sent, due = wire.mib(), 0, Counter[Any]()
    for number, message in enumerate(scribe.messages(count)):
        wire.send(message.data)
        sent += max(1, message.data.count(b"Content-Length"))
        due.update(message.due)
        if number % BATCH == 0:
            wire.status()
    for uri in {URI, *OTHERS, *CELLS}:
        wire.send(said("textDocument/didClose", {"textDocument": {"uri": uri}}))
    kept = _knowledge(wire, scribe)
    end = time.monotonic() + 60.0
    while wire.answered != due and time.monotonic() < end:
        time.sleep(0.1)
    after, missing, doubled = wire.mib(), due - wire.answered, wire.answered - due
    wire.end()
    fresh = Wire(home, _CAPABILITIES)
    fresh.answer_with = scribe.answers
    fresh.send(opened(scribe.uri, scribe.text))
    equal = _knowledge(fresh, scribe) == kept
    fresh.end()
    return {
        "messages": sent, "seed": seed, "mix": mix, "requests": due.total(), "unanswered": missing.total(),
        "answered_twice": doubled.total(), "equal_to_a_fresh_server": equal, "hints": len(kept["hints"]),
        "rss_mib_before": round(before, 1), "rss_mib": round(after, 1),
    }  # fmt: skip


def _knowledge(wire: Wire, scribe: Scribe) -> dict[str, Any]:
    """Everything that can be asked about a document once its capture has ended: it is saved, put in front,
    and given more than the pause after which a capture begins."""
    saved = said("textDocument/didSave", {"textDocument": {"uri": scribe.uri}})
    wire.send(saved + said("evokernel/activeDocument", {"uri": scribe.uri}))
    time.sleep(5 * PAUSE_S)
    while wire.status()["mode"] in _BUSY:
        time.sleep(0.05)
    document = {"textDocument": {"uri": scribe.uri}}
    whole = span(0, 0, 10**6, 0)
    lines = len(scribe.text.split("\n"))
    places = [{"line": line, "character": character} for line in range(lines) for character in (0, 12, 40)]
    status, context = wire.status(), {"context": {"diagnostics": []}}
    return {
        "hints": _unnumbered(wire.ask("textDocument/inlayHint", {**document, "range": whole})),
        "actions": _unnumbered(wire.ask("textDocument/codeAction", {**document, "range": whole, **context})),
        "diagnostics": wire.ask("textDocument/diagnostic", document)["items"],
        "links": wire.ask("textDocument/documentLink", document),
        "hovers": [wire.ask("textDocument/hover", {**document, "position": place}) for place in places],
        "status": [status["mode"], status["text"]],
        "waiting": [item for item in status["pending"] if item["uri"] == scribe.uri],
    }  # fmt: skip


def _unnumbered(found: Any) -> Any:
    """Without the versions of the text, which a fresh server counts anew."""
    if isinstance(found, list):
        return [_unnumbered(item) for item in found]
    if isinstance(found, dict):
        return {key: _unnumbered(value) for key, value in found.items() if key != "version"}
    return found


def main() -> None:
    """``python -m tests.server.fuzzing [MESSAGES] [SEED] [MIX]``: prints figures; fails where something is
    lost."""
    import tempfile

    count, seed, mix = [*sys.argv[1:4], *("100000", "20", "plain")[len(sys.argv) - 1 :]]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.py"
        path.write_text(MODEL, "utf-8")
        began = time.monotonic()
        seen = fuzz(path, Path(folder) / "home", int(count), int(seed), mix)
    figures = ", ".join(f"{key} {value}" for key, value in seen.items())
    print(f"{figures}, seconds {time.monotonic() - began:.0f}")
    if seen["unanswered"] or seen["answered_twice"] or not seen["equal_to_a_fresh_server"]:
        raise SystemExit("A message was lost, or the server knows something else than a fresh one.")


if __name__ == "__main__":
    main()
