"""What rows of docs/results/h200.jsonl come to: geometric means beside numbers of edits, and a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measuring.gpu_rows import AS_LEFT, COMPILE, EAGER, OURS, STRICT

Row = Mapping[str, Any]
_KIND = ("suite", "level", "problem", "system", "class", "device")


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """All rows, the newest of each kind, by level and number."""
    known = {tuple(row[name] for name in _KIND): row for row in old}
    for row in sorted(new, key=lambda one: str(one["date"])):
        known[tuple(row[name] for name in _KIND)] = row
    return sorted(known.values(), key=_place)


def _place(row: Row) -> tuple[Any, ...]:
    return (row["suite"], row["level"], int(str(row["problem"]).split("_")[0]), row["class"], row["system"])


def of_class(rows: Iterable[Row], level: int, name: str) -> list[Row]:
    """Our rows of a class; where TF32 makes no difference those as left are strict ones, too."""
    return [
        row
        for row in rows
        if row["level"] == level
        and row["system"] == OURS
        and (row["class"] == name or (name == STRICT and not row["tf32_matters"]))
    ]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of each level and class."""
    levels = sorted({row["level"] for row in rows})
    return {
        f"level{level} {name}": figures(of_class(rows, level, name))
        for level in levels
        for name in (AS_LEFT, STRICT)
    }


def figures(ours: Sequence[Row]) -> dict[str, Any]:
    """Of our rows: the means are of the faster of PyTorch's modes over ours where a row is edited, and
    exactly 1.0 where it is not; shortcuts stand apart."""
    edited = [row for row in ours if row["edited"]]
    plain = [row for row in edited if not row["shortcut"]]
    drafts = [row for row in ours if row["right"] and row["interval"]]
    return {
        "problems": len(ours),
        "right": sum(row["right"] for row in ours),
        "edited": len(edited),
        "shortcuts": len(edited) - len(plain),
        "speed_up": _mean([*(row["speed_up"] for row in plain), *[1.0] * (len(ours) - len(edited))]),
        "speed_up_edited": _mean([row["speed_up"] for row in plain]),
        "below_1": sum(_highest(row) < 1.0 for row in edited),
        "drafts_over_eager": _mean([row["interval"][EAGER][0] for row in drafts if EAGER in row["interval"]]),
        "drafts_over_compile": _mean(
            [row["interval"][COMPILE][0] for row in drafts if COMPILE in row["interval"]]
        ),
        "drafts_over_best": _mean([row["speed_up"] for row in drafts]),
    }


def _highest(row: Row) -> float:
    return float(row["interval"][row["best_of"]][2])


def _mean(values: Sequence[float]) -> float | None:
    """The geometric mean."""
    return round(math.exp(math.fsum(map(math.log, values)) / len(values)), 4) if values else None


def table(rows: Sequence[Row], left_out: Mapping[str, str]) -> str:
    """The page."""
    return "\n".join(_lines(rows, left_out)) + "\n"


def _lines(rows: Sequence[Row], left_out: Mapping[str, str]) -> Iterator[str]:
    yield "# First drafts on a GPU"
    yield ""
    for device in sorted({(row["device"], row["torch"], row["triton"], row["driver"]) for row in rows}):
        yield "Measured on {}, torch {}, triton {}, driver {}.".format(*device)
    dates = sorted({str(row["date"])[:10] for row in rows})
    yield f"Dates: {', '.join(dates)}. Written by `python benchmarks/gpu.py --merge` from h200.jsonl."
    yield ""
    yield (
        "Speed-ups are geometric means of the faster of eager and torch.compile over ours, of device time "
        "with a cold L2, by rounds in which all systems take turns. A row is edited where ours is faster by "
        "its 95 % interval in one session; its figure comes from a second. Rows without an edit count as "
        "1.0. *As left*: PyTorch's flags as it sets them (convolutions in TF32); *strict*: without TF32. "
        "Shortcuts are more than 15 times as fast and stand apart."
    )
    yield ""
    yield "| level, class | problems | right | edited | speed-up | of edited | below 1.0 | shortcuts | drafts over eager | over compile | over the best |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, one in summary(rows).items():
        words = [one[key] for key in ("problems", "right", "edited", "speed_up", "speed_up_edited")]
        words += [one[key] for key in ("below_1", "shortcuts", "drafts_over_eager", "drafts_over_compile")]
        cells = " | ".join("" if word is None else str(word) for word in [*words, one["drafts_over_best"]])
        yield f"| {name.replace('_', ' ')} | {cells} |"
    yield ""
    yield "## Problems"
    yield ""
    yield "| problem | class | ours us | eager us | compile us | over the best (95 %) | right | edited | own share | roofline |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for row in rows:
        if row["system"] == OURS:
            yield _problem_line(row, rows)
    wrong = [row for row in rows if row["system"] == OURS and row["why"]]
    if wrong:
        yield ""
        yield "## Drafts that failed"
        yield ""
        yield from (
            f"- level {row['level']} {row['problem']} ({row['class']}): {row['why']}" for row in wrong
        )
    if left_out:
        yield ""
        yield "## Missing"
        yield ""
        yield from (f"- {key}: {why}" for key, why in sorted(left_out.items()))


def _problem_line(row: Row, rows: Sequence[Row]) -> str:
    beside = {
        other["system"]: other
        for other in rows
        if all(other[name] == row[name] for name in ("level", "problem", "class", "device"))
    }
    us = [_us(beside.get(system)) for system in (OURS, EAGER, COMPILE)]
    ratio = ""
    if row["interval"]:
        value, low, high = row["interval"][row["best_of"]]
        ratio = f"{value:.3f}" + (f" ({low:.3f} to {high:.3f})" if low is not None else "")
    said = ["yes" if row["right"] else "no", "yes" if row["edited"] else "no"]
    ends = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("own_share", "roofline")]
    cells = [f"{row['level']}, {row['problem']}", row["class"].replace("_", " "), *us, ratio, *said, *ends]
    return f"| {' | '.join(cells)} |"


def _us(row: Row | None) -> str:
    return "" if row is None or row["device_us"] is None else f"{row['device_us']:.1f}"
