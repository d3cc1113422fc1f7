"""The report as one HTML page that loads nothing: its charts are drawn by Observable Plot, which it holds.

The page's policy names its own scripts and style by their digests and forbids every connection, so that a
name of a task or an item that is markup stays text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

from attrs import asdict
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evokernel_core.domain.verdict import LatencySource
from evokernel_core.report.figures import Evidence, Report, TaskFigures

HERE = Path(__file__).parent
_SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "page.js")


def write_page(report: Report, page: Path, written: str) -> None:
    """Writes the page; ``written`` says when. Raises OSError."""
    scripts, style = [_text(name) for name in _SCRIPTS], _text("page.css")
    template = _environment().get_template("page.html.jinja")
    html = template.render(
        report=report,
        summaries=[summary(report, evidence) for evidence in report.evidences],
        written=written,
        scripts=[Markup(text) for text in scripts],
        style=Markup(style),
        data=Markup(_json(_drawn(report))),
        policy=f"default-src 'none'; script-src {_digests(scripts)}; style-src {_digests([style])}; "
        "base-uri 'none'; form-action 'none'",
    )
    page.write_text(html, encoding="utf-8")


def summary(report: Report, evidence: Evidence) -> dict[str, Any]:
    """What the head of the page says of one evidence: how many tasks have a verified kernel, the geometric
    mean of their gains over eager (None where there is none), and the kernel of the greatest."""
    mine = [kernel for kernel in report.kernels if kernel.evidence == evidence]
    gains = [kernel.gain for kernel in mine if kernel.gain]
    mean = math.exp(math.fsum(map(math.log, gains)) / len(gains)) if gains else None
    best = max(
        (kernel for kernel in mine if kernel.gain), key=lambda kernel: kernel.gain or 0.0, default=None
    )
    return {"evidence": evidence, "tasks": len(mine), "verified": len(gains), "mean": mean, "best": best}


def _drawn(report: Report) -> dict[str, Any]:
    """What the charts are drawn from."""
    kernels = [kernel for kernel in report.kernels if kernel.evidence]
    return {
        "evidences": list(map(str, report.evidences)),
        "measured": [
            str(evidence) for evidence in report.evidences if evidence.source is LatencySource.MEASURED
        ],
        "kernels": [_kernel(kernel) for kernel in kernels],
        "tries": {
            words: {task: [asdict(attempt) for attempt in tries] for task, tries in by_task.items()}
            for words, by_task in report.tries.items()
        },
        "curves": {words: [asdict(point) for point in points] for words, points in report.curves.items()},
        "beliefs": [asdict(belief) for belief in report.beliefs],
        "reactions": [asdict(reaction) for reaction in report.reactions],
    }


def _kernel(kernel: TaskFigures) -> dict[str, Any]:
    names = (
        "task",
        "name",
        "where",
        "shape",
        "category",
        "verified",
        "first_us",
        "best_us",
        "eager_us",
        "bound_us",
        "gain",
    )
    return {"evidence": str(kernel.evidence), **{name: getattr(kernel, name) for name in names}}


def _json(data: Any) -> str:
    """JSON that ends no script element, whatever its texts are."""
    text = json.dumps(_rounded(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _rounded(data: Any) -> Any:
    """Numbers with the digits that a chart can show."""
    match data:
        case float():
            return float(f"{data:.5g}")
        case dict():
            return {key: _rounded(value) for key, value in data.items()}
        case list():
            return list(map(_rounded, data))
    return data


def _digests(texts: list[str]) -> str:
    result = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in result)


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8").strip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE), undefined=StrictUndefined, autoescape=True, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["us"] = _us
    environment.filters["times"] = _times
    return environment


def _us(value: float | None) -> str:
    """Microseconds in few digits."""
    if value is None:
        return ""
    return f"{value:,.2f}" if value < 10 else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}×" if value < 100 else f"{value:,.0f}×"
