"""The grid of each task: values of its schedule's fields, of which every combination is a point."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from attrs import evolve, field, frozen

from benchmarks.measuring.problems import WithoutLibraries
from evokernel_core.capture.client import AgentClient
from evokernel_core.compiler.author import KernelAuthor
from evokernel_core.compiler.coverage import covered_ops
from evokernel_core.domain.kernel import Setting, Strategy
from evokernel_core.domain.serial import from_data, to_data
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.target import TRITON

TASKS = Path(__file__).parents[1] / "data" / "landscape" / "tasks.json"
FUNCTIONS = Path(__file__).parent / "functions.py"

Values = Mapping[str, tuple[Setting, ...]]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _tiles(lines: str, columns: str) -> Values:
    return {"lines": _numbers(lines), "columns": _numbers(columns), "warps": (1, 2, 4, 8, 16)}


def _rows(rows: str, columns: str, warps: str, looped: tuple[bool, ...] = (False, True)) -> Values:
    return {"rows": _numbers(rows), "columns": _numbers(columns), "warps": _numbers(warps), "looped": looped}


def _product(m: str, n: str, k: str, stages: str, **more: tuple[Setting, ...]) -> Values:
    blocks = {"block_m": _numbers(m), "block_n": _numbers(n), "block_k": _numbers(k)}
    return {**blocks, "warps": (4, 8), "stages": _numbers(stages), **more}


_WIDE = _product("64 128 256", "64 128 256", "32 64", "2 3 4", group_m=(4, 8))
_ATTENTION = {"block_q": (32, 64, 128), "block_k": (16, 32, 64, 128), "warps": (2, 4, 8, 16)}
_BOTH = (False, True)

GRIDS: Mapping[str, Values] = {
    "softmax": _rows("1 2 4 8", "256 512 1024 2048 4096 8192", "4 8 16 32"),
    "layer_norm": _rows("1 2 4 8 16", "256 512 1024 2048", "2 4 8 16 32"),
    "l2_norm": _rows("1 2 4 8", "512 1024 2048 4096 8192 16384", "4 8 16 32"),
    "sum_over_middle": _rows("16 32 64 128 256 512", "16 32 64 128 256", "2 4 8 16"),
    "argmax_over_middle": _tiles("4 8 16 32 64 128 256", "4 8 16 32 64 128 256"),
    "cumulative_sum": _tiles("1 2 4 8 16 32", "64 128 256 512 1024 2048 4096"),
    "average_pool": _tiles("1 2 4 8 16 32 64", "8 16 32 64 128 256"),
    "depthwise": _tiles("1 2 4 8 16 32 64", "8 16 32 64 128 256"),
    "product": _WIDE,
    "deep_product": _product("32 64 128", "32 64 128", "16 32 64", "3 4", split_k=(16, 32)),
    "linear_gelu": _WIDE,
    "convolution": _product("32 64 128", "32 64 128", "32 64", "2 3 4", by_taps=_BOTH),
    "soft_cross_entropy": _rows("1 2 4 8", "256 512 1024 2048 4096", "4 8 16 32"),
    "residual_rms_norm": _rows("1 2 4 8", "256 512 1024 2048 4096", "4 8 16 32"),
    "tanh_gate": _rows("1 2 4 8 16 32", "64 128 256 512 1024 2048", "1 2 4 8 16", (False,)),
    "row_variance": _rows("1 2 4 8 16 32", "128 256 512 1024", "2 4 8 16 32"),
    "standardise_columns": _rows("8 16 32 64 128 256", "16 32 64 128 256", "2 4 8 16 32", (True,)),
    "gated_product": _WIDE,
    "sigmoid_scores": _product("32 64 128", "32 64 128", "16 32", "2 3 4", precision=("ieee", "tf32x3")),
    "causal_attention": {**_ATTENTION, "stages": (1, 2, 3, 4)},
    "gather": _tiles("64 128 256 512 1024 2048", "1 2 4 8 16 32"),
    "embedding": _tiles("1 2 4 8 16 32", "16 32 64 128 256 512"),
    "bag_of_rows": _tiles("1 2 4 8 16 32", "4 8 16 32 64 128"),
    "transposed": _tiles("1 2 4 8 16 32 64", "8 16 32 64 128 256"),
}

INDICES: Mapping[str, int] = {"gather": 4096, "embedding": 50_000, "bag_of_rows": 50_000}
"""Below what the whole numbers are that a task reads places from."""
OPERATIONS: Mapping[str, str] = {
    "softmax": "softmax", "layer_norm": "norm", "l2_norm": "norm", "sum_over_middle": "sum",
    "argmax_over_middle": "argmax", "cumulative_sum": "scan", "average_pool": "pool",
    "depthwise": "depthwise",
    "product": "product", "deep_product": "product", "linear_gelu": "product", "convolution": "convolution",
    "soft_cross_entropy": "cross entropy", "residual_rms_norm": "norm", "tanh_gate": "element-wise",
    "row_variance": "variance", "standardise_columns": "variance", "gated_product": "product",
    "sigmoid_scores": "batched product", "causal_attention": "attention", "gather": "gather",
    "embedding": "embedding", "bag_of_rows": "embedding", "transposed": "transpose",
}  # fmt: skip
"""What is left out of what was learned when a task is searched."""


@frozen
class Grid:
    """A task and all combinations of the values of its schedule's fields. ``draft``: the formula's first."""

    name: str
    task: KernelTask
    draft: Strategy
    values: Values = field(hash=False)

    @property
    def operation(self) -> str:
        return OPERATIONS[self.name]

    def points(self) -> list[tuple[Setting, ...]]:
        """The settings of each point, in the order of ``values``; what is not among these is the draft's."""
        return list(itertools.product(*self.values.values()))

    def strategy(self, point: tuple[Setting, ...]) -> Strategy:
        """What the author takes; legal or not."""
        chosen = dict(self.draft.settings) | dict(zip(self.values, point, strict=True))
        return Strategy(self.draft.family, chosen)

    def point_of(self, strategy: Strategy) -> tuple[Setting, ...] | None:
        """Where a strategy lies in the grid, None beside it."""
        given = dict(strategy.settings)
        point = tuple(given.get(name) for name in self.values)
        inside = all(one in values for one, values in zip(point, self.values.values(), strict=True))
        known = tuple(one for one in point if one is not None)
        return known if inside and self.strategy(known).is_same_schedule(strategy) else None


def author_of(device: str) -> KernelAuthor:
    """Triton's, which leaves nothing to libraries: a call of theirs has no schedule."""
    target = WithoutLibraries()
    return KernelAuthor(target, target.device(device))


@cache
def tasks() -> Mapping[str, KernelTask]:
    """The table's, as they were captured."""
    return {name: from_data(data, KernelTask) for name, data in json.loads(TASKS.read_text()).items()}


def grid_of(name: str, author: KernelAuthor) -> Grid:
    """A task's grid."""
    task = tasks()[name]
    return Grid(name, task, author.initial(task), GRIDS[name])


def capture() -> None:
    """Writes the tasks of the table. Raises SystemExit for a function that is none."""
    found = {}
    with AgentClient(sys.executable, evaluation=True) as client:
        for region in client.capture(FUNCTIONS, None, covered_ops(TRITON), whole=True):
            if region.task is None:
                raise SystemExit(f"{region.symbol} has no task: {region.reason}")
            found[region.symbol] = to_data(evolve(region.task, name=region.symbol))
    TASKS.write_text(json.dumps(found, indent=None, separators=(",", ":")) + "\n")
