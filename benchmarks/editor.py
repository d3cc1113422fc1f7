"""What the editor's user waits for: the server's start, its memory, and inlay hints from its cache.

A file of 2,500 lines with forty annotated functions is opened in the real server; the real worker
captures it once. Then hints are asked for the whole file and for a screenful, before and after edits.
Figures are measured on this machine.
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
from pathlib import Path
from typing import Any

import psutil
from lsprotocol import types
from pygls.lsp.client import LanguageClient

LINES = 2_500
FUNCTIONS = 40
STARTS = 5
REQUESTS = 400
SCREEN = 60
CAPTURE_TIMEOUT_S = 300.0

FUNCTION = """\
# evokernel: x=f16[64,{size}]
def attention_{number}(x):
    scores = torch.softmax(x * 0.125, dim=-1)
    return torch.nn.functional.gelu(scores) + 1.0


"""
FILLER = "SETTING_{number} = {{'name': 'value {number}', 'unit': 'µs'}}\n"


def model_text() -> str:
    """A file of LINES lines with FUNCTIONS functions that hold tensor code."""
    parts = ["import torch\n\n"]
    per_function = (LINES - 2) // FUNCTIONS
    for number in range(FUNCTIONS):
        body = FUNCTION.format(number=number, size=1024 + 128 * number)
        filler = per_function - body.count("\n")
        parts += [body, *(FILLER.format(number=number * 1000 + n) for n in range(filler))]
    text = "".join(parts)
    return text + "# end\n" * (LINES - text.count("\n"))


class Session:
    """One server process and a plain client."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.started = 0.0

        @self.client.feature(types.WORKSPACE_INLAY_HINT_REFRESH)
        def refresh(params: None) -> None:
            return None

        @self.client.feature("evokernel/status")
        def status(params: Any) -> None:
            return None

    async def start(self, folder: Path) -> float:
        """Seconds from the spawn to the answer of ``initialize``."""
        command = str(Path(sys.executable).with_name("evokernel"))
        began = time.perf_counter()
        await self.client.start_io(command, "lsp", "--stdio")
        await self.client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(),
                process_id=os.getpid(),
                workspace_folders=[types.WorkspaceFolder(folder.as_uri(), "benchmark")],
                initialization_options={"settings": {"pauseS": 3600.0}, "trusted": True},
            )
        )
        took = time.perf_counter() - began
        self.client.initialized(types.InitializedParams())
        return took

    def rss_mb(self) -> float:
        assert self.client._server is not None
        return float(psutil.Process(self.client._server.pid).memory_info().rss / 2**20)

    async def hints(self, uri: str, first: int, last: int) -> list[types.InlayHint]:
        wanted = types.Range(types.Position(first, 0), types.Position(last, 0))
        params = types.InlayHintParams(types.TextDocumentIdentifier(uri), wanted)
        return list(await self.client.text_document_inlay_hint_async(params) or ())

    async def stop(self) -> None:
        await self.client.shutdown_async(None)
        self.client.exit(None)
        await self.client.stop()


async def measure_starts(folder: Path) -> list[float]:
    """The first start loads the code from disk and is left out."""
    taken = []
    for _ in range(STARTS + 1):
        session = Session()
        taken.append(await session.start(folder))
        await session.stop()
    return taken[1:]


async def measure_hints(folder: Path) -> tuple[list[float], list[float], float, int]:
    """Milliseconds of requests from the cache and of those right behind an edit, MiB of the server, and
    the number of hints in the file."""
    path = folder / "model.py"
    path.write_text(model_text(), "utf-8")
    session = Session()
    await session.start(folder)
    item = types.TextDocumentItem(path.as_uri(), "python", 1, path.read_text("utf-8"))
    session.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    found = await wait_for_hints(session, item.uri)
    cached, edited = await ask_while_typing(session, item.uri)
    memory = session.rss_mb()
    await session.stop()
    return cached, edited, memory, found


async def wait_for_hints(session: Session, uri: str) -> int:
    end = time.monotonic() + CAPTURE_TIMEOUT_S
    while time.monotonic() < end:
        found = await session.hints(uri, 0, LINES)
        if len(found) >= FUNCTIONS:
            return len(found)
        await asyncio.sleep(0.2)
    raise SystemExit(f"The server showed {len(found)} hints after {CAPTURE_TIMEOUT_S:.0f} s.")


async def ask_while_typing(session: Session, uri: str) -> tuple[list[float], list[float]]:
    """Whole-file and screenful requests by turns; every tenth is sent right behind an edit, so that it
    waits for the edit to be parsed. Those are counted apart."""
    rng = random.Random(1)
    cached: list[float] = []
    edited: list[float] = []
    for number in range(REQUESTS):
        typed = number % 10 == 0
        if typed:
            type_a_line(session, uri, number + 2)
        first = 0 if number % 2 else rng.randrange(LINES - SCREEN)
        last = LINES * 2 if number % 2 else first + SCREEN
        began = time.perf_counter()
        await session.hints(uri, first, last)
        (edited if typed else cached).append(1000 * (time.perf_counter() - began))
    return cached, edited


def type_a_line(session: Session, uri: str, version: int) -> None:
    start = types.Position(1, 0)
    change = types.TextDocumentContentChangePartial(range=types.Range(start, start), text="# typed\n")
    session.client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(version=version, uri=uri), [change]
        )
    )


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


async def measure() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["EVOKERNEL_HOME"] = str(folder / "home")
        starts = await measure_starts(folder)
        hints, edited, memory, found = await measure_hints(folder)
    return {
        "hints_p95_ms": round(p95(hints), 2),
        "hints_p50_ms": round(statistics.median(hints), 2),
        "hints_after_edit_p95_ms": round(p95(edited), 2),
        "hints": found,
        "rss_mb": round(memory, 1),
        "start_s": round(statistics.median(starts), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    arguments = parser.parse_args()
    summary = asyncio.run(measure())
    print(f"server start          {summary['start_s']:.2f} s to initialized (median of {STARTS})")
    print(f"server memory         {summary['rss_mb']:.0f} MiB resident with a {LINES}-line file open")
    print(
        f"inlay hints           p50 {summary['hints_p50_ms']:.1f} ms, p95 {summary['hints_p95_ms']:.1f} ms"
        f" from cache, p95 {summary['hints_after_edit_p95_ms']:.1f} ms right behind an edit"
        f" ({summary['hints']} hints, {LINES} lines, measured at the client)"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({"summary": summary}, indent=2) + "\n")


if __name__ == "__main__":
    main()
