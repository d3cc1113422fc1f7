"""Each configuration of docs/mcp.md in the real coding agent, with a mock in place of its model.

The agents are installed from npm into --folder, where those that are there are used again, or into a
temporary folder. Each runs with a home and a project of its own and the documented configuration as it
stands, and is led to a mock on loopback that speaks its protocol (driving/). The mock's "model" asks for
calls of our tools; what our server sent is compared with what reached the mock. Then another one is killed
while a kernel runs, and our processes are counted. Memories are empty; what was compiled before
is used. Cursor and VS Code need a window and an account: they are not run.

Usage: python benchmarks/agents.py [--folder DIR] [--only PROGRAM,...] [--other MODEL.py]

The status is 1 where an agent that could be installed did not do all of it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from attrs import frozen
from driving.clients import CLIENTS, Client, NotInstalled
from driving.compared import compared
from driving.mock import Mock, serving
from driving.place import MAIN, REPOSITORY, Place
from driving.story import LONG, story

from evokernel_core.paths import cache_path

PAGE = (REPOSITORY / "docs" / "mcp.md").read_text()
AGENT_S = 300
COLUMNS = ("agent", "version", "protocol", "connected", "tools", "whole", "left", "killed: left", "seconds")


@frozen
class Row:
    """A line of the table; ``right`` also for an agent that cannot be had here."""

    cells: tuple[object, ...]
    right: bool = True


def main() -> int:
    options = _arguments()
    chosen = [item for item in CLIENTS if not options.only or item.program in options.only.split(",")]
    with tempfile.TemporaryDirectory(prefix="evokernel-agents-", ignore_cleanup_errors=True) as made:
        root = Path(made)
        folder = (options.folder or root / "agents").absolute()
        subprocess.run(
            [sys.executable, "-c", MAIN, "doctor", "--prepare"], stdout=subprocess.DEVNULL, check=False
        )
        rows = [_row(client, folder, root, options.other) for client in chosen]
    print(_line(COLUMNS), _line(["---"] * len(COLUMNS)), *(_line(row.cells) for row in rows), sep="\n")
    return int(not all(row.right for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where the agents are kept")
    parser.add_argument("--only", help=",".join(item.program for item in CLIENTS))
    parser.add_argument("--other", type=Path, help="a further model that is planned, as one of KernelBench")
    return parser.parse_args()


def _line(cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"  # type: ignore[call-overload]


def _row(client: Client, folder: Path, root: Path, other: Path | None) -> Row:
    try:
        program = client.installed(folder)
    except NotInstalled as error:
        return Row((client.name, f"not installed: {error}", *["-"] * (len(COLUMNS) - 2)))
    places = [Place(root / client.program / name) for name in ("day", "killed")]
    for place in places:
        place.make(cache_path().absolute(), other)
    day, killed = places
    with serving(Mock(story(other is not None))) as mock:
        started = time.monotonic()
        _play(client, program, day, mock)
        seconds = time.monotonic() - started
    found, left = compared(day.answers(), mock), day.left()
    left_of_killed = _killed(client, program, killed)
    return Row(
        (
            client.name, _version(program, day), found.protocol, found.connected,
            f"{found.seen} of {found.tools}", f"{found.whole} of {found.calls}",
            left, "no call" if left_of_killed is None else left_of_killed, f"{seconds:.0f}",
        ),
        found.right and left == 0 and left_of_killed == 0,
    )  # fmt: skip


def _version(program: Path, place: Place) -> str:
    variables = {**os.environ, "HOME": str(place.home)}
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, env=variables)
    return next((word for word in done.stdout.split() if word[:1].isdigit()), "?")


@contextmanager
def _running(client: Client, program: Path, place: Place, mock: Mock) -> Iterator[subprocess.Popen[bytes]]:
    """The agent, which is ended with all that it started."""
    variables = client.configured(place.project, place.home, mock.url, PAGE)
    variables["PATH"] = f"{place.programs}:{variables['PATH']}"
    variables["PWD"] = str(place.project)  # where opencode believes that it is
    with (place.root / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [program, *client.words], cwd=place.project, env=variables,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _play(client: Client, program: Path, place: Place, mock: Mock) -> None:
    """The whole story, or as much as there is time for; an agent that asked for nothing is quoted."""
    with _running(client, program, place, mock) as process:
        try:
            process.wait(AGENT_S)
        except subprocess.TimeoutExpired:
            print(f"{client.name} did not end within {AGENT_S} s.", file=sys.stderr)
    if not mock.asked:
        said = (place.root / "said.txt").read_text(errors="replace")
        print(f"{client.name} asked for none of our tools:\n{said[-2000:]}", file=sys.stderr)


def _killed(client: Client, program: Path, place: Place) -> int | None:
    """How many of our processes are left of an agent that is killed while a kernel runs; None: none ran."""
    with serving(Mock(LONG)) as mock, _running(client, program, place, mock) as process:
        until = time.monotonic() + AGENT_S
        while not any("twin-runner" in _words(item) for item in place.processes()):
            if process.poll() is not None or time.monotonic() > until:
                return None
            time.sleep(0.2)
        known = place.processes()
        server = next(item for item in known if " mcp " in _words(item))
        server.parent().kill()
        return place.left(known)


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


if __name__ == "__main__":
    sys.exit(main())
