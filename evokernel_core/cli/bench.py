"""``evokernel bench``: synthesise kernels for a folder of problems, and go on after an interruption."""

from __future__ import annotations

import hashlib
import json
import math
import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from attrs import asdict, evolve
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evokernel_core import __version__
from evokernel_core.cli.journal import RunJournal
from evokernel_core.cli.options import OutputFile, settings_from, synthesis_options
from evokernel_core.cli.tables import add_row, column, figure, print_table
from evokernel_core.cli.terminal import say
from evokernel_core.domain.errors import UsageError, VerifierUnavailable
from evokernel_core.domain.serial import canonical_json
from evokernel_core.domain.settings import Settings
from evokernel_core.domain.verdict import LatencySource
from evokernel_core.logs import get_logger
from evokernel_core.memory.store import Memory
from evokernel_core.paths import memory_path
from evokernel_core.synthesis.problems import ProblemResult, solve
from evokernel_core.synthesis.proposers import open_proposer
from evokernel_core.synthesis.session import Session
from evokernel_core.synthesis.suite import SuiteProblem, labels, suite_of

log = get_logger(__name__)


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("suite", type=click.Path(exists=True, path_type=Path))
@click.option("--levels", default="", metavar="N,N", help="Folders such as level1 only.")
@click.option("--filter", "pattern", default="*", metavar="GLOB", help="Only problems with such a file name.")
@click.option(
    "--groups",
    default=0,
    metavar="N",
    type=click.IntRange(0),
    help="Kernels for a file with several input groups at most, 0: as many as they take.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Problems at a time.")
@synthesis_options(patience=3)
@click.option("--json", "out", type=OutputFile(), metavar="OUT",
              help="Write the result to this file, - for standard output.", )  # fmt: skip
def command(
    suite: Path,
    levels: str,
    pattern: str,
    groups: int,
    jobs: int,
    out: Path | None,
    **options: Any,
) -> None:
    """Synthesise kernels for every problem in the folder SUITE and the folders below it, or for one file.

    A problem is a file with a module, Model or the last one, or a function, and its inputs: get_inputs() and
    get_init_inputs() as in KernelBench, or get_input_groups() with those of several calls. It counts as
    feasible when one verified kernel does all the tensor work of the forward; where input groups need
    kernels of their own, when all of them do. Helpers, which have neither inputs nor a module, and names
    that begin with an underscore are left out.
    An interrupted run goes on where it stopped when the same command is given again.
    """
    settings = evolve(settings_from(options), evaluation=False)
    open_proposer(settings)  # wrong settings are wrong usage, whatever the suite holds
    result = suite_of(suite, _levels(levels), pattern)
    problems, names = result.problems, labels(result.problems)
    if result.helpers:
        _say(f"Left out, for want of inputs and of a module: {_listed(result.helpers, suite)}.")
    journal = RunJournal.open(key_of(settings, (problem.file for problem in problems), groups))
    try:
        if journal.done:
            _say(f"{len(journal.done)} of {len(problems)} problems are done already.")
        _solve_all(problems, names, settings, journal, jobs, groups)
        results = [journal.done[problem.key] for problem in problems]
        _report(results, names, settings.chip, out)
    except BaseException:
        journal.release()
        _say(f"{len(journal.done)} of {len(problems)} problems are done; the same command does the rest.")
        raise
    journal.close()


def _say(text: str) -> None:
    say(text, err=True)


def _listed(files: Sequence[Path], suite: Path, most: int = 5) -> str:
    names = ", ".join(str(file.relative_to(suite)) for file in files[:most])
    return names if len(files) <= most else f"{names} and {len(files) - most} more"


def _said(result: ProblemResult) -> str:
    if not result.feasible:
        return f"{result.failed_gate}: {result.reason}"
    return "verified" if result.groups == 1 else f"verified for {result.served} of {result.groups} groups"


def _levels(text: str) -> list[int]:
    try:
        return [int(level) for level in text.split(",") if level.strip()]
    except ValueError as error:
        raise UsageError(f"--levels {text!r} is no list of numbers; give for example 1,2.") from error


def key_of(settings: Settings, files: Iterable[Path], groups: int = 0) -> str:
    """Names the run by its problems as they are written, the options and this version; secrets are not
    part of it."""
    asked = {
        "version": __version__,
        "files": [[str(file.absolute()), _digest(file)] for file in files],
        "groups": groups,
        "settings": [settings.budget, settings.patience, settings.proposer, settings.policy,
                     settings.retrieval, settings.chip, settings.seed, settings.verifier_url,
                     settings.endpoint.model, settings.candidates_at_once, settings.half],
    }  # fmt: skip
    return hashlib.sha256(canonical_json(asked).encode()).hexdigest()[:16]


def _digest(file: Path) -> str:
    """One that cannot be read is a problem too, which says so."""
    try:
        with file.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()
    except OSError:
        return ""


def _solve_all(
    problems: Iterable[SuiteProblem], names: Mapping[str, str], settings: Settings, journal: RunJournal,
    jobs: int, groups: int,
) -> None:  # fmt: skip
    waiting = [problem for problem in problems if problem.key not in journal.done]
    local = threading.local()
    stopped = threading.Event()
    sessions: list[Session] = []
    with Memory(memory_path()) as memory, _progress(len(waiting)) as (progress, bar):

        def work(problem: SuiteProblem) -> ProblemResult:
            if not hasattr(local, "session"):
                local.session = Session(settings, problem.file.parent, memory)
                sessions.append(local.session)
            job_id = f"bench-{journal.run}-{problem.key}"
            result = _solved(local.session, problem.file, settings.budget, job_id, groups, stopped.is_set)
            return evolve(result, level=problem.level)

        try:
            with ThreadPoolExecutor(jobs, "bench") as pool:
                futures = [pool.submit(work, problem) for problem in waiting]
                try:
                    for future in as_completed(futures):
                        result = future.result()
                        journal.add(result)
                        line = _line(result, names[result.key])
                        progress.update(bar, advance=1, last=line)
                        if progress.disable:
                            _say(line)
                except BaseException:
                    stopped.set()  # what runs ends with its attempt, which the next run begins behind
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        finally:
            for session in sessions:
                session.close()


def _solved(
    session: Session, file: Path, budget: int, job_id: str, groups: int, cancelled: Callable[[], bool]
) -> ProblemResult:
    """The problem's result. An error of the product is one too, so that a long run loses nothing; only
    a verifier that is away ends the run."""
    try:
        return solve(session, file, budget, job_id, groups, cancelled)
    except VerifierUnavailable:
        raise
    except Exception as error:
        log.exception("bench_problem", problem=file.stem)
        reason = f"{type(error).__name__}: {error}"
        return ProblemResult(file.stem, False, failed_gate="internal", reason=reason)


@contextmanager
def _progress(total: int) -> Iterator[tuple[Progress, Any]]:
    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[last]}"))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        yield progress, progress.add_task("", total=total, last="")


def _line(result: ProblemResult, name: str) -> str:
    if result.best_latency_us is None:
        return f"{name}: {result.reason}"
    figure = f"{result.best_latency_us:,.1f} us {_word(result.latency_source)}"
    return f"{name}: {figure} in {result.attempts} attempts"


def summary(results: Iterable[ProblemResult]) -> dict[str, Any]:
    """Counts, and for the feasible ones the geometric means of the ratios between latencies."""
    rows = list(results)
    feasible = [result for result in rows if result.feasible]
    gains = [_ratio(result.baseline_us, result.best_latency_us) for result in feasible]
    refined = [_ratio(result.first_latency_us, result.best_latency_us) for result in feasible]
    return {
        "problems": len(rows),
        "feasible": len(feasible),
        "feasible_rate": len(feasible) / len(rows) if rows else 0.0,
        "median_attempts": statistics.median(r.attempts for r in feasible) if feasible else None,
        "geomean_baseline_over_best": _geomean(gains),
        "geomean_first_over_best": _geomean(refined),
        "tokens": sum(result.tokens for result in rows),
        "seconds": round(math.fsum(result.seconds for result in rows), 3),
    }


def _ratio(above: float | None, below: float | None) -> float:
    return above / below if above and below else 1.0


def _geomean(numbers: list[float]) -> float | None:
    return statistics.geometric_mean(numbers) if numbers else None


def _report(results: list[ProblemResult], labelled: Mapping[str, str], chip: str, out: Path | None) -> None:
    counted = summary(results)
    data = {"problems": [asdict(result) for result in results], "summary": counted}
    if str(out) == "-":
        say(json.dumps(data))
        return
    if out is not None:
        out.write_text(json.dumps(data, indent=1) + "\n")
    sources = sorted({_word(row.latency_source) for row in results if row.latency_source})
    title = f"microseconds, {' or '.join(sources)} for {chip}" if sources else None
    names = ("problem", "attempts", "eager", "first", "best", "bound", "s", "result")
    table = Table(*map(column, names[:-1]), names[-1], title=title)
    for row in results:
        latencies = (row.baseline_us, row.first_latency_us, row.best_latency_us, row.roofline_us)
        add_row(
            table,
            labelled[row.key],
            str(row.attempts),
            *map(figure, latencies),
            f"{row.seconds:.1f}",
            _said(row),
        )
    print_table(table)
    say(f"{counted['feasible']} of {counted['problems']} verified.")


def _word(source: str | None) -> str:
    """What people read of a stored source."""
    return LatencySource(source).word if source else ""
