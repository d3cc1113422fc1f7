"""Landscapes for tests that no device timed: the estimate, changed by what each field's value is worth."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.landscape import grids, rows
from evokernel_core.domain.errors import StrategyError


def made_up(path: Path, names: Sequence[str], seed: int = 0) -> None:
    """Writes a file of them."""
    author = grids.author_of("nvidia_h200")
    rows.append(path, {"machine": {"device": "made up", "date": "", "commit": ""}})
    for name in names:
        rows.append(path, _line(grids.grid_of(name, author), author, random.Random(f"{name}:{seed}")))


def _line(grid: grids.Grid, author: Any, numbers: random.Random) -> dict[str, Any]:
    worth = {
        (axis, value): numbers.gauss(0, 0.15) for axis, values in grid.values.items() for value in values
    }
    points = [_point(grid, author, point, worth, numbers) for point in grid.points()]
    timed = sorted((one for one in points if "us" in one), key=lambda one: statistics.median(one["us"]))
    first, *others = timed[:10]
    return {
        "task": grid.name,
        "operation": grid.operation,
        "category": grid.task.op_category,
        "family": grid.draft.family,
        "values": {name: list(values) for name, values in grid.values.items()},
        "draft": grid.point_of(grid.draft),
        "settings": dict(grid.draft.settings),
        "points": points,
        "reference": [],
        "best": {
            "point": first["point"],
            "others": [{"point": one["point"], "ratio": [1.01, 1.0, 1.02], "pairs": 60} for one in others],
        },
        "how": {"cupti": 1},
        "readings": [],
        "seconds": [0.0, 0.0],
    }


def _point(grid: grids.Grid, author: Any, point: Any, worth: Any, numbers: random.Random) -> dict[str, Any]:
    strategy = grid.strategy(point)
    try:
        author.require_legal(grid.task, strategy)
    except StrategyError as error:
        return {"point": point, "why": f"rule: {error}"}
    estimate = author.estimate_us(grid.task, strategy)
    if numbers.random() < 0.05 and point != grid.point_of(grid.draft):
        return {"point": point, "why": "shared-memory: too much"}
    off = sum(worth[axis, value] for axis, value in zip(grid.values, point, strict=True))
    us = [round(estimate * math.exp(off + numbers.gauss(0, 0.01)), 2) for _ in range(20)]
    return {"point": point, "us": us, "estimate": estimate, "launches": [], "compile_s": 1.0}
