"""Servers that are killed in mid-job, and two servers at once: nothing is lost and nothing happens twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from typing import Any

from enduring.editors import SCRIPTED, Place, accepted, asked, eventually, offered, sessions
from evokernel_core import temporary

_LATEST_S = 0.9
"""A job of the scripted worker takes about this long."""


def doubled(place: Place) -> int:
    """Acceptances that were recorded more than once."""
    groups = "GROUP BY region_id, source_id HAVING count(*) > 1"
    return len(place.database.rows(f"SELECT count(*) FROM outcomes WHERE kind = 'accepted' {groups}"))


def unfinished(place: Place) -> int:
    rows = place.database.rows("SELECT count(*) FROM jobs WHERE kind = 'generate' AND state != 'done'")
    return int(rows[0][0]) if rows else 0


def left_behind() -> int:
    """Folders of processes that are gone, after a sweep."""
    temporary.sweep()
    shared = temporary.parent()
    names = [item.name for item in shared.iterdir()] if shared else []
    return sum(not _lives(int(name.split("-")[0])) for name in names)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


async def kills(place: Place, count: int) -> dict[str, Any]:
    """Kills the server at ``count`` random moments of a job; the next one must bring it to its end."""
    rng, lost, asked_for = random.Random(12), 0, 0
    async with sessions(place, {**SCRIPTED, "SCRIPT_PAUSE_S": "0.03"}) as made:
        for number in range(count):
            editor = await made.start()
            path = place.model(f"model_{number}.py")
            running = asyncio.ensure_future(asked(editor, path))
            uri = path.as_uri()
            await eventually(lambda e=editor, u=uri: u in e.texts and offered(e, u))
            await asyncio.sleep(rng.uniform(0.0, _LATEST_S))
            os.kill(editor.client._server.pid, signal.SIGKILL)  # type: ignore[union-attr]
            await editor.client._server.wait()  # type: ignore[union-attr]
            await asyncio.gather(running, return_exceptions=True)
            path.write_text(editor.texts[uri], "utf-8")
            await made.stop(editor)
            if not place.database.rows("SELECT 1 FROM jobs WHERE file = ?", str(path)):
                continue
            asked_for += 1
            lost += not await _finished_by_the_next(place, made, path)
    twice, folders = doubled(place), left_behind()
    return {"kills": count, "jobs": asked_for, "lost": lost, "doubled": twice, "folders": folders}


async def _finished_by_the_next(place: Place, made: Any, path: Any) -> bool:
    editor = await made.start()
    uri = editor.open(path)
    states = "SELECT state FROM jobs WHERE file = ? AND kind = 'generate'"
    done = await eventually(lambda: _accepted(editor, uri), 60.0)
    done = done and await eventually(lambda: place.database.rows(states, str(path)) == [("done",)], 60.0)
    await made.stop(editor)
    return done


async def _accepted(editor: Any, uri: str) -> bool:
    """Accepts the kernel once it is ready; whether its call is in the text."""
    if "evokernel_kernels" in editor.texts[uri]:
        return True
    for place in (await editor.command("evokernel.status"))["pending"]:
        await accepted(editor, uri, place["regionId"])
    return False


async def two_servers(place: Place, count: int) -> dict[str, Any]:
    """Two windows over one memory ask for the same kernels at the same time, and each for its own."""
    async with sessions(place, {**SCRIPTED, "SCRIPT_PAUSE_S": "0.03"}) as made:
        windows = [await made.start(), await made.start()]
        answers = []
        for number in range(count):
            same = place.model(f"same_{number}.py")
            own = [place.model(f"own_{number}_{n}.py") for n in range(2)]
            answers += await asyncio.gather(*(asked(window, same) for window in windows))
            answers += await asyncio.gather(*(asked(w, path) for w, path in zip(windows, own, strict=True)))
        said = [answer.get("status") for answer in answers]
        files = place.database.rows("SELECT file, count(*) FROM jobs WHERE kind = 'generate' GROUP BY file")
        return {
            "requests": len(said), "applied": said.count("applied"),
            "refused_in_a_sentence": said.count("refused"), "other": len(said) - sum(
                said.count(word) for word in ("applied", "refused")),
            "files": 3 * count, "files_with_a_kernel": len(files), "doubled": doubled(place),
            "unfinished": unfinished(place),
        }  # fmt: skip
