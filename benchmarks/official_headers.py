"""Compiles kernels against the official AscendC headers of an asc-devkit checkout, without an NPU.

    python benchmarks/official_headers.py --asc-devkit DIR [--kernels DIR ...] [--jobs N] [--json OUT]
    python benchmarks/official_headers.py --asc-devkit DIR --kernelbench DIR --levels 1,2,3
    python benchmarks/official_headers.py --asc-devkit DIR --planted
    python benchmarks/official_headers.py --asc-devkit DIR --samples

clang in CUDA mode checks host and device functions, address spaces, overloads and types, once for vector
and once for cube cores; no code is made. Without a choice the kernels of docs/kernels are judged. With
``--kernelbench`` the author's best plan for each problem is emitted, unverified, and judged. ``--planted``
takes errors of ours, each of which must be found; ``--samples`` the checkout's own samples for Atlas A2.

Only the compiler's messages are taken from the headers. Exit status 1 where a kernel does not pass or a
planted error is not found, 2 where the compiler or the checkout cannot be used.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from attrs import frozen
from vendor_headers.messages import Message, first_of_each, in_kernel, normalised
from vendor_headers.planted import planted_errors
from vendor_headers.toolchain import Toolchain, Unit, Unusable, find_clang
from vendor_headers.units import kernel_folders, kernel_unit, sample_units, text_unit

HERE = Path(__file__).parent
OWN = HERE.parent / "docs" / "kernels"
EXAMPLES = HERE.parent / "examples"
_MOST_ROUNDS = 12
_FIRST_BATCH = 4
_SHOWN = 25


@frozen
class Judged:
    """A file with every error; none means that it passes."""

    unit: Unit
    every: tuple[Message, ...]

    @property
    def messages(self) -> list[Message]:
        """One error of each kind."""
        return first_of_each(self.every)

    def row(self) -> dict[str, Any]:
        """As JSON: one object."""
        return {
            "name": self.unit.name,
            "passed": not self.messages,
            "messages": [*map(self.said, self.messages)],
        }

    def said(self, message: Message) -> str:
        """A message with its place in the kernel, as people read it."""
        place = in_kernel(message, self.unit.folder)
        where = f"{place.file.name}:{place.line}" if place else message.place.file.name
        return f"{where}: {message.text}"


def judge_all(toolchain: Toolchain, units: Sequence[Unit], jobs: int, *, learning: bool) -> list[Judged]:
    """Judges files. Where headers lack something that no file before needed, mends it and judges those that
    failed again; the first batches are small, because most is learnt from few files."""
    done: dict[str, Judged] = {}
    start, size = 0, _FIRST_BATCH
    while start < len(units):
        batch = units[start : start + size] if learning else units
        for item in _settled(toolchain, batch, jobs, learning=learning):
            done[item.unit.name] = item
        start, size = start + len(batch), 2 * size
        passed = sum(not item.messages for item in done.values())
        print(f"{start} of {len(units)} judged, {passed} pass", file=sys.stderr, flush=True)
    return [done[unit.name] for unit in units]


def _settled(toolchain: Toolchain, units: Sequence[Unit], jobs: int, *, learning: bool) -> list[Judged]:
    """The files judged with all that can be learnt from them."""
    done: dict[str, Judged] = {}
    waiting = list(units)
    for _ in range(_MOST_ROUNDS):
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            found = list(pool.map(lambda unit: _messages(toolchain, unit), waiting))
        for unit, messages in zip(waiting, found, strict=True):
            done[unit.name] = Judged(unit, tuple(messages))
        waiting = [unit for unit in waiting if done[unit.name].messages]
        if not learning or not toolchain.teach(_instructive(toolchain, done, waiting)):
            break
        toolchain.prepare()
    return [done[unit.name] for unit in units]


def _instructive(toolchain: Toolchain, done: dict[str, Judged], failed: Sequence[Unit]) -> list[Message]:
    """What headers lack, as failing files show it; of a file that goes without a header of another package
    only the names of such headers, for all else follows from it."""
    found: list[Message] = []
    for unit in failed:
        whole = not toolchain.lacking(unit)
        found += [item for item in done[unit.name].every if whole or item.missing_file]
    return found


def _messages(toolchain: Toolchain, unit: Unit) -> list[Message]:
    return [message for core in unit.cores for message in toolchain.judge(unit, core)]


def judge_kernels(toolchain: Toolchain, roots: list[Path], jobs: int) -> list[Judged]:
    """Judges the folders of kernels below the roots."""
    folders = kernel_folders(roots)
    units = [kernel_unit(name, folder, number, toolchain) for number, (name, folder) in enumerate(folders)]
    return judge_all(toolchain, units, jobs, learning=True)


def judge_samples(
    toolchain: Toolchain, args: argparse.Namespace
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Judges the checkout's samples; those that include headers of other packages are counted apart."""
    units = list(sample_units(args.asc_devkit.resolve() / "examples", toolchain))
    units = [unit for unit in units if fnmatch.fnmatch(unit.name, args.filter)]
    judged = judge_all(toolchain, units, args.jobs, learning=True)
    lacking = {unit.name: toolchain.lacking(unit) for unit in units}
    complete = [item for item in judged if not lacking[item.unit.name]]
    figures = report(complete, "complete samples")
    outside = Counter(header for headers in lacking.values() for header in headers)
    print(f"samples that need headers of other packages: {len(judged) - len(complete)}; {dict(outside)}")
    summary = {"samples": figures["kernels"], "samples_passed": figures["passed"]}
    return summary, [item.row() for item in judged]


def judge_planted(toolchain: Toolchain, jobs: int) -> tuple[int, list[str]]:
    """How many errors were planted, and what is wrong with those that were not found."""
    errors = planted_errors()
    bases = {error.base for error in errors}
    sound = judge_all(
        toolchain,
        [text_unit(f"base_{base.name}", base.texts(), toolchain) for base in bases],
        jobs,
        learning=True,
    )
    missed = [f"{item.unit.name}: the kernel fails as it is: {item.said(item.messages[0])}"
              for item in sound if item.messages]  # fmt: skip
    units = [text_unit(f"planted_{error.name}", error.texts(), toolchain) for error in errors]
    for error, found in zip(errors, judge_all(toolchain, units, jobs, learning=False), strict=True):
        said = [found.said(message) for message in found.messages]
        if not any(error.matches(text) for text in said):
            missed.append(f"{error.name}: {said[0] if said else 'passes'}")
    return len(errors), missed


def report(judged: Sequence[Judged], what: str) -> dict[str, Any]:
    """Prints the figures and the messages, most frequent first."""
    counts = Counter(normalised(message.text) for item in judged for message in item.messages)
    example = {normalised(message.text): item.said(message) + f" ({item.unit.name})"
               for item in judged for message in item.messages}  # fmt: skip
    passed = sum(not item.messages for item in judged)
    print(f"{what}: {passed} of {len(judged)} pass, {len(judged) - passed} fail")
    for text, count in counts.most_common(_SHOWN):
        print(f"  {count:4} {text}\n       e.g. {example[text]}")
    return {"kernels": len(judged), "passed": passed}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--asc-devkit", type=Path, required=True, metavar="DIR")
    parser.add_argument("--kernels", type=Path, nargs="+", default=[], metavar="DIR")
    parser.add_argument("--kernelbench", type=Path, metavar="DIR", help="folder with level1, level2 ...")
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--filter", default="*", metavar="GLOB")
    parser.add_argument(
        "--emitted", type=Path, metavar="DIR", help="keep what is emitted, and go on from there"
    )
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--samples", action="store_true")
    parser.add_argument("--clang", default="", help="the compiler, 16 or newer")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="OUT")
    return parser.parse_args()


def main() -> int:
    args = _arguments()
    with tempfile.TemporaryDirectory(prefix="official-headers-") as scratch:
        try:
            toolchain = Toolchain(find_clang(args.clang), args.asc_devkit.resolve(), Path(scratch).resolve())
            started = time.monotonic()
            toolchain.prepare()
        except Unusable as reason:
            print(f"official_headers: {reason}", file=sys.stderr)
            return 2
        print(f"headers made ready in {time.monotonic() - started:.0f} s: {_left(toolchain)}")
        return _judge(args, toolchain, Path(scratch) / "emitted")


def _left(toolchain: Toolchain) -> str:
    counts = {core.name.lower(): len(messages) for core, messages in toolchain.left.items()}
    return f"{len(toolchain.stubs.kinds)} stubs, messages left in the headers themselves: {counts}"


def _judge(args: argparse.Namespace, toolchain: Toolchain, scratch: Path) -> int:
    summary: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    failed = False
    roots = list(args.kernels)
    if args.kernelbench:
        roots += [OWN, *_emit(args, args.emitted or scratch)]
    if not roots and not args.planted and not args.samples:
        roots = [OWN]
    if roots:
        judged = judge_kernels(toolchain, roots, args.jobs)
        summary |= report(judged, "kernels")
        rows += [item.row() for item in judged]
        failed |= summary["passed"] < summary["kernels"] or not judged
    if args.samples:
        figures, found = judge_samples(toolchain, args)
        summary |= figures
        rows += found
    if args.planted:
        planted, missed = judge_planted(toolchain, args.jobs)
        print(f"planted errors: {planted - len(missed)} of {planted} caught", *missed, sep="\n  ")
        summary |= {"planted": planted, "caught": planted - len(missed)}
        failed |= bool(missed)
    print(json.dumps(summary))
    if args.json:
        args.json.write_text(json.dumps({"files": rows, "summary": summary}, indent=1) + "\n")
    return 1 if failed else 0


def _emit(args: argparse.Namespace, out: Path) -> list[Path]:
    """Emits the kernels of the suite and of our examples; torch captures each problem, which takes seconds
    apiece."""
    from vendor_headers.emitted import emit_suite

    levels = [int(level) for level in args.levels.split(",") if level]
    emitted = emit_suite(args.kernelbench, levels, args.filter, out / args.kernelbench.name)
    emitted += emit_suite(EXAMPLES, (), "*", out / EXAMPLES.name)
    print(f"emitted: {sum(item.kernels for item in emitted)} kernels of {len(emitted)} problems")
    for item in emitted:
        if not item.kernels:
            print(f"  no kernel: {item.problem}: {' '.join(item.reasons)[:200]}")
    return [out / args.kernelbench.name, out / EXAMPLES.name]


if __name__ == "__main__":
    sys.exit(main())
