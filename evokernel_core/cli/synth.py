"""``evokernel synth``: write and verify kernels for the regions of one file."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from operator import attrgetter
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import click
from attrs import asdict, define, evolve, field, frozen
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from evokernel_core.cli.options import settings_from, synthesis_options
from evokernel_core.cli.tables import add_row, column, figure, print_table
from evokernel_core.cli.terminal import say, shown
from evokernel_core.domain.defects import contained
from evokernel_core.domain.errors import EvoKernelError, ShapesNeeded, VerifierError, VerifierUnavailable
from evokernel_core.domain.region import Region, RegionStatus
from evokernel_core.domain.sentence import Sentence
from evokernel_core.domain.settings import ProposerName
from evokernel_core.domain.title import title_of
from evokernel_core.domain.verdict import Baseline, LatencySource
from evokernel_core.synthesis.engine import AttemptEvent, SynthesisResult
from evokernel_core.synthesis.installing import Package
from evokernel_core.synthesis.offers import Estimate, Offer, better_us, choose, gain_of, why_left_alone
from evokernel_core.synthesis.proposers.base import Candidate
from evokernel_core.synthesis.session import Session
from evokernel_core.vendor.rival import Rival


@frozen
class Row:
    """A region as ``--json`` reports it; latencies in microseconds. ``vendor`` is the function of torch_npu
    that the region is, with its latency and whether that is modelled or measured. ``gain`` is the share
    that the best kernel saves of the better of the baseline and that function; with ``--plan``, what the
    kernel of ``estimate_us`` would save. ``left_alone``: verified, and not applied since it would gain too
    little, or not tried since its estimate does not win; the reason says so. ``baseline_source`` is how the
    baseline is known, with the row where it was measured, and ``baseline_interval`` where half of what was
    measured of such ops lies. ``target`` is the language of the kernels; ``shape`` is the largest input's,
    and ``title`` what is computed, as ``attention``."""

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
    baseline_source: str | None = None
    baseline_interval: tuple[float, float] | None = None
    roofline_us: float | None = None
    latency_source: str | None = None
    chip: str | None = None
    kernel_dir: str | None = None
    tokens: int = 0
    gain: float | None = None
    left_alone: bool = False
    vendor: str | None = None
    vendor_us: float | None = None
    vendor_source: str | None = None
    symbol: str = ""
    title: str = ""
    shape: str = ""
    estimate_us: float | None = None
    target: str | None = None


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
    "--apply",
    "apply_",
    is_flag=True,
    help="Write packages beside the file and put the calls into it; a kernel whose gain is within the "
    "model error takes --symbol or --line.",
)
@click.option(
    "--all",
    "mode",
    flag_value="all",
    help="Also try kernels whose estimated gain is within the model error; --symbol and --line do.",
)
@click.option(
    "--plan",
    "mode",
    flag_value="plan",
    help="List all that can be chosen, and why there is no more; write nothing.",
)
@click.option(
    "--preview",
    "mode",
    flag_value="preview",
    help="Print what a model would be asked, with its tokens, and ask nothing; --json prints the exact "
    "request.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(
    file: Path,
    symbol: str | None,
    line: int | None,
    programs: bool,
    apply_: bool,
    mode: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write and verify kernels for the PyTorch code of FILE."""
    file = file.absolute()
    settings = evolve(settings_from(options), programs=programs)
    readable = mode == "preview" and not as_json
    if readable and not (settings.endpoint.base_url and settings.endpoint.model):
        settings = evolve(settings, proposer=ProposerName.SCHEDULE)  # the question needs no endpoint
    ending = Ending()
    with Session(settings, file.parent) as session:
        session.proposer()  # wrong settings are wrong usage, whatever the file holds
        if not as_json:
            say(f"{file.name}: capturing its code with torch", err=True)
        try:
            offers = session.offers(file, symbol=symbol)
        except ShapesNeeded as error:
            rows = [Row("", line or 1, line or 1, "other", RegionStatus.NEEDS_SHAPES.value, str(error))]
        else:
            if mode == "plan":
                rows = [_planned(session, offer) for offer in offers if _on(offer.region, line)]
            elif mode == "preview":
                _preview(session, _chosen(offers, line), readable=readable)
                return
            else:
                tried = Tried.PLACE if symbol or line else Tried.ALL if mode == "all" else Tried.WINNERS
                run = _CommandRun(session, file, apply_, tried, quiet=as_json, ending=ending)
                with ending:
                    rows = run.rows(_chosen(offers, line))
    if as_json:
        say(json.dumps({"file": str(file), "regions": [asdict(row) for row in rows]}))
    else:
        _print(file, rows)
    if ending.asked:
        say("evokernel: ended before its budget was used; what was done until then is above.", err=True)
        sys.exit(ENDED)
    complaint = _complaint(_asked(file, symbol, line), rows)
    if complaint:
        say(f"evokernel: {complaint}", err=True)
        sys.exit(1)


def _chosen(offers: Iterable[Offer], line: int | None) -> tuple[Offer, ...]:
    """What kernels are written for: of the whole file what saves most, as far as it is on the line, and
    where nothing of that is, what saves most there."""
    offers = tuple(offers)
    chosen = tuple(offer for offer in choose(offers) if _on(offer.region, line))
    return chosen or choose(offer for offer in offers if _on(offer.region, line))


def _preview(session: Session, offers: Iterable[Offer], *, readable: bool) -> None:
    """Prints the question about each region as text, or its request exactly as it would be sent."""
    for offer in offers:
        if offer.region.task is not None:
            say((session.readable_preview if readable else session.preview)(offer.region))


def _on(region: Region, line: int | None) -> bool:
    return line is None or region.span.line <= line <= region.span.end_line


def _asked(file: Path, symbol: str | None, line: int | None) -> str:
    """The part of the file that the options choose, in words."""
    parts = (symbol, f"line {line}" if line else "", file.name)
    return " of ".join(part for part in parts if part)


def _complaint(asked: str, rows: Iterable[Row]) -> str:
    """Why the exit status is 1, empty where it is 0."""
    table = list(rows)
    failed = [row for row in table if row.status == RegionStatus.INFEASIBLE]
    if failed:
        return _placed(failed[0])
    if any(row.status in (RegionStatus.VERIFIED, RegionStatus.CANDIDATE) for row in table):
        return ""
    if table:
        return _placed(table[0])
    return f"No candidate in {asked}; name code of a PyTorch model."


def _placed(row: Row) -> str:
    """The row's reason with its line, unless the reason begins with one."""
    return row.reason if row.reason.startswith("Line ") else f"line {row.line}: {row.reason}"


ENDED = 130
"""Exit status of a run that was ended by a signal, as shells have it."""


class Tried(Enum):
    """Of which regions kernels are written: those whose estimate wins, all, or all of a place that the user
    named, whose kernels are accepted whatever they gain."""

    WINNERS = auto()
    ALL = auto()
    PLACE = auto()


@frozen
class _CommandRun:
    """One call of the command. Once ``ending`` was asked for, nothing more begins and the file is
    unchanged."""

    session: Session
    file: Path
    apply: bool
    tried: Tried
    quiet: bool
    ending: Ending

    def rows(self, offers: Iterable[Offer]) -> list[Row]:
        """One row per region, in source order. The smallest are tried first, so that the first results come
        soon; edits are made from the end, so that spans stay true. Where a program cannot be verified or
        gains too little, the single kernels inside it are tried too; its row says why."""
        rows: dict[str, Row] = {}
        results: list[tuple[Region, Candidate]] = []
        waiting, done = sorted(offers, key=_nodes), 0
        if not self.quiet:
            say(f"{sum(map(self._is_tried, waiting))} of {len(waiting)} regions are tried", err=True)
        with _progress(self.quiet) as progress:
            while waiting and not self.ending.asked:
                offer, total = waiting.pop(0), sum(map(self._is_tried, waiting))
                if offer.estimate is not None and not self._is_tried(offer):
                    row = _skipped(_planned(self.session, offer), offer.estimate)
                    rows[row.id] = row
                    waiting[:0] = offer.instead
                    continue
                row, best = self._solve(offer.region, progress)
                rows[row.id] = row
                if best is not None:
                    results.append((offer.region, best))
                led = offer.estimate is not None and offer.estimate.rival_leads
                if best is None or (row.left_alone and not led):
                    waiting[:0] = offer.instead
                if offer.region.task is not None:
                    done += 1
                    self._tell(row, f"[{done} of {done + total}]")
        results.sort(key=lambda result: (result[0].span.line, result[0].span.column))
        for region, best in reversed(results):
            rows[region.id] = self._placed(rows[region.id], region, best)
        return sorted(rows.values(), key=attrgetter("line"))

    def _is_tried(self, offer: Offer) -> bool:
        """Whether kernels of it are written: where the estimate wins, or where that was asked for."""
        if offer.estimate is None or self.tried is not Tried.WINNERS:
            return offer.region.task is not None
        return offer.estimate.wins

    def _tell(self, row: Row, number: str) -> None:
        """A line for each region that is done, where no terminal shows a bar."""
        if not self.quiet and not sys.stderr.isatty():
            latency = (
                f"{figure(row.best_latency_us)} us, gain {_gain(row)}" if row.best_latency_us else row.reason
            )
            say(f"{number} {_where(row)}, {row.title}: {latency}", err=True)

    def _solve(self, region: Region, progress: Progress) -> tuple[Row, Candidate | None]:
        """A region's row and its best kernel."""
        if region.task is None:
            return _unsupported(region), None
        budget = self.session.settings.budget
        bar = progress.add_task(escape(f"{shown(self.file.name)}:{region.span.line}"), total=budget, best="")

        def advance(event: AttemptEvent) -> None:
            fastest = event.best
            best = f"best {fastest.us:.1f} us {fastest.source.word}" if fastest else "no kernel yet"
            progress.update(bar, completed=event.n, best=best)

        try:
            result = self.session.synthesise(
                region, budget, on_attempt=advance, cancelled=lambda: self.ending.asked
            )
        except VerifierUnavailable:
            raise
        except VerifierError as error:  # this region could not be judged; others may
            return _infeasible(_unsupported(region), error), None
        progress.update(bar, total=result.attempts)
        row = _row(self.session, region, result)
        return (
            row if self.tried is not Tried.PLACE else evolve(row, left_alone=False, reason=result.reason)
        ), result.best

    def _placed(self, row: Row, region: Region, best: Candidate) -> Row:
        """The row with the folder of its package; a failure costs this region alone."""
        if self.apply and row.left_alone:
            return row
        try:
            with contained("accepting its kernel", region.span.line):
                place = self.session.apply if self.apply and not self.ending.asked else self._stage
                package = place(self.file, region, best)
                if package.backup:
                    click.echo(
                        f"{package.name} was changed by hand; your version is in {package.backup}.", err=True
                    )
                return evolve(row, kernel_dir=str(package.folder))
        except EvoKernelError as error:
            return _infeasible(row, error)

    def _stage(self, file: Path, region: Region, best: Candidate) -> Package:
        return self.session.stage(region, best)


def _nodes(offer: Offer) -> int:
    return len(offer.region.task.graph.nodes) if offer.region.task else 0


def _infeasible(row: Row, error: EvoKernelError) -> Row:
    return evolve(row, status=RegionStatus.INFEASIBLE.value, reason=str(error))


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
        symbol=region.symbol,
        title=(region.task and title_of(region.task, "")) or region.op_category,
        shape=region.task.largest_input if region.task else "",
    )


def _planned(session: Session, offer: Offer) -> Row:
    """An offer as it stands in the list, before anything is written."""
    row, estimate = _unsupported(offer.region), offer.estimate
    if estimate is None:
        return row
    return evolve(
        _with_rival(row, estimate.rival),
        **_baseline(estimate.now_us, estimate.baseline),
        roofline_us=estimate.bound_us,
        estimate_us=estimate.after_us,
        latency_source=estimate.source,
        chip=session.settings.chip,
        target=session.author.target.name,
        gain=estimate.gain,
    )


def _skipped(row: Row, estimate: Estimate) -> Row:
    """A region of which no kernel is tried: a lone attempt takes seconds, and it would not be offered."""
    reason = (
        f"{estimate.rival.name} is estimated to be as fast"
        if estimate.rival is not None and estimate.rival_leads
        else f"estimated gain {estimate.gain:z.0%} is within the model error, {estimate.error:.0%}"
        if estimate.gain > 0
        else "no gain is estimated"
    )
    return evolve(row, left_alone=True, reason=f"skipped: {reason}; --line {row.line} or --all tries it.")


def _row(session: Session, region: Region, result: SynthesisResult) -> Row:
    row = evolve(
        _unsupported(region),
        status=RegionStatus.VERIFIED.value if result.best else RegionStatus.INFEASIBLE.value,
        reason=result.reason,
        attempts=result.attempts,
        first_latency_us=result.first_latency_us,
        chip=session.settings.chip,
        target=session.author.target.name,
        tokens=result.tokens,
    )
    latency, rival = result.best.verdict.latency if result.best else None, session.rival(region)
    if latency is None:
        return _with_rival(row, rival)
    source = latency.source.value
    left_alone = why_left_alone(latency, rival)
    return evolve(
        _with_rival(row, rival),
        best_latency_us=latency.us,
        **_baseline(latency.baseline_us, latency.baseline),
        roofline_us=latency.roofline_us,
        latency_source=source,
        gain=round(gain_of(better_us(latency.baseline_us, rival, source), latency.us), 4),
        left_alone=bool(left_alone),
        reason=f"skipped: {left_alone}; --line {region.span.line} asks for it." if left_alone else row.reason,
    )


def _baseline(us: float, baseline: Baseline | None) -> dict[str, Any]:
    if baseline is None:
        return {"baseline_us": us}
    word = baseline.word.value
    return {
        "baseline_us": us,
        "baseline_source": f"{word}: {baseline.source}" if baseline.source else word,
        "baseline_interval": (round(baseline.low_us, 3), round(baseline.high_us, 3)),
    }


def _eager(row: Row) -> str:
    """The baseline with its word, or with its interval where it is modelled."""
    if row.baseline_interval is None:
        return figure(row.baseline_us)
    if row.baseline_interval[0] == row.baseline_interval[1]:
        return f"{figure(row.baseline_us)} {LatencySource.MEASURED.value}"
    low, high = map(figure, row.baseline_interval)
    return f"{figure(row.baseline_us)} ({low} to {high})"


def _with_rival(row: Row, rival: Rival | None) -> Row:
    if rival is None:
        return row
    us, word = rival.figures[0]
    return evolve(row, vendor=rival.name, vendor_us=us, vendor_source=word)


def _print(file: Path, rows: Iterable[Row]) -> None:
    """What is planned and the verified kernels as tables, then what was left alone, then each reason once
    with its lines."""
    members = list(rows)
    for table in (_plan_table(file, members), _verified_table(file, members)):
        if table.row_count:
            print_table(table)
    for row in members:
        if row.kernel_dir and not row.left_alone:
            say(f"line {row.line}: {row.kernel_dir}")
    for row in members:
        if row.left_alone:
            say(f"{_where(row)}, {row.title}: {row.reason}")
    told = (RegionStatus.VERIFIED, RegionStatus.CANDIDATE)
    for lines, row in _grouped(row for row in members if row.status not in told):
        say(f"{lines}: {row.status}: {row.reason}")


def _plan_table(file: Path, rows: Iterable[Row]) -> Table:
    """What could be had; rows that are skipped stand below the tables of a run."""
    members = [row for row in rows if row.status == RegionStatus.CANDIDATE and not row.left_alone]
    return _table(file, members, {"estimated us": lambda row: figure(row.estimate_us)})


def _verified_table(file: Path, rows: Iterable[Row]) -> Table:
    latencies: dict[str, Callable[[Row], str]] = {
        "attempts": lambda row: str(row.attempts),
        "first us": lambda row: figure(row.first_latency_us),
        "best us": lambda row: figure(row.best_latency_us),
    }
    return _table(file, [row for row in rows if row.status == RegionStatus.VERIFIED], latencies)


def _table(file: Path, rows: Sequence[Row], latencies: Mapping[str, Callable[[Row], str]]) -> Table:
    """A row for each region: where it is, what it computes, its shape, latencies and gain."""
    columns: dict[str, Callable[[Row], str]] = {
        "where": _where,
        "what": lambda row: row.title,
        "shape": lambda row: row.shape,
        "eager us": _eager,
        "vendor us": _vendor,
        **latencies,
        "gain": _gain,
        "roofline us": lambda row: figure(row.roofline_us),
    }
    if not any(row.vendor for row in rows):
        del columns["vendor us"]
    chips = " and ".join(dict.fromkeys(row.chip for row in rows if row.chip))
    table = Table(*map(column, columns), title=f"{shown(file.name)} on {chips}")
    for row in rows:
        add_row(table, *(cell(row) for cell in columns.values()))
    return table


def _where(row: Row) -> str:
    """The function and the lines of a region."""
    lines = str(row.line) if row.line == row.end_line else f"{row.line}-{row.end_line}"
    return f"{row.symbol}:{lines}" if row.symbol else f"line {lines}"


def _gain(row: Row) -> str:
    """The gain with the source of the kernel's latency, in words."""
    word = LatencySource(row.latency_source).word if row.latency_source else ""
    return f"{row.gain or 0.0:z.0%} {word}".rstrip()


def _vendor(row: Row) -> str:
    return f"{figure(row.vendor_us)} {LatencySource(row.vendor_source).word}" if row.vendor_source else ""


def _but_for_line(reason: str) -> str:
    """A reason as it is for any line, where it names one."""
    if isinstance(reason, Sentence) and "line" in reason.values:
        return Sentence(reason.template, **{**reason.values, "line": 0})
    return reason


def _grouped(rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """Rows of the same status and sentence, but for the line that it names, once with their lines."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.status, _but_for_line(row.reason)), []).append(row)
    for group in groups.values():
        lines = list(dict.fromkeys(str(row.line) for row in group))
        yield f"{'line' if len(lines) == 1 else 'lines'} {', '.join(lines)}", group[0]


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM") if hasattr(signal, name))


@define
class Ending:
    """As a context manager it takes the signals by which runs are ended; ``asked`` after the first. The
    second is what it was before."""

    asked: bool = False
    _before: dict[int, Any] = field(factory=dict)

    def __enter__(self) -> Ending:
        for number in _SIGNALS:
            self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._give_back()
        say("evokernel: ending; once more ends at once.", err=True)

    def _give_back(self) -> None:
        while self._before:
            number, handler = self._before.popitem()
            signal.signal(number, handler)
