"""The page of docs/results that says how far the twin's time model is from published measurements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.latency.rows import Row

SECTIONS = ("launch", "scalar", "sync", "vector", "mte", "gm", "cube")
_CONSTANT = re.compile(r"(\w+) = ([\d.]+) *# (.*)")


class Compared(Protocol):
    """A row, what was predicted for it in its unit, and the relative error."""

    @property
    def row(self) -> Row: ...
    @property
    def predicted(self) -> float: ...
    @property
    def error(self) -> float: ...


C = TypeVar("C", bound=Compared)
Figures = Callable[[Sequence[C]], dict[str, float | int]]


def page(executed: Sequence[C], held_out: frozenset[str], figures: Figures[C], chip_file: Path) -> str:
    """``executed``: rows of kernels that the twin ran; ``held_out``: series that no constant was fitted to;
    ``figures``: count, error and Spearman of some rows; ``chip_file``: the constants, with their sources."""
    lines = [
        "# The twin's time model beside published measurements", "",
        f"{len(executed)} published rows of real chips whose kernels the twin executed as they are. Written "
        "by `python benchmarks/latency_model.py --page`; [twin.md](../twin.md) says what is estimated.", "",
        "L2 is empty when a kernel starts (cold); what the same program read or wrote before is warm in so "
        "far as it fits. The published rows show no warm reads: of element-wise operators on a 910B2 those "
        "whose operands fit into L2 read at the same rate as those that are larger than it.", "",
        "![Estimated against measured](../images/latency_model.svg)", "",
        "## Split", "", "Whole series are held out; no constant was fitted to them.", "",
        "| executed rows | rows | median absolute error | Spearman |", "|---|---|---|---|",
        *_split(executed, held_out, figures), "",
        "| series | | rows | median absolute error | Spearman |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for series in sorted({item.row.series for item in executed}):
        part = "held out" if series in held_out else "fitted"
        of_series = [item for item in executed if item.row.series == series]
        lines.append(f"| {series} | {part} | {_told(figures(of_series))} |")
    lines += [
        "",
        "## Rows",
        "",
        "| row | chip | unit | measured | estimated | error |",
        "|---|---|---|---|---|---|",
    ]
    for item in executed:
        figure = f"{item.row.value:g} | {item.predicted:.4g} | {item.error:+.0%}"
        lines.append(f"| {item.row.id} | {item.row.chip.name} | {item.row.unit} | {figure} |")
    lines += ["", "## Constants", "", f"Of `{chip_file.name}`; other chips' files say what differs.", ""]
    lines += ["| constant | value | from |", "|---|---|---|", *_constants(chip_file.read_text("utf-8"))]
    return "\n".join(lines) + "\n"


def _split(executed: Sequence[C], held_out: frozenset[str], figures: Figures[C]) -> Iterator[str]:
    for name, is_out in (("held out", True), ("fitted", False)):
        rows = [item for item in executed if (item.row.series in held_out) is is_out]
        short = [item for item in rows if item.row.is_short]
        yield f"| {name} | {_told(figures(rows))} |"
        yield f"| {name}, below 30 us | {_told(figures(short))} |"
        yield f"| {name}, others | {_told(figures([item for item in rows if item not in short]))} |"


def _told(figures: dict[str, float | int]) -> str:
    if not figures["rows"]:
        return "0 | |"
    return f"{figures['rows']} | {figures['median_abs_error']:.1%} | {figures['spearman']:.2f}"


def _constants(text: str) -> Iterator[str]:
    section = ""
    for line in text.splitlines():
        if line.startswith("["):
            section = line[1:].partition("]")[0]
        found = _CONSTANT.match(line)
        if found and section.partition(".")[0] in SECTIONS:
            yield f"| {section}.{found[1]} | {found[2]} | {found[3].replace('|', '/')} |"
