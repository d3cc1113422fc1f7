"""What the whole process tree of an open model file takes with the real worker and torch agent."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from benchmarks.editing.wire import Server

TIMEOUT_S = 600.0
START = {"line": 0, "character": 0}
_GLANCE_S = 0.1
_LOOK_S = 5.0


class OpenModel:
    """A copy of a model file in a folder, opened in a server as an editor does."""

    def __init__(self, server: Server, model: Path, folder: Path) -> None:
        self.server = server
        self.path = Path(shutil.copy(model, folder))
        self.text = self.path.read_text("utf-8")

    async def hints(self) -> int:
        area = {"start": START, "end": {"line": self.text.count("\n") + 1, "character": 0}}
        params = {"textDocument": {"uri": self.path.as_uri()}, "range": area}
        return len(await self.server.ask("textDocument/inlayHint", params) or ())

    async def opened(self) -> dict[str, Any]:
        """Seconds from the opening to the first hint and to the last, how many there are then, and the most
        that the process tree held meanwhile."""
        item = {"uri": self.path.as_uri(), "languageId": "python", "version": 1, "text": self.text}
        self.server.tell("textDocument/didOpen", {"textDocument": item})
        began = time.perf_counter()
        first, last, count, most = 0.0, 0.0, 0, 0.0
        while not count or self.server.is_analysing:
            if time.perf_counter() - began > TIMEOUT_S:
                raise SystemExit(f"{self.path.name} was not analysed within {TIMEOUT_S:.0f} s.")
            await asyncio.sleep(_GLANCE_S)
            most = max(most, tree_mb(self.server))
            if (now := await self.hints()) != count:
                count, last = now, time.perf_counter() - began
                first = first or last
        return {
            "real_hints": count, "first_hint_s": first, "all_hints_s": last, "tree_mb_open": most,
        }  # fmt: skip


def tree(server: Server) -> list[psutil.Process]:
    return [server.process, *server.process.children(recursive=True)]


def tree_mb(server: Server) -> float:
    """Resident MiB of a server and all below it."""
    resident = 0
    for process in tree(server):
        with contextlib.suppress(psutil.NoSuchProcess):
            resident += process.memory_info().rss
    return resident / 2**20


async def analysed(server: Server) -> None:
    """Returns behind the analysis that begins now."""
    for wanted in (True, False):
        async with asyncio.timeout(TIMEOUT_S):
            while server.is_analysing is not wanted:
                await asyncio.sleep(_GLANCE_S / 10)


async def measure_light(
    command: tuple[str, ...], environment: Mapping[str, str], model: Path, folder: Path, idle_s: float
) -> dict[str, Any]:
    """``OpenModel.opened``, ``tree_mb_idle`` after ``idle_s`` in which nobody does anything, how many
    ``processes`` there were after so many seconds, and ``again_s`` from an edit then to the end of its
    analysis."""
    server = Server(command, environment)
    await server.start(folder, {"settings": {"pauseS": 0.0}, "trusted": True})
    opened = OpenModel(server, model, folder)
    figures = {"model": model.name, **await opened.opened(), "processes": {}}
    began, before = time.perf_counter(), len(tree(server))
    while time.perf_counter() - began < idle_s:
        await asyncio.sleep(_LOOK_S)
        if (now := len(tree(server))) != before:
            figures["processes"][f"{time.perf_counter() - began:.0f}"] = before = now
    figures |= {"tree_mb_idle": tree_mb(server), "hints_idle": await opened.hints()}
    began = time.perf_counter()
    server.tell("textDocument/didChange", {
        "textDocument": {"uri": opened.path.as_uri(), "version": 2},
        "contentChanges": [{"range": {"start": START, "end": START}, "text": "import math\n"}],
    })  # fmt: skip
    await analysed(server)
    figures["again_s"] = time.perf_counter() - began
    await server.stop()
    return figures
