"""Convolutions in the IR: what stays in L1, panels ahead, chunks of vector cores, and what is legal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.ops import CONVOLUTION
from evokernel_core.compiler.problems.convolution import read_convolution
from evokernel_core.domain.graph import Node as GraphNode
from evokernel_core.domain.graph import ValueRef
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.domain.tensor import TensorSpec
from evokernel_core.targets.ascendc.ir.cube import Keep, Nd2NzMatrices
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.expr import Int
from evokernel_core.targets.ascendc.ir.handing_cube import kept, stream_of
from evokernel_core.targets.ascendc.ir.nodes import Node, flat
from evokernel_core.targets.ascendc.kernels.convolution import (
    convolution_rows,
    convolution_rows_schedule,
    panels,
)
from evokernel_core.targets.ascendc.kernels.convolution.convolution_rows_schedule import RowsSchedule
from evokernel_core.targets.ascendc.kernels.convolution.convolution_schedule import (
    ConvolutionSchedule,
    refusal,
    steps,
)
from evokernel_core.targets.ascendc.kernels.family import Cores
from evokernel_core.targets.ascendc.kernels.stage import KernelStage
from evokernel_core.targets.ascendc.print import files
from evokernel_core.targets.ascendc.print.stage import cube_text
from evokernel_core.targets.ascendc.source import ascendc_source
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, RunResult, TensorFile, run_kernel
from tests.tables import few
from tests.targets.ascendc.cores import on_all_cores_too

IMAGE, WEIGHT, MADE = (2, 6, 9, 40), (48, 6, 3, 3), (2, 48, 9, 40)
"""Several tiles for each of few cores, output channels in three tiles, panels for each tile."""
few_cores = on_all_cores_too(IMAGE=(6, 6, 12, 40), MADE=(6, 48, 12, 40))
SCHEDULE = ConvolutionSchedule(16, 32, 2, 16, 32, 3, stay=True, chunk_kib=1)

ROWS = RowsSchedule(16, 96, 2, 16, 480)
"""Three rows of the result in a tile, and ten of the input in the ring."""


def build(task: KernelTask, item: ConvolutionSchedule | RowsSchedule, chip: Any) -> KernelStage:
    found = read_convolution(task)
    return (
        convolution_rows.build(found, item)
        if isinstance(item, RowsSchedule)
        else panels.build(found, item, chip)
    )


def task_of(builder: Any, *, is_framed: bool, rows_first: bool = False) -> KernelTask:
    """A convolution with biases; images that are not framed are as large as the framed ones. ``rows_first``:
    rows of the kernel lie in front of channels."""
    graph = builder()
    reach = 0 if is_framed else 2
    x = graph.input("x", (*IMAGE[:2], IMAGE[2] + reach, IMAGE[3] + reach))
    shape = (WEIGHT[0], WEIGHT[2], WEIGHT[1], WEIGHT[3]) if rows_first else WEIGHT
    weight = graph.input("weight", shape, parameter=True)
    bias = graph.input("bias", WEIGHT[:1], parameter=True)
    around = ((1, 1),) if is_framed else ()
    args = (x, weight, (1, 1), (1, 1), 1, 1, rows_first, bias, *around)
    graph.nodes.append(GraphNode("convolution", CONVOLUTION.name, args, (), (TensorSpec(MADE, "float32"),)))
    task: KernelTask = graph.task(ValueRef("convolution"))
    return task


def schedule_of(*, is_framed: bool) -> ConvolutionSchedule:
    return SCHEDULE if is_framed else evolve(SCHEDULE, chunk_kib=0)


def numbers(task: KernelTask) -> list[Any]:
    rng = np.random.default_rng(5)
    return [rng.integers(-4, 5, size=item.spec.sizes({})).astype("f4") for item in task.graph.inputs]


def expected(x: Any, weight: Any, bias: Any, *, is_framed: bool) -> Any:
    if is_framed:
        x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, WEIGHT[2:], axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight) + bias[:, None, None]


@pytest.fixture
def on_cores(few_cores: Any, tmp_path: Any) -> Callable[..., tuple[RunResult, Any]]:
    """A function of a task, its schedule and numbers: the run in checked mode and its result. ``change``:
    what is done to the kernel's text before."""

    def run(
        task: KernelTask,
        item: ConvolutionSchedule | RowsSchedule,
        given: list[Any],
        change: Callable[[str], str] = str,
    ) -> tuple[RunResult, Any]:
        made = build(task, item, few_cores)
        tiling, kernel = files.single(cube_text(made, task, "built"), len(given) + 1)
        inputs = []
        for place, values in enumerate(given):
            (tmp_path / f"{place}.bin").write_bytes(values.tobytes())
            inputs.append(TensorFile(tmp_path / f"{place}.bin", values.nbytes))
        output = TensorFile(tmp_path / "out.bin", 4 * int(np.prod(MADE)))
        request = RunRequest(Mode.CHECK, few_cores, inputs=tuple(inputs), outputs=(output,), repeat=2)
        result = run_kernel(build_kernel(ascendc_source(tiling, change(kernel), Strategy("built"))), request)
        if result.status is not ExitStatus.OK:
            return result, None
        return result, np.fromfile(tmp_path / "out.bin", "f4").reshape(MADE)

    return run


EVENTS = ("MTE1_MTE2", "MTE2_MTE1", "M_MTE1", "MTE1_M", "FIX_M", "M_FIX")


def without(event: str) -> Callable[[str], str]:
    """A change of a cube core's class that leaves out an event, wherever it is set and waited for."""
    return lambda text: "\n".join(line for line in text.splitlines() if f"HardEvent::{event}>" not in line)


def test_every_event_between_units_is_there(builder: Any, on_cores: Any) -> None:
    task, item = task_of(builder, is_framed=False), schedule_of(is_framed=False)
    given = numbers(task)
    for chosen in (item, evolve(item, stay=False), evolve(item, slots=2), evolve(item, outputs_first=True)):
        result, values = on_cores(task, chosen, given)
        assert result.status is ExitStatus.OK, result.message
        assert not result.hazards
        np.testing.assert_array_equal(values, expected(*given, is_framed=False))


@few("event", EVENTS, keep=(1, 4))
def test_every_event_between_units_is_needed(event: str, builder: Any, on_cores: Any) -> None:
    task, item = task_of(builder, is_framed=False), schedule_of(is_framed=False)
    result, _ = on_cores(task, item, numbers(task), without(event))
    assert result.hazards


def test_flags_between_cores_are_there(builder: Any, on_cores: Any) -> None:
    task, item = task_of(builder, is_framed=True), schedule_of(is_framed=True)
    given = numbers(task)
    result, values = on_cores(task, item, given)
    assert result.status is ExitStatus.OK, result.message
    assert not result.hazards
    np.testing.assert_array_equal(values, expected(*given, is_framed=True))


@few("flag", ("CHUNK_READY", "CHUNK_READ", "ALL_WRITTEN", "ALL_READ"), keep=(1, 2))
def test_every_flag_between_cores_is_needed(flag: str, builder: Any, on_cores: Any) -> None:
    task, item = task_of(builder, is_framed=True), schedule_of(is_framed=True)
    result, _ = on_cores(task, item, numbers(task), lambda text: _without_flag(text, flag))
    assert result.hazards


def _without_flag(text: str, flag: str) -> str:
    lines = text.splitlines()
    return "\n".join(line for line in lines if "CrossCore" not in line or f"({flag})" not in line)


def test_rows_that_stay_are_handed_over(builder: Any, on_cores: Any) -> None:
    task = task_of(builder, is_framed=False, rows_first=True)
    given = numbers(task)
    x, weight, bias = given
    result, values = on_cores(task, ROWS, given)
    assert result.status is ExitStatus.OK, result.message
    assert not result.hazards
    np.testing.assert_array_equal(values, expected(x, np.moveaxis(weight, 1, 2), bias, is_framed=False))
    for event in EVENTS:
        result, _ = on_cores(task, ROWS, given, without(event))
        assert result.hazards, event


def test_products_that_are_cut_elsewhere_wait(builder: Any, on_cores: Any) -> None:
    task = task_of(builder, is_framed=False, rows_first=True)
    wide = evolve(ROWS, base_m=48)  # so many fractals that products follow each other without waiting
    given = numbers(task)
    result, _ = on_cores(task, wide, given)
    assert not result.hazards
    result, _ = on_cores(task, wide, given, lambda text: text.replace("PipeBarrier<PIPE_M>();", ""))
    assert result.hazards


def test_tiles_in_a_row_find_rows_in_l1(builder: Any, chip: Any) -> None:
    kernel = build(task_of(builder, is_framed=False, rows_first=True), ROWS, chip).kernel
    assert kernel.tiles.in_a_row
    (ring,) = (item for item in kernel.buffers if item.joined)
    assert ring.stages * ring.elements.evaluate({}) == ROWS.ring_n * 32
    assert not list(broken_rules(kernel, chip, {}))


def test_what_stays_is_replaced_when_nothing_reads_it(builder: Any, on_cores: Any) -> None:
    task, item = task_of(builder, is_framed=False), schedule_of(is_framed=False)
    given = numbers(task)

    def at_once(text: str) -> str:
        """Without the events around the copies that fill it, and without waiting for turns to end."""
        head, found, rest = text.partition("void KeepWeights(")
        body, end, rest = rest.partition("\n    }\n")
        body = "\n".join(line for line in body.splitlines() if "HardEvent" not in line)
        head, count = re.subn(r"if \(loaded > used\) \{[^}]*\}", "", head)
        assert count == 1
        return head + found + body + end + rest

    result, _ = on_cores(task, item, given, at_once)
    assert result.hazards


def test_what_stays_is_no_panel(builder: Any, chip: Any) -> None:
    item = schedule_of(is_framed=False)
    kernel = build(task_of(builder, is_framed=False), item, chip).kernel
    (weights,) = kept(kernel)
    assert weights.stages == 1
    assert {node.buffer.stages for node in kernel.nodes if isinstance(node, Keep)} == {1, item.slots}
    stream = stream_of(kernel)
    assert stream is not None
    assert stream.only is None
    assert not list(broken_rules(kernel, chip, {}))


def test_tiles_without_pixels_are_no_turns(builder: Any, chip: Any) -> None:
    made = build(task_of(builder, is_framed=True), schedule_of(is_framed=True), chip)
    stream = stream_of(made.kernel)
    assert stream is not None
    assert stream.only is not None
    facts = made.facts
    assert facts.cores is Cores.BOTH
    assert facts.waits_for_all
    assert facts.uses_workspace


@pytest.mark.parametrize(
    ("change", "rule", "place"),
    [
        ({"row_step": 20000}, "parameter-limit", "DataCopyNd2Nz"),
        ({"matrix_step": 4000}, "parameter-limit", "DataCopyNd2Nz"),
        ({"rows": 400}, "overflow", "pixels"),
        ({"columns": 4000}, "overflow", "pixels"),
    ],
)
def test_rules_of_copies_of_matrices(change: Any, rule: str, place: str, builder: Any, chip: Any) -> None:
    item = schedule_of(is_framed=False)
    kernel = build(task_of(builder, is_framed=False), item, chip).kernel
    copy = next(node for node in kernel.nodes if isinstance(node, Nd2NzMatrices))

    other = evolve(copy, **{name: Int(value) for name, value in change.items()})
    changed = evolve(kernel, body=_with(kernel.body, copy, other))
    assert (rule, place) in {(item.rule, item.place) for item in broken_rules(changed, chip, {})}


def _with(nodes: tuple[Node, ...], old: Node, new: Node) -> tuple[Node, ...]:
    """Nodes with one of them replaced, wherever it stands."""
    found = []
    for node in nodes:
        if node is old:
            found.append(new)
        elif old in list(flat((node,))):
            names = [name for name in ("body", "then", "otherwise", "stores") if hasattr(node, name)]
            found.append(evolve(node, **{name: _with(getattr(node, name), old, new) for name in names}))
        else:
            found.append(node)
    return tuple(found)


def test_legal_rows_make_legal_kernels(builder: Any, chip: Any) -> None:
    task = task_of(builder, is_framed=False, rows_first=True)
    found = read_convolution(task)
    seen = {item for start in (ROWS, evolve(ROWS, base_m=128, part_n=256, ring_n=2048))
            for _, before in convolution_rows_schedule.steps(start)
            for _, item in convolution_rows_schedule.steps(before)}  # fmt: skip
    answers = set()
    for item in seen:
        if min(item.base_m, item.part_n, item.base_k, item.parts) < 1 or item.ring_n < 6 * 16:
            continue  # no kernel at all
        told = item.why_out_of_range() or convolution_rows_schedule.refusal(found, item, chip)
        broken = next(broken_rules(build(task, item, chip).kernel, chip, {}), None)
        answers.add(broken is None)
        assert told is not None or broken is None, item
    assert answers == {True, False}


@pytest.mark.parametrize("is_framed", [False, True])
def test_legal_schedules_make_legal_kernels(is_framed: bool, builder: Any, chip: Any) -> None:
    """The search asks thousands of schedules without building their kernels."""
    task = task_of(builder, is_framed=is_framed)
    found = read_convolution(task)
    here, seen = [evolve(schedule_of(is_framed=is_framed), base_m=128, part_n=256)], set()
    for _ in range(2):
        here = [item for before in here for _, item in steps(found, before, chip) if item not in seen]
        seen |= set(here)
    answers = set()
    for item in seen:
        lengths = (item.base_m, item.part_n, item.base_k, item.panel_k, item.parts)
        if min(lengths) < 1 or (item.chunk_kib > 0) != is_framed:
            continue  # no kernel at all
        told = item.why_out_of_range() or refusal(found, item, chip)
        broken = next(broken_rules(build(task, item, chip).kernel, chip, {}), None)
        answers.add(broken is None)
        assert told is not None or broken is None, item
        if told in ("The panels do not fit L1.", "The results do not fit L0C."):
            assert broken is not None, item
    assert answers == {True, False}
