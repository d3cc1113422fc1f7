"""Rows of docs/results/h200.jsonl from what was timed of a problem."""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measuring.classes import AS_LEFT, EAGER, HALF, MODES, OURS, STRICT
from evokernel_core.targets.triton.backends.intervals import RESOLUTION, Ratio, ratio_of, resolved

SUITE = "kernelbench"
MOST_ERROR = 1e-4
"""Of float32 without TF32, in units of the reference's root mean square."""
MOST_HALF_ERROR = 1e-2
"""Of half types and TF32, in the same units."""
SHORTCUT = 15.0
"""More than so many times as fast is a shortcut in algebra, and stands apart."""
UNCHANGED = 1.0
"""The speed-up of a file that is not edited."""


def rows_of(
    problem: Any,
    about: Mapping[str, Any],
    answer: Mapping[str, Any],
    conditions: Mapping[str, Any],
    dated: Mapping[str, str],
) -> list[dict[str, Any]]:
    """One row a system and class. ``about`` names the systems beside ours, eager and compile; what one of
    these computes in half types is right in a class of its own."""
    rows: list[dict[str, Any]] = []
    for name, timed in answer["classes"].items():
        ours_right = False
        for system in (OURS, *MODES[:2], *about["systems"]):
            row = {
                "suite": SUITE,
                "level": problem.level,
                "problem": problem.name,
                "system": system,
                "class": name,
                **_said(system, name, about, answer, timed),
                "tf32_matters": STRICT in answer["classes"],
                "reference": answer["reference"],
                **_conditions(conditions, timed, name),
                **dated,
            }
            if system == OURS:
                ours_right = row["right"]
            elif not ours_right:
                row["interval"] = None
            rows += [row] if system in (OURS, *MODES) else _of_others(row, answer)
    return rows


def _of_others(row: dict[str, Any], answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The row of a kernel that others published, and another where it is as far from the reference as half
    types are, and farther than float32."""
    row["parameters"] = answer["parameters"].get(row["system"], "")
    row["flags"] |= answer["flags"].get(row["system"], {})
    if row["right"] is not False or row["why"] or row["error"] is None:
        return [row]
    half = not answer["exact"] and row["error"] <= MOST_HALF_ERROR
    said = "right as half types are" if half else f"wrong; parameters: {row['parameters']}"
    row["why"] = f"{row['error']:.1e} of the reference's root mean square away: {said}"
    again = half and row["class"] == AS_LEFT
    return [row, {**row, "class": HALF, "right": True, "why": ""}] if again else [row]


def _said(
    system: str, name: str, about: Mapping[str, Any], answer: Mapping[str, Any], timed: Mapping[str, Any]
) -> dict[str, Any]:
    errors = timed["errors"]
    error, why = errors.get(system), about["why"].get(system, "")
    figure, decision = timed["figure"], timed["decision"]
    us = figure["times"].get(system)
    right = error is not None and not why and is_right(errors, system, exact=answer["exact"])
    if system == OURS and right:
        why = _broken(about, answer, timed)
        right = not why
    row: dict[str, Any] = {
        # what PyTorch draws for eager and for us others do not
        "right": None if answer["drawn"] and system not in (OURS, EAGER) else right,
        "error": error,
        "why": why,
        "offered": None,
        "edited": None,
        "own_share": None,
        "device_us": None if us is None else round(statistics.median(us), 3),
        "wall_us": timed["wall_us"].get(system) if system != OURS else None,
        "interval": None,
        "resolution": RESOLUTION,
        "speed_up": None,
        "draft_over_best": None,
        "roofline": None,
        "shortcut": None,
        "how": figure["how"],
        "runs": len(us or ()),
    }
    if us:
        row["roofline"] = round(about["roofline_us"] / statistics.median(us), 4)
    if system == OURS:
        row["offered"], row["edited"], row["speed_up"] = False, False, UNCHANGED
        row["changed_runs"] = timed["changed"]
        row["kernels"], row["drawn"] = about.get("kernels", []), answer["drawn"]
        if us and right:
            row |= _of_ours(about, answer, figure, decision)
    elif us and system not in MODES[:2]:
        row["interval"] = _beside_ours(system, figure, decision)
    return row


def _beside_ours(
    system: str, figure: Mapping[str, Any], decision: Mapping[str, Any]
) -> dict[str, list[float | None]] | None:
    """How many times as long as ours a system takes; without bounds where both took no turns."""
    times = figure["times"]
    if OURS not in times:
        return None
    if OURS in decision["times"] and system in decision["times"]:
        ratio = ratio_of(times[OURS], times[system], zlib.crc32(system.encode()))
        return {OURS: [round(one, 4) for one in (ratio.value, ratio.low, ratio.high)]}
    value = statistics.median(times[system]) / statistics.median(times[OURS])
    return {OURS: [round(value, 5), None, None]}


def ruled(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an earlier run by the rules of today: a file that is not edited has a speed-up of exactly 1.0,
    and intervals have a resolution."""
    if "resolution" in row:
        return dict(row)
    intervals = row["interval"] and {name: _resolved(one) for name, one in row["interval"].items()}
    ours = row["system"] == OURS
    return {
        **row,
        "interval": intervals,
        "resolution": RESOLUTION,
        "speed_up": UNCHANGED if ours and not row["edited"] else row["speed_up"],
        "draft_over_best": row["speed_up"],
    }


def _resolved(interval: Sequence[Any]) -> list[Any]:
    value, low, high = interval
    if low is None:
        return list(interval)
    wide = resolved(Ratio(value, low, high))
    return [round(one, 4) for one in (wide.value, wide.low, wide.high)]


def is_right(errors: Mapping[str, float], system: str, *, exact: bool) -> bool:
    """By the product's tolerances: as far as twice eager's own error, or as strict float32 may be; whole
    numbers as far as eager's alone."""
    least = 0.0 if exact else MOST_ERROR
    return bool(errors[system] <= max(least, 2 * errors.get(EAGER, 0.0)))


def _broken(about: Mapping[str, Any], answer: Mapping[str, Any], timed: Mapping[str, Any]) -> str:
    """What is wrong with timed runs; libraries may sum in another order each time."""
    if answer["strays"]:
        return f"it wrote where it must not: {answer['strays']}"
    if timed["changed"] and not any("." in name for name in about.get("kernels", [])):
        return f"{timed['changed']} timed runs had other results than the one that was verified"
    return ""


def _of_ours(
    about: Mapping[str, Any],
    answer: Mapping[str, Any],
    figure: Mapping[str, Any],
    decision: Mapping[str, Any],
) -> dict[str, Any]:
    """Whether a row is edited, decided on one session, and how fast it is on the other. A problem whose
    inputs were drawn outside the timed part is never edited. Modes of the original count as they were timed;
    ours is the same launches in every mode of the edited file."""
    if OURS not in decision["times"]:
        return _of_slow(about, figure)
    decided, seen = _ratios(decision["times"]), _ratios(figure["times"])
    if not decided:
        return {}
    best = min(decided, key=lambda one: statistics.median(decision["times"][one]))
    edited = decided[best].low > 1.0 and not answer["drawn"] and _own(about, figure) > 0
    fastest = min(seen, key=lambda one: statistics.median(figure["times"][one]))
    return {
        "offered": edited,
        "edited": edited,
        "own_share": round(_own(about, figure), 3),
        "interval": {one: [round(x, 4) for x in (r.value, r.low, r.high)] for one, r in seen.items()},
        "speed_up": round(seen[fastest].value, 4) if edited else UNCHANGED,
        "draft_over_best": round(seen[fastest].value, 4),
        "best_of": fastest,
        "shortcut": seen[fastest].value > SHORTCUT,
    }


def _of_slow(about: Mapping[str, Any], figure: Mapping[str, Any]) -> dict[str, Any]:
    """How fast ours is where it is so much slower than PyTorch that it was timed alone: ratios of medians."""
    medians = {one: statistics.median(us) for one, us in figure["times"].items()}
    ratios = {one: round(medians[one] / medians[OURS], 5) for one in MODES if one in medians}
    fastest = min(ratios, key=ratios.__getitem__)
    return {
        "own_share": round(_own(about, figure), 3),
        "interval": {one: [ratio, None, None] for one, ratio in ratios.items()},
        "draft_over_best": ratios[fastest],
        "best_of": fastest,
        "shortcut": False,
    }


def _ratios(times: Mapping[str, Sequence[float]]) -> dict[str, Ratio]:
    """How many times as long as ours each other system takes, by rounds."""
    seed = zlib.crc32(repr(sorted(times)).encode())
    return {one: ratio_of(times[OURS], times[one], seed) for one in MODES if one in times and len(times[one])}


def _own(about: Mapping[str, Any], figure: Mapping[str, Any]) -> float:
    """The share of our time that kernels of ours take."""
    kernels = figure["kernels"].get(OURS)
    if not kernels:
        return float(any("." not in name for name in about.get("kernels", [])))
    ours = sum(us for name, us in kernels.items() if any(name.startswith(one) for one in about["kernels"]))
    return float(ours / max(sum(kernels.values()), 1e-9))


def _conditions(conditions: Mapping[str, Any], timed: Mapping[str, Any], name: str) -> dict[str, Any]:
    readings = [*timed["decision"]["readings"], *timed["figure"]["readings"]]
    clocks = [one["clock_mhz"] for one in readings if "clock_mhz" in one]
    powers = [one["power_w"] for one in readings if "power_w" in one]
    reasons = sorted({reason for one in readings for reason in one.get("throttle", [])})
    flags = {**conditions.get("flags", {}), "tf32_cudnn": name == AS_LEFT}
    return {
        **{one: conditions.get(one, "") for one in ("device", "torch", "triton", "driver")},
        "clock_mhz": round(statistics.median(clocks)) if clocks else None,
        "power_w": round(statistics.median(powers), 1) if powers else None,
        "throttle": reasons,
        "flags": flags,
        "copy_bytes_us": conditions.get("copy_bytes_us"),
    }
