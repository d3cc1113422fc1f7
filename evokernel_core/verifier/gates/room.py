"""What a small case of a task may take, in bytes, rows and multiply-adds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from evokernel_core.domain.task import KernelTask
from evokernel_core.verifier.gates.cases import bytes_between, is_heavy, total_bytes, total_products

BETWEEN = 4
ROWS = 1 / 48
PRODUCTS = 16
"""Bytes of values between, rows (all sizes but the last), and multiply-adds of whole fractals, that a case
may have for each byte of its limit."""
FRACTAL = 16


class Room:
    """What a case of a task may take: its tensors, rows, the values between and its multiply-adds, each on
    top of what the least sizes take."""

    def __init__(self, task: KernelTask) -> None:
        self.task = task
        least = {symbol.name: symbol.minimum for symbol in task.symbols}
        self._least = tuple(measure(task, least) for measure, _ in _MEASURES)

    def fits(self, sizes: Mapping[str, int], limit: int) -> bool:
        """Whether a case is light."""
        within = (
            measure(self.task, sizes) <= least + share * limit
            for (measure, share), least in zip(_MEASURES, self._least, strict=True)
        )
        return all(within) and not is_heavy(self.task, sizes)


def _rows(task: KernelTask, sizes: Mapping[str, int]) -> int:
    return math.prod(list(sizes.values())[:-1])


def _padded_products(task: KernelTask, sizes: Mapping[str, int]) -> int:
    """Multiply-adds where every size is a whole number of fractals, which cube cores compute."""
    return total_products(task, {name: -(-size // FRACTAL) * FRACTAL for name, size in sizes.items()})


_MEASURES: tuple[tuple[Callable[[KernelTask, Mapping[str, int]], int], float], ...] = (
    (_rows, ROWS),
    (total_bytes, 1),
    (bytes_between, BETWEEN),
    (_padded_products, PRODUCTS),
)
"""What a case takes of each, and how much of it for each byte of a limit."""
