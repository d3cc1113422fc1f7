"""Ours beside kernels that others published and beside max-autotune, as a table and the reasons for gaps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.measuring.classes import AS_LEFT, COMPILE, EAGER, HALF, OURS, STRICT, TUNED
from benchmarks.measuring.gpu_rows import SHORTCUT

Row = Mapping[str, Any]
EXPECTED = (TUNED, "adaexplore", "kernelagent", "liger", "helion")
"""Systems that a reader looks for."""


def others_table(rows: Sequence[Row]) -> Iterator[str]:
    """Lines of the page."""
    yield "## Beside max-autotune and kernels of others"
    yield ""
    yield (
        "Geometric means of their time over ours in the same turns, where both are right.\nmax-autotune: "
        "torch.compile's, for problems that a seed drew; no system has CUDA graphs.\nKernels of others have "
        "the model's parameters and the flags that their files switch on. *Half*: right as half types are "
        "(1e-2 of the reference's root mean square) and not as float32 is, beside ours in float32. "
        "Shortcuts: one is more than 15 times as fast."
    )
    yield ""
    yield "| system | level, class | right | both right | ours over theirs | without shortcuts |"
    yield "|---|---|---|---|---|---|"
    known = {row["system"] for row in rows} - {OURS, EAGER, COMPILE}
    for system in (*EXPECTED, *sorted(known - {*EXPECTED})):
        if system not in known:
            yield f"| {system} | no rows | | | | |"
            continue
        for level in sorted({row["level"] for row in rows if row["system"] == system}):
            for name in (AS_LEFT, STRICT, HALF):
                yield _line(system, level, name, rows)
    missing = [row for row in rows if row["system"] in known and row["class"] == AS_LEFT and row["why"]]
    if missing:
        yield ""
        yield "Not right as left, and why:"
        yield ""
    for row in missing:
        yield f"- {row['system']}, level {row['level']} {row['problem']}: {row['why']}"


def _line(system: str, level: int, name: str, rows: Sequence[Row]) -> str:
    theirs = [row for row in rows if (row["system"], row["level"]) == (system, level) and _is_of(row, name)]
    ratios = [row["interval"][OURS][0] for row in theirs if row["right"] is True and row["interval"]]
    plain = [one for one in ratios if 1 / SHORTCUT <= one <= SHORTCUT]
    right = f"{sum(row['right'] is True for row in theirs)} of {len(theirs)}"
    cells = [system, f"{level}, {name.replace('_', ' ')}", right, str(len(ratios)), _mean(ratios)]
    return f"| {' | '.join(cells)} | {_mean(plain)} ({len(plain)}) |"


def _is_of(row: Row, name: str) -> bool:
    """Where TF32 makes no difference rows as left are strict ones, too."""
    as_well = name == STRICT and row["class"] == AS_LEFT and not row["tf32_matters"]
    return bool(row["class"] == name or as_well)


def _mean(values: Sequence[float]) -> str:
    """The geometric mean."""
    return f"{math.exp(math.fsum(map(math.log, values)) / len(values)):.3f}" if values else "no rows"
