"""What the whole suite takes: seconds and processor seconds by kind, folder and file, and its slowest tests.

    python benchmarks/suite.py [--json OUT] [--markdown OUT] [--command 'make test'] [--slowest 40]
    python benchmarks/suite.py --faults BEFORE.jsonl AFTER.jsonl

Runs the command once, alone, as a person would, and adopts every process that it leaves behind, so that the
whole has also what servers and forked programs took.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

ROOT = Path(__file__).parents[1]
PR_SET_CHILD_SUBREAPER = 36
"""From prctl(2)."""
KINDS = {
    "collection": "collection",
    "torch import": "import of torch",
    "test": "Python of the tests",
    "compile": "compiler",
    "twin": "twin's runner",
    "python": "other Pythons that tests start",
    "forked": "servers, agents and commands forked from prepared parents",
    "other": "other programs",
}
LEFT = "lint, processes that nobody waited for"


@frozen
class Suite:
    """One run: its exit status, wall seconds, processor seconds of all processes, and what each worker
    measured (``tests/parts.py``)."""

    status: int
    wall_s: float
    cpu_s: float
    workers: Sequence[Mapping[str, Any]]
    last_line: str
    orphans: Mapping[str, float]
    """Processor seconds of processes that nobody waited for, by what they were started as."""

    @property
    def rows(self) -> dict[str, Mapping[str, float]]:
        return {name: row for worker in self.workers for name, row in worker["rows"].items()}

    def by(self, key: Any) -> dict[str, tuple[int, float, float]]:
        """Tests, wall and processor seconds by a function of the test's id."""
        sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
        for name, row in self.rows.items():
            entry = sums[key(name)]
            entry[0] += 1
            entry[1] += row["wall"]
            entry[2] += cpu(row)
        return {name: (int(n), wall, used) for name, (n, wall, used) in sums.items()}

    def kinds(self) -> dict[str, float]:
        """Processor seconds by kind; what no worker saw is what is left of the whole."""
        sums: Counter[str] = Counter()
        for worker in self.workers:
            sums["collection"] += worker["collection"]
        for row in self.rows.values():
            sums.update({kind: value for kind, value in row.items() if kind != "wall"})
        named = {KINDS[kind]: sums[kind] for kind in KINDS if sums[kind]}
        waiting = sum(row["wall"] - cpu(row) for row in self.rows.values() if row["wall"] > cpu(row))
        return {
            **named,
            LEFT: self.cpu_s - sum(named.values()),
            "(wall seconds in which a worker waited)": waiting,
        }


def cpu(row: Mapping[str, float]) -> float:
    """A test's processor seconds, with those of the programs that it waited for."""
    return sum(value for kind, value in row.items() if kind != "wall")


def run(command: str) -> Suite:
    """Runs the command. Raises OSError where this system cannot adopt processes."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    with tempfile.TemporaryDirectory() as folder:
        parts, log = Path(folder) / "parts.json", Path(folder) / "log"
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        with log.open("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                ["bash", "-c", command], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                env={**os.environ, "EVOKERNEL_PARTS": str(parts)},
            )  # fmt: skip
            orphans: Counter[str] = Counter()
            status = _wait_and_adopt(process.pid, orphans)
        wall = time.monotonic() - began
        _bury(orphans)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = log.read_text("utf-8", errors="replace")
        sys.stdout.write(text)
        workers = json.loads(parts.read_text("utf-8"))["workers"] if parts.exists() else []
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    summary = [line for line in text.splitlines() if " passed" in line or " failed" in line]
    last_line = summary[-1].strip("= ") if summary else ""
    return Suite(status, wall, used, workers, last_line, dict(orphans.most_common(12)))


def _wait_and_adopt(pid: int, orphans: Counter[str]) -> int:
    """A process' exit status; orphans that became this process' children meanwhile are reaped as they end,
    and their processor seconds added by what they were started as."""
    names: dict[int, str] = {}
    looked = 0.0
    while True:
        ended, status, usage = os.wait4(-1, os.WNOHANG)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)
        if ended:
            orphans[names.pop(ended, "ended within half a second")] += usage.ru_utime + usage.ru_stime
            continue
        if time.monotonic() - looked > 0.5:
            names.update(_started_as())
            looked = time.monotonic()
        time.sleep(0.02)


def _started_as() -> dict[int, str]:
    """What all Pythons that run now were started as: their module or script, and what follows."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has ended
            found[int(folder.name)] = " ".join(word for word in words[:9] if "/tmp" not in word)[:120]
    return found


def _bury(orphans: Counter[str], seconds: float = 30) -> None:
    """Waits for the processes that the command left to this one."""
    end = time.monotonic() + seconds
    names = _started_as()
    while time.monotonic() < end:
        try:
            ended, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            orphans[names.get(ended, "")] += usage.ru_utime + usage.ru_stime
        else:
            time.sleep(0.1)


def folder_of(name: str) -> str:
    """tests/FOLDER of a test's id, or the file where it lies in tests itself."""
    return "/".join(name.partition("::")[0].split("/")[:2])


def file_of(name: str) -> str:
    return name.partition("::")[0]


def markdown(suite: Suite, slowest: int) -> Iterator[str]:
    """The run as tables."""
    yield f"{suite.last_line}."
    yield f"Wall {suite.wall_s:.0f} s, processor {suite.cpu_s:.0f} s, {os.cpu_count()} cores."
    yield ""
    yield from rows(
        ("kind", "processor s"), ((kind, f"{value:.0f}") for kind, value in suite.kinds().items())
    )
    orphans = [(f"`{name}`", f"{used:.0f}") for name, used in suite.orphans.items() if used >= 1]
    yield from rows(("processes that nobody waited for", "processor s"), orphans)
    for title, key, count in (("folder", folder_of, 99), ("file", file_of, slowest)):
        ranked = sorted(suite.by(key).items(), key=lambda item: -item[1][2])[:count]
        yield from rows(
            (title, "tests", "wall s", "processor s"),
            ((name, str(n), f"{wall:.1f}", f"{used:.1f}") for name, (n, wall, used) in ranked),
        )
    ranked = sorted(suite.rows.items(), key=lambda item: -item[1]["wall"])[:slowest]
    yield from rows(
        ("slowest tests", "wall s", "processor s"),
        ((name.replace("|", "\\|"), f"{row['wall']:.1f}", f"{cpu(row):.1f}") for name, row in ranked),
    )


def faults(before: Path, after: Path) -> Iterator[str]:
    """The planted faults of two runs of ``faults.py``, and whether the suite found them."""
    runs = [[json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in (before, after)]
    said = [{json.dumps(row["fault"], sort_keys=True): _found(row) for row in run} for run in runs]
    body = []
    for key, known in said[0].items():
        fault = json.loads(key)
        change = f"`{Path(fault['file']).name}`: `{fault['new'].strip()[:90]}`".replace("|", "\\|")
        body.append((fault["package"], fault["kind"], change, known, said[1].get(key, "not run")))
    yield from rows(("package", "kind", "the line as planted", "before", "after"), body)
    counts = [Counter(row[place] for row in body) for place in (3, 4)]
    for word in ("found", "not found", "not decided", "not run"):
        yield f"{word}: {counts[0][word]} before, {counts[1][word]} after;"
    lost = sum(row[3:] == ("found", "not found") for row in body)
    yield f"found before and not found after: {lost}."


def _found(row: Mapping[str, Any]) -> str:
    if row["found_by"]:
        return "found"
    return "not found" if row["ended"] else "not decided"


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield f"| {' | '.join(row)} |"
    yield ""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--command", default="make test")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--slowest", type=int, default=40)
    parser.add_argument("--faults", type=Path, nargs=2)
    given = parser.parse_args()
    if given.faults:
        print("\n".join(faults(*given.faults)))
        return 0
    suite = run(given.command)
    text = "\n".join(markdown(suite, given.slowest))
    print(text)
    if given.markdown:
        given.markdown.write_text(text + "\n", "utf-8")
    if given.json:
        summary = {
            "status": suite.status, "wall_s": suite.wall_s, "cpu_s": suite.cpu_s, "tests": len(suite.rows),
            "kinds": suite.kinds(),
        }  # fmt: skip
        given.json.write_text(json.dumps({"summary": summary, "rows": suite.rows}), "utf-8")
    return suite.status


if __name__ == "__main__":
    raise SystemExit(main())
