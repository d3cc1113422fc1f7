"""Who writes what no editor sends: random edits, requests, malformed and cancelled messages, ones said twice,
answers to nothing.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from evokernel_core.capture.finder import imports_torch
from tests.attacks.editor.test_protocol import MESSAGES, framed, said, span
from tests.server.conftest import MODEL

SOFTMAX = "torch.softmax(x, dim=-1)"
METHODS = ("hover", "inlayHint", "codeAction", "codeLens", "diagnostic", "documentLink")
JUNK: tuple[Any, ...] = (
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


def opened(uri: str, text: str, version: int = 1) -> bytes:
    item = {"uri": uri, "languageId": "python", "version": version, "text": text}
    return said("textDocument/didOpen", {"textDocument": item})


def changed(uri: str, version: int, *changes: Mapping[str, Any]) -> bytes:
    params = {"textDocument": {"uri": uri, "version": version}, "contentChanges": list(changes)}
    return said("textDocument/didChange", params)


@frozen
class Sent:
    """Bytes for the server, and the ids of the answers that are due for them."""

    data: bytes
    due: tuple[Any, ...]


def well_framed(data: bytes) -> Sent:
    return Sent(data, tuple(answers_due(data)))


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


Kinds = dict[Callable[[], bytes | Sent], float]


class Scribe:
    """Random messages, and the text that the valid edits among them leave."""

    def __init__(self, uri: str, seed: int) -> None:
        self.uri, self.text, self.version = uri, MODEL, 1
        self.rng, self._answering = random.Random(seed), random.Random(seed)
        self.number = 0
        self._last = b""

    def messages(self, count: int) -> Iterator[Sent]:
        kinds = self.kinds()
        for _ in range(count):
            made = self.rng.choices(tuple(kinds), tuple(kinds.values()))[0]()
            yield made if isinstance(made, Sent) else well_framed(made)
        while self.text == MODEL or SOFTMAX not in self.text or not imports_torch(self.text):
            yield well_framed(self._edit())  # so that there are hints to compare

    def kinds(self) -> Kinds:
        """What is written, and how often in comparison."""
        return {
            self._edit: 40, self.request: 22, self._cancelled: 14, self._hostile: 6, self._reopen: 1,
            self._malformed: 10, self._again: 5, self._answer: 2,
        }  # fmt: skip

    def _edit(self) -> bytes:
        """One or two changes of single characters, which the protocol counts in UTF-16."""
        changes = [self._change() for _ in range(self.rng.randint(1, 2))]
        self.version += self.rng.choice((1, 1, 1, 5, 0))  # versions that jump or stay are taken as they come
        return changed(self.uri, self.version, *changes)

    def _change(self) -> dict[str, Any]:
        lines = self.text.split("\n")
        number = self.rng.randrange(len(lines))
        line = lines[number]
        at = self.rng.randint(0, len(line))
        typed = self.rng.choice(("#", " ", "x", "µ", "😀", "(", ")", "\n", "", "", ""))
        end = min(len(line), at + (typed == "" or self.rng.random() < 0.2))
        lines[number] = line[:at] + typed + line[end:]
        if len(self.text) > 4_000 or self.rng.random() < 0.01:
            self.text = MODEL
            return {"text": MODEL}
        where = span(number, units(line[:at]), number, units(line[:end]))
        self.text = "\n".join(lines)
        return {"range": where, "text": typed}

    def asking(self) -> dict[str, Any]:
        self.number += 1
        line, far = self.rng.randint(0, 80), self.rng.choice((0, 5, 10**6, 2**31 - 1))
        params = {
            "textDocument": {"uri": self.rng.choice((self.uri, self.uri, "file:///no/such.py"))},
            "position": {"line": line, "character": far}, "range": span(line, 0, line + far % 99, far),
            "context": {"diagnostics": []}, "previousResultId": "0",
        }  # fmt: skip
        method = f"textDocument/{self.rng.choice(METHODS)}"
        return {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}

    def request(self) -> bytes:
        self._last = written(self.asking())
        return self._last

    def _cancelled(self) -> bytes:
        """A request and its cancellation, before it, behind it or of another one."""
        request = self.request()
        cancel = said("$/cancelRequest", {"id": self.number - self.rng.choice((0, 0, 1, 50))})
        return cancel + request if self.rng.random() < 0.3 else request + cancel

    def _malformed(self) -> bytes:
        """A request of which something is missing, of another kind or in another place."""
        message = self.asking()
        inside = self.rng.choice((message, message["params"], message["params"]["textDocument"]))
        key = self.rng.choice(list(inside))
        if self.rng.random() < 0.3:
            del inside[key]
        else:
            inside[key] = self.rng.choice(JUNK)
        data = written(message)
        is_cut = self.rng.random() < 0.1
        return framed(data.partition(b"\r\n\r\n")[2][: -self.rng.randint(1, 40)]) if is_cut else data

    def _again(self) -> bytes:
        """The last request once more, with the same id."""
        return self._last or self.request()

    def _answer(self) -> bytes:
        """An answer that nobody waits for, also to a request of the client's own."""
        number = self.rng.choice((self.number, "own-1", "never", 0))
        kind = self.rng.choice(({"result": self.rng.choice(JUNK)}, {"error": self.rng.choice(JUNK)}))
        return written({"jsonrpc": "2.0", "id": number, **kind})

    def answers(self, message: Mapping[str, Any]) -> list[bytes]:
        """What is said to a request of the server's: well, twice, wrongly, or as an error."""
        good = written({"jsonrpc": "2.0", "id": message["id"], "result": None})
        bad = written({"jsonrpc": "2.0", "id": message["id"], "error": {"code": "x"}})
        no = written({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -1, "message": "no"}})
        return self._answering.choice(([good], [good, good], [bad, good], [no]))  # on the reader's thread

    def _hostile(self) -> bytes:
        return self.rng.choice(list(MESSAGES.values()))

    def _reopen(self) -> bytes:
        """Closed and opened again, sometimes opened twice."""
        self.version = 1
        closed = said("textDocument/didClose", {"textDocument": {"uri": self.uri}})
        twice = opened(self.uri, "import torch\n") if self.rng.random() < 0.5 else b""
        return twice + closed + closed + opened(self.uri, self.text)


def written(message: Mapping[str, Any]) -> bytes:
    return framed(json.dumps(message).encode())


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
