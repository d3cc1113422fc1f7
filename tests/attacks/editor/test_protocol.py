"""Messages that no editor sends want the server to die, to hang, or to tell what it should not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attacks import Attack, each

EVOKERNEL = str(Path(sys.executable).with_name("evokernel"))
PATIENCE_S = 60.0
URI = "file:///work/model.py"
TEXT = "import torch\n\ndef f(x):\n    return torch.relu(x)  # 😀\n"
FAR, BELOW = 2**31 - 1, -5


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def said(method: str, params: Any, number: Any = None) -> bytes:
    data = {"jsonrpc": "2.0", "method": method, "params": params}
    return framed(json.dumps(data if number is None else data | {"id": number}).encode())


class Raw:
    """A server and its pipe, with nothing in between that would keep a message from it."""

    def __init__(self, home: Path) -> None:
        environment = {**os.environ, "EVOKERNEL_HOME": str(home)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [EVOKERNEL, "lsp"], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )
        threading.Thread(target=self._drain, daemon=True).start()
        self._last = 0
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        self.send(said("initialized", {}))
        item = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT}
        self.send(said("textDocument/didOpen", {"textDocument": item}))

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for _ in self.process.stderr:
            pass

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """The answer, whatever else arrives before it."""
        self._last += 1
        number = f"asked-{self._last}"
        self.send(said(method, params, number))
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        try:
            while (message := self._read()).get("id") != number:
                pass
        finally:
            watchdog.cancel()
        return message

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()).strip():
            if line.lower().startswith(b"content-length"):
                length = int(line.split(b":")[1])
        assert length, "the server is gone"
        return dict(json.loads(self.process.stdout.read(length)))

    def works(self) -> bool:
        """Whether it still does what it is for."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        hints = self.ask("textDocument/inlayHint", {"textDocument": {"uri": URI}, "range": whole})["result"]
        return [item["label"] for item in hints] == ["⚡ not trusted"]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Raw]:
    raw = Raw(tmp_path_factory.mktemp("home"))
    yield raw
    raw.end()


def span(line: int, character: int, end_line: int, end_character: int) -> dict[str, Any]:
    start = {"line": line, "character": character}
    return {"start": start, "end": {"line": end_line, "character": end_character}}


def at(method: str, line: int, character: int) -> bytes:
    params = {"textDocument": {"uri": URI}, "position": {"line": line, "character": character}}
    return said(method, params, 1)


def actions(where: dict[str, Any]) -> bytes:
    params = {"textDocument": {"uri": URI}, "range": where, "context": {"diagnostics": []}}
    return said("textDocument/codeAction", params, 2)


def run(name: str, *arguments: Any) -> bytes:
    return said("workspace/executeCommand", {"command": name, "arguments": list(arguments)}, 3)


def change(version: Any, *changes: Any, uri: str = URI) -> bytes:
    params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
    return said("textDocument/didChange", params)


def undone(*changes: Any) -> bytes:
    """A change, then the text as it was: what is asked afterwards is about the same text."""
    return change(2, *changes) + change(3, {"text": TEXT})


DEEP = b"[" * 200_000 + b"]" * 200_000
ALIVE = "it goes on and answers the next request"
MESSAGES = {
    "far-position": at("textDocument/hover", FAR, FAR),
    "negative-position": at("textDocument/hover", BELOW, BELOW),
    "position-of-words": said("textDocument/hover", {"textDocument": {"uri": URI}, "position": "x"}, 1),
    "fraction": at("textDocument/hover", 1.5, 2.5),  # type: ignore[arg-type]
    "huge-number": at("textDocument/hover", 10**400, 10**400),
    "far-range": actions(span(0, 0, FAR, FAR)),
    "reversed-range": actions(span(3, 9, 0, 0)),
    "negative-range": actions(span(BELOW, BELOW, BELOW, BELOW)),
    "far-change": undone({"range": span(FAR, FAR, FAR, FAR), "text": "x"}),
    "reversed-change": undone({"range": span(3, 9, 0, 0), "text": "x"}),
    "negative-change": undone({"range": span(BELOW, 0, BELOW, 3), "text": "x"}),
    "inside-a-pair": undone({"range": span(3, 29, 3, 30), "text": "\ud83d"}),
    "lone-surrogates": undone({"text": "import torch\n\udfff\ud800" * 100}),
    "version-of-words": change("new", {"text": TEXT}),
    "change-of-a-closed-file": change(9, {"text": "import torch"}, uri="file:///work/closed.py"),
    "deep-json": framed(b'{"jsonrpc":"2.0","method":"textDocument/hover","id":7,"params":' + DEEP + b"}"),
    "deep-argument": run("evokernel.status", json.loads("[" * 500 + "]" * 500)),
    "no-json": framed(b"not json at all"),
    "no-text": framed(b"\xff\xfe\x00\x80"),
    "empty-body": framed(b""),
    "batch": framed(b"[]") + framed(b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]'),
    "no-object": framed(b"7") + framed(b"null") + framed(b'"shutdown"'),
    "no-version": framed(b'{"id":1,"method":"textDocument/hover","params":{}}'),
    "answer-to-nothing": framed(b'{"jsonrpc":"2.0","id":"never-asked","result":{"applied":true}}'),
    "error-to-nothing": framed(b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}'),
    "cancel-of-nothing": said("$/cancelRequest", {"id": "never-asked"}),
    "unknown-request": said("evokernel/readFile", {"uri": "file:///etc/passwd"}, 4),
    "unknown-notification": said("$/evil", {"a": 1}),
    "initialize-again": said("initialize", {"processId": None, "rootUri": None, "capabilities": {},
                             "initializationOptions": {"trusted": True}}, 5),
    "options-of-words": said("workspace/didChangeConfiguration", {"settings": "trusted"}),
    "command-without-arguments": run("evokernel.generate"),
    "command-of-numbers": run("evokernel.revert", {"uri": 7, "name": [1]}),
    "command-of-a-list": run("evokernel.trust", ["file:///"]),
    "name-that-climbs": run("evokernel.revert", {"uri": URI, "name": "../../../../etc/passwd"}),
    "name-with-zero": run("evokernel.restorePackage", {"uri": URI, "name": "a\0b"}),
    "active-document-of-numbers": said("evokernel/activeDocument", 7),
    "many-headers": b"X-Header: 1\r\n" * 2_000 + said("$/evil", {}),
    "folders-of-nowhere": said("workspace/didChangeWorkspaceFolders", {"event": {"added": [
                               {"uri": "untitled:x", "name": "x"}, {"uri": "", "name": ""}], "removed": []}}),
}  # fmt: skip


@each([Attack(name, "the server to die or hang", ALIVE, data) for name, data in MESSAGES.items()])
def test_a_message_that_no_editor_sends(attack: Attack, server: Raw) -> None:
    server.send(attack.given)
    assert server.works()


def test_initialize_again_does_not_trust(server: Raw) -> None:
    """Wants to become trusted by a second ``initialize``."""
    server.send(MESSAGES["initialize-again"])
    assert server.works()
    status = server.ask("workspace/executeCommand", {"command": "evokernel.status", "arguments": []})
    assert status["result"]["mode"] == "offline"


def test_nothing_of_a_file_is_told(server: Raw) -> None:
    """Wants the text of a file that is not open, by each request that names a URI."""
    other = {"textDocument": {"uri": "file:///etc/passwd"}}
    place = {"line": 0, "character": 0}
    for method, rest in {
        "textDocument/hover": {"position": place},
        "textDocument/inlayHint": {"range": span(0, 0, 9, 0)},
        "textDocument/codeAction": {"range": span(0, 0, 9, 0), "context": {"diagnostics": []}},
        "textDocument/codeLens": {},
    }.items():
        answer = server.ask(method, {**other, **rest})
        assert not answer.get("result") and "root:" not in json.dumps(answer)
