"""A disk that is truly full, a home that is not written to, and a clock that jumps."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from enduring.editors import REAL_MODEL, SCRIPTED, Place, asked, eventually, offered, sessions
from enduring.jobs import doubled

_DAY_S = 86_400
_JUMPS_S = (3650 * _DAY_S, -3650 * _DAY_S, 0, -_DAY_S, 400 * _DAY_S, 0)
"""Where the clock is set to, in seconds beside the right time."""


@contextmanager
def small_disk(folder: Path, size: str = "32m") -> Iterator[str]:
    """A file system of its own. Gives why there is none, empty where there is."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        yield done.stderr.strip() if done.returncode else ""
    finally:
        if not done.returncode:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Takes every byte that is left."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (2**16, 2**12, 1):
            while True:
                try:
                    file.write(b"\0" * size)
                except OSError:
                    break
    return path


async def full_disk(folder: Path) -> dict[str, Any]:
    """Home and files on a disk without a free byte: sentences, no half package; then room, and a kernel."""
    with small_disk(folder) as why:
        if why:
            return {"skipped": why}
        place = Place(folder / "work", folder / "home")
        place.work.mkdir()
        path = place.model("model.py", REAL_MODEL)
        async with sessions(place, {"EVOKERNEL_HOME": str(place.home)}) as made:
            filler = fill(folder)
            editor = await made.start(settings={"budget": 2, "refineInBackground": False})
            full = await asked(editor, path)
            alive = editor.client._server.returncode is None  # type: ignore[union-attr]
            untouched = editor.texts[path.as_uri()] == REAL_MODEL
            packages = _packages(place)
            filler.unlink()
            again = await asked(editor, place.model("later.py", REAL_MODEL))
        return {
            "server_alive": alive, "answer": full.get("status", "none"), "sentence": full.get("message", ""),
            "file_unchanged": untouched, "half_packages": packages,
            "after_room": again.get("status", "none"), "after_room_sentence": again.get("message", ""),
        }  # fmt: skip


def _packages(place: Place) -> int:
    """Packages that Python could import and that are not whole."""
    found = place.work.glob("evokernel_kernels/*/")
    return sum(item.name.isidentifier() and not (item / "kernel.json").is_file() for item in found)


async def read_only_home(folder: Path) -> dict[str, Any]:
    """A home that cannot be written to: hints are shown, and a sentence says why no kernel is."""
    with small_disk(folder / "disk") as why:
        if why:
            return {"skipped": why}
        place = Place(folder / "work", folder / "disk" / "home")
        place.work.mkdir()
        subprocess.run(["mount", "-o", "remount,ro", str(folder / "disk")], check=True)
        async with sessions(place, {}) as made:
            editor = await made.start(settings={"budget": 2})
            uri = editor.open(place.model("model.py", REAL_MODEL))
            hints = await eventually(lambda: offered(editor, uri), 90.0)
            status = await editor.command("evokernel.status")
            answer = await asked(editor, place.model("other.py", REAL_MODEL)) if hints else {}
            alive = editor.client._server.returncode is None  # type: ignore[union-attr]
        return {
            "server_alive": alive, "hints": hints, "status": status["mode"],
            "answer": answer.get("status", "none"), "sentence": answer.get("message") or status["text"],
        }  # fmt: skip


async def jumping_clock(place: Place) -> dict[str, Any]:
    """The system's clock jumps by years while kernels are made; the monotonic one goes on, as it does."""
    library, offset = place.home.parent / "clock.so", place.home.parent / "clock"
    offset.write_text("0")
    source = Path(__file__).with_name("clock.c")
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], check=True)
    said = []
    async with sessions(place, SCRIPTED) as made:
        editor = await made.start(environment={"LD_PRELOAD": str(library), "CLOCK_OFFSET": str(offset)})
        for number, seconds in enumerate(_JUMPS_S):
            running = asyncio.ensure_future(asked(editor, place.model(f"clock_{number}.py")))
            await asyncio.sleep(0.1)
            offset.write_text(str(seconds))
            said.append((await running).get("status"))
        kept = await eventually(lambda: _survived(place) >= len(_JUMPS_S), 60.0)
        alive = editor.client._server.returncode is None  # type: ignore[union-attr]
    return {
        "jumps": len(_JUMPS_S), "applied": said.count("applied"), "server_alive": alive,
        "watches_settled": kept, "survived": _survived(place), "doubled": doubled(place),
        "dates_seen": _years(place),
    }  # fmt: skip


def _years(place: Place) -> int:
    """How many different years the acceptances carry: the jumps did reach the server."""
    rows = place.database.rows("SELECT at FROM outcomes WHERE kind = 'accepted'")
    return len({int(at / _DAY_S / 365.25) for (at,) in rows})


def _survived(place: Place) -> int:
    """Kernels of which at least one survival was recorded."""
    rows = place.database.rows("SELECT count(DISTINCT region_id) FROM outcomes WHERE kind = 'survived'")
    return int(rows[0][0]) if rows else 0
