"""Which versions of torch_npu go with which of CANN, and what their profilers call the number of cores.

Pairs: COMPATIBILITY.md of Ascend/pytorch (commit 9e73e708, August 2026). Names of columns: the files
``_csv_headers.py`` of its branches and tags. "rename block dim to block num" (February 2026) is in releases
26.0.0 and newer, as in msprof (January 2026). With the profiler level that we use, the columns of
kernel_details.csv are those that CANN's msprof wrote, so that CANN's version decides.
"""

from __future__ import annotations

import re

from attrs import frozen


@frozen
class Release:
    """A package of torch_npu with the CANN that its vendor names, "" where the vendor names none yet."""

    torch_npu: str
    cann: str
    cores: str


RELEASES = (
    Release("2.7.1", "8.3.RC1", "Block Dim"),
    Release("2.7.1.post2", "8.5.0", "Block Dim"),
    Release("2.7.1.post4", "9.0.0", "Block Num"),
    Release("2.7.1.post8", "9.1.0", "Block Num"),
    Release("2.8.0", "8.3.RC1", "Block Dim"),
    Release("2.8.0.post2", "8.5.0", "Block Dim"),
    Release("2.8.0.post4", "9.0.0", "Block Num"),
    Release("2.9.0", "8.5.0", "Block Dim"),
    Release("2.9.0.post2", "9.0.0", "Block Num"),
    Release("2.9.0.post6", "9.1.0", "Block Num"),
    Release("2.10.0", "9.0.0", "Block Num"),
    Release("2.10.0.post4", "9.1.0", "Block Num"),
    Release("2.11.0", "9.1.0", "Block Num"),
    Release("2.12.0", "9.1.0", "Block Num"),
    Release("2.13.0", "", "Block Num"),
    Release("2.14.0", "", "Block Num"),
)


def release_of(torch_npu: str) -> Release | None:
    """The row of a package; later packages of one torch go with its last row. None for other versions."""
    key = _key(torch_npu)
    rows = [row for row in RELEASES if _key(row.torch_npu)[0] == key[0] and _key(row.torch_npu) <= key]
    return max(rows, key=lambda row: _key(row.torch_npu), default=None)


@frozen
class Misfit:
    """Two versions that do not go together, and what to do."""

    found: str
    advice: str


def misfit(torch: str, torch_npu: str, cann: str) -> Misfit | None:
    """What does not go together; None where all does, or nobody says otherwise."""
    base = _key(torch_npu)[0]
    if _key(torch)[0][:2] != base[:2]:
        wanted = ".".join(map(str, base))
        return Misfit(f"torch_npu {torch_npu} is not made for torch {torch}", f"Install torch {wanted}.")
    row = release_of(torch_npu)
    if row is None:
        known = f"torch_npu {RELEASES[0].torch_npu} to {RELEASES[-1].torch_npu}"
        return Misfit(f"torch_npu {torch_npu} is in no table of ours", f"Install one of {known}.")
    if row.cann and cann and _line(cann) != _line(row.cann):
        result = f"torch_npu {torch_npu} is made for CANN {row.cann}, not {cann}"
        return Misfit(result, f"Install CANN {row.cann}, or the torch_npu that goes with {cann}.")
    return None


def _key(version: str) -> tuple[tuple[int, ...], int]:
    """Release numbers and the number behind ``post``; local parts such as ``+cpu`` do not count."""
    match = re.match(r"(\d+(?:\.\d+)*)(?:\.?post(\d+))?", version)
    if match is None:
        return (0,), 0
    return tuple(map(int, match[1].split("."))), int(match[2] or 0)


def _line(cann: str) -> str:
    """The line of releases that a version of CANN belongs to: 9.1 for 9.1.0, 8.3 for 8.3.RC1."""
    return ".".join(cann.split(".")[:2])
