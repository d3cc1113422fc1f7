"""Messages that no editor sends in an order that none chooses: edits, requests, malformed and cancelled ones,
ones said twice, answers to nothing. Afterwards each request has had exactly one answer, and the server knows
what a fresh one knows of the same documents.
"""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from evokernel_core.capture.finder import imports_torch
from tests.attacks.editor.test_protocol import MESSAGES, URI, framed, said, span
from tests.server.conftest import MODEL, SCRIPTED_WORKER

PAUSE_S = 0.2
BATCH = 500
"""Messages between two questions that are waited for, so that pipes never fill."""
SOFTMAX = "torch.softmax(x, dim=-1)"
_SCRIPTED = {"EVOKERNEL_WORKER_COMMAND": f"'{sys.executable}' '{SCRIPTED_WORKER}'"}
_METHODS = ("hover", "inlayHint", "codeAction", "codeLens", "diagnostic", "documentLink")
_JUNK: tuple[Any, ...] = (
    None,
    -1,
    1.5,
    10**400,
    "",
    "x" * 300,
    [],
    [[]],
    {},
    True,
    {"jsonrpc": "2.0", "id": 1},
)
_ANSWERS = {"result", "error"}
_CAPABILITIES = {
    "workspace": {
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


def opened(uri: str, text: str, version: int = 1) -> bytes:
    item = {"uri": uri, "languageId": "python", "version": version, "text": text}
    return said("textDocument/didOpen", {"textDocument": item})


def changed(uri: str, version: int, *changes: Mapping[str, Any]) -> bytes:
    params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
    return said("textDocument/didChange", params)


def bodies(data: bytes) -> Iterator[bytes]:
    """The bodies of framed messages."""
    while data:
        header, _, rest = data.partition(b"\r\n\r\n")
        length = next(int(x.split(b":")[1]) for x in header.split(b"\r\n") if x.startswith(b"Content-Length"))
        yield rest[:length]
        data = rest[length:]


def answers_due(data: bytes) -> Iterator[Any]:
    """The ids of the answers that JSON-RPC asks for: None where a message has no id that can be used."""
    for body in bodies(data):
        if not body:
            continue  # a message of no bytes is none
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            yield None
            continue
        if not isinstance(message, dict):
            yield None
            continue
        number = message.get("id")
        usable = isinstance(number, int | str) and not isinstance(number, bool)
        is_well_formed = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str)
        if "id" in message and not usable:
            if "method" in message:
                yield None
        elif is_well_formed:
            if usable:
                yield number
        elif (
            "method" in message or message.get("jsonrpc") != "2.0" or not {"result", "error"} & message.keys()
        ):
            yield number


class Scribe:
    """Random messages, and the text that the valid edits among them leave."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri, self.text, self.version = uri, MODEL, 1
        self._rng, self._answering = random.Random(seed), random.Random(seed)
        self._number = 0
        self._last = b""

    def messages(self, count: int) -> Iterator[bytes]:
        kinds = (self._edit, self._request, self._cancelled, self._hostile, self._reopen, self._malformed,
                 self._again, self._answer)  # fmt: skip
        weights = (40, 22, 14, 6, 1, 10, 5, 2)
        for _ in range(count):
            yield self._rng.choices(kinds, weights)[0]()
        while self.text == MODEL or SOFTMAX not in self.text or not imports_torch(self.text):
            yield self._edit()  # so that there are hints to compare

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

    def _asking(self) -> dict[str, Any]:
        self._number += 1
        line, far = self._rng.randint(0, 80), self._rng.choice((0, 5, 10**6, 2**31 - 1))
        params = {
            "textDocument": {"uri": self._rng.choice((self.uri, self.uri, "file:///no/such.py"))},
            "position": {"line": line, "character": far}, "range": span(line, 0, line + far % 99, far),
            "context": {"diagnostics": []}, "previousResultId": "0",
        }  # fmt: skip
        method = f"textDocument/{self._rng.choice(_METHODS)}"
        return {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}

    def _request(self) -> bytes:
        self._last = _written(self._asking())
        return self._last

    def _cancelled(self) -> bytes:
        """A request and its cancellation, before it, behind it or of another one."""
        request = self._request()
        cancel = said("$/cancelRequest", {"id": self._number - self._rng.choice((0, 0, 1, 50))})
        return cancel + request if self._rng.random() < 0.3 else request + cancel

    def _malformed(self) -> bytes:
        """A request of which something is missing, of another kind or in another place."""
        message = self._asking()
        inside = self._rng.choice((message, message["params"], message["params"]["textDocument"]))
        key = self._rng.choice(list(inside))
        if self._rng.random() < 0.3:
            del inside[key]
        else:
            inside[key] = self._rng.choice(_JUNK)
        data = _written(message)
        is_cut = self._rng.random() < 0.1
        return framed(data.partition(b"\r\n\r\n")[2][: -self._rng.randint(1, 40)]) if is_cut else data

    def _again(self) -> bytes:
        """The last request once more, with the same id."""
        return self._last or self._request()

    def _answer(self) -> bytes:
        """An answer that nobody waits for, also to a request of the client's own."""
        number = self._rng.choice((self._number, "own-1", "never", 0))
        kind = self._rng.choice(({"result": self._rng.choice(_JUNK)}, {"error": self._rng.choice(_JUNK)}))
        return _written({"jsonrpc": "2.0", "id": number, **kind})

    def answers(self, message: Mapping[str, Any]) -> list[bytes]:
        """What is said to a request of the server's: well, twice, wrongly, or as an error."""
        good = _written({"jsonrpc": "2.0", "id": message["id"], "result": None})
        bad = _written({"jsonrpc": "2.0", "id": message["id"], "error": {"code": "x"}})
        no = _written({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "no"}})
        return self._answering.choice(([good], [good, good], [bad, good], [no]))  # on the reader's thread

    def _hostile(self) -> bytes:
        return self._rng.choice(list(MESSAGES.values()))

    def _reopen(self) -> bytes:
        """Closed and opened again, sometimes opened twice."""
        self.version = 1
        closed = said("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        twice = opened(self.uri, "import torch\n") if self._rng.random() < 0.5 else b""
        return twice + closed + closed + opened(self.uri, self.text)


def _written(message: Mapping[str, Any]) -> bytes:
    return framed(json.dumps(message).encode())


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def fuzz(path: Path, home: Path, count: int, seed: int) -> dict[str, Any]:
    """Sends ``count`` random messages about a file, which holds MODEL; counts what was answered, and compares
    everything that can be asked with a fresh server's answers."""
    scribe, wire = Scribe(path.as_uri(), seed), Wire(home, _CAPABILITIES)
    wire.answer_with = scribe.answers
    wire.send(opened(URI, "import torch\n") + opened(scribe.uri, MODEL))
    before, sent, due = wire.mib(), 0, Counter[Any]()
    for number, data in enumerate(scribe.messages(count)):
        wire.send(data)
        sent += max(1, data.count(b"Content-Length"))
        due.update(answers_due(data))
        if number % BATCH == 0:
            wire.status()
    wire.send(said("textDocument/didClose", {"textDocument": {"uri": URI}}))
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
        "messages": sent, "seed": seed, "requests": due.total(), "unanswered": missing.total(),
        "answered_twice": doubled.total(), "equal_to_a_fresh_server": equal, "hints": len(kept["hints"]),
        "rss_mib_before": round(before, 1), "rss_mib": round(after, 1),
    }  # fmt: skip


def _knowledge(wire: Wire, scribe: Scribe) -> dict[str, Any]:
    """Everything that can be asked about a document once its capture has ended: it is saved, put in front,
    and given more than the pause after which a capture begins."""
    saved = said("textDocument/didSave", {"textDocument": {"uri": scribe.uri}})
    wire.send(saved + said("evokernel/activeDocument", {"uri": scribe.uri}))
    time.sleep(5 * PAUSE_S)
    while wire.status()["mode"] in ("analysing", "busy"):
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
    }  # fmt: skip


def _unnumbered(found: Any) -> Any:
    """Without the versions of the text, which a fresh server counts anew."""
    if isinstance(found, list):
        return [_unnumbered(item) for item in found]
    if isinstance(found, dict):
        return {key: _unnumbered(value) for key, value in found.items() if key != "version"}
    return found


def main() -> None:
    """``python -m tests.server.fuzzing [MESSAGES] [SEED]``: prints figures; fails where something is lost."""
    import tempfile

    count, seed = (int(item) for item in [*sys.argv[1:3], *("100000", "20")[len(sys.argv) - 1 :]])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "model.py"
        path.write_text(MODEL, "utf-8")
        began = time.monotonic()
        seen = fuzz(path, Path(folder) / "home", count, seed)
    figures = ", ".join(f"{key} {value}" for key, value in seen.items())
    print(f"{figures}, seconds {time.monotonic() - began:.0f}")
    if seen["unanswered"] or seen["answered_twice"] or not seen["equal_to_a_fresh_server"]:
        raise SystemExit("A message was lost, or the server knows something else than a fresh one.")


if __name__ == "__main__":
    main()
