"""Family attention: softmax(query @ key^T * scale + mask) @ value by one kernel with an online softmax."""

from __future__ import annotations

import math

from evokernel_core.compiler.aten import ATTENTION
from evokernel_core.compiler.problems.attention import Attention, read_attention
from evokernel_core.compiler.problems.products import Side
from evokernel_core.compiler.shapes.sizes import Extent
from evokernel_core.compiler.shapes.views import PERMUTATIONS
from evokernel_core.domain.task import KernelTask
from evokernel_core.targets.triton.kernels.attention import attention_schedule as schedules
from evokernel_core.targets.triton.kernels.attention.attention_schedule import AttentionSchedule
from evokernel_core.targets.triton.kernels.function import (
    JitFunction,
    both,
    divides,
    expression,
    masked,
)
from evokernel_core.targets.triton.kernels.matmul.operands import start_of
from evokernel_core.targets.triton.kernels.names import output_names
from evokernel_core.targets.triton.kernels.precision import argument
from evokernel_core.targets.triton.kernels.searching import GpuFamily, on_any_gpu
from evokernel_core.targets.triton.kernels.text import DTYPES, TritonKernel

_LOG2_E = math.log2(math.e)


class _AttentionPrinter:
    def __init__(self, problem: Attention, schedule: AttentionSchedule, name: str) -> None:
        self.problem, self.schedule, self.function = problem, schedule, JitFunction(name)
        names = ("queries", "keys", "depth", "width")
        self.queries, self.keys, self.depth, self.width = (
            self.function.number(key, getattr(problem, key)) for key in names
        )
        # keys that the first query sees besides its own
        self.head_queries = self.queries
        if problem.causal and not problem.heads.is_one:
            self.head_queries = f"{self.queries} // {self.function.number('heads', problem.heads)}"
        self.more = f" + ({self.keys} - {self.head_queries})" if problem.bottom_right else ""
        self.every_query = divides(schedule.block_q, problem.queries)
        self.every_key = divides(schedule.block_k, problem.keys)
        self.every_depth, self.every_width = map(_is_padded, (problem.depth, problem.width))

    def text(self, output: str) -> TritonKernel:
        self._head()
        self._loop()
        self._store(output)
        function, schedule, problem = self.function, self.schedule, self.problem
        function.constant("BLOCK_Q", schedule.block_q)
        function.constant("BLOCK_K", schedule.block_k)
        function.constant("BLOCK_D", f"max(16, next_power_of_2({expression(problem.depth)}))")
        function.constant("BLOCK_W", f"max(16, next_power_of_2({expression(problem.width)}))")
        grid = f"{expression(problem.matrices)} * cdiv({expression(problem.queries)}, {schedule.block_q})"
        return TritonKernel((function.jit_text(),), (function.launch(grid, schedule.warps, schedule.stages),))

    def _head(self) -> None:
        function, problem = self.function, self.problem
        add = function.add
        add(f"tiles = tl.cdiv({self.queries}, BLOCK_Q)")
        add("matrix = (program // tiles).to(tl.int64)")
        sharing = function.number("sharing", problem.sharing)
        add("shared = matrix" if sharing == "1" else f"shared = matrix // {sharing}")
        if problem.causal:
            add("# the tiles that see most keys come first")
            add("tile = tiles - 1 - program % tiles")
        else:
            add("tile = program % tiles")
        add("rows = tile * BLOCK_Q + tl.arange(0, BLOCK_Q)", "places = tl.arange(0, BLOCK_K)")
        add("depths = tl.arange(0, BLOCK_D)", "widths = tl.arange(0, BLOCK_W)")
        query, pitch = self._side("query", problem.query, "matrix")
        mask = masked(
            both(
                "" if self.every_query else f"rows[:, None] < {self.queries}",
                "" if self.every_depth else f"depths[None, :] < {self.depth}",
            ),
            "0.0",
        )
        add(f"q = tl.load({query} + rows[:, None].to(tl.int64) * {pitch} + depths[None, :]{mask})")
        key, self.key_pitch = self._side("key", problem.key, "shared")
        value, self.value_pitch = self._side("value", problem.value, "shared")
        add(f"key_at = {key} + places[None, :] * {self.key_pitch} + depths[:, None]")
        add(f"value_at = {value} + places[:, None] * {self.value_pitch} + widths[None, :]")
        if problem.mask is not None:
            extra, pitch = self._side("mask", problem.mask, "matrix")
            rows = "" if pitch == "0" else f"rows[:, None].to(tl.int64) * {pitch} + "
            add(f"mask_at = {extra} + {rows}places[None, :]")

    def _side(self, label: str, side: Side, matrix: str) -> tuple[str, str]:
        """Where an operand's matrix begins, and elements from row to row."""
        pitch = self.function.number(f"{label}_pitch", side.pitch)
        start = start_of(self.function, side.loops, label, matrix)
        pointer = self.function.tensor(side.name)
        return (f"{pointer} + {start}" if start else pointer), pitch

    def _loop(self) -> None:
        function, problem = self.function, self.problem
        add = function.add
        add('most = tl.full((BLOCK_Q,), float("-inf"), tl.float32)')
        add("total = tl.zeros((BLOCK_Q,), tl.float32)")
        add("sums = tl.zeros((BLOCK_Q, BLOCK_W), tl.float32)")
        last = self.keys
        if problem.causal:
            behind = "(tile + 1) * BLOCK_Q" if problem.heads.is_one else self.head_queries
            add(f"last = min({behind}{self.more}, {self.keys})")
            last = "last"
        with function.block(f"for first in range(0, {last}, BLOCK_K):"):
            self._scores()
            add("# sums so far are rescaled to the largest score of their row; a row without any is zero")
            add("larger = tl.maximum(most, tl.max(scores, 1))")
            add('base = tl.where(larger == float("-inf"), 0.0, larger)')
            add("weights = tl.exp2(scores - base[:, None])", "rescale = tl.exp2(most - base)")
            add("total = total * rescale + tl.sum(weights, 1)", "most = larger")
            mask = masked(
                both(
                    "" if self.every_key else f"places[:, None] < {self.keys} - first",
                    "" if self.every_width else f"widths[None, :] < {self.width}",
                ),
                "0.0",
            )
            add(f"v = tl.load(value_at{mask})")
            weights = "weights" if problem.dtype == "float32" else f"weights.to({DTYPES[problem.dtype]})"
            precision = argument(self.schedule.precision, problem.dtype)
            add(f"sums = tl.dot({weights}, v, sums * rescale[:, None]{precision})")
            add(f"key_at += BLOCK_K * {self.key_pitch}", f"value_at += BLOCK_K * {self.value_pitch}")
            if problem.mask is not None:
                add("mask_at += BLOCK_K")

    def _scores(self) -> None:
        """Scores in units of a factor of two, those of keys that are not seen minus infinity."""
        function, problem = self.function, self.problem
        number = "rows[:, None]" + ("" if problem.heads.is_one else f" % ({self.head_queries})")
        behind = "" if self.every_key else f"places[None, :] < {self.keys} - first"
        mask = masked(both(behind, "" if self.every_depth else f"depths[:, None] < {self.depth}"), "0.0")
        function.add(f"k = tl.load(key_at{mask})")
        precision = argument(self.schedule.precision, problem.dtype)
        function.add(f"scores = tl.dot(q, k{precision}) * {self._scale()}")
        if problem.mask is not None:
            rows = "" if self.every_query else f"rows[:, None] < {self.queries}"
            mask = masked(both(rows, behind), "0.0")
            function.add(f"scores += tl.load(mask_at{mask}) * {_LOG2_E!r}")
        seen = both(behind, f"first + places[None, :] <= {number}{self.more}" if problem.causal else "")
        if seen:
            function.add(f'scores = tl.where({seen}, scores, float("-inf"))')

    def _scale(self) -> str:
        """What scores are multiplied by."""
        if self.problem.scale is not None:
            return repr(float(self.problem.scale) * _LOG2_E)
        if self.problem.depth.constant is not None:
            return repr(_LOG2_E / math.sqrt(max(self.problem.depth.constant, 1)))
        self.function.add(f"scale = {_LOG2_E!r} / tl.sqrt(({self.depth}).to(tl.float32))")
        return "scale"

    def _store(self, output: str) -> None:
        function = self.function
        pointer = function.tensor(output)
        function.add("result = sums / tl.where(total == 0.0, 1.0, total)[:, None]")
        value = "result" if self.problem.dtype == "float32" else f"result.to({DTYPES[self.problem.dtype]})"
        mask = both(
            "" if self.every_query else f"rows[:, None] < {self.queries}",
            "" if self.every_width else f"widths[None, :] < {self.width}",
        )
        at = f"(matrix * {self.queries} + rows[:, None]) * {self.width} + widths[None, :]"
        function.add(f"tl.store({pointer} + {at}, {value}{masked(mask)})")


def _is_padded(extent: Extent) -> bool:
    """Whether a row is as long as its tile."""
    return extent.constant is not None and schedules.padded(extent.constant) == extent.constant


def _text(problem: Attention, schedule: AttentionSchedule, task: KernelTask, name: str) -> TritonKernel:
    (output,) = output_names(task)
    return _AttentionPrinter(problem, schedule, name).text(output)


FAMILY = GpuFamily(
    name="attention",
    ops={ATTENTION: "kernel"} | dict.fromkeys(sorted(PERMUTATIONS), "view"),
    read=on_any_gpu(read_attention),
    schedule_of=AttentionSchedule.of,
    starts=schedules.starts,
    refusal=schedules.refusal,
    cost_us=schedules.estimate_us,
    live_bytes=schedules.live_bytes,
    notes=schedules.notes,
    cell=schedules.cell,
    text_of=_text,
)
