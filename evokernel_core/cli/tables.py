"""What tables on the command line have in common: latencies in few digits, and room for words."""

from __future__ import annotations

import sys

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table

from evokernel_core.cli.terminal import shown

WIDTH = 150
"""Columns of a table that goes to a file or a pipe, where no terminal says its own; more where it has columns
that are never cut."""
ROOM = 40
"""What is left for the words of other columns then."""


def figure(us: float | None) -> str:
    """Microseconds with one decimal below a thousand, empty for None."""
    if us is None:
        return ""
    return f"{us:,.1f}" if us < 1000 else f"{us:,.0f}"


def column(name: str) -> Column:
    """A column that is never cut, unless the terminal is too narrow."""
    return Column(name, no_wrap=True)


def add_row(table: Table, *cells: str) -> None:
    """Adds a row whose cells hold what others wrote."""
    table.add_row(*map(shown, cells))


def print_table(table: Table) -> None:
    """Prints a table to standard output; brackets in it are brackets, and no markup."""
    console = Console(markup=False, emoji=False)
    if not sys.stdout.isatty():
        for uncut in (column for column in table.columns if column.no_wrap):
            uncut.min_width = max(cell_len(str(cell)) for cell in (uncut.header, *uncut.cells))
        unbounded = console.options.update(max_width=sys.maxsize)
        console.width = max(WIDTH, Measurement.get(console, unbounded, table).minimum + ROOM)
    console.print(table)
