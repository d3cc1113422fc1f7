"""Whether an edited model means what the original means, on model files as people write them.

    python benchmarks/meaning.py --corpus DIR [--json OUT] [--filter GLOB] [--jobs N] [--quick]
                                 [--edits synth|captured|single] [--seconds S] [--only KIND:NUMBER:MODE]
                                 [--fresh]

DIR is what benchmarks/corpus/prepare.py makes; files with ``get_inputs()`` below it are taken too. Each entry
is observed while its driver runs, edited by ``evokernel synth --apply`` (or, with ``--edits captured``, by
every region that a capture finds, which takes seconds and has no verified kernels; with ``--edits single`` by
those of one kernel each, which are the smaller regions of a file), and then original and
edited program are built and called under hundreds of perturbations: once as a machine without an NPU sees
the edit, and once with EVOKERNEL_EMULATE=1, where a guard that holds runs the kernel's reference.

A *silent difference* is one that raises nothing: other values, dtypes, shapes, gradients, random draws,
state, or no exception where the original has one. Results are kept below DIR/runs; what is there is not
done again without --fresh.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from corpus.entries import HERE, Entry, edited_copy, entries

Row = dict[str, Any]
CLI = (sys.executable, "-c", "from evokernel_core.cli.main import main; main()")
PLAIN, EMULATED = "plain", "emulated"
OBSERVE_S, EDIT_S, RESTARTS = 300, 1800, 5
QUICK_S = 10.0
UNREACHED = "needs_shapes"
"""The status of a definition that a driver does not call, which nobody refused."""
OTHER_ROUNDING = {"OMP_NUM_THREADS": "1", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
"""The same program without threads and wide vectors: its sums are in another order."""
MOST_MEMORY = 1.01
"""Times the peak memory of the original that the code behind guards may take."""
PLAIN_EVERY = 4
"""Without an NPU a guard never holds, so that a part of the perturbations tells all."""


def main() -> int:
    args = _arguments()
    runs = args.corpus / "runs"
    runs.mkdir(exist_ok=True)
    chosen = entries(args.corpus, args.filter)
    if not chosen:
        sys.exit(f"No entry of {args.corpus} fits {args.filter}; --filter takes a pattern such as '*gpt*'.")
    if args.only:
        return _reproduce(chosen, runs, args)
    results = list(_results(chosen, runs, args))
    summary = summarised(results)
    _print(results, summary)
    if args.json:
        args.json.write_text(json.dumps({"entries": results, "summary": summary}, indent=1) + "\n")
    wrong = ("silent_differences", "tracebacks", "fallbacks_rewritten")
    return 1 if any(summary[name] for name in wrong) or (summary["most_memory"] or 1) > MOST_MEMORY else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--filter", default="*")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help=f"about {QUICK_S:.0f} s of perturbations an entry"
    )
    parser.add_argument("--edits", choices=("synth", "captured", "single"), default="synth")
    parser.add_argument("--seconds", type=float, default=90.0, help="of perturbations, for each entry")
    parser.add_argument("--only", metavar="KIND:NUMBER:MODE", help="one perturbation, told in full")
    parser.add_argument("--fresh", action="store_true", help="do again what is in DIR/runs")
    args = parser.parse_args()
    args.corpus = args.corpus.absolute()
    args.seconds = QUICK_S if args.quick else args.seconds
    return args


def _results(chosen: Sequence[Entry], runs: Path, args: argparse.Namespace) -> Iterator[Row]:
    """One for each entry, in the order of the corpus; told as they end."""

    def one(entry: Entry) -> Row:
        path = runs / entry.name / f"{args.edits}.json"
        if path.exists() and not args.fresh:
            kept: Row = json.loads(path.read_text())
            return kept
        started = time.monotonic()
        try:
            result = tested(entry, runs / entry.name, args.edits, args.seconds)
        except Exception as error:  # an entry that cannot be tested costs that entry
            result = {"entry": entry.name, "harness": f"{type(error).__name__}: {error}"}
        result["seconds"] = round(time.monotonic() - started, 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result))
        print(_line(result), file=sys.stderr, flush=True)
        return result

    with ThreadPoolExecutor(args.jobs) as pool:
        yield from pool.map(one, chosen)


def tested(entry: Entry, folder: Path, edits: str, seconds: float) -> Row:
    """Edit one file and compare the two programs."""
    result: Row = {"entry": entry.name, "project": entry.project.name, "file": entry.file}
    result |= edited(entry, folder, edits)
    if result["kernels"]:
        result["rewritten"] = rewritten(entry, result["regions"])
        result["memory"] = memory(entry, folder)
        result["perturbations"] = perturbed(entry, folder, seconds)
    return result


# --- the edit


def edited(entry: Entry, folder: Path, edits: str) -> Row:
    """Observe and edit a fresh copy: the regions, and how the two commands ended."""
    tree = folder / "edited"
    file = edited_copy(entry, tree)
    found: Row = {}
    if entry.driver:
        observe = ("observe", "--workspace", tree, "--", entry.interpreter, *entry.driver)
        found["observed"] = _told(_run([*CLI, *observe], entry.environment(tree), tree, OBSERVE_S))
    options = ("--budget", "1", "--json", "--apply", "--interpreter", entry.interpreter)
    edit = [*CLI, "synth", file, *options]
    if edits != "synth":
        edit = [sys.executable, HERE / "edit_captured.py", file, "--interpreter", entry.interpreter]
        edit += ["--single"] if edits == "single" else []
    started = time.monotonic()
    done = _run(edit, dict(os.environ), folder, EDIT_S)
    found["edit"] = _told(done) | {"seconds": round(time.monotonic() - started, 1)}
    found["regions"] = _regions(done.stdout)
    found["kernels"] = sum(1 for region in found["regions"] if region.get("kernel_dir"))
    return found


def _run(
    command: Sequence[Any], environment: dict[str, str], folder: Path, limit_s: float
) -> subprocess.CompletedProcess[str]:
    words = list(map(str, command))
    try:
        return subprocess.run(
            words, env=environment, cwd=folder, timeout=limit_s, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(words, 124, "", f"it did not end in {limit_s:.0f} s")


def _told(done: subprocess.CompletedProcess[str]) -> Row:
    return {
        "status": done.returncode,
        "said": done.stderr[-2000:],
        "traceback": "Traceback (most" in done.stderr,
    }


def _regions(text: str) -> list[Row]:
    start = text.find('{"file"')
    regions: list[Row] = json.loads(text[start:])["regions"] if start >= 0 else []
    return regions


def rewritten(entry: Entry, regions: Iterable[Row]) -> list[str]:
    """The kernels behind whose guard stands other text than in the file, white space at line starts apart."""
    source = _flat((entry.project / entry.file).read_text())
    found = []
    for folder in (Path(region["kernel_dir"]) for region in regions if region.get("kernel_dir")):
        original = json.loads((folder / "kernel.json").read_text())["call"]["site"]["original"]
        if _flat(original) not in source:
            found.append(folder.name)
    return found


def _flat(text: str) -> str:
    return "\n".join(line.lstrip() for line in text.splitlines())


def memory(entry: Entry, folder: Path) -> Row:
    """The most bytes of a call of the original and of the edited program, whose guards do not hold."""
    sides = {"original": entry.project, "edited": folder / "edited"}
    return {name: _peak(entry, tree, folder) for name, tree in sides.items()}


def _peak(entry: Entry, tree: Path, folder: Path) -> int | None:
    """None where the call fails, as the perturbations tell."""
    command = [entry.interpreter, HERE / "trial" / "memory.py", *entry.program(tree)]
    environment = {**entry.environment(tree), "EVOKERNEL_EMULATE": "0"}
    done = _run([*command, "--file", entry.file], environment, folder, 300)
    try:
        return int(json.loads(done.stdout)["bytes"])
    except (ValueError, LookupError):
        return None


# --- the comparison


def perturbed(entry: Entry, folder: Path, seconds: float) -> dict[str, list[Row]]:
    """The comparisons of the plain and of the emulated edited program with the original one."""
    original, trees = folder / "original", {PLAIN: folder / "edited", EMULATED: folder / "edited"}
    _side(entry, entry.project, original, seconds)
    done = [json.loads(line) for line in (original / "done.jsonl").read_text().splitlines()]
    cases = [case if isinstance(case, list) else None for case in done]
    sparse = [case if n % PLAIN_EVERY == 0 else None for n, case in enumerate(cases)]
    found = {}
    for way, wanted in ((PLAIN, sparse), (EMULATED, cases)):
        _side(entry, trees[way], folder / way, seconds, wanted, emulate=way == EMULATED)
        rows = _compared(entry, original, folder / way)
        found[way] = _without_noise(entry, folder, rows, cases)
    for outcome in folder.glob("*/*.pt"):  # gigabytes; --only makes one again
        outcome.unlink()
    return found


def _side(
    entry: Entry,
    tree: Path,
    out: Path,
    seconds: float,
    cases: list[Any] | None = None,
    emulate: bool = False,
    rounding: Mapping[str, str] | None = None,
) -> None:
    """One program under the cases; where its process ends, the rest is done by another."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = [entry.interpreter, HERE / "trial" / "side.py", *entry.program(tree),
               "--file", entry.file, "--out", out, "--seconds", seconds]  # fmt: skip
    if cases is not None:
        only = out / "cases.json"
        only.write_text(json.dumps(cases))
        command += ["--only", only]
    environment = {
        **entry.environment(tree),
        "EVOKERNEL_EMULATE": "1" if emulate else "0",
        **(rounding or {}),
    }
    journal = out / "done.jsonl"
    for _ in range(RESTARTS):
        ended = _run(command, environment, tree, 120 + 6 * seconds)
        if ended.returncode == 0:
            return
        (out / "said.txt").write_text(ended.stderr[-4000:])
        with journal.open("a") as file:
            file.write(json.dumps(f"ended with {ended.returncode}") + "\n")


def _compared(entry: Entry, original: Path, other: Path) -> list[Row]:
    command = [entry.interpreter, HERE / "trial" / "compare.py", original, other]
    done = _run(command, entry.environment(entry.project), other, 600)
    if done.returncode:
        raise RuntimeError(f"the comparison failed: {done.stderr[-500:]}")
    return list(map(json.loads, done.stdout.splitlines()))


def _without_noise(entry: Entry, folder: Path, rows: list[Row], cases: list[Any]) -> list[Row]:
    """Where the original differs from itself in a second run that rounds in another order, a difference says
    nothing: the mean of what was normalised is zero, of which rounding is all that is left."""
    differing = {row["index"] for row in rows if row["verdict"] == "differs"}
    if not differing:
        return rows
    again = folder / "again"
    wanted = [case if n in differing else None for n, case in enumerate(cases)]
    _side(entry, entry.project, again, 0, wanted, rounding=OTHER_ROUNDING)
    noisy = {
        row["index"] for row in _compared(entry, folder / "original", again) if row["verdict"] == "differs"
    }
    return [{**row, "verdict": "noise"} if row["index"] in noisy else row for row in rows]


def _reproduce(chosen: Sequence[Entry], runs: Path, args: argparse.Namespace) -> int:
    """One perturbation of each entry, with the edit that is there."""
    kind, number, mode = args.only.rsplit(":", 2)
    cases = [[kind, int(number), mode]]
    for entry in chosen:
        folder = runs / entry.name
        if not (folder / "edited").exists():
            edited(entry, folder, args.edits)
        _side(entry, entry.project, folder / "one", 60, cases)
        for way in (PLAIN, EMULATED):
            _side(entry, folder / "edited", folder / "other", 60, cases, emulate=way == EMULATED)
            for row in _compared(entry, folder / "one", folder / "other"):
                print(f"{entry.name}, {way}: {json.dumps(row, indent=1)}")
    return 0


# --- the report


def summarised(results: Iterable[Row]) -> Row:
    found = list(results)
    verdicts: Counter[str] = Counter()
    ran = 0
    for result in found:
        for rows in result.get("perturbations", {}).values():
            verdicts.update(row["verdict"] for row in rows)
            ran += sum(1 for row in rows if row["kernels"])
    compared = sum(verdicts.values()) - verdicts["skipped"] - verdicts["timeout"]
    return {
        "files": len(found),
        "projects": len({result.get("project") for result in found} - {None}),
        "with_kernel": sum(1 for result in found if result.get("kernels")),
        "kernels": sum(result.get("kernels", 0) for result in found),
        "perturbations": compared,
        "kernel_runs": ran,
        "silent_differences": verdicts["differs"],
        "raised": verdicts["raised"] + verdicts["lost"],
        "noise": verdicts["noise"],
        "fallbacks_rewritten": sum(len(result.get("rewritten", ())) for result in found),
        "most_memory": max((ratio for result in found if (ratio := _ratio(result))), default=None),
        "tracebacks": sum(
            1 for result in found for part in ("observed", "edit") if _failed(result.get(part))
        ),
        "harness_failures": sum(1 for result in found if "harness" in result),
        "definitions_not_called": sum(
            1 for result in found for region in result.get("regions", ()) if region["status"] == UNREACHED
        ),
        "reasons": reasons(found),
    }


def _ratio(result: Row) -> float | None:
    """The peak memory of the edited program over that of the original, where both are known."""
    before, after = (result.get("memory", {}).get(name) for name in ("original", "edited"))
    return round(after / before, 4) if before and after is not None else None


def _failed(part: Row | None) -> bool:
    return bool(part and part["traceback"])


def reasons(results: Iterable[Row], most: int = 10) -> list[tuple[str, int]]:
    """Why regions were refused, without names and numbers, the most frequent first."""
    texts = [
        region["reason"]
        for result in results
        for region in result.get("regions", ())
        if not region.get("kernel_dir") and region["status"] != UNREACHED
    ]
    texts += [result["edit"]["said"] for result in results if result.get("edit", {}).get("status")]
    return Counter(filter(None, map(normalised, texts))).most_common(most)


def normalised(reason: str) -> str:
    """A reason as it reads for any file."""
    text = reason.strip().splitlines()[-1] if reason.strip() else ""
    text = re.sub(r"^(evokernel: )?([Ll]ine \d+:? )*", "", text)
    return re.sub(r"\d+", "N", re.sub(r"/\S+", "PATH", text))[:160]


def _line(result: Row) -> str:
    if "harness" in result:
        return f"{result['entry']}: not tested, {result['harness']}"
    counts: Counter[str] = Counter()
    for rows in result.get("perturbations", {}).values():
        counts.update(row["verdict"] for row in rows)
        counts["kernel runs"] += sum(1 for row in rows if row["kernels"])
    words = ", ".join(f"{name} {count}" for name, count in counts.items())
    why = "" if result["kernels"] else f" {result['edit']['said'].strip()[-200:]}"
    return f"{result['entry']}: {result['kernels']} kernels, {result['seconds']} s; {words}{why}"


def _print(results: Iterable[Row], summary: Row) -> None:
    for result in results:
        for way, rows in result.get("perturbations", {}).items():
            for row in rows:
                if row["verdict"] in ("differs", "raised", "lost"):
                    _print_difference(result["entry"], way, row)
    print()
    for name, value in summary.items():
        if name != "reasons":
            print(f"{name}: {value}")
    print("\nregions refused, most often because:")
    for reason, count in summary["reasons"]:
        print(f"{count:5} {reason}")


def _print_difference(entry: str, way: str, row: Row) -> None:
    word = "SILENT DIFFERENCE" if row["verdict"] == "differs" else "raised"
    case = f"{row['kind']}:{row['number']}:{row['mode']}"
    print(f"{word} {entry} ({way}): {'; '.join(row['notes'])}: {row['difference']}")
    print(f"    python benchmarks/meaning.py --corpus DIR --filter {entry} --only '{case}'")


if __name__ == "__main__":
    sys.exit(main())
