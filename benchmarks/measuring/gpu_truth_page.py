"""What sessions of benchmarks/gpu_truth.py come to: its figures, what is recorded of them, and the page."""

from __future__ import annotations

import json
import math
import statistics
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evokernel_core.targets.triton.backends.intervals import RESOLUTION, Ratio, resolved

OWN, SHARED = "own", "shared"
"""Whether each of two kernels had memory of its own in all of a session, or both the same in turn."""
_SESSION = ("us", "memory", "median_us", "ratio", "bootstrap", "how")
LONGEST_OUTCOME = 160
"""Characters of what came of a trick."""
_HACK = ("hack", "what", "outcome", "gain", "caught")
Row = Mapping[str, Any]


def summary(result: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a run, by microseconds where they have them."""
    told: dict[str, Any] = {}
    own, planted = (
        rows if isinstance(rows := result.get(part), list) else [] for part in ("self", "planted")
    )
    for us in sorted({row["us"] for row in [*own, *planted]}):
        here = [row for row in own if row["us"] == us]
        slower = [row for row in planted if row["us"] == us]
        if here:
            told.setdefault("self_covered", {})[us] = _count(
                here, lambda row: row["low"] <= 1.0 <= row["high"]
            )
            widths = [(row["high"] - row["low"]) / 2 for row in here]
            told.setdefault("half_width", {})[us] = round(statistics.median(widths), 5)
        if slower:
            told.setdefault("planted_found", {})[us] = _count(slower, lambda row: row["low"] > 1.0)
    tricks = result.get("hacks")
    if isinstance(tricks, list):
        told["hacks"] = len(tricks)
        told["hacks_caught"] = sum(row["caught"] for row in tricks)
    return told


def _count(rows: Sequence[Row], test: Callable[[Row], bool]) -> str:
    return f"{sum(map(test, rows))} of {len(rows)}"


def recorded(runs: Sequence[Mapping[str, Any]]) -> str:
    """What the page needs of runs, as JSON: of tricks, and of sessions with either memory, those of the run
    that has the most of them. Rows that say nothing of memory are of sessions with memory of their own."""
    kept: dict[str, Any] = {"conditions": runs[-1]["conditions"]}
    for part in ("self", "planted"):
        rows = [[_trimmed(row, _SESSION) for row in run[part]] for run in runs if _has(run, part)]
        kept[part] = [
            row
            for memory in (OWN, SHARED)
            for row in _longest([[one for one in run if one["memory"] == memory] for run in rows])
        ]
    tricks = [run["hacks"] for run in runs if _has(run, "hacks")]
    kept["hacks"] = [_trimmed(row, _HACK) for row in _longest(tricks)]
    return json.dumps(kept, indent=None).replace('}, {"', '},\n{"') + "\n"


def _has(run: Mapping[str, Any], part: str) -> bool:
    return isinstance(run.get(part), list)


def _longest(runs: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The last of the longest."""
    return max(reversed(runs), key=len, default=[])


def _trimmed(row: Row, names: Sequence[str]) -> dict[str, Any]:
    whole = {"memory": OWN, "bootstrap": [row.get("low"), row.get("high")], **row}
    return {name: _short(whole[name]) for name in names}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


def page(result: Mapping[str, Any]) -> str:
    """The page of what was recorded."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    about = result["conditions"]
    yield "# How well time is measured on a GPU"
    yield ""
    yield (
        f"{about['device']}, torch {about['torch']}, triton {about['triton']}, driver {about['driver']}. "
        "Written by `python benchmarks/gpu_truth.py --md` from gpu_truth.json."
    )
    yield ""
    yield (
        "A session is 200 pairs of runs, each pair in the other order than the one before it, with a cold L2 "
        "and tensors at other addresses in each pair.\n"
        "*Covered*: sessions of a kernel beside itself whose 95 % interval of the ratio holds 1.00; *from "
        "pairs alone*: by the bootstrap before the resolution is added.\n"
        "*Planted*: sessions of a kernel beside one that does 3 % of its blocks twice whose interval lies "
        "above 1.00."
    )
    yield ""
    yield "| session | memory | median us | sessions | covered | half-width | covered from pairs alone | mean ratio | planted found | mean planted |"  # noqa: E501
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for us, memory in sorted({(row["us"], row["memory"]) for row in [*result["self"], *result["planted"]]}):
        yield _session_line(us, memory, result)
    yield ""
    yield from _cause(result["self"])
    yield ""
    yield "## Tricks"
    yield ""
    caught = sum(row["caught"] for row in result["hacks"])
    yield (
        f"{caught} of {len(result['hacks'])} are contained: refused, seen through, or without gain (the "
        "ratio of the honest kernel's time to the trick's)."
    )
    yield ""
    yield "| trick | what it does | what came of it | gain |"
    yield "|---|---|---|---|"
    for row in result["hacks"]:
        gain = f"{row['gain']:.3f}" if row["gain"] else "none"
        words = textwrap.shorten(str(row["outcome"]), LONGEST_OUTCOME).replace("|", "\\|")
        yield f"| {row['hack']} | {row['what']} | {words} | {gain} |"


def _session_line(us: int, memory: str, result: Mapping[str, Any]) -> str:
    own, planted = (
        [row for row in result[part] if (row["us"], row["memory"]) == (us, memory)]
        for part in ("self", "planted")
    )
    ratios = [_resolved(row) for row in own]
    cells = [
        f"{us} us",
        memory,
        f"{statistics.median(row['median_us'] for row in [*own, *planted]):.1f}",
        f"{len(own)}",
        f"{sum(ratio.holds(1.0) for ratio in ratios)}",
        f"{100 * statistics.median(ratio.half_width for ratio in ratios):.2f} %" if ratios else "",
        f"{sum(row['bootstrap'][0] <= 1.0 <= row['bootstrap'][1] for row in own)}",
        f"{_mean(own):.5f}" if own else "",
        f"{sum(_resolved(row).low > 1.0 for row in planted)} of {len(planted)}",
        f"{_mean(planted):.4f}" if planted else "",
    ]
    return f"| {' | '.join(cells)} |"


def page_figures(result: Mapping[str, Any], memory: str) -> str:
    """How many sessions of one kind of memory hold 1.00, and how many find the slower kernel, in words."""
    own, planted = ([row for row in result[part] if row["memory"] == memory] for part in ("self", "planted"))
    held = _count(own, lambda row: _resolved(row).holds(1.0))
    seen = _count(planted, lambda row: _resolved(row).low > 1.0)
    return f"{held} intervals of a kernel beside itself hold 1.00; 3 % more work is found in {seen}"


def _resolved(row: Row) -> Ratio:
    return resolved(Ratio(row["ratio"], *row["bootstrap"]))


def _mean(rows: Sequence[Row]) -> float:
    return math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows))


def _cause(rows: Sequence[Row]) -> Iterator[str]:
    """Why pairs alone are too sure, from the sessions of a kernel beside itself."""
    apart = [row for row in rows if row["memory"] == OWN]
    means = [
        (us, math.log(_mean(here)), statistics.stdev(math.log(row["ratio"]) for row in here), len(here))
        for us in sorted({row["us"] for row in apart})
        if len(here := [row for row in apart if row["us"] == us]) > 1
    ]
    if not means:
        return
    yield "## What pairs do not tell"
    yield ""
    said = ", ".join(
        f"{100 * mean:+.3f} ± {100 * deviation / math.sqrt(count):.3f} % at {us} us"
        for us, mean, deviation, count in means
    )
    root = math.sqrt(statistics.fmean(mean * mean for _, mean, _, _ in means))
    yield (
        f"With memory of its own for each of the two, a kernel differs from itself by {said} (mean over "
        "sessions and its standard error).\nThat is a difference which all sessions share, and no matter of "
        f"their spread. {_centred(apart)}\n\n"
        "The two have the same code; the runs differ in the memory that they have, and one after a run in "
        "other memory is some 0.3 % slower at 100 us.\nSo the two now have the same memory in turn, at the "
        "same addresses within a pair, and each interval is widened by a resolution of "
        f"{100 * RESOLUTION:.3f} %\n(one standard deviation; the root mean square of the differences above "
        f"is {100 * root:.3f} %). It was fitted to the sessions that the table counts."
    )


def _centred(rows: Sequence[Row]) -> str:
    told = []
    for us in sorted({row["us"] for row in rows}):
        here = [row for row in rows if row["us"] == us]
        mean = _mean(here)
        told.append(
            f"{sum(row['bootstrap'][0] <= mean <= row['bootstrap'][1] for row in here)} of {len(here)}"
        )
    return f"Around that difference the intervals from pairs alone hold {', '.join(told)}."
