"""A scribe with more to say: every command, notebooks, texts of other programs, renamed and watched files,
broken headers and lengths, UTF-8 cut within a character, ids of every kind, messages of a megabyte.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from evokernel_server.texts import command_names

from evokernel_core.domain.kernel import Strategy
from evokernel_core.targets.ascendc.source import ascendc_source
from tests.attacks.editor.test_protocol import URI, framed, said, span
from tests.server.conftest import MODEL
from tests.server.scribe import (
    JUNK,
    SOFTMAX,
    Kinds,
    Scribe,
    Sent,
    changed,
    opened,
    well_framed,
    written,
)

COMMANDS = sorted(
    value
    for name, value in vars(command_names).items()
    if name.isupper() and isinstance(value, str) and value.startswith("evokernel.")
)
_OF_A_REGION = (
    *[command_names.GENERATE] * 4, command_names.REVIEW, command_names.VARIANTS, command_names.COMPARE,
    command_names.APPLY, command_names.REJECT, command_names.SNOOZE, command_names.NEVER,
    command_names.TIMELINE, command_names.OFFER_AGAIN, command_names.DASHBOARD,
    command_names.SHOW_DIFF, command_names.WHY_NOT,
)  # fmt: skip
OTHERS = (
    URI, "file:///no/such.py", "untitled:Untitled-1", "git:/work/model.py?%7B%22ref%22%3A%22~%22%7D",
    "vscode-vfs://github/a/b/model.py", "file://server/share/model.py", "file:///work/model.py?x#y",
    "file:///work/%00.py", "file:relative.py", "no uri", "", "vscode-notebook-cell:/work/n.ipynb#c1",
)  # fmt: skip
CELLS = tuple(f"vscode-notebook-cell:/work/n.ipynb#c{number}" for number in range(3))
TEXTS = (
    "",
    "import torch\n\ndef f(x):\n    return torch.softmax(x, dim=-1)\n",
    "import torch\r\r\n😀",
    "x = (",
)
IDS: tuple[Any, ...] = (
    None, True, False, 1.5, 0.0, math.nan, -math.inf, [], [1], {}, {"id": 1}, "", "a" * 1_000, "😀", "\ud800",
    0, -7, 2**31, 2**63, 10**30,
)  # fmt: skip
_HEADS = (
    b"content-length: %d\r\n\r\n", b"Content-Length:%d\r\n\r\n", b"Content-Length: %d\n\n",
    b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n",
    b"Content-Length: 7\r\nContent-Length: %d\r\n\r\n", b"Content-Le\r\nContent-Length: %d\r\n\r\n",
    b"\r\n\r\nContent-Length: %d\r\n\r\n", b"{}Content-Length: %d\r\n\r\n",
)  # fmt: skip
_NO_LENGTHS = (b"x", b"-5", b"", b"99999999999999999999", b"1.5", b"0x10")
_SOURCES = tuple(
    ascendc_source("// tiling", f"// kernel {n}\n", Strategy("rowwise", {"tile": n})).source_id
    for n in range(1, 7)
)
"""The kernels that the scripted worker writes."""
_REGION = f"forward/0/{hashlib.sha256(SOFTMAX.encode()).hexdigest()[:8]}"


class WideScribe(Scribe):
    """As a scribe, about other documents too. What it says of the document that is compared in the end are
    edits, requests and commands."""

    def kinds(self) -> Kinds:
        return {
            **super().kinds(), self._command: 16, self._calm: 4, self._other_text: 8, self._notebook: 8,
            self._files: 3, self._junk_notification: 3, self._negative: 4, self._odd_id: 5, self._odd_head: 5,
            self._short: 2, self._long: 2, self._no_length: 2, self._cut: 3, self._enormous: 0.2,
        }  # fmt: skip

    def messages(self, count: int) -> Iterator[Sent]:
        """In the end kernels are offered again at all places, so that there is something to compare."""
        yield from super().messages(count)
        self.number += 1
        params = {"command": command_names.OFFER_AGAIN, "arguments": [{"uri": self.uri}]}
        yield well_framed(said("workspace/executeCommand", params, self.number))

    # --- commands

    def _command(self) -> bytes:
        """A command with arguments that fit, that are missing, or of another kind."""
        given: Any = self._arguments()
        for key in list(given):
            if self.rng.random() < 0.2:
                del given[key]
            elif self.rng.random() < 0.1:
                given[key] = self._junk()
        shape = self.rng.random()
        arguments = [given] if shape < 0.85 else self.rng.choice(([], [given] * 2, self._junk(), given, "x"))
        self.number += 1
        name = self.rng.choice(COMMANDS)
        params = {"command": name, "arguments": arguments}
        if self.rng.random() < 0.02:
            params["command"] = self._junk()
        asking = said("workspace/executeCommand", params, self.number)
        is_cancelled = self.rng.random() < 0.1
        return asking + said("$/cancelRequest", {"id": self.number}) if is_cancelled else asking

    def _calm(self) -> bytes:
        """The text as it was first, saved, so that its region is there again; then a command that fits."""
        self.text, self.version = MODEL, self.version + 1
        self.number += 1
        given = {"uri": self.uri, "regionId": _REGION, "sourceId": self.rng.choice(_SOURCES),
                 "other": self.rng.choice(_SOURCES)}  # fmt: skip
        params = {"command": self.rng.choice(_OF_A_REGION), "arguments": [given]}
        return (
            changed(self.uri, self.version, {"text": MODEL})
            + said("textDocument/didSave", {"textDocument": {"uri": self.uri}})
            + said("workspace/executeCommand", params, self.number)
        )

    def _arguments(self) -> dict[str, Any]:
        place = {
            "uri": self.rng.choice((self.uri, self.uri, self.uri, URI, *OTHERS)),
            "regionId": self.rng.choice((_REGION, _REGION, "forward/9/00000000", "../..")),
        }
        more = {
            "name": self.rng.choice(("softmax_00000000", "../x", "")), "place": dict(place),
            "sourceId": self.rng.choice(_SOURCES), "other": self.rng.choice(_SOURCES),
            "regionIds": [place["regionId"]] * self.rng.randint(0, 3), "line": self.rng.randint(-9, 99),
            "endLine": self.rng.choice((0, 8, 2**31)), "reason": "slow\u202e\n", "token": "t",
            "what": self.rng.choice(("decisions", "all", "nothing")), "symbol": "Model.forward",
            "jobId": "0" * 32,
        }  # fmt: skip
        return place | {key: more[key] for key in self.rng.sample(list(more), self.rng.randint(0, 4))}

    def _junk(self) -> Any:
        return self.rng.choice((*JUNK, math.nan, -math.inf, "\0", "\ud800", {"a": {"b": [{}]}}))

    # --- other documents

    def _other_text(self) -> bytes:
        """Another document, mostly no file of this machine: opened, edited, saved, asked about, closed."""
        uri, text = self.rng.choice(OTHERS), self.rng.choice(TEXTS)
        document = {"textDocument": {"uri": uri}}
        self.number += 1
        return self.rng.choice((
            opened(uri, text),
            changed(uri, self.rng.randint(-1, 9), {"text": text}, {"range": span(0, 0, 0, 3), "text": "µ"}),
            changed(uri, 2, {"range": span(2, 9, 0, 1), "text": text}),
            said("textDocument/didSave", {**document, "text": text}),
            said("textDocument/didClose", document),
            said("evokernel/activeDocument", {"uri": self.rng.choice((uri, self.uri))}),
            said("textDocument/hover", {**document, "position": {"line": 3, "character": 12}}, self.number),
            said("textDocument/diagnostic", {**document, "previousResultId": text}, self.number),
        ))  # fmt: skip

    def _notebook(self) -> bytes:
        """A notebook whose cells come, change, go, and are not there."""
        notebook = {"uri": "file:///work/n.ipynb", "version": self.rng.randint(0, 9)}
        items = [{"uri": uri, "languageId": "python", "version": 1, "text": self.rng.choice(TEXTS)}
                 for uri in self.rng.sample(CELLS, self.rng.randint(0, 3))]  # fmt: skip
        closed = [{"uri": item["uri"]} for item in items]
        cells = [{"kind": 2, "document": uri} for uri in CELLS]
        structure = {"array": {"start": 0, "deleteCount": self.rng.randint(0, 9), "cells": cells},
                     "didOpen": items, "didClose": closed[:1]}  # fmt: skip
        change = {"text": self.rng.choice(TEXTS)}
        texts = [{"document": {"uri": self.rng.choice(CELLS), "version": 3}, "changes": [change]}]
        begun = {**notebook, "notebookType": "jupyter-notebook", "cells": cells}
        inside = self.rng.choice(({"structure": structure}, {"textContent": texts}, {}, None))
        return self.rng.choice((
            said("notebookDocument/didOpen", {"notebookDocument": begun, "cellTextDocuments": items}),
            said("notebookDocument/didChange", {"notebookDocument": notebook, "change": {"cells": inside}}),
            said("notebookDocument/didSave", {"notebookDocument": notebook}),
            said("notebookDocument/didClose", {"notebookDocument": notebook, "cellTextDocuments": closed}),
        ))  # fmt: skip

    def _files(self) -> bytes:
        """Files that were renamed, deleted or changed, and are none."""
        one, other = self.rng.sample([uri for uri in OTHERS if uri != URI], 2)
        changes = [{"uri": self.rng.choice(OTHERS), "type": self.rng.choice((1, 2, 3, 9))}]
        return self.rng.choice((
            said("workspace/didRenameFiles", {"files": [{"oldUri": one, "newUri": other}]}),
            said("workspace/didDeleteFiles", {"files": [{"uri": one}, {"uri": self._junk()}]}),
            said("workspace/didChangeWatchedFiles", {"changes": changes * self.rng.randint(0, 3)}),
        ))  # fmt: skip

    def _junk_notification(self) -> bytes:
        """A notification whose params are of another kind."""
        names = ("textDocument/didChange", "textDocument/didOpen", "textDocument/didSave", "$/setTrace",
                 "notebookDocument/didChange", "workspace/didChangeConfiguration", "evokernel/activeDocument",
                 "window/workDoneProgress/cancel", "$/cancelRequest", "workspace/didChangeWorkspaceFolders",
                 "$/progress")  # fmt: skip
        name = self.rng.choice(names)
        shape = self.rng.choice((
            self._junk(), {"settings": self._junk()}, {"token": self._junk()},
            {"textDocument": self._junk()}, {"event": {"added": self._junk()}},
        ))  # fmt: skip
        if name == "workspace/didChangeConfiguration" and isinstance(shape, Mapping):
            shape = {"settings": {"evokernel": {"pauseS": self._junk(), "chip": [1]}}}
        return written({"jsonrpc": "2.0", "method": name, "params": shape})

    # --- what stands in a message

    def _negative(self) -> bytes:
        """Places before the first line and sign, and ranges that end before they start."""
        message, below = self.asking(), -self.rng.choice((1, 5, 2**31, 10**30))
        where = self.rng.choice(
            (span(below, below, below, below), span(9, 9, 0, 0), span(0, below, 9, below))
        )
        message["params"]["position"] = {"line": self.rng.choice((below, 3)), "character": below}
        message["params"]["range"] = where
        return written(message)

    def _odd_id(self) -> bytes:
        """A request or a notification with an id of any kind that JSON knows."""
        number = self.rng.choice(IDS)
        message = {**self.asking(), "id": number}
        if self.rng.random() < 0.2:
            return written({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        return written(message)

    def _enormous(self) -> bytes:
        """A request with a megabyte where a word is due."""
        message = self.asking()
        much = "x" * 10**6 if self.rng.random() < 0.5 else [{"a": [1] * 50}] * 5_000
        key = self.rng.choice(("textDocument", "position", "context", "more"))
        message["params"][key] = {"uri": much, "line": much, "character": 1} if key != "context" else much
        return written(message)

    # --- how it is put into bytes

    def _question(self) -> bytes:
        """The body of a request about the other documents' hovers or hints."""
        return json.dumps(self.asking()).encode()

    def _odd_head(self) -> Sent:
        """Headers in other letters, with more lines, broken off and begun again: the message is whole."""
        body = self._question()
        number = json.loads(body)["id"]
        return Sent(self.rng.choice(_HEADS) % len(body) + body, (number,))

    def _short(self) -> Sent:
        """A length that ends within the message: what was read of it is no JSON, the rest is no header."""
        body = self._question()
        return Sent(b"Content-Length: %d\r\n\r\n" % self.rng.randint(1, len(body) - 1) + body, (None,))

    def _long(self) -> Sent:
        """A length that reaches into the next message, which is lost with it."""
        body, lost = self._question(), said("$/evil", {})
        beyond = self.rng.randint(1, len(lost))
        return Sent(b"Content-Length: %d\r\n\r\n" % (len(body) + beyond) + body + lost, (None,))

    def _no_length(self) -> Sent:
        """A length that is none: nothing tells that a message stands there."""
        body = self._question()
        return Sent(b"Content-Length: %s\r\n\r\n" % self.rng.choice(_NO_LENGTHS) + body, ())

    def _cut(self) -> Sent:
        """UTF-8 that ends, or goes on, within a character."""
        body = json.dumps({**self.asking(), "method": "textDocument/µ😀"}, ensure_ascii=False).encode()
        at = body.index("😀".encode()) + self.rng.randint(1, 3)
        return well_framed(framed(body[:at] if self.rng.random() < 0.5 else body[:at] + body[at + 1 :]))
