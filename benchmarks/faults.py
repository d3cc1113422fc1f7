"""Plants faults in the product and says which of them the suite finds.

    python benchmarks/faults.py draw [--seed N] FAULTS.json
    python benchmarks/faults.py run FAULTS.json --out OUT.jsonl [--earlier OUT.jsonl] [--jobs N] [--seconds N]

Five faults for each package (an operator flipped, a guard dropped, a hazard silenced, a sentence changed, a
lock removed) are drawn by chance alone. Each is planted alone in a copy of the tree, in which the tests of
its package and those that read all sources run until one fails; that one has to fail again by itself, and to
pass in a copy without the fault. What is not found is tried with the other tests that import its module.
``--earlier`` names the rows of another run: the files that found a fault there are tried first.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen

ROOT = Path(__file__).parents[1]
PACKAGES = {
    **{f"evokernel_core/{name}": f"tests/{name}" for name in (
        "capture", "cli", "domain", "memory", "report", "synthesis", "twin", "vendor", "verifier",
    )},
    **{
        f"evokernel_core/{name}": "tests/targets/ascendc"
        for name in ("compiler", "package", "targets/ascendc")
    },
    "evokernel_core/hardware": "tests/twin",
    "server/evokernel_mcp": "tests/mcp",
    "server/evokernel_server": "tests/server",
}  # fmt: skip
"""Where each package's own tests lie."""
EACH = 5
SWAPPED = {
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<")},
    **{ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in")},
    **{ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and")},
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*")},
}  # fmt: skip


@frozen
class Fault:
    """One change of one line, which is the ``nth`` with this text in its file."""

    package: str
    kind: str
    file: str
    nth: int
    old: str
    new: str

    def plant(self, root: Path) -> None:
        """Raises ValueError where the line is not there any more."""
        path = root / self.file
        lines = path.read_text("utf-8").splitlines(keepends=True)
        same = [number for number, line in enumerate(lines) if line.rstrip("\n") == self.old]
        if len(same) <= self.nth:
            raise ValueError(f"{self.file} has no line {self.old.strip()!r} any more")
        lines[same[self.nth]] = self.new + "\n"
        path.write_text("".join(lines), "utf-8")


def draw(seed: int) -> list[Fault]:
    """The faults, package by package."""
    chance = random.Random(seed)
    return [fault for package in PACKAGES for fault in _draw_package(package, chance)]


def _draw_package(package: str, chance: random.Random) -> list[Fault]:
    sites = sorted(candidates(package), key=lambda fault: (fault.file, fault.nth, fault.old, fault.new))
    drawn: list[Fault] = []
    for kind in ("hazard", "lock", "sentence", "guard", "operator"):
        known = [site for site in sites if site.kind == kind]
        drawn += [chance.choice(known)] if known else []
    while len(drawn) < EACH:
        drawn.append(chance.choice([site for site in sites if site.kind == "operator" and site not in drawn]))
    chance.shuffle(drawn)
    return drawn[:EACH]


def candidates(package: str) -> Iterator[Fault]:
    """Every fault that could be planted in a package."""
    for path in sorted((ROOT / package).rglob("*")):
        if path.suffix == ".py":
            yield from _of_python(package, path)
        elif path.suffix in {".cpp", ".h"} and "include/" not in path.as_posix():
            yield from _of_cpp(package, path)


def _of_python(package: str, path: Path) -> Iterator[Fault]:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    seen: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        seen.setdefault(line, []).append(number)
    for node in ast.walk(ast.parse(text)):
        for kind, first, start, end, new in _edits(node, lines):
            old = lines[first - 1]
            changed = (old.encode()[:start] + new.encode() + old.encode()[end:]).decode()
            if changed != old:
                yield Fault(
                    package, kind, path.relative_to(ROOT).as_posix(), seen[old].index(first - 1), old, changed
                )


def _edits(node: ast.AST, lines: Sequence[str]) -> Iterator[tuple[str, int, int, int, str]]:
    """Kind, line, first and last byte of what goes, and what comes."""
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield from _operator(left, operator, right, lines)
        case ast.BinOp(left=left, op=operator, right=right):
            yield from _operator(left, operator, right, lines)
        case ast.BoolOp(op=operator, values=[left, right]):
            yield from _operator(left, operator, right, lines)
        case ast.If(test=test, body=[ast.Raise() | ast.Return() | ast.Continue()], orelse=[]):
            if test.lineno == test.end_lineno:
                yield "guard", test.lineno, test.col_offset, test.end_col_offset or 0, "False"
        case ast.With(items=[ast.withitem(optional_vars=None)], lineno=line):
            if re.search(r"(\b|_)lock(ed)?\b", text := lines[line - 1]) and text.rstrip().endswith(":"):
                yield "lock", line, node.col_offset, len(text.encode()), "if True:"
        case ast.Raise(exc=ast.Call(args=[ast.Constant(value=str(said), lineno=line) as constant, *_])):
            yield from _sentence(said, constant, line, lines)
        case ast.Call(
            func=ast.Name(id="Sentence" | "_"),
            args=[ast.Constant(value=str(said), lineno=line) as constant, *_],
        ):
            yield from _sentence(said, constant, line, lines)


def _operator(
    left: Any, operator: Any, right: Any, lines: Sequence[str]
) -> Iterator[tuple[str, int, int, int, str]]:
    if type(operator) in SWAPPED and left.end_lineno == right.lineno:
        was, new = SWAPPED[type(operator)]
        between = lines[left.end_lineno - 1].encode()[left.end_col_offset : right.col_offset]
        if between.count(was.encode()) == 1:
            start = left.end_col_offset + between.index(was.encode())
            yield "operator", left.end_lineno, start, start + len(was), new


def _sentence(
    said: str, node: Any, line: int, lines: Sequence[str]
) -> Iterator[tuple[str, int, int, int, str]]:
    for word in re.finditer(r"(?<=[a-z] )[a-z]{4,}(?= [a-z])", said):
        start = lines[line - 1].encode().find(word[0].encode(), node.col_offset)
        if start >= 0:
            yield "sentence", line, start, start + len(word[0]), "other"
            return


def _of_cpp(package: str, path: Path) -> Iterator[Fault]:
    lines, seen = path.read_text("utf-8").splitlines(), {}
    for line in lines:
        nth = seen[line] = seen.get(line, -1) + 1
        name = path.relative_to(ROOT).as_posix()
        if re.match(r"\s+Report(Error|Warning)\(", line):
            yield Fault(
                package, "hazard", name, nth, line, re.sub(r"Report", "if (false) Report", line, count=1)
            )
        for match in re.finditer(r"(?<=\w) (<=|>=|==|!=|<|>|&&|\|\|) (?=\w)", line):
            if not re.match(r"\s*(if|while|return|for)\b", line):
                continue
            new = {
                "<=": "<",
                ">=": ">",
                "==": "!=",
                "!=": "==",
                "<": "<=",
                ">": ">=",
                "&&": "||",
                "||": "&&",
            }[match[1]]
            yield Fault(
                package, "operator", name, nth, line, f"{line[: match.start(1)]}{new}{line[match.end(1) :]}"
            )


@frozen
class Runs:
    """Runs tests in copies of this tree, which share what is compiled, until a time."""

    folder: Path
    deadline: float
    broken: set[str] = field(factory=set)
    """Tests that fail without a fault, as on a machine that lacks a program."""

    def copy(self, name: str, fault: Fault | None) -> Path:
        tree = self.folder / name
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        if fault is not None:
            fault.plant(tree)
        return tree

    def failures(self, tree: Path, arguments: Sequence[str]) -> tuple[set[str], int]:
        """The tests that fail in a tree, and how many ran; "..." among them where it did not end."""
        with tempfile.TemporaryDirectory(dir=self.folder, ignore_cleanup_errors=True) as scratch:
            report, shared = Path(scratch) / "listed", self.folder / "home"
            (Path(scratch) / "faults_listed.py").write_text(LISTED, "utf-8")
            shared.mkdir(exist_ok=True)
            paths = [str(tree), str(tree / "server"), scratch, *filter(None, [os.environ.get("PYTHONPATH")])]
            environment = {
                **os.environ, "PYTHONPATH": os.pathsep.join(paths), "EVOKERNEL_HOME": str(shared),
                "FAULTS_LISTED": str(report), "TMPDIR": scratch, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            }  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", *PLUGINS, "--timeout", "90", *arguments],
                cwd=tree, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            ended = _wait(process, self.deadline - time.monotonic())
            lines = report.read_text("utf-8").splitlines() if report.exists() else []
        failed = {line[2:] for line in lines if line.startswith("F ")}
        return (failed if ended else failed | {"..."}), len(lines)


NOT_COPIED = (
    *(".git", ".venv", ".whl", ".dev", ".cache", ".e2e", "node_modules", "__pycache__", "*.egg-info"),
    *(".mypy_cache", ".ruff_cache", ".hypothesis", ".pytest_cache", "build", "dist"),
)
PLUGINS = ("-p", "no:cacheprovider", "-p", "faults_listed")
LISTED = '''
import os


def pytest_runtest_logreport(report):
    """One line for each test that failed or passed, in the process that gathers them."""
    if "PYTEST_XDIST_WORKER" in os.environ or not (report.failed or report.when == "call"):
        return
    with open(os.environ["FAULTS_LISTED"], "a") as file:
        print("F" if report.failed else "P", report.nodeid, file=file)


def pytest_collectreport(report):
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(os.environ["FAULTS_LISTED"], "a") as file:
            print("F", report.nodeid, file=file)
'''


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ended by itself; it is killed with its group otherwise."""
    try:
        process.wait(max(seconds, 1))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def run(faults: Sequence[Fault], runs: Runs, jobs: int, earlier: Earlier) -> Iterator[Mapping[str, Any]]:
    """A row for each fault: the tests that find it."""
    runs.copy("clean", None)

    def alone(number: int) -> Mapping[str, Any]:
        fault, began = faults[number], time.monotonic()
        tree = runs.copy(f"fault{number}", fault)
        found, count, ended = search(fault, tree, runs, earlier.get(fault, ()))
        shutil.rmtree(tree, ignore_errors=True)
        return {
            "fault": asdict(fault), "found_by": sorted(found), "tests": count, "ended": ended,
            "seconds": round(time.monotonic() - began, 1),
        }  # fmt: skip

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(alone, range(len(faults)))


Earlier = Mapping[Fault, Sequence[str]]
"""The tests that found a fault in another run."""


def search(fault: Fault, tree: Path, runs: Runs, earlier: Sequence[str]) -> tuple[set[str], int, bool]:
    """The tests that find a fault, how many ran, and whether all ran that were to."""
    total, all_ended, done = 0, True, set[str]()
    for files in steps(fault, tree, earlier):
        places = [file for file in files if file not in done]
        done.update(places)
        if not places:
            continue
        options = ["-m", "not thorough", "--maxfail", "5", "-n", "2", "--dist", "worksteal"]
        while True:
            known = [f"--deselect={test}" for test in sorted(runs.broken)]
            failed, count = runs.failures(tree, [*options, *known, *places])
            total, ended = total + count, "..." not in failed
            if found := _confirmed(failed - {"..."}, tree, runs):
                return found, total, True
            if not ended or len(failed) < 5:
                break
        all_ended = all_ended and ended
    return set(), total, all_ended


def _confirmed(failed: set[str], tree: Path, runs: Runs) -> set[str]:
    """Those that fail again alone (a busy machine fails, too) and that pass in the tree without the fault."""
    tests = sorted(test for test in failed if "::" in test)
    if not tests:
        return failed
    again = runs.failures(tree, ["-p", "no:xdist", *tests])[0] - {"..."}
    if again:
        runs.broken.update(runs.failures(runs.folder / "clean", ["-p", "no:xdist", *sorted(again)])[0])
    return again - runs.broken


def steps(fault: Fault, tree: Path, earlier: Sequence[str]) -> Iterator[list[str]]:
    """The files of tests to run, those first that are likely to find the fault."""
    name = fault.file.removeprefix("server/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    parent, _, last = name.rpartition(".")
    imported = re.compile(
        rf"\b{re.escape(name)}\b|from {re.escape(parent)} import [^\n]*\b{re.escape(last)}\b"
    )
    files = {path.relative_to(tree).as_posix(): path for path in sorted((tree / "tests").rglob("test_*.py"))}
    direct = [file for file, path in files.items() if imported.search(path.read_text("utf-8"))]
    own = [file for file in files if file.startswith(f"{PACKAGES[fault.package]}/")]
    yield [file for file in files if file in {test.partition("::")[0] for test in earlier}]
    yield [file for file in direct if file in own] + [file for file in OF_ALL_SOURCES if file in files]
    yield own
    yield [file for file in direct if "/e2e/" not in file]


OF_ALL_SOURCES = ("tests/server/test_words.py", "tests/test_layers.py", "tests/test_docs.py")
"""Tests that read the text of every package."""


def earlier_of(path: Path | None) -> Earlier:
    """What another run's rows say."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path else []
    return {Fault(**row["fault"]): row["found_by"] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("faults", type=Path)
    drawing.add_argument("--seed", type=int, default=34)
    running = commands.add_parser("run")
    running.add_argument("faults", type=Path)
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--earlier", type=Path)
    running.add_argument("--jobs", type=int, default=1)
    running.add_argument("--seconds", type=float, default=36_000)
    given = parser.parse_args()
    if given.command == "draw":
        given.faults.write_text(json.dumps([asdict(fault) for fault in draw(given.seed)], indent=1), "utf-8")
        return 0
    faults = [Fault(**fault) for fault in json.loads(given.faults.read_text("utf-8"))]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, given.out.open("w") as out:
        runs = Runs(Path(folder), time.monotonic() + given.seconds)
        for row in run(faults, runs, given.jobs, earlier_of(given.earlier)):
            print(json.dumps(row), file=out, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
