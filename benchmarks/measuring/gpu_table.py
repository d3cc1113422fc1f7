"""What rows of docs/results/h200.jsonl come to: geometric means beside numbers of edits, and a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measuring.classes import AS_LEFT, COMPILE, EAGER, OURS, STRICT
from benchmarks.measuring.gpu_devices import Measured, devices_table
from benchmarks.measuring.gpu_others import others_table
from benchmarks.measuring.gpu_rows import ruled

Row = Mapping[str, Any]
SIZES = {1: 100, 2: 100, 3: 50}
"""KernelBench's problems by level."""
_KIND = ("suite", "level", "problem", "system", "device")


def merged(old: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """All rows, a system's of a problem from its newest run, by level and number."""
    runs: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for row in map(ruled, [*old, *new]):
        dates = runs.setdefault(tuple(row[name] for name in _KIND), {})
        dates.setdefault(str(row["date"]), []).append(row)
    newest = (row for dates in runs.values() for row in dates[max(dates)])
    return sorted({_place(row): row for row in newest}.values(), key=_place)


def _place(row: Row) -> tuple[Any, ...]:
    return (row["suite"], row["level"], _number(row["problem"]), row["class"], row["system"], row["device"])


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
        "drafts_over_eager": _over(EAGER, drafts),
        "drafts_over_compile": _over(COMPILE, drafts),
        "drafts_over_best": _mean([row["draft_over_best"] for row in drafts]),
    }


def _over(system: str, drafts: Sequence[Row]) -> float | None:
    return _mean([row["interval"][system][0] for row in drafts if system in row["interval"]])


def _highest(row: Row) -> float:
    return float(row["interval"][row["best_of"]][2])


def _mean(values: Sequence[float]) -> float | None:
    """The geometric mean."""
    return round(math.exp(math.fsum(map(math.log, values)) / len(values)), 4) if values else None


def table(rows: Sequence[Row], left_out: Mapping[str, str], truth: Mapping[str, Any] | None) -> str:
    """The page. ``left_out``: problems that gave no rows, and why; ``truth``: docs/results/gpu_truth.json."""
    return "\n".join(_lines(rows, left_out, truth)) + "\n"


def _lines(
    rows: Sequence[Row], left_out: Mapping[str, str], truth: Mapping[str, Any] | None
) -> Iterator[str]:
    yield "# First drafts on a GPU"
    yield ""
    for device in sorted({(row["device"], row["torch"], row["triton"], row["driver"]) for row in rows}):
        yield "Measured on {}, torch {}, triton {}, driver {}.".format(*device)
    dates = sorted({str(row["date"])[:10] for row in rows})
    yield f"Dates: {', '.join(dates)}. Written by `python benchmarks/gpu.py --merge` from h200.jsonl."
    yield ""
    yield "## What was measured on which device"
    yield ""
    yield from devices_table(_measured(rows), truth)
    yield ""
    yield "## By level"
    yield ""
    yield (
        "Speed-ups are geometric means of the faster of eager and torch.compile over ours, of device time "
        "with a cold L2, by rounds in which all systems take turns.\nA row is edited where ours is faster "
        "by its 95 % interval in one session; its number comes from a second. Rows without an edit are "
        "exactly 1.0.\n*As left*: PyTorch's flags as it sets them (convolutions in TF32); *strict*: without "
        "TF32. Shortcuts are more than 15 times as fast and stand apart."
    )
    yield ""
    yield "| level, class | problems | right | edited | speed-up | of edited | below 1.0 | shortcuts | drafts over eager | over compile | over the best |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, one in summary(rows).items():
        words = [one[key] for key in ("problems", "right", "edited", "speed_up", "speed_up_edited")]
        words += [one[key] for key in ("below_1", "shortcuts", "drafts_over_eager", "drafts_over_compile")]
        cells = " | ".join("" if word is None else str(word) for word in [*words, one["drafts_over_best"]])
        yield f"| {name.replace('level', 'level ').replace('_', ' ')} | {cells} |"
    yield ""
    yield from others_table(rows)
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
    missing = _missing(rows, left_out)
    if missing:
        yield ""
        yield "## Missing"
        yield ""
        yield from missing


def _measured(rows: Sequence[Row]) -> list[Measured]:
    """What the rows say of each device, level and class."""
    result = []
    for device in sorted({str(row["device"]) for row in rows}):
        here = [row for row in rows if row["device"] == device]
        for name, one in summary(here).items():
            level, kind = name.split()
            if one["problems"]:
                words = (
                    f"{one['right']} right; {_times(one['drafts_over_eager'])} eager, "
                    f"{_times(one['drafts_over_compile'])} torch.compile, {_times(one['drafts_over_best'])} "
                    f"the faster of both; {one['edited']} edited, {_times(one['speed_up'])} over all"
                )
                what = (
                    f"first drafts, KernelBench {level.replace('level', 'level ')}, {kind.replace('_', ' ')}"
                )
                total = SIZES.get(int(level.removeprefix("level")), 0)
                result.append(Measured(what, device, f"{one['problems']} of {total} problems", words))
    return result


def _times(value: float | None) -> str:
    return "no" if value is None else f"{value:.2f}x"


def _missing(rows: Sequence[Row], left_out: Mapping[str, str]) -> list[str]:
    """Lines on problems without rows: those that were tried, with why, and the numbers of all others."""
    known = {(row["level"], _number(row["problem"])) for row in rows}
    tried = {key: why for key, why in left_out.items() if _level_and_number(key) not in known}
    lines = [f"- {key}: {why}" for key, why in sorted(tried.items())]
    known |= {_level_and_number(key) for key in tried}
    for level, size in SIZES.items():
        numbers = [number for number in range(1, size + 1) if (level, number) not in known]
        if numbers:
            lines.append(f"- level {level}, not run: {', '.join(_spans(numbers))}")
    return lines


def _number(problem: str) -> int:
    return int(problem.split("_", maxsplit=1)[0])


def _level_and_number(key: str) -> tuple[int, int]:
    level, problem = key.removeprefix("level").split("/", 1)
    return int(level), _number(problem)


def _spans(numbers: Sequence[int]) -> list[str]:
    """Rising numbers, neighbours as ``first to last``."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return [str(first) if first == last else f"{first} to {last}" for first, last in spans]


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
