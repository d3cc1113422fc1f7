"""The constants of the chip file's section ``eager``, fitted to rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
from attrs import evolve, fields
from scipy.optimize import least_squares

from benchmarks.silicon.rows import Row
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend import eager
from evokernel_core.hardware.ascend.calls import operations
from evokernel_core.hardware.ascend.chip import Chip, EagerCosts
from evokernel_core.hardware.roofline import traffic

ASSUMED = frozenset(
    """core_bytes read_gbps write_gbps write_back_gbps simple_cycles wide_cycles transposed_factor
    short_elements""".split()  # noqa: SIM905
)
"""What stays as it is: rows say too little of it, or element-wise rows alone say it better than all rows."""
_PULL = 0.08
"""How strongly a constant is held at what it was, beside a row's logarithmic error."""
_ROUNDS = 12
_STEP = 0.01
"""Of a constant's logarithm, over which a row's slope is taken."""

Pair = tuple[Row, KernelTask]
Modelled = Callable[[Row, KernelTask, Chip], float]
NAMES = tuple(field.name for field in fields(EagerCosts))


def fit(pairs: Sequence[Pair], chip: Chip, modelled: Modelled) -> EagerCosts:
    """The costs that bring ``modelled`` microseconds nearest to the measured ones."""
    names = [name for name in NAMES if name not in ASSUMED]
    start = np.log([getattr(chip.eager, name) for name in names])
    measured = np.log([row.us for row, _ in pairs])

    def errors(point: Any) -> Any:
        costs = _moved(chip, names, point)
        return np.concatenate([_logarithms(pairs, costs, modelled) - measured, _PULL * (point - start)])

    def slopes(point: Any) -> Any:
        at = _logarithms(pairs, _moved(chip, names, point), modelled)
        result = np.vstack([np.zeros((len(pairs), len(names))), _PULL * np.eye(len(names))])
        for column, name in enumerate(names):
            rows = behind[name]
            costs = _moved(chip, names, point + _STEP * (np.arange(len(names)) == column))
            other = _logarithms([pairs[row] for row in rows], costs, modelled)
            result[rows, column] = (other - at[rows]) / _STEP
        return result

    with _operations_kept():
        behind = _behind(pairs, chip, modelled)
        result = least_squares(errors, start, slopes, loss="soft_l1", f_scale=0.15, max_nfev=_ROUNDS)
    return _moved(chip, names, result.x).eager


def rows_behind(pairs: Sequence[Pair], chip: Chip, modelled: Modelled) -> Mapping[str, int]:
    """How many rows' modelled time changes by more than a thousandth if a constant grows by a tenth."""
    with _operations_kept():
        return {name: len(rows) for name, rows in _behind(pairs, chip, modelled).items()}


def _behind(pairs: Sequence[Pair], chip: Chip, modelled: Modelled) -> Mapping[str, Any]:
    at = _logarithms(pairs, chip, modelled)
    result = {}
    for name in NAMES:
        other = evolve(chip, eager=evolve(chip.eager, **{name: getattr(chip.eager, name) * 1.1}))
        result[name] = np.flatnonzero(abs(_logarithms(pairs, other, modelled) - at) > 1e-3)
    return result


def _moved(chip: Chip, names: Sequence[str], point: Any) -> Chip:
    return evolve(chip, eager=evolve(chip.eager, **dict(zip(names, np.exp(point).tolist(), strict=True))))


def _logarithms(pairs: Sequence[Pair], chip: Chip, modelled: Modelled) -> Any:
    return np.array([math.log(max(modelled(row, task, chip), 1e-3)) for row, task in pairs])


@contextmanager
def _operations_kept() -> Iterator[None]:
    """What a graph's operations and traffic are does not depend on costs."""
    known: dict[int, Any] = {}

    def kept(graph: Any, sizes: Any) -> Any:
        if id(graph) not in known:
            known[id(graph)] = operations(graph, sizes)
        return known[id(graph)]

    cut = eager._cut_rows
    moved: dict[int, Any] = {}

    def told(task: Any, sizes: Any) -> Any:
        if id(task) not in moved:
            moved[id(task)] = traffic(task, sizes)
        return moved[id(task)]

    rows = cache(lambda key: cut(*graphs[key]))
    graphs: dict[int, Any] = {}

    def cut_rows(graph: Any, sizes: Any) -> int:
        graphs[id(graph)] = (graph, sizes)
        return int(rows(id(graph)))

    with (
        patch.object(eager, "operations", kept),
        patch.object(eager, "traffic", told),
        patch.object(eager, "_cut_rows", cut_rows),
    ):
        yield
