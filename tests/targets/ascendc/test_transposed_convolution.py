"""Family transposed: transposed convolutions of one to three dimensions against the definition."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import asdict, evolve
from hypothesis import given
from hypothesis import strategies as st

from evokernel_core.domain.errors import PlanError
from evokernel_core.domain.kernel import Strategy
from evokernel_core.domain.verdict import GateStatus
from evokernel_core.targets.ascendc.audit import audit
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    ConvTransposeAxis as Axis,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import ConvTransposeSchedule
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import Mode, RunRequest, TensorFile, run_kernel
from tests.tables import few
from tests.targets.ascendc.transposed import Layer, close, expected, task_of, values_of

LAYERS = {
    "one tap": Layer((Axis(),), (1,), 8, 16, ((1, 16), (3, 1), (2, 33))),
    "a row": Layer((Axis(),), (3,), 5, 7, ((2, 40), (1, 1), (1, 700)), bias=True),
    "steps along a row": Layer((Axis(3, 2, 1, 2),), (4,), 9, 20, ((2, 41), (1, 1)), bias=True),
    "taps further apart than steps": Layer((Axis(2, 1, 3, 1),), (4,), 3, 5, ((1, 50), (2, 3))),
    "steps and taps in one rhythm": Layer((Axis(2, 1, 2),), (3,), 8, 17, ((2, 30),), dtype="float16"),
    "images": Layer((Axis(), Axis()), (3, 3), 12, 33, ((2, 9, 31), (1, 1, 1), (1, 3, 130)), bias=True),
    "images in steps": Layer(
        (Axis(2, 1, 1, 1), Axis(2, 1, 1, 1)), (3, 3), 16, 24, ((2, 10, 12), (1, 1, 1)), bias=True
    ),
    "steps beyond the kernel": Layer((Axis(4), Axis(3)), (2, 1), 8, 8, ((1, 5, 6),), groups=2),
    "no tap reaches": Layer((Axis(2, 1, 2), Axis(2, 1, 2)), (3, 3), 10, 40, ((1, 9, 8), (2, 2, 2))),
    "groups": Layer((Axis(2, 1, 1), Axis(3, 2, 2, 1)), (3, 5), 4, 6, ((2, 7, 9),), groups=3, bias=True),
    "groups of halves": Layer((Axis(), Axis(2, 0, 1, 1)), (2, 2), 20, 16, ((2, 6, 9),), 2, True, "bfloat16"),
    "cut off at the borders": Layer((Axis(1, 3, 2), Axis(2, 3, 1, 1)), (4, 5), 7, 5, ((1, 6, 9), (2, 4, 8))),
    "volumes": Layer(
        (Axis(), Axis(), Axis()), (3, 2, 3), 10, 12, ((1, 4, 5, 9), (2, 1, 1, 20)), dtype="float16", bias=True
    ),
    "volumes in steps": Layer(
        (Axis(2, 1, 1, 1), Axis(2, 2, 1), Axis(2, 3, 1, 1)), (3, 5, 7), 8, 8, ((1, 3, 4, 6),), groups=2
    ),
    "volumes whose axes differ": Layer(
        (Axis(3, 1, 2, 2), Axis(1, 2, 3), Axis(4, 0, 1, 3)), (2, 3, 2), 20, 5, ((1, 4, 5, 7),), bias=True
    ),
    "planes in steps, rows together": Layer((Axis(2), Axis(), Axis()), (3, 2, 3), 6, 5, ((2, 3, 4, 9),)),
    "planes that no tap reaches": Layer(
        (Axis(1, 0, 4), Axis(), Axis(1, 1)), (3, 2, 3), 9, 5, ((1, 2, 4, 9), (2, 1, 1, 3))
    ),
    "many results": Layer((Axis(2, 1), Axis(2, 1)), (4, 4), 40, 200, ((1, 6, 40),), bias=True),
    "many channels": Layer((Axis(), Axis()), (3, 3), 520, 130, ((1, 8, 40),), dtype="bfloat16"),
}


@few(
    "layer",
    LAYERS.values(),
    keep=(
        1,
        6,
        10,
        13,
        16,
    ),
    ids=LAYERS.keys(),
)
def test_layers_at_many_sizes(layer: Layer, builder: Any, on_twin: Any, chip: Any) -> None:
    task = task_of(builder, layer)
    strategy = initial(task, chip)
    assert strategy.family == "transposed"
    for sizes in layer.sizes:
        values = values_of(layer, sizes)
        (result,) = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        close(result, expected(layer, values), layer)


@few("name", LAYERS, keep=(6, 16))
def test_kernels_pass_the_audit(name: str, builder: Any, chip: Any) -> None:
    task = task_of(builder, LAYERS[name])
    assert audit(task, write(task, initial(task, chip), chip)).status is GateStatus.PASSED


TURNED = [
    "steps along a row",
    "steps and taps in one rhythm",
    "images",
    "no tap reaches",
    "groups of halves",
    "cut off at the borders",
    "volumes whose axes differ",
    "planes in steps, rows together",
    "many results",
]


@few(
    "name",
    TURNED,
    keep=(
        2,
        3,
        6,
    ),
)
def test_results_that_vector_cores_turn(name: str, builder: Any, on_twin: Any) -> None:
    layer = LAYERS[name]
    task = task_of(builder, layer)
    strategy = _turned(layer)
    for sizes in layer.sizes:
        values = values_of(layer, sizes)
        (result,) = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        close(result, expected(layer, values), layer)


@few("name", TURNED, keep=(6,))
def test_kernels_that_turn_results_pass_the_audit(name: str, builder: Any, chip: Any) -> None:
    task = task_of(builder, LAYERS[name])
    assert audit(task, write(task, _turned(LAYERS[name]), chip)).status is GateStatus.PASSED


def _turned(layer: Layer) -> Strategy:
    schedule = ConvTransposeSchedule(64, 64, 2, 64, 64, 3, turned=True, own_weights=layer.bias, step_slots=3)
    return Strategy("transposed", asdict(schedule))


ROWS = {
    "narrower than a fractal": Layer(
        (Axis(), Axis(2, 1)), (3, 3), 9, 20, ((2, 37, 4), (1, 2, 1), (1, 50, 2))
    ),
    "of 63 outputs": Layer((Axis(2, 1), Axis(2, 1)), (3, 3), 8, 16, ((1, 9, 32),), bias=True),
    "of whole fractals": Layer((Axis(2, 1, 1, 1), Axis(2, 1, 1, 1)), (3, 3), 8, 40, ((1, 11, 16),)),
    "in steps of three": Layer((Axis(3, 1), Axis(3, 1)), (3, 4), 8, 6, ((1, 7, 13), (1, 1, 9)), groups=2),
    "of halves": Layer((Axis(2, 1), Axis(1, 1)), (4, 3), 20, 16, ((1, 12, 21),), dtype="float16"),
    "of planes in steps": Layer((Axis(2, 1), Axis(2, 1), Axis(2, 1)), (3, 3, 3), 3, 16, ((1, 5, 9, 11),)),
}


@few("layer", ROWS.values(), keep=(0, 5), ids=ROWS.keys())
def test_rows_that_are_turned_together(layer: Layer, builder: Any, on_twin: Any) -> None:
    """Rows that begin in the middle of a block, several to a block, and fewer in the last piece."""
    task = task_of(builder, layer)
    strategy = Strategy("transposed", asdict(ConvTransposeSchedule(64, 256, 2, 160, 80, 3, turned=True)))
    for sizes in layer.sizes:
        values = values_of(layer, sizes)
        (result,) = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        close(result, expected(layer, values), layer)


def test_rows_that_lie_side_by_side_are_one_copy(builder: Any, chip: Any) -> None:
    """64 rows of 32 outputs for each of 16 channels: the vector cores store many rows at a time."""
    task = task_of(builder, evolve(ROWS["of whole fractals"], results=16, sizes=((24, 32, 16),)))
    strategy = Strategy("transposed", asdict(ConvTransposeSchedule(64, 256, 2, 160, 80, 3, turned=True)))
    tensors = [item.spec.nbytes(task.sizes) for item in task.graph.inputs]
    request = RunRequest(
        Mode.TIME,
        chip,
        sizes=tuple(task.sizes.values()),
        inputs=tuple(TensorFile(None, nbytes) for nbytes in tensors),
        outputs=tuple(TensorFile(None, spec.nbytes(task.sizes)) for spec in task.graph.output_specs()),
    )
    (launch,) = run_kernel(build_kernel(write(task, strategy, chip)), request).launches
    assert dict(launch.work)["MTE3"].instructions < 24 * 64


SWEPT = {
    "down the height": Layer((Axis(2, 1, 1, 1), Axis()), (5, 3), 20, 5, ((1, 230, 9), (2, 61, 9)), bias=True),
    "down the depth": Layer((Axis(1, 1), Axis(2, 1), Axis(2)), (4, 3, 2), 9, 6, ((1, 110, 3, 9),), groups=2),
    "of two heights": Layer((Axis(1, 1), Axis(2, 1), Axis()), (3, 3, 3), 9, 6, ((1, 60, 5, 7),)),
}


@few(
    ("layer", "turned", "own_weights"),
    [(layer, *chosen) for layer in SWEPT.values() for chosen in ((False, True), (True, False), (True, True))],
    keep=(0, 5, 8),
)
def test_slabs_share_rows(layer: Layer, turned: bool, own_weights: bool, builder: Any, on_twin: Any) -> None:
    """Several tiles of a sweep for each core, more than lie in the ring at a time."""
    task = task_of(builder, layer)
    strategy = Strategy(
        "transposed", asdict(ConvTransposeSchedule(16, 32, 2, 64, 64, 3, turned, own_weights, 3))
    )
    for sizes in layer.sizes:
        values = values_of(layer, sizes)
        (result,) = on_twin(task, values, strategy=strategy, sizes=dict(zip(task.sizes, sizes, strict=True)))
        close(result, expected(layer, values), layer)


@few("part", range(3), keep=(0,))
def test_every_move_gives_the_same_result(part: int, builder: Any, on_twin: Any, chip: Any) -> None:
    layer = evolve(LAYERS["images in steps"], channels=40, results=72, sizes=((3, 9, 70),))
    task = task_of(builder, layer)
    start = initial(task, chip)
    values = values_of(layer, layer.sizes[0])
    wanted = expected(layer, values)
    found = moves(task, start, chip)
    assert len(found) > 4
    for move in found[3 * part :: 9]:
        (result,) = on_twin(task, values, strategy=move.strategy)
        close(result, wanted, layer)


@given(
    st.integers(1, 5), st.integers(0, 6), st.integers(1, 4), st.integers(1, 6), st.integers(1, 12), st.data()
)
def test_phases_read_what_the_definition_reads(
    stride: int, padding: int, dilation: int, kernel: int, length: int, data: st.DataObject
) -> None:
    axis = Axis(stride, padding, dilation, data.draw(st.integers(0, max(stride, dilation) - 1)))
    pairs = {
        (inner * stride + tap * dilation - padding, tap, inner)
        for inner in range(length)
        for tap in range(kernel)
    }
    by_phase = {
        (stride * row + phase, tap, row + distance)
        for phase in range(stride)
        for tap, distance in axis.taps(phase, kernel)
        for row in range(length + kernel * dilation + padding)
        if 0 <= row + distance < length
    }
    count = axis.outputs(length, kernel)
    assert {pair for pair in pairs if 0 <= pair[0] < count} == {p for p in by_phase if p[0] < count}
    distances = [distance for phase in range(stride) for _, distance in axis.taps(phase, kernel)]
    assert (axis.lowest(kernel), axis.highest) == (min(distances), max(distances))
    spacings = {b[0] - a[0] for q in range(stride) for a, b in itertools.pairwise(list(axis.taps(q, kernel)))}
    assert spacings <= {axis.tap_step}


def test_taps_too_far_apart_are_refused(builder: Any, chip: Any) -> None:
    task = task_of(builder, Layer((Axis(1, 0, 5000),), (9,), 8, 8, ((1, 10),)))
    with pytest.raises(PlanError, match="too far apart"):
        initial(task, chip)
