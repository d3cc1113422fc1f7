"""``evokernel synth``: write and verify kernels for the regions of one file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from attrs import asdict, evolve, frozen
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evokernel_core.cli.options import settings_from, synthesis_options
from evokernel_core.cli.tables import column, figure, print_table
from evokernel_core.domain.errors import ShapesNeeded, VerifierError, VerifierUnavailable
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.synthesis.engine import AttemptEvent, SynthesisResult
from evokernel_core.synthesis.offers import Offer
from evokernel_core.synthesis.session import Session


@frozen
class Row:
    """A region as ``--json`` reports it; latencies in microseconds."""

    id: str
    line: int
    end_line: int
    op_category: str
    status: str
    reason: str = ""
    attempts: int = 0
    first_latency_us: float | None = None
    best_latency_us: float | None = None
    baseline_us: float | None = None
    roofline_us: float | None = None
    latency_source: str | None = None
    chip: str | None = None
    kernel_dir: str | None = None
    tokens: int = 0


@click.command("synth", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--symbol", metavar="NAME", help="Only this class or function, e.g. Block.forward.")
@click.option("--line", type=click.IntRange(1), metavar="N", help="Only the region on this line.")
@synthesis_options(patience=0)
@click.option(
    "--programs/--single",
    default=True,
    show_default=True,
    help="Take several kernels in a row where they save more than single ones.",
)
@click.option(
    "--apply", "apply_", is_flag=True, help="Write packages beside the file and put the calls into it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    file: Path,
    symbol: str | None,
    line: int | None,
    programs: bool,
    apply_: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Write and verify kernels for the PyTorch code of FILE."""
    file = file.absolute()
    settings = evolve(settings_from(options), programs=programs)
    with Session(settings, file.parent) as session:
        session.proposer()  # wrong settings are wrong usage, whatever the file holds
        try:
            offers = session.chosen_offers(file, symbol)
            offers = tuple(offer for offer in offers if _on(offer.region, line))
        except ShapesNeeded as error:
            rows = [Row("", line or 1, line or 1, "other", RegionStatus.NEEDS_SHAPES.value, str(error))]
        else:
            rows = _synthesise(session, file, offers, apply_, quiet=as_json)
    if as_json:
        click.echo(json.dumps({"file": str(file), "regions": [asdict(row) for row in rows]}))
    else:
        _print(file, rows)
    complaint = _complaint(_asked(file, symbol, line), rows)
    if complaint:
        click.echo(f"evokernel: {complaint}", err=True)
        sys.exit(1)


def _on(region: Region, line: int | None) -> bool:
    return line is None or region.span.line <= line <= region.span.end_line


def _asked(file: Path, symbol: str | None, line: int | None) -> str:
    """The part of the file that the options choose, in words."""
    parts = (symbol, f"line {line}" if line else "", file.name)
    return " of ".join(part for part in parts if part)


def _complaint(asked: str, rows: Iterable[Row]) -> str:
    """Why the exit status is 1, empty where it is 0."""
    found = list(rows)
    failed = [row for row in found if row.status == RegionStatus.INFEASIBLE]
    if failed:
        return _placed(failed[0])
    if any(row.status == RegionStatus.VERIFIED for row in found):
        return ""
    if found:
        return _placed(found[0])
    return f"There is no code that a kernel could replace in {asked}; name code of a PyTorch model."


def _placed(row: Row) -> str:
    """The row's reason with its line, unless the reason begins with one."""
    return row.reason if row.reason.startswith("Line ") else f"line {row.line}: {row.reason}"


def _synthesise(
    session: Session, file: Path, offers: Iterable[Offer], apply_: bool, quiet: bool
) -> list[Row]:
    """One row per region. Edits are made from the end, so that spans stay true. Where a program cannot be
    verified, the single kernels inside it take its place; its row then says why."""
    rows: dict[str, Row] = {}
    results: list[tuple[Region, SynthesisResult]] = []
    waiting = list(offers)
    with _progress(quiet) as progress:
        while waiting:
            offer = waiting.pop(0)
            region = offer.region
            if region.task is None:
                rows[region.id] = _unsupported(region)
                continue
            bar = progress.add_task(f"{file.name}:{region.span.line}", total=session.settings.budget, best="")

            def advance(event: AttemptEvent, bar: Any = bar) -> None:
                best = f"best {event.best_us:.1f} us" if event.best_us else "no kernel yet"
                progress.update(bar, completed=event.n, best=best)

            try:
                result = session.synthesise(region, session.settings.budget, on_attempt=advance)
            except VerifierUnavailable:
                raise
            except VerifierError as error:  # this region could not be judged; others may
                rows[region.id] = evolve(
                    _unsupported(region), status=RegionStatus.INFEASIBLE.value, reason=str(error)
                )
                waiting[:0] = offer.instead
                continue
            progress.update(bar, total=result.attempts)
            rows[region.id] = _row(session, region, result)
            results.append((region, result))
            if result.best is None:
                waiting[:0] = offer.instead
    for region, result in reversed(results):
        if result.best is not None:
            best = result.best
            package = session.apply(file, region, best) if apply_ else session.stage(region, best)
            rows[region.id] = evolve(rows[region.id], kernel_dir=str(package.folder))
    return list(rows.values())


def _progress(quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[best]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console, disable=quiet or not console.is_terminal)


def _unsupported(region: Region) -> Row:
    return Row(
        id=region.id,
        line=region.span.line,
        end_line=region.span.end_line,
        op_category=region.op_category,
        status=region.status.value,
        reason=region.reason,
    )


def _row(session: Session, region: Region, result: SynthesisResult) -> Row:
    row = evolve(
        _unsupported(region),
        status=RegionStatus.VERIFIED.value if result.best else RegionStatus.INFEASIBLE.value,
        reason=result.reason,
        attempts=result.attempts,
        first_latency_us=result.first_latency_us,
        chip=session.settings.chip,
        tokens=result.tokens,
    )
    latency = result.best.verdict.latency if result.best else None
    if latency is None:
        return row
    return evolve(
        row,
        best_latency_us=latency.us,
        baseline_us=latency.baseline_us,
        roofline_us=latency.roofline_us,
        latency_source=latency.source.value,
    )


def _print(file: Path, rows: Iterable[Row]) -> None:
    """The verified kernels as a table, then a line for each region without one."""
    found = list(rows)
    names = ("line", "op", "attempts", "eager us", "first us", "best us", "bound us")
    table = Table(*map(column, names), "evidence", title=file.name)
    for row in found:
        if row.status == RegionStatus.VERIFIED:
            latencies = (row.baseline_us, row.first_latency_us, row.best_latency_us, row.roofline_us)
            evidence = f"{row.latency_source} on {row.chip}"
            table.add_row(
                str(row.line), row.op_category, str(row.attempts), *map(figure, latencies), evidence
            )
    if table.row_count:
        print_table(table)
    for row in found:
        if row.kernel_dir:
            click.echo(f"line {row.line}: {row.kernel_dir}")
        elif row.status != RegionStatus.VERIFIED:
            click.echo(f"line {row.line}: {row.status}: {row.reason}")
