"""The timeline of a run as one HTML page without any other file, made from its Chrome trace."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from jinja2 import Environment
from markupsafe import Markup

from evokernel_core import temporary
from evokernel_core.domain.sentence import Sentence
from evokernel_core.twin.gaps import Summary, summarise
from evokernel_core.twin.page_words import TEMPLATE, embedded, page_words, templates_in
from evokernel_core.twin.run import RunResult

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX")
MAX_EVENTS = 120_000
"""A page holds the timelines of as many cores as keep it below this, the slowest core's always."""

SHOWN_FIRST = ("MTE2", "MTE1", "M", "V", "FIX", "MTE3", "S")
"""The order of the rows: as data flows, the scalar unit last."""

_LABEL = re.compile(r"(.*) block (\d+) of (\d+)(, cube core|, second vector core|)( \(slowest\)|)")
"""What the library's trace calls a core."""


@contextmanager
def chrome_trace(wanted: Path | None) -> Iterator[Path | None]:
    """Where the run should write its Chrome trace: the path itself, or for a page another file."""
    if wanted is None or wanted.suffix != ".html":
        yield wanted
        return
    with temporary.folder("trace") as folder:
        yield Path(folder) / "trace.json"


def write_timeline(trace: Path, result: RunResult, chip: str, page: Path) -> Summary:
    """Writes the page of a run from its Chrome trace; gives what it comes to. Raises OSError where it cannot
    be written."""
    cores = [core for core in _cores(json.loads(trace.read_text())["traceEvents"]) if core.rows]
    names, places = _Index(), _Index()
    kept = _kept(cores)
    data = {
        "chip": chip,
        "pipes": PIPES,
        "launches": [
            {
                "kernel": launch.kernel,
                "us": launch.latency_us,
                "blocks": launch.block_dim,
                "bottleneck": launch.bottleneck,
                "said": launch.bottleneck.data(),
            }
            for launch in result.launches
        ],
        "cores": [core.as_data(names, places) for core in kept],
        "left_out": len(cores) - len(kept),
        "first": next((index for index, core in enumerate(kept) if core.slowest), 0),
        "names": list(names.positions),
        "places": list(places.positions),
    }
    kernels = ", ".join(dict.fromkeys(launch.kernel for launch in result.launches))
    template = Environment(autoescape=True).from_string(TEMPLATE.read_text("utf-8"))
    page.write_text(template.render(kernels=kernels, data=Markup(embedded(data))), "utf-8")
    told = (*(core.said for core in kept), *(launch.bottleneck for launch in result.launches))
    return evolve(summarise(data), templates=tuple(dict.fromkeys((*page_words(), *templates_in(told)))))


@define
class _Index:
    """Each different text once; events hold its position."""

    positions: dict[str, int] = field(factory=dict)

    def of(self, text: str) -> int:
        return self.positions.setdefault(text, len(self.positions))


@define
class _Core:
    """One process of the trace: the rows of its pipes."""

    label: str
    launch: int
    total: float = 0.0
    busy: dict[int, float] = field(factory=dict)
    rows: dict[int, list[Mapping[str, Any]]] = field(factory=dict)

    @property
    def slowest(self) -> bool:
        return self.label.endswith("(slowest)")

    @property
    def said(self) -> Sentence:
        """Its label, to be said in any language."""
        match = _LABEL.fullmatch(self.label)
        if match is None:
            return Sentence(self.label)
        kinds = {
            ", cube core": Sentence(", cube core"),
            ", second vector core": Sentence(", second vector core"),
        }
        return Sentence(
            "{kernel} block {block} of {blocks}{kind}{slowest}",
            kernel=match[1],
            block=int(match[2]),
            blocks=int(match[3]),
            kind=kinds.get(match[4], ""),
            slowest=Sentence(" (slowest)") if match[5] else "",
        )

    @property
    def events(self) -> int:
        return sum(len(row) for row in self.rows.values())

    def as_data(self, names: _Index, places: _Index) -> dict[str, Any]:
        shown = sorted(self.busy, key=lambda pipe: SHOWN_FIRST.index(PIPES[pipe]))
        pipes = [self._pipe(pipe, self.rows.get(pipe, []), names, places) for pipe in shown]
        return {
            "label": self.label,
            "said": self.said.data(),
            "launch": self.launch,
            "total": self.total,
            "pipes": pipes,
        }

    def _pipe(
        self, pipe: int, row: Iterable[Mapping[str, Any]], names: _Index, places: _Index
    ) -> dict[str, Any]:
        waits: dict[str, float] = {}
        flat: list[float] = []
        for event in row:
            args = event["args"]
            cause, idle = args.get("waited_for", "S"), args.get("idle_us", 0.0)
            waited = event["dur"] if event["name"] == "wait" else idle
            waits[cause] = waits.get(cause, 0.0) + waited
            flat += (event["ts"], event["dur"], names.of(event["name"]), places.of(args["at"]))
            flat += (args["bytes"], idle, PIPES.index(cause))
        return {
            "name": PIPES[pipe],
            "busy": self.busy[pipe],
            "waits": {cause: round(us, 4) for cause, us in waits.items() if us > 0},
            "events": flat,
        }


def _cores(events: Iterable[Mapping[str, Any]]) -> list[_Core]:
    cores: dict[int, _Core] = {}
    for event in events:
        match event:
            case {"ph": "M", "name": "process_name", "pid": pid, "args": args}:
                cores[pid] = _Core(args["name"], args["launch"])
            case {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": args}:
                cores[pid].busy[tid] = args["busy_us"]
                cores[pid].total = args["total_us"]
            case {"ph": "X", "pid": pid, "tid": tid}:
                cores[pid].rows.setdefault(tid, []).append(event)
    return list(cores.values())


def _kept(cores: list[_Core]) -> list[_Core]:
    room = MAX_EVENTS
    chosen: list[_Core] = []
    for core in sorted(cores, key=lambda core: not core.slowest):
        room -= core.events
        if core.slowest or room >= 0:
            chosen.append(core)
    return [core for core in cores if core in chosen]
