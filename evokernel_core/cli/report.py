"""``evokernel report``: what the memory holds, as lines of text or a self-contained page."""

from __future__ import annotations

import time
from pathlib import Path

import click

from evokernel_core.cli.options import OutputFile
from evokernel_core.cli.tables import figure
from evokernel_core.cli.terminal import say
from evokernel_core.memory.store import Memory
from evokernel_core.paths import memory_path
from evokernel_core.report.figures import Item, TaskFigures
from evokernel_core.report.gather import gather
from evokernel_core.report.page import write_page


@click.command("report", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--html", "out", type=OutputFile(), metavar="OUT",
              help="Write a page that needs nothing else to this file.", )  # fmt: skip
def command(out: Path | None) -> None:
    """Summarise what the memory holds as one page."""
    with Memory(memory_path()) as memory:
        report = gather(memory)
    if out is None:
        _print(report.kernels, report.items)
        return
    write_page(report, out, time.strftime("%Y-%m-%d %H:%M"))
    say(f"Report written to {out}.")


def _print(kernels: tuple[TaskFigures, ...], items: tuple[Item, ...]) -> None:
    for row in kernels:
        place = ", ".join(filter(None, (row.where, row.shape, row.category)))
        say(f"{row.name} ({place}): {_counted(row)}, {_evidence(row)}")
    say("" if kernels else "The memory holds no kernels yet; run `evokernel synth FILE`.")
    for item in items:
        where = f"{item.stage}, {item.category or 'all ops'}, {item.updates} update(s)"
        say(f"Q {item.q:+.3f} ({where}): {item.title}")


def _counted(row: TaskFigures) -> str:
    timed = f", {row.timed_only} timed only" if row.timed_only else ""
    return f"{row.verified} of {row.tried} kernels verified{timed}"


def _evidence(row: TaskFigures) -> str:
    if row.best_us is None:
        return "none verified"
    others = f"eager {figure(row.eager_us)}, roofline {figure(row.bound_us)}"
    return f"best {figure(row.best_us)} us {row.evidence} ({others})"
