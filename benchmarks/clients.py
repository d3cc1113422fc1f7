"""What command line, editor and coding agents say of the same files, row by row: it has to be the same.

Each client's own code makes its rows, from the options or messages that it is given to what it would show.
They share one session, so that a file is captured once. Prints the rows that differ by file; status 1 where
one does.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from attrs import evolve, frozen
from click.testing import CliRunner
from evokernel_mcp.access import Access, Rules
from evokernel_mcp.answers import region_answer
from evokernel_mcp.pool import Pool
from evokernel_mcp.state import ServerState
from evokernel_server.documents.capture import Capture
from evokernel_server.documents.line_index import Text
from evokernel_server.documents.workspace import Document
from evokernel_server.jobs import worker as editor
from evokernel_server.trust import Trust

from benchmarks.corpus.entries import Entry, edited_copy, entries
from evokernel_core.capture import finder
from evokernel_core.cli import synth
from evokernel_core.cli.main import cli
from evokernel_core.domain.errors import EvoKernelError
from evokernel_core.domain.settings import Settings
from evokernel_core.memory.store import Memory
from evokernel_core.synthesis import session as sessions
from evokernel_core.synthesis.engine import Status, SynthesisResult
from evokernel_core.synthesis.session import Session
from evokernel_core.synthesis.worker import Worker, reason_of

OBSERVE_S = 300
"""Seconds for the program of a corpus' entry."""


@frozen
class Row:
    """An offer or a refusal as a client shows it. ``figures``: microseconds in eager mode, of the kernel and
    of its bound, and the gain, rounded as where they are told most coarsely; none of a refusal."""

    id: str
    lines: tuple[int, int]
    kind: str
    reason: str = ""
    figures: tuple[float, ...] = ()
    vendor: str = ""


Rows = tuple[Row, ...]


@frozen
class _Asked:
    """A worker as server and agents' server know one, which answers in this process."""

    worker: Worker

    async def request(self, method: str, params: Mapping[str, Any], **_: Any) -> dict[str, Any]:
        """Through JSON, as over a pipe. Raises WorkerError."""
        call = self.worker._methods[method]
        try:
            answer: dict[str, Any] = json.loads(json.dumps(call(0, json.loads(json.dumps(params)))))
        except EvoKernelError as error:
            raise editor.WorkerError(reason_of(error), error.sentence) from error
        return answer

    request_again = request


@contextmanager
def _asked(session: Session) -> Iterator[_Asked]:
    worker = Worker(io.StringIO())
    worker._session = session
    with patch.object(sessions, "SharedAgent", lambda *_, **__: nullcontext(session.agent)):
        yield _Asked(worker)


def command_line(session: Session, file: Path, *options: str) -> tuple[list[dict[str, Any]], int]:
    """The rows of ``evokernel synth``, and its status."""
    with patch.object(synth, "Session", lambda *_: nullcontext(session)):
        done = CliRunner().invoke(cli, ["synth", str(file), "--json", *options])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return json.loads(done.stdout)["regions"], done.exit_code


def of_command_line(session: Session, file: Path) -> Rows:
    """What ``evokernel synth --plan`` lists."""
    rows, _ = command_line(session, file, "--plan")
    return tuple(
        Row(
            row["id"], (row["line"], row["end_line"]), row["op_category"], row["reason"],
            figures(row["baseline_us"], row["estimate_us"], row["roofline_us"], row["gain"]),
            row["vendor"] or "",
        )
        for row in rows
    )  # fmt: skip


def of_editor(session: Session, file: Path) -> Rows:
    """What an editor has on the page of an open file once its programs are traced."""

    async def captured(asked: _Asked) -> Document:
        document = Document(file.as_uri(), file, 1, Text(file.read_text()))
        capture = Capture(
            cast("editor.Worker", asked), lambda: 0.0, _ignore, _always, lambda: True, _ignore,
            lambda _: str(file.parent), _ignore,
        )  # fmt: skip
        capture.soon(document, now=True)
        await asyncio.sleep(0)
        while capture._timers or capture.is_analysing(document):
            await asyncio.sleep(0.001)
        return document

    with _asked(session) as asked:
        document = asyncio.run(captured(asked))
    if document.problem is not None:
        raise EvoKernelError(document.problem.message)
    return tuple(
        Row(
            item.region.id,
            (document.text.span(item.extent).line, document.text.span(item.extent).end_line),
            item.region.op_category,
            item.region.reason,
            figures(found.now_us, found.after_us, found.bound_us, found.gain) if found else (),
            found.rival.name if found and found.rival else "",
        )
        for item in document.tracked
        for found in (item.captured.estimate,)
    )


def of_agent(session: Session, file: Path) -> Rows:
    """What the tool plan answers."""
    with _asked(session) as asked:
        access = Access((file.parent,), Trust(folders=(file.parent,)), may_write=False)
        offers = asyncio.run(ServerState(Rules(), cast("Pool", asked)).plan(file, access)).offers
    return tuple(
        Row(
            row.id, _lines(row.lines), row.category, row.reason,
            figures(row.now_us, row.kernel_us, row.bound_us, row.gain), row.vendor,
        )
        for row in map(region_answer, offers)
    )  # fmt: skip


def _lines(words: str) -> tuple[int, int]:
    first, _, last = words.partition("-")
    return int(first), int(last or first)


def figures(
    eager_us: float | None, kernel_us: float | None, bound_us: float | None, gain: float | None
) -> tuple[float, ...]:
    """Each rounded once: agents are told times with two digits and gains with four."""
    times = (eager_us, kernel_us, bound_us)
    rounded = tuple(round(figure, 2) for figure in times if figure is not None)
    return rounded if gain is None else (*rounded, round(gain, 4))


def _ignore(*_: object) -> None:
    return


def _always(_: object) -> bool:
    return True


CLIENTS: Mapping[str, Callable[[Session, Path], Rows]] = {
    "command line": of_command_line,
    "editor": of_editor,
    "agent": of_agent,
}


def said(client: Callable[[Session, Path], Rows], session: Session, file: Path) -> Rows:
    """A client's rows; of a file that has none, the reason as one."""
    try:
        return client(session, file)
    except EvoKernelError as error:
        return (Row("", (1, 1), "other", str(error)),)


def written(session: Session, file: Path) -> list[dict[str, Any]]:
    """The rows of ``evokernel synth`` where no kernel can be verified: all that it tries, and all that it
    refuses. None of a file that cannot be captured."""
    none = SynthesisResult(Status.INFEASIBLE, "", None, 0, None, 0)
    with patch.object(Session, "synthesise", lambda *_, **__: none):
        try:
            return command_line(session, file, "--all")[0]
        except EvoKernelError:
            return []


def compare(session: Session, file: Path) -> tuple[Rows, list[str]]:
    """The command line's rows of a file, and where the others differ from them or ``synth`` from its plan."""
    served = finder.imports_torch(file.read_text())  # an editor asks about no other file
    clients = {name: client for name, client in CLIENTS.items() if served or name != "editor"}
    first, *others = ((name, said(client, session, file)) for name, client in clients.items())
    found = [
        f"{name}: {row}"
        for name, rows in others
        for row in sorted({*_unquoted(rows)} ^ {*_unquoted(first[1])}, key=lambda row: row.lines)
    ]
    found += [
        f"{name}: in another order"
        for name, rows in others
        if not found and _unquoted(rows) != _unquoted(first[1])
    ]
    return first[1], found + list(_lost(first[1], written(session, file)))


def _unquoted(rows: Rows) -> Rows:
    """Rows without the quotes that agents' answers have around words of others."""
    return tuple(evolve(row, reason=row.reason.replace('"', "")) for row in rows)


def _lost(planned: Sequence[Row], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Offers of a plan with a gain that ``synth`` neither tries nor leaves for one that it tries on the same
    lines, and refusals that the plan lacks. What gains nothing is left for kernels of what it calls."""
    tried = {row["id"] for row in rows if row["status"] != "unsupported"}
    refused = {(row["id"], row["reason"]) for row in rows if row["status"] == "unsupported"}
    offers = {row.id: row for row in planned if row.figures}
    lines = [offers[id].lines for id in tried & offers.keys()]
    for row in offers.values():
        is_near = any(first <= row.lines[1] and row.lines[0] <= last for first, last in lines)
        if row.figures[-1] > 0 and not is_near:
            yield f"synth: does not try {row}"
    for id, reason in sorted(refused - {(row.id, row.reason) for row in planned}):
        yield f"synth: refuses {id}: {reason}"


@frozen
class File:
    """A model file to ask about, by the interpreter that runs it; the environment's if none is named."""

    name: str
    path: Path
    interpreter: str = ""


def of_corpus(corpus: Path, pattern: str, folder: Path) -> Iterator[File]:
    """Copies of a corpus' files below ``folder``, each after its program was observed."""
    for entry in entries(corpus, pattern):
        path = edited_copy(entry, folder / entry.name)
        if entry.driver:
            observe(entry, folder / entry.name)
        yield File(entry.name, path, str(entry.interpreter))


def observe(entry: Entry, tree: Path) -> None:
    """Runs an entry's driver under ``evokernel observe``; what it could not learn is missing for all."""
    run = "from evokernel_core.cli.main import main; main()"
    command = [sys.executable, "-c", run, "observe", "--workspace", str(tree), "--"]
    command += [str(entry.interpreter), *entry.driver]
    try:
        subprocess.run(
            command,
            env=entry.environment(tree),
            cwd=tree,
            timeout=OBSERVE_S,
            capture_output=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"{entry.name}: its program did not end in {OBSERVE_S} s", file=sys.stderr)


def main() -> int:
    args = _arguments()
    results: dict[str, list[str]] = {}
    count = 0
    with tempfile.TemporaryDirectory() as folder, Memory(Path(folder) / "memory.db") as memory:
        files = [File(str(file), file.absolute()) for file in args.files]
        corpus = of_corpus(args.corpus.absolute(), args.filter, Path(folder)) if args.corpus else ()
        for file in chain(files, corpus):
            rows, results[file.name] = _compared(memory, file)
            count += len(rows)
            print(f"{file.name}: {len(rows)} rows", *results[file.name], sep="\n    ", flush=True)
    differing = sum(map(bool, results.values()))
    print(f"\n{len(results)} files, {count} rows of each client; {differing} files in which they differ")
    if args.json:
        summary = {"files": len(results), "rows": count, "differing": differing}
        args.json.write_text(json.dumps({"files": results, "summary": summary}, indent=1) + "\n")
    return int(differing > 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--corpus", type=Path, help="the corpus of benchmarks/meaning.py, observed first")
    parser.add_argument("--filter", default="*", help="the entries of the corpus that fit")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _compared(memory: Memory, file: File) -> tuple[Rows, list[str]]:
    settings = Settings(interpreter=file.interpreter) if file.interpreter else Settings()
    with Session(settings, file.path.parent, memory) as session:
        return compare(session, file.path)


if __name__ == "__main__":
    sys.exit(main())
