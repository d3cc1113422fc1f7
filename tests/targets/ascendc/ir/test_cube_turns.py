"""Cube cores whose vector cores make of each turn's results what the rest of the turn reads: an attention."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from evokernel_core.compiler.shapes.sizes import extent
from evokernel_core.domain.kernel import KernelSource, Strategy
from evokernel_core.domain.task import KernelTask
from evokernel_core.hardware.ascend.chip import Chip, load_chip
from evokernel_core.targets.ascendc.author import initial, moves, write
from evokernel_core.targets.ascendc.ir.allocation import bytes_of
from evokernel_core.targets.ascendc.ir.cube_legality import broken_rules
from evokernel_core.targets.ascendc.ir.expr import Constant
from evokernel_core.targets.ascendc.ir.handing_cube import rings_of, stream_of
from evokernel_core.targets.ascendc.ir.legality import broken_rules as vector_rules
from evokernel_core.targets.ascendc.ir.nodes import Kernel, Role, Section
from evokernel_core.targets.ascendc.kernels.attention.attention_kernel import build
from evokernel_core.targets.ascendc.kernels.attention.attention_settings import (
    AttentionSchedule,
    fixed_bytes,
    read_on_chip,
    widest_parts,
)
from evokernel_core.targets.ascendc.source import KERNEL
from evokernel_core.twin.build import build_kernel
from evokernel_core.twin.run import ExitStatus, Mode, RunRequest, RunResult, TensorFile, run_kernel
from tests.targets.ascendc.conftest import GraphBuilder
from tests.targets.ascendc.cores import on_all_cores_too
from tests.targets.ascendc.test_attention import attention, task_of

QUERIES, KEYS = 60, 200
SIZES = {"q": QUERIES, "k": KEYS}
few_cores = on_all_cores_too(QUERIES=900, KEYS=300, SIZES={"q": 900, "k": 300})
SCHEDULE = AttentionSchedule(32, 64, 8, 16, 16, 32, 2, 2)
"""Several units of several steps for each of few cores, several results, panels and steps in L0 for each
product."""


@pytest.fixture(scope="module")
def written(few_cores: Chip) -> tuple[KernelTask, KernelSource]:
    """The task and its kernel."""
    task = task_of(GraphBuilder, "float16", heads=4, shared=4, depth=48, width=40)
    return task, write(task, Strategy("attention", SCHEDULE.settings()), few_cores)


@pytest.fixture
def on_turns(
    written: tuple[KernelTask, KernelSource], few_cores: Chip, tmp_path: Path
) -> Callable[..., tuple[RunResult, Any, Any]]:
    """A function of a change of the kernel's text: the run in checked mode, its result, and what it is to
    be."""
    task, whole = written
    rng = np.random.default_rng(1)
    inputs = {item.name: rng.normal(size=item.spec.sizes(SIZES)).astype("f2") for item in task.graph.inputs}
    files = [tmp_path / f"{name}.bin" for name in inputs]
    for path, values in zip(files, inputs.values(), strict=True):
        path.write_bytes(values.tobytes())
    expected = attention(*inputs.values())

    def run(change: Callable[[str], str]) -> tuple[RunResult, Any, Any]:
        source = whole.with_files({KERNEL: change(whole.files[KERNEL])})
        result = TensorFile(tmp_path / "output.bin", expected.size * 2)
        taken = tuple(TensorFile(path, path.stat().st_size) for path in files)
        sizes = tuple(SIZES.values())
        request = RunRequest(Mode.CHECK, few_cores, sizes=sizes, inputs=taken, outputs=(result,), repeat=2)
        found = run_kernel(build_kernel(source), request)
        if found.status is not ExitStatus.OK:
            return found, None, expected
        return found, np.fromfile(tmp_path / "output.bin", "f2").reshape(expected.shape), expected

    return run


def without(word: str) -> Callable[[str], str]:
    """A change that leaves out an event or a flag, wherever it is set and waited for."""
    return lambda text: "\n".join(
        line
        for line in text.splitlines()
        if f"HardEvent::{word}>" not in line and not ("CrossCore" in line and f"({word})" in line)
    )


def test_every_event_and_flag_is_there(on_turns: Any) -> None:
    result, found, expected = on_turns(str)
    assert result.status is ExitStatus.OK, result.message
    assert not result.hazards
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


EVENTS = ("MTE1_MTE2", "MTE2_MTE1", "M_MTE1", "MTE1_M", "FIX_M", "M_FIX")


@pytest.mark.parametrize("word", [*EVENTS, "SCORES_READY", "WEIGHTS_READY", "RESULTS_READY"])
def test_every_event_and_flag_is_needed(word: str, on_turns: Any) -> None:
    assert on_turns(without(word))[0].hazards


def made(builder: Any, dtype: str = "float16") -> Kernel:
    return build(read_on_chip(task_of(builder, dtype), load_chip("ascend910b1")), SCHEDULE).kernel


def test_where_a_turn_is_cut(builder: Any) -> None:
    """In front of what reads what the vector cores have written."""
    stream = stream_of(made(builder))
    assert stream is not None
    assert [item.name for item in stream.loads if isinstance(item, Section)] == ["Score"]
    assert [item.name for item in stream.uses if isinstance(item, Section)] == ["Weigh"]
    assert [item.name for item in rings_of(stream.loads, Role.OUTPUT)] == ["scores"]
    assert [item.name for item in rings_of(stream.uses, Role.INPUT)] == ["weights"]
    assert [item.name for item in rings_of(stream.uses, Role.OUTPUT)] == ["results"]


def test_rings_have_as_many_places(builder: Any, chip: Any) -> None:
    kernel = made(builder)
    first, *others = kernel.rings
    uneven = evolve(kernel, rings=(evolve(first, places=Constant("THREE", 3)), *others))
    assert stream_of(uneven) is None
    assert "no-stream" in {item.rule for item in broken_rules(uneven, chip, SIZES)}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("mask", [(), ("q", "k")])
def test_kernels_of_all_moves_are_legal(dtype: str, mask: tuple[str, ...], builder: Any, chip: Any) -> None:
    """And take no more of the unified buffer than the schedule says."""
    task = task_of(builder, dtype, is_causal=not mask, mask=mask)
    start, found = initial(task, chip), read_on_chip(task, chip)
    for strategy in (start, *(move.strategy for move in moves(task, start, chip))):
        schedule = AttentionSchedule.of(strategy)
        kernel = build(found, schedule)
        assert not list(broken_rules(kernel.kernel, chip, task.sizes)), strategy.move
        assert kernel.vectors is not None
        assert not list(vector_rules(kernel.vectors, chip, task.sizes)), strategy.move
        parts = schedule.queries // 2 * widest_parts(found, schedule) * 4
        assert bytes_of(kernel.vectors) <= fixed_bytes(found, schedule) + parts


def test_a_section_that_stands_twice_is_one_method(builder: Any, chip: Any) -> None:
    task = task_of(builder)
    text = write(task, initial(task, chip), chip).files[KERNEL]
    assert text.count("void Collect(") == 1
    assert text.count(" Collect();") == 2


@pytest.mark.parametrize(
    ("keys", "width", "widest"), [(600, 40, 40), (600, 41, 48), (64, 40, 0), (600, 4096, 0)]
)
def test_parts_of_the_output_stay_where_they_fit(
    keys: int, width: int, widest: int, builder: Any, chip: Any
) -> None:
    """None are kept where one step holds all keys."""
    found = read_on_chip(task_of(builder, width=width), chip)
    assert widest_parts(evolve(found, keys=extent(keys)), SCHEDULE) == widest


def test_widths_that_only_the_call_knows_have_all_the_room(builder: Any, chip: Any) -> None:
    found = evolve(read_on_chip(task_of(builder), chip), width=extent("w"))
    widest = widest_parts(found, SCHEDULE)
    assert widest == SCHEDULE.chunk * SCHEDULE.keys // 8
    wide = evolve(SCHEDULE, chunk=64, queries=256, keys=256, buffers=1)
    assert 0 < widest_parts(found, wide) * 128 * 4 <= chip.ub_bytes - fixed_bytes(found, wide)
