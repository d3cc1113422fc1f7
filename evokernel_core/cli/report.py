"""``evokernel report``: what the memory holds, as one page of text or self-contained HTML."""

from __future__ import annotations

from pathlib import Path

import click
from attrs import frozen
from jinja2 import Environment, StrictUndefined

from evokernel_core import __version__
from evokernel_core.cli.options import OutputFile
from evokernel_core.cli.terminal import say
from evokernel_core.domain.verdict import Latency
from evokernel_core.memory.store import Memory
from evokernel_core.memory.values import Value
from evokernel_core.paths import memory_path

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>EvoKernel report</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .2rem .8rem; text-align: left }
tr:nth-child(even) { background: #8881 } .number { text-align: right; font-variant-numeric: tabular-nums }
</style>
<h1>EvoKernel report</h1>
<p>Version {{ version }}, memory {{ path }}. Every latency says whether it is modelled or measured.</p>
<h2>Kernels</h2>
<table><tr><th>task<th>op<th>kernels<th>feasible<th>timed only<th>best<th>eager<th>bound<th>evidence</tr>
{% for k in kernels %}<tr><td>{{ k.name }}<td>{{ k.op_category }}<td class="number">{{ k.tried }}
<td class="number">{{ k.feasible }}<td class="number">{{ k.slower }}
{% if k.latency %}<td class="number">{{ "%.1f"|format(k.latency.us) }} us
<td class="number">{{ "%.1f"|format(k.latency.baseline_us) }} us
<td class="number">{{ "%.1f"|format(k.latency.roofline_us) }} us
<td>{{ k.latency.source.value }} on {{ k.latency.chip }} by {{ k.verifier }}
{% else %}<td><td><td><td>{% endif %}</tr>
{% endfor %}</table>
<h2>What was worth most</h2>
<table><tr><th>Q<th>updates<th>stage<th>op<th>item</tr>
{% for v in values %}<tr><td class="number">{{ "%+.3f"|format(v.value.q) }}<td class="number">{{ v.value.n }}
<td>{{ v.value.stage.value }}<td>{{ v.value.op_category or "(all)" }}<td>{{ v.title }}</tr>
{% endfor %}</table>
<h2>Contents</h2>
<table>{% for name, count in counts.items() %}<tr><td>{{ name }}<td class="number">{{ count }}</tr>
{% endfor %}</table></html>
"""


@frozen
class Kernels:
    """The kernels of one task: how many were tried, verified, and timed only; the best one's evidence."""

    name: str
    op_category: str
    tried: int
    feasible: int
    slower: int
    latency: Latency | None
    verifier: str


@frozen
class Worth:
    value: Value
    title: str


@click.command("report", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--html", "out", type=OutputFile(), metavar="OUT",
              help="Write a page that needs nothing else to this file.", )  # fmt: skip
def command(out: Path | None) -> None:
    """Summarise what the memory holds as one page."""
    with Memory(memory_path()) as memory:
        kernels, values, counts = _kernels(memory), _worth(memory), memory.counts()
    if out is None:
        _print(kernels, values)
        return
    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(PAGE)
    page = template.render(
        version=__version__, path=str(memory_path()), kernels=kernels, values=values, counts=counts
    )
    out.write_text(page, encoding="utf-8")
    say(f"Report written to {out}.")


def _kernels(memory: Memory) -> list[Kernels]:
    """Per task; the best is by the source that knows it best: measured before modelled."""
    found = []
    for task in memory.tasks():
        stored = memory.candidates(task.task_id)
        feasible = [item for item in stored if item.verdict.feasible and item.verdict.latency]
        latencies = [(item.verdict.latency, item.verdict.verifier) for item in feasible]
        best = min(
            latencies,
            key=lambda pair: (pair[0].source.value != "measured", pair[0].us) if pair[0] else (True, 0.0),
            default=(None, ""),
        )
        slower = sum(item.verdict.is_slower for item in stored)
        found.append(Kernels(task.name, task.op_category, len(stored), len(feasible), slower, *best))
    return found


def _worth(memory: Memory, number: int = 25) -> list[Worth]:
    """The items of most value; start points are kernels and are shown as such."""
    found = []
    for value in memory.values(limit=number):
        item = memory.experience(value.item)
        found.append(Worth(value, item.title if item else value.item.replace("start:", "kernel ")[:24]))
    return found


def _print(kernels: list[Kernels], values: list[Worth]) -> None:
    for row in kernels:
        say(f"{row.name} ({row.op_category}): {_counted(row)}, {_evidence(row.latency)}")
    say("" if kernels else "The memory holds no kernels yet; run `evokernel synth FILE`.")
    for worth in values:
        value = worth.value
        where = f"{value.stage.value}, {value.op_category or 'all ops'}, {value.n} update(s)"
        say(f"Q {value.q:+.3f} ({where}): {worth.title}")


def _counted(row: Kernels) -> str:
    timed = f", {row.slower} timed only" if row.slower else ""
    return f"{row.feasible} of {row.tried} kernels verified{timed}"


def _evidence(latency: Latency | None) -> str:
    if latency is None:
        return "none verified"
    others = f"eager {latency.baseline_us:,.1f}, bound {latency.roofline_us:,.1f}"
    return f"best {latency.us:,.1f} us {latency.source.value} on {latency.chip} ({others})"
