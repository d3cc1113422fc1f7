"""Editors with a server each, as the tests drive them, in a folder and a home of the trial's own."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import platformdirs
from attrs import frozen

ROOT = Path(__file__).parents[2]
os.environ.setdefault("EVOKERNEL_TWIN_DIR", f"{platformdirs.user_cache_dir('evokernel')}/twin")
sys.path.insert(0, str(ROOT))
logging.getLogger("pygls").setLevel(logging.CRITICAL)  # the client's lines about what it does not handle

from tests.server.conftest import MODEL, SCRIPTED_WORKER, Database, Editor, Sessions  # noqa: E402

REAL_MODEL = """\
import torch


# evokernel: x=f32[1024,1000]
def attend(x):
    return torch.softmax(x * 0.125, dim=-1)
"""
PATIENCE_S = 240.0
SCRIPTED = {"EVOKERNEL_WORKER_COMMAND": f"'{sys.executable}' '{SCRIPTED_WORKER}'"}
"""The server is on trial, not the kernel author: a worker that follows a script answers in milliseconds."""

__all__ = ["MODEL", "REAL_MODEL", "SCRIPTED", "Place", "asked", "eventually", "offered", "sessions"]


@frozen
class Place:
    """Where a trial happens: the person's files, and the home of what is kept."""

    work: Path
    home: Path

    @property
    def database(self) -> Database:
        return Database(self.home / "memory.db")

    def model(self, name: str, text: str = MODEL) -> Path:
        path = self.work / name
        path.write_text(text, "utf-8")
        return path


@asynccontextmanager
async def sessions(place: Place, environment: Mapping[str, str]) -> AsyncIterator[Sessions]:
    """Starts editors in a place. Those that still run at the end are stopped."""
    os.environ.pop("EVOKERNEL_WORKER_COMMAND", None)
    os.environ.update({"EVOKERNEL_HOME": str(place.home), **environment})
    made = Sessions(place.work)
    try:
        yield made
    finally:
        for editor in list(made.editors):
            await made.stop(editor)


async def eventually(condition: Callable[[], Any], seconds: float = PATIENCE_S) -> bool:
    """Whether a condition, which may be awaitable, came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if asyncio.iscoroutine(value):
            value = await value
        if value:
            return True
        await asyncio.sleep(0.05)
    return False


async def offered(editor: Editor, uri: str) -> bool:
    """Whether hints with figures are shown."""
    return any("→" in str(hint.label) for hint in await editor.hints(uri))


async def asked(editor: Editor, path: Path, words: str = "torch.softmax") -> dict[str, Any]:
    """Opens a file, asks for its kernel and accepts it: the answer, an empty one where none could be asked
    for."""
    uri = editor.open(path)
    if not await eventually(lambda: offered(editor, uri)):
        return {}
    action = await editor.action(uri, editor.line_of(uri, words), "Generate NPU kernel")
    answer: dict[str, Any] = await editor.run(action)
    if answer.get("status") != "ready":
        return answer
    return await accepted(editor, uri, str(answer["regionId"]))


async def accepted(editor: Editor, uri: str, region_id: str) -> dict[str, Any]:
    """Accepts a kernel that is ready: the answer."""
    answer: dict[str, Any] = await editor.command("evokernel.apply", {"uri": uri, "regionId": region_id})
    return answer
