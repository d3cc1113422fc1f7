"""The tiling of transposed convolutions in the IR against the same arithmetic in Python, by which schedules
are priced, and against the definition of phases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evokernel_core.targets.ascendc.ir.builder import Builder
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.expr import Int
from evokernel_core.targets.ascendc.ir.tile import known_values
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    ConvTransposeAxis as Axis,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.conv_transpose_geometry import (
    Transposed,
    read_transposed,
)
from evokernel_core.targets.ascendc.kernels.conv_transpose.cube import build
from evokernel_core.targets.ascendc.kernels.conv_transpose.phases import along
from evokernel_core.targets.ascendc.kernels.conv_transpose.tiles import (
    ConvTransposeSchedule,
    joined_lines,
    plan,
)
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.ascendc.transposed import Layer, task_of

_AXES = st.builds(Axis, st.integers(1, 4), st.integers(0, 3), st.integers(1, 3))
_DIMS = st.lists(st.tuples(_AXES, st.integers(1, 5), st.integers(4, 300)), min_size=1, max_size=3)
_SCHEDULES = st.builds(
    ConvTransposeSchedule,
    st.sampled_from((16, 64, 128)),
    st.sampled_from((32, 128, 512)),
    st.sampled_from((1, 2)),
    st.sampled_from((16, 80, 160)),
    st.sampled_from((16, 80)),
    st.just(3),
    st.booleans(),
    st.booleans(),
    st.sampled_from((2, 3)),
)


def values_of(
    found: Transposed, schedule: ConvTransposeSchedule, sizes: dict[str, int], chip: Any
) -> dict[str, int] | None:
    """The fields by their names; None where ComputeTiling refuses the sizes."""
    known, unmet = known_values(build(found, schedule, "output"), sizes, chip.aiv)
    return None if unmet is not None else {name.removeprefix("tiling."): item for name, item in known.items()}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    dims=_DIMS,
    widths=st.tuples(st.integers(1, 600), st.integers(1, 300), st.integers(1, 2)),
    dtype=st.sampled_from(["float32", "float16"]),
    schedule=_SCHEDULES,
)
def test_tilings_are_those_by_which_schedules_are_priced(
    dims: list[tuple[Axis, int, int]],
    widths: tuple[int, int, int],
    dtype: str,
    schedule: ConvTransposeSchedule,
    chip: Any,
) -> None:
    axes, kernel, lengths = zip(*dims, strict=True)
    layer = Layer(axes, kernel, widths[0], widths[1], ((2, *lengths),), widths[2], dtype=dtype)
    task = task_of(GraphBuilder, layer)
    found = read_transposed(task, chip)
    planned = plan(found, schedule, task.sizes)
    known = values_of(found, schedule, task.sizes, chip)
    assert (known is None) == (planned is None)
    if known is None or planned is None:
        return
    assert (known["tileM"], known["tilesM"]) == (planned.tile_m, planned.tiles_m)
    assert tuple(known[f"tile{letter}"] for letter in "DHW") == planned.tile
    assert tuple(known[f"slab{letter}"] for letter in "DHW") == planned.slab
    assert (known["plane"], known["tiles"]) == (planned.plane, planned.tiles)
    assert (known["blocks"], known["chunks"], known["resident"]) == (
        planned.blocks, planned.chunks, planned.is_resident,
    )  # fmt: skip
    assert (known["stepBlocks"], known["rowBatch"]) == (planned.step_blocks, planned.row_batch)
    assert known["flat"] == planned.is_flat
    if schedule.turned:
        assert known["dense"] == planned.is_dense
        lines = joined_lines(found, schedule, found.sizes(task.sizes), planned)
        assert known["turnRows"] == max(1, lines * found.alternating[1])


@given(st.integers(1, 5), st.integers(0, 6), st.integers(1, 4), st.integers(1, 8))
def test_tables_hold_the_taps_of_each_phase(stride: int, padding: int, dilation: int, kernel: int) -> None:
    axis, k = Axis(stride, padding, dilation), Builder("A dimension.")
    item = along(k, axis, "W", k.param("kernelW", Int(kernel)))
    lowest = axis.lowest(kernel)
    front = 0
    for phase in range(stride):
        wanted = list(axis.taps(phase, kernel))
        count = item.taps.values[phase].evaluate({})
        assert count == len(wanted)
        first = item.at.values[phase].evaluate({})
        places = [first - number * item.delta for number in range(count)]
        assert places == [place - lowest for _, place in wanted]
    order = sorted(
        range(stride), key=lambda phase: min((tap for tap, _ in axis.taps(phase, kernel)), default=99)
    )
    for phase in order:
        count = item.taps.values[phase].evaluate({})
        assert not count or item.below.values[phase].evaluate({}) == front
        front += count


@pytest.mark.parametrize("turned", [False, True])
def test_drafts_are_legal(turned: bool, chip: Any) -> None:
    layer = Layer((Axis(2, 1, 1, 1), Axis(2, 1)), (3, 4), 96, 200, ((3, 40, 70),), 2, True, "float16")
    task = task_of(GraphBuilder, layer)
    schedule = ConvTransposeSchedule(128, 256, 2, 160, 80, 3, turned=turned, step_slots=3)
    kernel = build(read_transposed(task, chip), schedule, "output")
    assert not list(broken_rules(kernel, chip, task.sizes))
    small = ConvTransposeSchedule(128, 256, 2, 400, 80, 3, turned=turned)
    rules = {
        item.rule
        for item in broken_rules(build(read_transposed(task, chip), small, "output"), chip, task.sizes)
    }
    assert rules == {"capacity"}
