"""A long day of one server: a hundred thousand edits with what an editor asks in between, then two hundred
kernels that are generated, accepted and half of them reverted, then nobody at the keys for a minute.

The worker follows a script: what grows is the server.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import psutil
from lsprotocol import types

from enduring.editors import MODEL, SCRIPTED, Place, asked, eventually, offered, sessions
from tests.server.conftest import Editor

_ASK_EVERY, _SAVE_EVERY = 10, 500
_IDLE_S = 60.0
_SETTLE_S = 5.0
"""The longest watch over an accepted kernel, and what a garbage collection may still take."""


def rss_mib(server: psutil.Process) -> float:
    return float(server.memory_info().rss / 2**20)


async def long_day(place: Place, edits: int, jobs: int) -> dict[str, Any]:
    """MiB after a tenth and at the end of the edits and of the jobs; the share of a core while idle."""
    async with sessions(place, SCRIPTED) as made:
        editor = await made.start(settings={"refineInBackground": False})
        server = psutil.Process(editor.client._server.pid)  # type: ignore[union-attr]
        typed = await _type(editor, place, server, edits)
        made_kernels = await _make(editor, place, server, jobs)
        await asyncio.sleep(_SETTLE_S)
        idle = await _idle(server)
    return {**typed, **made_kernels, **idle}


async def _type(editor: Editor, place: Place, server: psutil.Process, edits: int) -> dict[str, Any]:
    """Signs and lines come and go; every tenth edit is followed by a question, every 500th by a capture of a
    text that was not there before."""
    uri = editor.open(place.model("model.py", MODEL))
    await eventually(lambda: offered(editor, uri))
    rng, questions, early = random.Random(15), itertools.cycle(_questions(editor, uri)), 0.0
    for number in range(edits):
        _change(editor, uri, rng, number)
        if number % _SAVE_EVERY == 0:
            editor.save(uri)
        if number % _ASK_EVERY == 0:
            await next(questions)()
        if number == edits // 10:
            early = rss_mib(server)
    analysed = await eventually(lambda: offered(editor, uri))
    late = rss_mib(server)
    return {
        "edits": edits, "analysed_at_the_end": analysed,
        "rss_mib_after_a_tenth": round(early, 1), "rss_mib": round(late, 1),
        "bytes_per_edit": round((late - early) * 2**20 / (0.9 * edits), 1),
    }  # fmt: skip


def _change(editor: Editor, uri: str, rng: random.Random, number: int) -> None:
    """A sign at the start of the second line, which the next edit takes back; sometimes the whole text with a
    number in it, as after a formatter."""
    where, text = types.Range(types.Position(1, 0), types.Position(1, number % 2)), "" if number % 2 else "#"
    change: Any = types.TextDocumentContentChangePartial(where, text)
    if number % 2 == 0 and rng.random() < 0.01:
        editor.texts[uri] = MODEL + f"\n# {number}\n"
        change = types.TextDocumentContentChangeWholeDocument(editor.texts[uri].replace("\n", "\n#", 1))
    editor.versions[uri] += 1
    identifier = types.VersionedTextDocumentIdentifier(version=editor.versions[uri], uri=uri)
    editor.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))


def _questions(editor: Editor, uri: str) -> list[Any]:
    identifier = types.TextDocumentIdentifier(uri)
    place = types.HoverParams(identifier, types.Position(7, 30))
    return [
        lambda: editor.hints(uri),
        lambda: editor.actions(uri, 7),
        lambda: editor.client.text_document_hover_async(place),
        lambda: editor.client.text_document_diagnostic_async(types.DocumentDiagnosticParams(identifier)),
        lambda: editor.command("evokernel.status"),
    ]


async def _make(editor: Editor, place: Place, server: psutil.Process, jobs: int) -> dict[str, Any]:
    """Each kernel in a file of its own, which is closed behind it."""
    said, early = [], 0.0
    for number in range(jobs):
        path = place.model(f"job_{number}.py")
        answer = await asked(editor, path)
        said.append(answer.get("status"))
        if number % 2 and said[-1] == "applied":
            await editor.command("evokernel.revert", {"uri": path.as_uri(), "name": answer["name"]})
        identifier = types.TextDocumentIdentifier(path.as_uri())
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        if number == jobs // 10:
            early = rss_mib(server)
    late = rss_mib(server)
    return {
        "jobs": jobs, "applied": said.count("applied"), "rss_mib_after_a_tenth_of_jobs": round(early, 1),
        "rss_mib_after_jobs": round(late, 1), "kib_per_job": round((late - early) * 2**10 / (0.9 * jobs), 1),
    }  # fmt: skip


async def _idle(server: psutil.Process) -> dict[str, Any]:
    """Shares of a core that the server and the processes below it take while nobody does anything."""
    below = server.children(recursive=True)
    before = [_used(process) for process in (server, *below)]
    await asyncio.sleep(_IDLE_S)
    used = [_used(process) - then for process, then in zip((server, *below), before, strict=True)]
    shares = [100 * seconds / _IDLE_S for seconds in used]
    return {
        "idle_s": _IDLE_S, "idle_percent": round(shares[0], 3),
        "idle_percent_below": round(sum(shares[1:]), 3), "processes_below": len(below),
    }  # fmt: skip


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
