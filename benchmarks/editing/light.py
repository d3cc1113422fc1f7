"""What the process tree of an open model file takes with the real worker and torch agent."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.editing.wire import Server
from benchmarks.measuring.processes import processor_s, resident_mb, tree

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
        """Seconds from the opening to the first hint, also of the processor, and to the last, how many there
        are then, and what the process tree holds then and held at most."""
        item = {"uri": self.path.as_uri(), "languageId": "python", "version": 1, "text": self.text}
        self.server.tell("textDocument/didOpen", {"textDocument": item})
        began = time.perf_counter()
        figures: dict[str, Any] = {}
        count, most, used = 0, 0.0, processor_s(self.server.process)
        while not count or self.server.is_analysing:
            if time.perf_counter() - began > TIMEOUT_S:
                raise SystemExit(f"{self.path.name} was not analysed within {TIMEOUT_S:.0f} s.")
            await asyncio.sleep(_GLANCE_S)
            most = max(most, resident_mb(self.server.process))
            if (now := await self.hints()) != count:
                last = time.perf_counter() - began
                if not count:
                    figures["first_hint_s"] = last
                    figures["first_hint_cpu_s"] = processor_s(self.server.process) - used
                figures |= {"real_hints": now, "all_hints_s": last}
                count = now
        return {**figures, "tree_mb_most": most, "tree_mb_open": resident_mb(self.server.process)}


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
    began, before = time.perf_counter(), len(tree(server.process))
    while time.perf_counter() - began < idle_s:
        await asyncio.sleep(_LOOK_S)
        if (now := len(tree(server.process))) != before:
            figures["processes"][f"{time.perf_counter() - began:.0f}"] = before = now
    figures |= {"tree_mb_idle": resident_mb(server.process), "hints_idle": await opened.hints()}
    began = time.perf_counter()
    server.tell("textDocument/didChange", {
        "textDocument": {"uri": opened.path.as_uri(), "version": 2},
        "contentChanges": [{"range": {"start": START, "end": START}, "text": "import math\n"}],
    })  # fmt: skip
    await analysed(server)
    figures["again_s"] = time.perf_counter() - began
    await server.stop()
    return figures
