"""The agent's answer as Regions, and the file's shape comments as the agent's request."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

from evokernel_core.capture.category import op_category, task_name
from evokernel_core.domain.graph import Graph
from evokernel_core.domain.region import Region, RegionStatus, Span
from evokernel_core.domain.serial import from_data
from evokernel_core.domain.task import TOLERANCES, KernelTask, Symbol, Tolerance


def annotations_of(text: str) -> dict[str, dict[str, Any]]:
    """Qualified name to the arguments that its ``# evokernel:`` comment gives."""
    return {}


def regions_of(path: Path, text: str, answer: Any, symbol: str | None) -> tuple[Region, ...]:
    """The regions of one capture, in source order."""
    lines = text.splitlines(keepends=True)
    seen: Counter[str] = Counter()
    return tuple(_region(path, lines, item, seen) for item in answer["regions"])


def _region(path: Path, lines: list[str], item: dict[str, Any], seen: Counter[str]) -> Region:
    span = Span(*item["span"])
    source = text_of(lines, span)
    digest = hashlib.sha256(source.encode()).hexdigest()
    task = _task(item) if item["graph"] is not None else None
    return Region(
        id=_identity(item["symbol"], digest, seen),
        file=str(path),
        symbol=item["symbol"],
        span=span,
        source=source,
        source_hash=digest,
        replacement=item["replacement"],
        op_category=task.op_category if task else "other",
        status=RegionStatus.CANDIDATE if task else RegionStatus.UNSUPPORTED,
        reason=item["reason"],
        task=task,
    )


def _identity(symbol: str, digest: str, seen: Counter[str]) -> str:
    """Equal texts in one symbol are told apart by their order; other edits leave it alone."""
    key = f"{symbol}\0{digest}"
    seen[key] += 1
    return hashlib.sha256(f"{key}\0{seen[key]}".encode()).hexdigest()[:16]


def text_of(lines: list[str], span: Span) -> str:
    """The text of a span."""
    if span.line == span.end_line:
        return lines[span.line - 1][span.column : span.end_column]
    first = lines[span.line - 1][span.column :]
    middle = lines[span.line : span.end_line - 1]
    return "".join([first, *middle, lines[span.end_line - 1][: span.end_column]])


def _task(item: dict[str, Any]) -> KernelTask:
    graph = from_data(item["graph"], Graph)
    return KernelTask(
        name=task_name(graph, item["symbol"]),
        graph=graph,
        symbols=tuple(Symbol(**symbol) for symbol in item["symbols"]),
        tolerance=_tolerance(graph),
        op_category=op_category(graph),
    )


def _tolerance(graph: Graph) -> Tolerance:
    """That of the coarsest dtype which PyTorch itself rounds to on the way."""
    dtypes = {spec.dtype for node in graph.nodes for spec in node.outputs}
    return max((TOLERANCES[name] for name in dtypes if name in TOLERANCES), key=lambda item: item.rtol)
