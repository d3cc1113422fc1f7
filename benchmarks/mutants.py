"""A mutation test of the judge: kernels with one change each must be rejected, honest variants must pass.

    python benchmarks/mutants.py [--jobs 2] [--kinds clip,offset] [--each 2] [--no-honest] [--md OUT]

Honest kernels of ten families are changed in their text by rules that know nothing of the judge. An oracle
that is not the judge, PyTorch in float64 on inputs aimed at the change, says which changes show; the others
are printed and not counted. A change of time alone counts as caught where the kernel is rejected or takes no
less than the honest one. Each counted mutant must be rejected in each of three secret draws. Results are kept
by kernel under .cache/mutants, so that a run that was ended goes on; another judge is asked anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.mutating import formulas, rules  # noqa: E402
from benchmarks.mutating.judging import DRAWS, Judged, judge  # noqa: E402
from benchmarks.mutating.mutant import TIME_ONLY, Kind, Mutant  # noqa: E402
from benchmarks.mutating.oracle import VERSION, Reference  # noqa: E402
from benchmarks.mutating.subjects import Author, Subject  # noqa: E402
from benchmarks.mutating.table import TABLE, Row  # noqa: E402
from evokernel_core.capture.client import AgentClient  # noqa: E402
from evokernel_core.domain.errors import EvoKernelError  # noqa: E402
from evokernel_core.domain.kernel import KernelSource  # noqa: E402
from evokernel_core.hardware.ascend.chip import load_chip  # noqa: E402

CACHE = ROOT / ".cache" / "mutants"
SEED = 36
MOVES = 3
"""Of our own schedule's moves, how many are honest variants of a task."""
COUNTED = ("rejected", "charged", "passed")
EACH_KIND, IN_ALL, HONEST = 30, 400, 100
SOURCES = (".py", ".cpp", ".h", ".toml", ".txt")
NO_LESS = 1 - 1e-9


@frozen
class Options:
    """What a run was asked for."""

    cache: Path
    kinds: frozenset[Kind]
    each: int
    honest: bool
    judge: str
    """Names the judge's files: what another one said is asked again."""


def fingerprint() -> str:
    """The sha256 (hex) of all files that judge: verifier, twin, references and their numbers."""
    files = sorted(
        path
        for name in ("verifier", "twin", "capture/agent", "domain")
        for path in (ROOT / "evokernel_core" / name).rglob("*")
        if path.suffix in SOURCES
    )
    found = hashlib.sha256()
    for path in files:
        found.update(f"{path}\n".encode() + path.read_bytes())
    return found.hexdigest()[:24]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--each", type=int, default=2, help="changes of a text of each kind and task")
    parser.add_argument("--families", default="", help="only those that begin so")
    parser.add_argument("--no-honest", action="store_true")
    parser.add_argument("--kept", action="store_true", help="tell what earlier runs kept, and judge nothing")
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--md", type=Path)
    args = parser.parse_args()
    kinds = frozenset(Kind(name) for name in args.kinds.split(",") if name) or frozenset(Kind)
    options = Options(args.cache, kinds, args.each, not args.no_honest, fingerprint())
    options.cache.mkdir(parents=True, exist_ok=True)
    if args.kept:
        rows = list(kept(options))
        if args.md:
            args.md.write_text(page(rows, 0.0))
        print(summary(rows))
        return 0
    table = by_turns([row for row in TABLE if row.family.startswith(args.families)])
    started = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(args.jobs, maxtasksperchild=4) as pool:
        rows = [item for found in pool.imap_unordered(partial(of_row, options), table, 1) for item in found]
    seconds = time.monotonic() - started
    if args.md:
        args.md.write_text(page(rows, seconds))
    missing = list(too_few(rows)) if kinds == frozenset(Kind) and not args.families else []
    print(*missing, summary(rows), sep="\n")
    escaped = [row for row in rows if row["outcome"] in ("passed", "refused")]
    return 1 if escaped or missing else 0


def kept(options: Options) -> Iterator[dict[str, Any]]:
    """The rows that earlier runs with this judge kept."""
    for path in sorted(options.cache.glob("*.json")):
        row: dict[str, Any] = json.loads(path.read_text())
        if row.get("judge") == options.judge:
            yield row


def by_turns(table: list[Row]) -> list[Row]:
    """One task of each family, then a second one of each, so that the first hundred rows tell of all."""
    families: Counter[str] = Counter()
    turns = {}
    for place, row in enumerate(table):
        turns[place] = families[row.family]
        families[row.family] += 1
    return [table[place] for place in sorted(turns, key=turns.__getitem__)]


def of_row(options: Options, row: Row) -> list[dict[str, Any]]:
    """All that comes of one task: its mutants and its honest variants."""
    chip = load_chip()
    with AgentClient(sys.executable, evaluation=True) as agent, tempfile.TemporaryDirectory() as folder:
        author = Author(agent, chip, Path(folder))
        subject = author.subject(row)
        trial = Trial(options, subject, agent, Reference(subject, chip))
        variants = (partial(trial.honest, *variant) for variant in _variants(options, subject, author))
        mutants = (partial(trial.mutant, mutant) for mutant in chosen(subject, author, options))
        return [_printed(_asked(item)) for item in chain(variants, mutants)]


def _asked(trial: partial[dict[str, Any]]) -> dict[str, Any]:
    """A row; ``unjudged`` where there was no verdict, which is asked for again in the next run."""
    try:
        return trial()
    except EvoKernelError as error:
        change = " ".join(str(getattr(item, "change", item)) for item in trial.args[:1])
        return {"kind": trial.func.__name__, "subject": "", "change": f"{change}: {error}",
                "outcome": "unjudged", "verdicts": []}  # fmt: skip


def _variants(options: Options, subject: Subject, author: Author) -> Iterator[tuple[str, KernelSource]]:
    if not options.honest:
        return
    yield "as our author writes it", subject.source
    yield from author.moved(subject, MOVES)
    for formula in subject.row.others:
        source = author.kernel_of(subject, formula)
        if source is not None and source.source_id != subject.source.source_id:
            yield f"formula {formula}", source


def chosen(subject: Subject, author: Author, options: Options) -> Iterator[Mutant]:
    """Some mutants of each kind, a share of ``each`` by the task, chosen by a stated seed."""
    made: dict[Kind, dict[str, Mutant]] = defaultdict(dict)
    for mutant in formulas.mutants(subject, author):
        made[mutant.kind].setdefault(mutant.key, mutant)
    kept = {kind: len(found) for kind, found in made.items()}
    for kind, rule in rules.RULES:
        for mutant in rule(subject):
            made[kind].setdefault(mutant.key, mutant)
    for kind in (kind for kind in Kind if kind in options.kinds):
        found = list(made[kind].values())
        of_formula, of_text = found[: kept.get(kind, 0)], found[kept.get(kind, 0) :]
        random.Random(f"{SEED} {subject.name} {kind}").shuffle(of_text)
        yield from of_formula
        yield from of_text[: options.each]


@frozen
class Trial:
    """Judges the kernels of one subject; what is known of a kernel is read and not done again."""

    options: Options
    subject: Subject
    agent: AgentClient
    reference: Reference

    def mutant(self, mutant: Mutant) -> dict[str, Any]:
        """A mutant's row."""
        path = self.options.cache / f"{mutant.key}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        aims = f"{VERSION} {mutant.aims!r}"
        if known.get("aims") == aims and known.get("judge") == self.options.judge:
            return known
        oracle = known.get("oracle") if known.get("aims") == aims else None
        if oracle is None:
            oracle = asdict(self.reference.look(mutant.source, mutant.aims, mutant.shown))
        row = {
            "kind": str(mutant.kind),
            "subject": mutant.subject,
            "change": mutant.change,
            "oracle": oracle,
            "aims": aims,
            "judge": self.options.judge,
        }
        row |= self._outcome(mutant, oracle["state"])
        path.write_text(json.dumps(row))
        return row

    def _outcome(self, mutant: Mutant, state: str) -> dict[str, Any]:
        is_timed = mutant.kind in TIME_ONLY
        if state == "invalid" or (state == "equal" and not is_timed):
            return {"outcome": state, "verdicts": []}
        verdicts = []
        for _ in range(DRAWS):
            verdicts.append(self._judge(mutant.source))
            if verdicts[-1].passed:
                break
        passed = [item for item in verdicts if item.passed]
        made = {"verdicts": [asdict(item) for item in verdicts]}
        if not passed:
            return {"outcome": "rejected", **made}
        if state == "equal" and mutant.kind is not Kind.SYNC and passed[0].us >= self._honest_us() * NO_LESS:
            return {"outcome": "charged", **made, "honest_us": self._honest_us()}
        return {"outcome": "passed", **made, "honest_us": self._honest_us()}

    def honest(self, change: str, source: KernelSource) -> dict[str, Any]:
        """An honest variant's row: it must pass in one draw."""
        path = self.options.cache / f"honest-{source.source_id[:24]}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        if known.get("judge") == self.options.judge:
            return known
        verdict = self._judge(source)
        outcome = "honest" if verdict.passed else "refused"
        row = {
            "kind": "honest",
            "subject": self.subject.name,
            "change": change,
            "outcome": outcome,
            "judge": self.options.judge,
            "verdicts": [asdict(verdict)],
        }
        path.write_text(json.dumps(row))
        return row

    def _honest_us(self) -> float:
        row = self.honest("as our author writes it", self.subject.source)
        return float(row["verdicts"][0]["us"])

    def _judge(self, source: KernelSource) -> Judged:
        return judge(self.subject.task, source, self.agent, self.reference.chip)


def _printed(row: dict[str, Any]) -> dict[str, Any]:
    last = row["verdicts"][-1] if row["verdicts"] else {}
    words = row.get("oracle", {}).get("words", "")
    print(
        f"{row['outcome']:9} {row['kind']:19} {row['subject']}: {row['change']}; "
        f"{last.get('code', '')} {words}"[:300].replace("\n", " "),
        flush=True,
    )
    return row


def too_few(rows: list[dict[str, Any]]) -> Iterator[str]:
    """What there must be more of for the last line to say something."""
    counted = Counter(row["kind"] for row in rows if row["outcome"] in COUNTED)
    for kind in Kind:
        if counted[kind] < EACH_KIND:
            yield f"too few counted: {counted[kind]} of kind {kind}, {EACH_KIND} wanted"
    if counted.total() < IN_ALL:
        yield f"too few counted: {counted.total()}, {IN_ALL} wanted"
    honest = sum(row["kind"] == "honest" for row in rows)
    unjudged = sum(row["outcome"] == "unjudged" for row in rows)
    if unjudged:
        yield f"without a verdict: {unjudged}"
    if honest < HONEST:
        yield f"too few honest variants: {honest}, {HONEST} wanted"


def summary(rows: list[dict[str, Any]]) -> str:
    """The last line."""
    counts = Counter(row["outcome"] for row in rows)
    rejected = counts["rejected"] + counts["charged"]
    total = counts["honest"] + counts["refused"]
    return (
        f"mutants rejected {rejected} of {rejected + counts['passed']}, "
        f"honest variants passed {counts['honest']} of {total}"
    )


def page(rows: list[dict[str, Any]], seconds: float) -> str:
    """docs/results/mutants.md; without ``seconds`` of a run that was ended."""
    how = f"{seconds / 60:.0f} minutes" if seconds else "of a run that was ended before it had judged all"
    lines = [
        "# Mutants of honest kernels",
        "",
        "Written by `make mutants` (benchmarks/mutants.py), which says how.",
        "",
        "| kind | tried | do not compile | equal | counted | rejected | charged no less | passed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in Kind:
        counts = Counter(row["outcome"] for row in rows if row["kind"] == kind)
        counted = counts["rejected"] + counts["charged"] + counts["passed"]
        figures = [sum(counts.values()), counts["invalid"], counts["equal"], counted]
        figures += [counts[outcome] for outcome in ("rejected", "charged", "passed")]
        lines.append(f"| {kind} | {' | '.join(map(str, figures))} |")
    lines += ["", f"{summary(rows)[0].upper()}{summary(rows)[1:]}; {how}.", ""]
    escaped = [row for row in rows if row["outcome"] in ("passed", "refused")]
    if escaped:
        lines += ["## What passes and should not, and honest variants that are refused", ""]
        lines += [
            f"- {row['kind']}, {row['subject']}: {_line(row['change'])}"
            + (f" ({_line(row['verdicts'][-1]['code'])})" if row["outcome"] == "refused" else "")
            for row in escaped
        ]
        lines.append("")
    equal = [row for row in rows if row["outcome"] == "equal"]
    lines += ["## Equal by the oracle, not counted", ""]
    lines += [f"- {row['kind']}, {row['subject']}: {_line(row['change'])}" for row in equal]
    return "\n".join(lines) + "\n"


def _line(text: str) -> str:
    return " ".join(text.split()).replace("_", "\\_").replace("*", "\\*")


if __name__ == "__main__":
    sys.exit(main())
