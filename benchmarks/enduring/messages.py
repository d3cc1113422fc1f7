"""A hundred thousand messages: edits alone, whose memory must stay flat; then everything in any order, after
which the server must know what a fresh one knows."""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from enduring.editors import MODEL, SCRIPTED, Place
from evokernel_core.capture.finder import imports_torch
from tests.attacks.editor.test_protocol import MESSAGES, URI, said, span

_PAUSE_S = 0.2
_BATCH = 500
"""Messages between two questions that are waited for, so that pipes never fill."""
SOFTMAX = "torch.softmax(x, dim=-1)"
_METHODS = ("hover", "inlayHint", "codeAction", "codeLens")


class Wire:
    """A server and its pipe. Everything that it sends is read on a thread, answers are kept by number."""

    def __init__(self, place: Place) -> None:
        own = {"EVOKERNEL_HOME": str(place.home), "EVOKERNEL_LOG": "CRITICAL"}
        environment = {**os.environ, **SCRIPTED, **own}
        command = [str(Path(sys.executable).with_name("evokernel")), "lsp"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._answers: dict[str, queue.Queue[Any]] = {}
        self._asked = 0
        threading.Thread(target=self._read, daemon=True).start()
        options = {"settings": {"pauseS": _PAUSE_S}, "trusted": True}
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {},
                                "initializationOptions": options})  # fmt: skip
        self.send(said("initialized", {}))

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any, seconds: float = 120.0) -> Any:
        """The result, or the error, of a request."""
        self._asked += 1
        number = f"benchmark-{self._asked}"
        self._answers[number] = queue.Queue()
        self.send(said(method, params, number))
        message = self._answers[number].get(timeout=seconds)
        del self._answers[number]
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
            message = json.loads(self.process.stdout.read(length))
            waiting = self._answers.get(str(message.get("id")))
            if waiting is not None and "method" not in message:
                waiting.put(message)

    def status(self) -> Any:
        return self.ask("workspace/executeCommand", {"command": "evokernel.status", "arguments": []})

    def mib(self) -> float:
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def opened(uri: str, text: str, version: int = 1) -> bytes:
    item = {"uri": uri, "languageId": "python", "version": version, "text": text}
    return said("textDocument/didOpen", {"textDocument": item})


def changed(uri: str, version: int, *changes: Mapping[str, Any]) -> bytes:
    params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
    return said("textDocument/didChange", params)


def flat_memory(place: Place, edits: int) -> dict[str, Any]:
    """Types a sign and takes it back, ``edits`` times; MiB after a tenth of them and at the end."""
    wire, uri = Wire(place), place.model("model.py").as_uri()
    wire.send(opened(uri, MODEL))
    early = 0.0
    for number in range(edits):
        typed = number % 2 == 0
        where = span(1, 0, 1, 0) if typed else span(1, 0, 1, 1)
        wire.send(changed(uri, number + 2, {"range": where, "text": "#" if typed else ""}))
        if number % _BATCH == 0:
            wire.status()
        if number == edits // 10:
            early = wire.mib()
    wire.status()
    late = wire.mib()
    wire.end()
    return {
        "edits": edits, "rss_mib_after_a_tenth": round(early, 1), "rss_mib": round(late, 1),
        "bytes_per_edit": round((late - early) * 2**20 / (0.9 * edits), 1),
    }  # fmt: skip


class Scribe:
    """Random messages, and the text that the valid edits among them leave."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri, self.text, self.version = uri, MODEL, 1
        self._rng = random.Random(seed)
        self._number = 0

    def messages(self, count: int) -> Iterator[bytes]:
        kinds = (self._edit, self._request, self._cancelled, self._hostile, self._reopen)
        weights = (50, 25, 15, 9, 1)
        for _ in range(count):
            yield self._rng.choices(kinds, weights)[0]()
        while (
            self.text == MODEL or SOFTMAX not in self.text or not imports_torch(self.text)
        ):  # so that there are hints to compare
            yield self._edit()

    def _edit(self) -> bytes:
        """One or two changes of single characters, which the protocol counts in UTF-16."""
        changes = [self._change() for _ in range(self._rng.randint(1, 2))]
        self.version += self._rng.choice((1, 1, 1, 5, 0))  # versions that jump or stay are taken as they come
        return changed(self.uri, self.version, *changes)

    def _change(self) -> dict[str, Any]:
        lines = self.text.split("\n")
        number = self._rng.randrange(len(lines))
        line = lines[number]
        at = self._rng.randint(0, len(line))
        typed = self._rng.choice(("#", " ", "x", "µ", "😀", "(", ")", "\n", "", "", ""))
        end = min(len(line), at + (typed == "" or self._rng.random() < 0.2))
        lines[number] = line[:at] + typed + line[end:]
        if len(self.text) > 4_000 or self._rng.random() < 0.01:
            self.text = MODEL
            return {"text": MODEL}
        where = span(number, _units(line[:at]), number, _units(line[:end]))
        self.text = "\n".join(lines)
        return {"range": where, "text": typed}

    def _request(self) -> bytes:
        self._number += 1
        line, far = self._rng.randint(0, 80), self._rng.choice((0, 5, 10**6, 2**31 - 1))
        params = {
            "textDocument": {"uri": self._rng.choice((self.uri, self.uri, "file:///no/such.py"))},
            "position": {"line": line, "character": far}, "range": span(line, 0, line + far % 99, far),
            "context": {"diagnostics": []},
        }  # fmt: skip
        return said(f"textDocument/{self._rng.choice(_METHODS)}", params, self._number)

    def _cancelled(self) -> bytes:
        """A request and its cancellation, before it, behind it or of another one."""
        request = self._request()
        cancel = said("$/cancelRequest", {"id": self._number - self._rng.choice((0, 0, 1, 50))})
        return cancel + request if self._rng.random() < 0.3 else request + cancel

    def _hostile(self) -> bytes:
        return self._rng.choice(list(MESSAGES.values()))

    def _reopen(self) -> bytes:
        """Closed and opened again, sometimes opened twice."""
        self.version = 1
        closed = said("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        twice = opened(self.uri, "import torch\n") if self._rng.random() < 0.5 else b""
        return twice + closed + closed + opened(self.uri, self.text)


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def random_messages(place: Place, count: int, seed: int = 20) -> dict[str, Any]:
    """Sends them all, then compares everything that can be asked with a fresh server's answers."""
    path = place.model("model.py")
    scribe, wire = Scribe(path.as_uri(), seed), Wire(place)
    wire.send(opened(URI, "import torch\n") + opened(scribe.uri, MODEL))
    before, sent = wire.mib(), 0
    for number, data in enumerate(scribe.messages(count)):
        wire.send(data)
        sent += max(1, data.count(b"Content-Length"))
        if number % _BATCH == 0:
            wire.status()
    wire.send(said("textDocument/didClose", {"textDocument": {"uri": URI}}))
    kept = _knowledge(wire, scribe)
    after = wire.mib()
    wire.end()
    fresh = Wire(place)
    fresh.send(opened(scribe.uri, scribe.text))
    equal = _knowledge(fresh, scribe) == kept
    fresh.end()
    return {"messages": sent, "seed": seed, "equal_to_a_fresh_server": equal, "hints": len(kept["hints"]),
            "rss_mib_before": round(before, 1), "rss_mib": round(after, 1)}  # fmt: skip


def _knowledge(wire: Wire, scribe: Scribe) -> dict[str, Any]:
    """Everything that can be asked about a document once its capture has ended: it is saved, put in front,
    and given more than the pause after which a capture begins."""
    saved = said("textDocument/didSave", {"textDocument": {"uri": scribe.uri}})
    wire.send(saved + said("evokernel/activeDocument", {"uri": scribe.uri}))
    time.sleep(5 * _PAUSE_S)
    while wire.status()["mode"] in ("analysing", "busy"):
        pass
    document = {"textDocument": {"uri": scribe.uri}}
    whole = span(0, 0, 10**6, 0)
    lines = len(scribe.text.split("\n"))
    places = [{"line": line, "character": character} for line in range(lines) for character in (0, 12, 40)]
    status, context = wire.status(), {"context": {"diagnostics": []}}
    return {
        "hints": wire.ask("textDocument/inlayHint", {**document, "range": whole}),
        "actions": wire.ask("textDocument/codeAction", {**document, "range": whole, **context}),
        "hovers": [wire.ask("textDocument/hover", {**document, "position": place}) for place in places],
        "status": [status["mode"], status["text"]],
    }  # fmt: skip
