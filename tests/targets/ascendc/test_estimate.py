"""The estimate ranks schedules as the time model of the twin does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.author import write
from evokernel_core.targets.ascendc.kernels.fused.fused_schedule import initial, moves
from evokernel_core.targets.ascendc.kernels.fused.settings import Form, Schedule
from evokernel_core.targets.ascendc.lowering.queues import plan
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel


def softmax(builder: Any, rows: int, columns: int) -> KernelTask:
    graph = builder()
    x = graph.input("x", ("r", columns))
    task: KernelTask = graph.task(
        graph.call("_softmax.default", x, 1, False, shape=("r", columns)), symbols={"r": rows}
    )
    return task


def row_sum(builder: Any, rows: int, columns: int) -> KernelTask:
    graph = builder()
    x = graph.input("x", ("r", columns))
    task: KernelTask = graph.task(graph.call("sum.dim_IntList", x, (1,), shape=("r",)), symbols={"r": rows})
    return task


def modelled_us(task: KernelTask, strategy: Strategy, chip: Chip) -> float:
    sizes = task.sizes
    inputs = tuple(TensorFile(None, item.spec.nbytes(sizes)) for item in task.graph.inputs)
    outputs = tuple(TensorFile(None, spec.nbytes(sizes)) for spec in task.graph.output_specs())
    request = RunRequest(Mode.TIME, chip, sizes=tuple(sizes.values()), inputs=inputs, outputs=outputs)
    return sum(
        item.latency_us for item in run_kernel(build_kernel(write(task, strategy, chip)), request).launches
    )


CASES = [(softmax, 8192, 512), (row_sum, 4096, 1000)]


@pytest.mark.parametrize(("make", "rows", "columns"), CASES)
def test_the_first_draft_is_near_the_best_of_its_moves(
    make: Callable[..., KernelTask], rows: int, columns: int, builder: Any, chip: Chip
) -> None:
    task = make(builder, rows, columns)
    assert plan(task, load_chip()).family == "rowwise"
    first = initial(task, chip)
    steps = [move.strategy for move in moves(task, first, chip)]
    others = [item for item in steps if Schedule.of(item).form is not Form.STREAM]
    times = [modelled_us(task, item, chip) for item in others]
    assert modelled_us(task, first, chip) <= 1.05 * min(times)
    streams = [item for item in steps if Schedule.of(item).form is Form.STREAM]
    assert all(modelled_us(task, item, chip) > min(times) for item in streams)
