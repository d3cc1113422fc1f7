"""Rows of a file of published times: one operator's case, or one problem of KernelBench, on one chip each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from evokernel_core.domain.errors import UsageError
from evokernel_core.hardware.ascend.chip import Chip, load_chip

LONGEST_US = 1e7
"""Ten seconds: no kernel of either suite takes as long."""

_AROUND = frozenset(("Cast", "Transpose", "TransData", "MemSet", "Slice", "ViewCopy", "TensorMove"))


@frozen
class Row:
    """``us``: what was measured, in microseconds. ``op`` is the operator of an operator's case, ``problem``
    the name of a problem; the other one is empty."""

    id: str
    level: str
    us: float
    chip: Chip
    op: str = ""
    problem: str = ""
    data: Mapping[str, Any] = field(factory=dict, hash=False)

    @property
    def is_fused(self) -> bool:
        """Whether one kernel computes the operator, copies and changes of type around it left aside."""
        named = self.data.get("kernels") or "unknown×1"
        kernels = (part.strip().partition("×") for part in named.split("+"))
        return self.is_operator and sum(int(count) for name, _, count in kernels if name not in _AROUND) == 1

    @property
    def is_operator(self) -> bool:
        return bool(self.op)


@frozen
class Refused:
    """A line that is no row, and why."""

    line: int
    reason: str


def read_rows(path: Path) -> Iterator[Row | Refused]:
    """The lines of a file; one that cannot be a row is named and left out. Raises OSError."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.strip():
            yield _row(number, line)


def _row(number: int, line: str) -> Row | Refused:
    try:
        data = json.loads(line)
        row = Row(
            id=data["id"],
            level=data["level"],
            us=float(data["us"]),
            chip=load_chip(data["chip"]),
            op=data.get("op", ""),
            problem=data.get("problem", ""),
            data=data,
        )
    except (ValueError, TypeError, UsageError) as error:
        return Refused(number, str(error))
    except KeyError as error:
        return Refused(number, f"it has no {error.args[0]}")
    if not 0 < row.us <= LONGEST_US or math.isnan(row.us):
        return Refused(number, f"{row.us} us is no time of a kernel")
    if bool(row.op) == bool(row.problem):
        return Refused(number, "it names neither an operator nor a problem, or both")
    return row
