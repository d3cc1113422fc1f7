"""What the editor's user waits for, beside the servers that people know, in one run.

A model file of 2,501 lines from transformers, with forty regions behind it that a scripted worker finds, is
opened in our server, in the least that pygls can do, in ruff's server, and in jedi's. A person types, and
after each sign asks for the same things, one server after the other. Then another file is opened with the
real worker and torch agent: how soon its hints are there, and what the process tree holds, also after
minutes in which nobody does anything. Figures are measured on this machine, which others use too: compare
those of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.editing.light import measure_light  # noqa: E402
from benchmarks.editing.public_model import FUNCTIONS, PublicModel  # noqa: E402
from benchmarks.editing.wire import Server  # noqa: E402

WARMING = 10
SCREEN = 60
CAPTURE_TIMEOUT_S = 120.0
PAUSES = 12
PAUSE_S = 0.2
IDLE_S = 10.0
TYPED = "scores = torch.softmax(x * (0.125 + bias), dim=-1)\n        "
OURS = "evokernel"


@frozen
class Contestant:
    """A server with what it can be asked for beside code actions and hovers."""

    name: str
    command: tuple[str, ...]
    options: Mapping[str, Any] = field(factory=dict)
    hints: bool = False
    highlights: bool = False


def contestants(model: PublicModel) -> tuple[Contestant, ...]:
    here = Path(sys.executable).parent
    settings = {"pauseS": 3600.0, "programs": False}
    ours = {"settings": settings, "trusted": True}
    bare = str(Path(__file__).parent / "editing" / "bare_pygls.py")
    return (
        Contestant(OURS, (str(here / "evokernel"), "lsp", "--stdio"), ours, hints=True, highlights=True),
        Contestant("bare pygls", (sys.executable, bare), hints=True, highlights=True),
        Contestant("ruff", (str(here / "ruff"), "server")),
        Contestant("jedi", (str(model.bin / "jedi-language-server"),), highlights=True),
    )


class Typist:
    """One open document in one server, and what a person does in it."""

    def __init__(self, contestant: Contestant, server: Server, model: PublicModel) -> None:
        self.contestant = contestant
        self.server = server
        self.uri = model.path.as_uri()
        self.text = model.text
        self.lines = self.text.count("\n")
        self.version = 1
        item = {"uri": self.uri, "languageId": "python", "version": 1, "text": self.text}
        server.tell("textDocument/didOpen", {"textDocument": item})

    def change(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self.version += 1
        where = {"start": _position(*start), "end": _position(*end)}
        self.server.tell("textDocument/didChange", {
            "textDocument": {"uri": self.uri, "version": self.version},
            "contentChanges": [{"range": where, "text": text}],
        })  # fmt: skip

    async def ask(self, what: str, line: int, character: int) -> Any:
        document, here = {"textDocument": {"uri": self.uri}}, _position(line, character)
        if what.startswith("hints"):
            first, last = (
                (0, 2 * self.lines) if what == "hints, file" else (line - SCREEN // 2, line + SCREEN // 2)
            )
            area = {"start": _position(max(0, first), 0), "end": _position(last, 0)}
            return await self.server.ask("textDocument/inlayHint", {**document, "range": area})
        if what == "code action":
            area = {"range": {"start": here, "end": here}, "context": {"diagnostics": []}}
            return await self.server.ask("textDocument/codeAction", {**document, **area})
        method = {"hover": "textDocument/hover", "highlight": "textDocument/documentHighlight"}[what]
        return await self.server.ask(method, {**document, "position": here})

    @property
    def questions(self) -> tuple[str, ...]:
        hints = ("hints, screen", "hints, file") if self.contestant.hints else ()
        return ("code action", "hover", *hints, *(("highlight",) if self.contestant.highlights else ()))


def _position(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


async def measure_starts(entered: tuple[Contestant, ...], folder: Path, count: int) -> dict[str, float]:
    """Median seconds to the answer of ``initialize``. The first starts load code from disk, and are left
    out."""
    taken = defaultdict(list)
    for _ in range(count + 1):
        for contestant in entered:
            server = Server(contestant.command, os.environ)
            taken[contestant.name].append(await server.start(folder, contestant.options))
            await server.stop()
    return {name: statistics.median(values[1:]) for name, values in taken.items()}


async def captured(typist: Typist) -> int:
    """How many hints the file gets, once they are there."""
    end = time.monotonic() + CAPTURE_TIMEOUT_S
    while time.monotonic() < end:
        hints = await typist.ask("hints, file", 0, 0)
        if len(hints) >= FUNCTIONS:
            return len(hints)
        await asyncio.sleep(0.2)
    raise SystemExit(f"The server showed {len(hints)} hints after {CAPTURE_TIMEOUT_S:.0f} s.")


async def measure_typing(typists: list[Typist], line: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Milliseconds from each question to its answer, each right behind a sign that is typed into the line:
    the text is valid Python now and then."""
    rng = random.Random(1)
    taken: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(WARMING + rounds):
        at = number % len(TYPED)
        if number and at == 0:
            for typist in typists:
                typist.change((line, 0), (line + 1, 8), "        ")
        column = 8 + at if at <= TYPED.index("\n") else at - TYPED.index("\n") - 1
        row = line + (at > TYPED.index("\n"))
        for typist in rng.sample(typists, len(typists)):
            for what in typist.questions:
                typist.change((row, column), (row, column), TYPED[at] if what == "code action" else "")
                began = time.perf_counter()
                try:
                    await typist.ask(what, row, column)
                except RuntimeError:  # jedi's server fails in text that is no Python: that is its answer
                    if typist is typists[0]:
                        raise
                if number >= WARMING:
                    taken[typist.contestant.name][what].append(1000 * (time.perf_counter() - began))
    return taken


async def measure_pauses(ours: Contestant, model: PublicModel) -> list[float]:
    """Milliseconds from the end of a pause in typing to the request to show hints anew, for a text that was
    captured before, as behind an undo: what the server itself adds to a capture."""
    server = Server(ours.command, os.environ)
    await server.start(
        model.path.parent, {**ours.options, "settings": {**ours.options["settings"], "pauseS": PAUSE_S}}
    )
    typist = Typist(ours, server, model)
    await captured(typist)
    refreshed = asyncio.Event()
    server.heard = lambda method: refreshed.set() if method == "workspace/inlayHint/refresh" else None
    taken = []
    for _ in range(PAUSES):
        typist.change((1, 0), (1, 0), "x")
        typist.change((1, 0), (1, 1), "")
        refreshed.clear()
        began = time.perf_counter()
        async with asyncio.timeout(CAPTURE_TIMEOUT_S):
            await refreshed.wait()
        taken.append(1000 * (time.perf_counter() - began - PAUSE_S))
        await asyncio.sleep(PAUSE_S)
    await server.stop()
    return taken


async def measure_endurance(typist: Typist, edits: int) -> tuple[float, float]:
    """MiB that the server has grown by over many edits, behind a tenth of them, and the share of a core that
    it takes while nobody does anything."""
    before = 0.0
    for number in range(edits):
        typist.change((1, 0), (1, number % 2), "" if number % 2 else "#")
        if number % 200 == 0:
            await typist.ask("hints, screen", 40, 0)
        if number == edits // 10:
            before = typist.server.rss_mb()
    await typist.ask("hints, screen", 40, 0)
    grown = typist.server.rss_mb() - before
    await asyncio.sleep(1.0)
    used = sum(typist.server.process.cpu_times()[:2])
    await asyncio.sleep(IDLE_S)
    return grown, (sum(typist.server.process.cpu_times()[:2]) - used) / IDLE_S


async def measure(model: PublicModel, starts: int, rounds: int, edits: int) -> dict[str, Any]:
    entered = contestants(model)
    folder = model.path.parent
    started = await measure_starts(entered, folder, starts)
    typists = []
    for contestant in entered:
        server = Server(contestant.command, os.environ)
        await server.start(folder, contestant.options)
        typists.append(Typist(contestant, server, model))
    found = await captured(typists[0])
    line = typists[0].text[: typists[0].text.index("class BigBirdIntermediate")].count("\n") + 10
    taken = await measure_typing(typists, line, rounds)
    memory = {typist.contestant.name: typist.server.rss_mb() for typist in typists}
    grown, idle = await measure_endurance(typists[0], edits)
    for typist in typists:
        await typist.server.stop()
    return {
        "hints": found, "start_s": started, "rss_mb": memory, "grown_mb": grown,
        "edits": edits, "idle": idle, "lines": typists[0].lines,
        "pauses_ms": await measure_pauses(entered[0], model),
        "ms": {name: spread(of) for name, of in taken.items()},
    }  # fmt: skip


def spread(of: Mapping[str, list[float]]) -> dict[str, tuple[float, float]]:
    return {what: (statistics.median(values), p95(values)) for what, values in of.items()}


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def show(summary: dict[str, Any]) -> None:
    """Prints a table with a column for each server."""
    names = list(summary["start_s"])
    print(f"{summary['lines']} lines, {summary['hints']} hints")
    print(f"{'':26}" + "".join(f"{name:>16}" for name in names))
    print(f"{'start, s':26}" + "".join(f"{summary['start_s'][name]:>16.2f}" for name in names))
    print(f"{'memory, MiB':26}" + "".join(f"{summary['rss_mb'][name]:>16.0f}" for name in names))
    for what in summary["ms"][OURS]:
        cells = (summary["ms"][name].get(what) for name in names)
        row = "".join(f"{f'{cell[0]:.1f} / {cell[1]:.1f}' if cell else '-':>16}" for cell in cells)
        print(f"{f'{what}, ms p50 / p95':26}" + row)
    pauses = summary["pauses_ms"]
    print(
        f"pause to fresh regions    p50 {statistics.median(pauses):.1f} ms, p95 {p95(pauses):.1f} ms (a text"
        f" captured before)\nover {summary['edits']:,} edits       {summary['grown_mb']:+.1f} MiB\n"
        f"idle                      {100 * summary['idle']:.2f} % of a core"
    )


def show_light(summary: Mapping[str, Any]) -> None:
    """Prints what an open file takes with the real worker."""
    lines = (
        "{model} with the real worker",
        "first of {real_hints} hints          {first_hint_s:.1f} s, {first_hint_cpu_s:.1f} processor seconds",
        "all hints                 {all_hints_s:.1f} s",
        "process tree, MiB         {tree_mb_most:.0f} at most, {tree_mb_open:.0f} behind the analysis",
        "idle                      {tree_mb_idle:.0f} with {hints_idle} hints",
        "processes after seconds   {processes}",
        "an edit then              analysed after {again_s:.1f} s",
    )
    print("\n".join(lines).format(**summary))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument(
        "--environment", type=Path, default=ROOT / ".cache" / "editor", help="made where it is not"
    )
    parser.add_argument("--starts", type=int, default=5, help="of each server")
    parser.add_argument("--rounds", type=int, default=150, help="signs that are typed")
    parser.add_argument("--edits", type=int, default=20_000, help="edits over which memory is watched")
    parser.add_argument(
        "--model", type=Path, default=ROOT / "examples" / "transformer_block.py", help="for the real worker"
    )
    parser.add_argument("--idle", type=float, default=420.0, metavar="S", help="before the tree is idle")
    parser.add_argument("--light", action="store_true", help="only with the real worker")
    arguments = parser.parse_args()
    summary: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        os.environ["EVOKERNEL_HOME"] = str(Path(name) / "home")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else every start compiles what pip has compiled
        if not arguments.light:
            summary |= _scripted(arguments)
            show(summary)
        ours, project = (
            (str(Path(sys.executable).parent / "evokernel"), "lsp", "--stdio"),
            Path(name) / "project",
        )
        project.mkdir()
        light = asyncio.run(measure_light(ours, os.environ, arguments.model, project, arguments.idle))
        show_light(light)
    summary |= light
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary}, indent=2) + "\n")


def _scripted(arguments: argparse.Namespace) -> dict[str, Any]:
    worker = ROOT / "tests" / "server" / "scripted_worker.py"
    os.environ["EVOKERNEL_WORKER_COMMAND"] = f"'{sys.executable}' '{worker}'"
    model = PublicModel(arguments.environment.absolute())
    summary = asyncio.run(measure(model, arguments.starts, arguments.rounds, arguments.edits))
    del os.environ["EVOKERNEL_WORKER_COMMAND"]
    return summary


if __name__ == "__main__":
    main()
