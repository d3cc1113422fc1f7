"""What the language server stands: kills in mid-job, messages in any order, a full disk, a clock that jumps,
a home that is not written to, two servers on one memory, and how quick its answers are while a verifier, an
endpoint, the disk, the database or a process is broken. Prints figures, which docs/results/endurance.md
states.

The server is the real one. Where the kernel author is not on trial, a worker that follows a script takes its
place; ``full_disk`` and ``read_only_home`` have the real one. They mount a tmpfs
and say so where that is not allowed.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.pop("EVOKERNEL_WORKER_COMMAND", None)

from enduring import disks, faults, jobs, long, messages
from enduring.editors import Place

Trial = Callable[[Place], Any]
KILLS, MESSAGES, EDITS, JOBS, PAIRS = 50, 100_000, 100_000, 200, 15
TRIALS: dict[str, Trial] = {
    "kills": lambda place: jobs.kills(place, KILLS),
    "two_servers": lambda place: jobs.two_servers(place, PAIRS),
    "full_disk": lambda place: disks.full_disk(place.home.parent / "disk"),
    "read_only_home": lambda place: disks.read_only_home(place.home.parent),
    "jumping_clock": disks.jumping_clock,
    "random_messages": lambda place: messages.random_messages(place, MESSAGES),
    "wide_messages": lambda place: messages.random_messages(place, MESSAGES, 21, "wide"),
    "long_day": lambda place: long.long_day(place, EDITS, JOBS),
    **{name: partial(faults.fault, name) for name in faults.FAULTS},
}
WRONG: dict[str, Callable[[dict[str, Any]], bool]] = {
    "kills": lambda seen: bool(seen["lost"] or seen["doubled"] or seen["folders"]),
    "two_servers": lambda seen: bool(seen["doubled"] or seen["unfinished"] or seen["other"]),
    "full_disk": lambda seen: bool(
        not (seen["server_alive"] and seen["file_unchanged"] and seen["sentence"]) or seen["half_packages"]
        or seen["after_room"] != "applied"
    ),
    "read_only_home": lambda seen: not (seen["server_alive"] and seen["hints"] and seen["sentence"]),
    "jumping_clock": lambda seen: bool(
        not (seen["applied"] == seen["jumps"] and seen["watches_settled"] and seen["dates_seen"] > 1)
        or seen["doubled"]
    ),
    **dict.fromkeys(("random_messages", "wide_messages"), lambda seen: bool(
        seen["unanswered"] or seen["answered_twice"] or not seen["equal_to_a_fresh_server"]
    )),
    "long_day": lambda seen: bool(
        abs(seen["bytes_per_edit"]) > 50 or seen["applied"] < seen["jobs"] or seen["kib_per_job"] > 20
        or seen["idle_percent"] > 0.1 or not seen["analysed_at_the_end"]
    ),
    **dict.fromkeys(faults.FAULTS, faults.not_borne),
}  # fmt: skip
"""Whether a trial's figures say that something was lost."""


def run(name: str) -> dict[str, Any]:
    """One trial in a folder of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder) / "work", Path(folder) / "home")
        if name != "read_only_home":
            place.work.mkdir()
        began = time.monotonic()
        found = TRIALS[name](place)
        seen: dict[str, Any] = asyncio.run(found) if inspect.isawaitable(found) else found
    return {**seen, "seconds": round(time.monotonic() - began, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trials", nargs="*", choices=[*TRIALS, []], help="all of them if none is named")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    arguments = parser.parse_args()
    summary, wrong = {}, []
    for name in arguments.trials or TRIALS:
        summary[name] = run(name)
        if "skipped" not in summary[name] and WRONG[name](summary[name]):
            wrong.append(name)
        figures = ", ".join(f"{key} {value}" for key, value in summary[name].items())
        print(f"{name:<16} {figures}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary}, indent=2) + "\n")
    if wrong:
        raise SystemExit(f"Something was lost: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
